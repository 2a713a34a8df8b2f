from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.kept_period import KeptPeriod
from ..models.mode import Mode
from ..models.on_violation import OnViolation
from ..models.order import Order
from ..models.reading import Reading
from ..models.ties import Ties

if TYPE_CHECKING:
    from ..models.board_response_gain_max import BoardResponseGainMax
    from ..models.board_response_kept_archives import BoardResponseKeptArchives


T = TypeVar("T", bound="BoardResponse")


@_attrs_define
class BoardResponse:
    """A board.

    Attributes:
        created_at (datetime.datetime): When the board was made.
        events_per_minute (int | None): Most events of a player in any 60 seconds; null for any number. Example: 60.
        frozen_top_size (int): Players in the top that is kept for good of each closed period. Example: 100.
        gain_max (BoardResponseGainMax): The most that a player may gain in a period, by its kind; of a kind that is
            absent, anything. Example: {'day': 5000}.
        kept_archives (BoardResponseKeptArchives): How many closed periods of a kind keep their archive; of a kind that
            is absent, all. Example: {'day': 30, 'week': 52}.
        lanes (int): Writer lanes.
        mode (Mode): How a player's score in a period follows from the player's score transactions.
        on_violation (OnViolation): What becomes of an event that breaks one of its board's rules against cheating.
        order (Order): Which scores are better.
        periods (list[KeptPeriod]): The kinds of period kept.
        points_max (int): Most points an event may carry.
        points_min (int): Least points an event may carry.
        reading (Reading): Who may read a board.
        slug (str): Name in URLs. Example: arena.
        ties (Ties): What becomes of equal scores.
        time_zone (str): IANA time zone in which days, weeks and months begin. Example: UTC.
        title (str): Title for people. Example: Arena.
    """

    created_at: datetime.datetime
    events_per_minute: int | None
    frozen_top_size: int
    gain_max: BoardResponseGainMax
    kept_archives: BoardResponseKeptArchives
    lanes: int
    mode: Mode
    on_violation: OnViolation
    order: Order
    periods: list[KeptPeriod]
    points_max: int
    points_min: int
    reading: Reading
    slug: str
    ties: Ties
    time_zone: str
    title: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        created_at = self.created_at.isoformat()

        events_per_minute: int | None
        events_per_minute = self.events_per_minute

        frozen_top_size = self.frozen_top_size

        gain_max = self.gain_max.to_dict()

        kept_archives = self.kept_archives.to_dict()

        lanes = self.lanes

        mode = self.mode.value

        on_violation = self.on_violation.value

        order = self.order.value

        periods = []
        for periods_item_data in self.periods:
            periods_item = periods_item_data.value
            periods.append(periods_item)

        points_max = self.points_max

        points_min = self.points_min

        reading = self.reading.value

        slug = self.slug

        ties = self.ties.value

        time_zone = self.time_zone

        title = self.title

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "created_at": created_at,
                "events_per_minute": events_per_minute,
                "frozen_top_size": frozen_top_size,
                "gain_max": gain_max,
                "kept_archives": kept_archives,
                "lanes": lanes,
                "mode": mode,
                "on_violation": on_violation,
                "order": order,
                "periods": periods,
                "points_max": points_max,
                "points_min": points_min,
                "reading": reading,
                "slug": slug,
                "ties": ties,
                "time_zone": time_zone,
                "title": title,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.board_response_gain_max import BoardResponseGainMax  # noqa: PLC0415
        from ..models.board_response_kept_archives import BoardResponseKeptArchives  # noqa: PLC0415

        d = dict(src_dict)
        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_events_per_minute(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        events_per_minute = _parse_events_per_minute(d.pop("events_per_minute"))

        frozen_top_size = d.pop("frozen_top_size")

        gain_max = BoardResponseGainMax.from_dict(d.pop("gain_max"))

        kept_archives = BoardResponseKeptArchives.from_dict(d.pop("kept_archives"))

        lanes = d.pop("lanes")

        mode = Mode(d.pop("mode"))

        on_violation = OnViolation(d.pop("on_violation"))

        order = Order(d.pop("order"))

        periods = []
        _periods = d.pop("periods")
        for periods_item_data in _periods:
            periods_item = KeptPeriod(periods_item_data)

            periods.append(periods_item)

        points_max = d.pop("points_max")

        points_min = d.pop("points_min")

        reading = Reading(d.pop("reading"))

        slug = d.pop("slug")

        ties = Ties(d.pop("ties"))

        time_zone = d.pop("time_zone")

        title = d.pop("title")

        board_response = cls(
            created_at=created_at,
            events_per_minute=events_per_minute,
            frozen_top_size=frozen_top_size,
            gain_max=gain_max,
            kept_archives=kept_archives,
            lanes=lanes,
            mode=mode,
            on_violation=on_violation,
            order=order,
            periods=periods,
            points_max=points_max,
            points_min=points_min,
            reading=reading,
            slug=slug,
            ties=ties,
            time_zone=time_zone,
            title=title,
        )

        board_response.additional_properties = d
        return board_response

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
