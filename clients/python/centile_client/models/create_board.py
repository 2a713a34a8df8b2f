from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.kept_period import KeptPeriod
from ..models.mode import Mode
from ..models.on_violation import OnViolation
from ..models.order import Order
from ..models.reading import Reading
from ..models.ties import Ties
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.create_board_gain_max import CreateBoardGainMax
    from ..models.create_board_kept_archives import CreateBoardKeptArchives
    from ..models.layout_by_bounds import LayoutByBounds
    from ..models.layout_by_points import LayoutByPoints


T = TypeVar("T", bound="CreateBoard")


@_attrs_define
class CreateBoard:
    """The rules of a new board.

    Attributes:
        mode (Mode): How a player's score in a period follows from the player's score transactions.
        slug (str): Name in URLs. Example: arena.
        events_per_minute (int | None | Unset): Most events of a player in any 60 seconds; any number when absent.
            Example: 60.
        first_layout (LayoutByBounds | LayoutByPoints | None | Unset):
        frozen_top_size (int | None | Unset): Players in the top that is kept for good of each closed period; 100 when
            absent. Default: 100.
        gain_max (CreateBoardGainMax | Unset): The most that a player may gain in a period, by its kind, one that the
            board keeps or `season`: from 1 to 2⁵³ − 1; of a kind that
            is absent or null, anything. On `sum` boards what is won in the period, whatever is lost in between; on `best`
            and
            `latest` boards how much better a score is than the one that the player came into the period with, or, of a
            newcomer,
            than the first in it. Example: {'day': 5000}.
        kept_archives (CreateBoardKeptArchives | Unset): How many closed periods of a kind keep their archive, the
            newest, from 1 to 1,000,000; of a kind that is absent or
            null, all. Example: {'day': 30, 'week': 52}.
        lanes (int | None | Unset): Writer lanes; by the number of cores when absent.
        on_violation (None | OnViolation | Unset):
        order (None | Order | Unset):
        periods (list[KeptPeriod] | None | Unset): The kinds of period kept, each once; all four when absent. Example:
            ['all_time', 'week'].
        points_max (int | None | Unset): Most points an event may carry; 2⁵³ − 1 when absent. Example: 1000.
        points_min (int | None | Unset): Least points an event may carry; −(2⁵³ − 1) when absent. Example: 0.
        reading (None | Reading | Unset):
        ties (None | Ties | Unset):
        time_zone (None | str | Unset): IANA time zone in which days, weeks and months begin; `UTC` when absent.
            Example: Europe/Berlin.
        title (None | str | Unset): Title for people; the slug when absent. Example: Arena.
    """

    mode: Mode
    slug: str
    events_per_minute: int | None | Unset = UNSET
    first_layout: LayoutByBounds | LayoutByPoints | None | Unset = UNSET
    frozen_top_size: int | None | Unset = 100
    gain_max: CreateBoardGainMax | Unset = UNSET
    kept_archives: CreateBoardKeptArchives | Unset = UNSET
    lanes: int | None | Unset = UNSET
    on_violation: None | OnViolation | Unset = UNSET
    order: None | Order | Unset = UNSET
    periods: list[KeptPeriod] | None | Unset = UNSET
    points_max: int | None | Unset = UNSET
    points_min: int | None | Unset = UNSET
    reading: None | Reading | Unset = UNSET
    ties: None | Ties | Unset = UNSET
    time_zone: None | str | Unset = UNSET
    title: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.layout_by_bounds import LayoutByBounds  # noqa: PLC0415
        from ..models.layout_by_points import LayoutByPoints  # noqa: PLC0415

        mode = self.mode.value

        slug = self.slug

        events_per_minute: int | None | Unset
        if isinstance(self.events_per_minute, Unset):
            events_per_minute = UNSET
        else:
            events_per_minute = self.events_per_minute

        first_layout: dict[str, Any] | None | Unset
        if isinstance(self.first_layout, Unset):
            first_layout = UNSET
        elif isinstance(self.first_layout, LayoutByBounds):
            first_layout = self.first_layout.to_dict()
        elif isinstance(self.first_layout, LayoutByPoints):
            first_layout = self.first_layout.to_dict()
        else:
            first_layout = self.first_layout

        frozen_top_size: int | None | Unset
        if isinstance(self.frozen_top_size, Unset):
            frozen_top_size = UNSET
        else:
            frozen_top_size = self.frozen_top_size

        gain_max: dict[str, Any] | Unset = UNSET
        if not isinstance(self.gain_max, Unset):
            gain_max = self.gain_max.to_dict()

        kept_archives: dict[str, Any] | Unset = UNSET
        if not isinstance(self.kept_archives, Unset):
            kept_archives = self.kept_archives.to_dict()

        lanes: int | None | Unset
        if isinstance(self.lanes, Unset):
            lanes = UNSET
        else:
            lanes = self.lanes

        on_violation: None | str | Unset
        if isinstance(self.on_violation, Unset):
            on_violation = UNSET
        elif isinstance(self.on_violation, OnViolation):
            on_violation = self.on_violation.value
        else:
            on_violation = self.on_violation

        order: None | str | Unset
        if isinstance(self.order, Unset):
            order = UNSET
        elif isinstance(self.order, Order):
            order = self.order.value
        else:
            order = self.order

        periods: list[str] | None | Unset
        if isinstance(self.periods, Unset):
            periods = UNSET
        elif isinstance(self.periods, list):
            periods = []
            for periods_type_0_item_data in self.periods:
                periods_type_0_item = periods_type_0_item_data.value
                periods.append(periods_type_0_item)

        else:
            periods = self.periods

        points_max: int | None | Unset
        if isinstance(self.points_max, Unset):
            points_max = UNSET
        else:
            points_max = self.points_max

        points_min: int | None | Unset
        if isinstance(self.points_min, Unset):
            points_min = UNSET
        else:
            points_min = self.points_min

        reading: None | str | Unset
        if isinstance(self.reading, Unset):
            reading = UNSET
        elif isinstance(self.reading, Reading):
            reading = self.reading.value
        else:
            reading = self.reading

        ties: None | str | Unset
        if isinstance(self.ties, Unset):
            ties = UNSET
        elif isinstance(self.ties, Ties):
            ties = self.ties.value
        else:
            ties = self.ties

        time_zone: None | str | Unset
        if isinstance(self.time_zone, Unset):
            time_zone = UNSET
        else:
            time_zone = self.time_zone

        title: None | str | Unset
        if isinstance(self.title, Unset):
            title = UNSET
        else:
            title = self.title

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "mode": mode,
                "slug": slug,
            }
        )
        if events_per_minute is not UNSET:
            field_dict["events_per_minute"] = events_per_minute
        if first_layout is not UNSET:
            field_dict["first_layout"] = first_layout
        if frozen_top_size is not UNSET:
            field_dict["frozen_top_size"] = frozen_top_size
        if gain_max is not UNSET:
            field_dict["gain_max"] = gain_max
        if kept_archives is not UNSET:
            field_dict["kept_archives"] = kept_archives
        if lanes is not UNSET:
            field_dict["lanes"] = lanes
        if on_violation is not UNSET:
            field_dict["on_violation"] = on_violation
        if order is not UNSET:
            field_dict["order"] = order
        if periods is not UNSET:
            field_dict["periods"] = periods
        if points_max is not UNSET:
            field_dict["points_max"] = points_max
        if points_min is not UNSET:
            field_dict["points_min"] = points_min
        if reading is not UNSET:
            field_dict["reading"] = reading
        if ties is not UNSET:
            field_dict["ties"] = ties
        if time_zone is not UNSET:
            field_dict["time_zone"] = time_zone
        if title is not UNSET:
            field_dict["title"] = title

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.create_board_gain_max import CreateBoardGainMax  # noqa: PLC0415
        from ..models.create_board_kept_archives import CreateBoardKeptArchives  # noqa: PLC0415
        from ..models.layout_by_bounds import LayoutByBounds  # noqa: PLC0415
        from ..models.layout_by_points import LayoutByPoints  # noqa: PLC0415

        d = dict(src_dict)
        mode = Mode(d.pop("mode"))

        slug = d.pop("slug")

        def _parse_events_per_minute(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        events_per_minute = _parse_events_per_minute(d.pop("events_per_minute", UNSET))

        def _parse_first_layout(data: object) -> LayoutByBounds | LayoutByPoints | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_first_layout_type_0 = LayoutByBounds.from_dict(data)

                return componentsschemas_first_layout_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_first_layout_type_1 = LayoutByPoints.from_dict(data)

                return componentsschemas_first_layout_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LayoutByBounds | LayoutByPoints | None | Unset, data)

        first_layout = _parse_first_layout(d.pop("first_layout", UNSET))

        def _parse_frozen_top_size(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        frozen_top_size = _parse_frozen_top_size(d.pop("frozen_top_size", UNSET))

        _gain_max = d.pop("gain_max", UNSET)
        gain_max: CreateBoardGainMax | Unset
        if isinstance(_gain_max, Unset):
            gain_max = UNSET
        else:
            gain_max = CreateBoardGainMax.from_dict(_gain_max)

        _kept_archives = d.pop("kept_archives", UNSET)
        kept_archives: CreateBoardKeptArchives | Unset
        if isinstance(_kept_archives, Unset):
            kept_archives = UNSET
        else:
            kept_archives = CreateBoardKeptArchives.from_dict(_kept_archives)

        def _parse_lanes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lanes = _parse_lanes(d.pop("lanes", UNSET))

        def _parse_on_violation(data: object) -> None | OnViolation | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                on_violation_type_0 = OnViolation(data)

                return on_violation_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OnViolation | Unset, data)

        on_violation = _parse_on_violation(d.pop("on_violation", UNSET))

        def _parse_order(data: object) -> None | Order | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                order_type_0 = Order(data)

                return order_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Order | Unset, data)

        order = _parse_order(d.pop("order", UNSET))

        def _parse_periods(data: object) -> list[KeptPeriod] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                periods_type_0 = []
                _periods_type_0 = data
                for periods_type_0_item_data in _periods_type_0:
                    periods_type_0_item = KeptPeriod(periods_type_0_item_data)

                    periods_type_0.append(periods_type_0_item)

                return periods_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[KeptPeriod] | None | Unset, data)

        periods = _parse_periods(d.pop("periods", UNSET))

        def _parse_points_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        points_max = _parse_points_max(d.pop("points_max", UNSET))

        def _parse_points_min(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        points_min = _parse_points_min(d.pop("points_min", UNSET))

        def _parse_reading(data: object) -> None | Reading | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                reading_type_0 = Reading(data)

                return reading_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Reading | Unset, data)

        reading = _parse_reading(d.pop("reading", UNSET))

        def _parse_ties(data: object) -> None | Ties | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ties_type_0 = Ties(data)

                return ties_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Ties | Unset, data)

        ties = _parse_ties(d.pop("ties", UNSET))

        def _parse_time_zone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        time_zone = _parse_time_zone(d.pop("time_zone", UNSET))

        def _parse_title(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        title = _parse_title(d.pop("title", UNSET))

        create_board = cls(
            mode=mode,
            slug=slug,
            events_per_minute=events_per_minute,
            first_layout=first_layout,
            frozen_top_size=frozen_top_size,
            gain_max=gain_max,
            kept_archives=kept_archives,
            lanes=lanes,
            on_violation=on_violation,
            order=order,
            periods=periods,
            points_max=points_max,
            points_min=points_min,
            reading=reading,
            ties=ties,
            time_zone=time_zone,
            title=title,
        )

        return create_board
