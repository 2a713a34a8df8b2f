from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.mode import Mode
from ..models.on_violation import OnViolation
from ..models.order import Order
from ..models.reading import Reading
from ..models.ties import Ties
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.update_board_gain_max import UpdateBoardGainMax
    from ..models.update_board_kept_archives import UpdateBoardKeptArchives


T = TypeVar("T", bound="UpdateBoard")


@_attrs_define
class UpdateBoard:
    """Changes to a board; what is absent stays. Mode, order, ties, time zone and lanes cannot change once events exist.

    Attributes:
        events_per_minute (int | None | Unset): New limit of events of a player in any 60 seconds; null takes it off.
        frozen_top_size (int | None | Unset): New size of the top that is kept of each period closed from now on.
        gain_max (UpdateBoardGainMax | Unset): The most that a player may gain in a period, by its kind: a number from 1
            to 2⁵³ − 1, or null for anything again. Kinds that
            are absent stay as they are. Example: {'day': 5000, 'week': None}.
        kept_archives (UpdateBoardKeptArchives | Unset): How many closed periods of a kind keep their archive: a number
            from 1 to 1,000,000, or null for all again. Kinds that
            are absent stay as they are. Example: {'day': 30, 'week': None}.
        lanes (int | None | Unset): New number of writer lanes.
        mode (Mode | None | Unset):
        on_violation (None | OnViolation | Unset):
        order (None | Order | Unset):
        points_max (int | None | Unset): New most points an event may carry.
        points_min (int | None | Unset): New least points an event may carry.
        reading (None | Reading | Unset):
        ties (None | Ties | Unset):
        time_zone (None | str | Unset): New IANA time zone. Example: Europe/Berlin.
        title (None | str | Unset): New title for people. Example: Arena, season two.
    """

    events_per_minute: int | None | Unset = UNSET
    frozen_top_size: int | None | Unset = UNSET
    gain_max: UpdateBoardGainMax | Unset = UNSET
    kept_archives: UpdateBoardKeptArchives | Unset = UNSET
    lanes: int | None | Unset = UNSET
    mode: Mode | None | Unset = UNSET
    on_violation: None | OnViolation | Unset = UNSET
    order: None | Order | Unset = UNSET
    points_max: int | None | Unset = UNSET
    points_min: int | None | Unset = UNSET
    reading: None | Reading | Unset = UNSET
    ties: None | Ties | Unset = UNSET
    time_zone: None | str | Unset = UNSET
    title: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        events_per_minute: int | None | Unset
        if isinstance(self.events_per_minute, Unset):
            events_per_minute = UNSET
        else:
            events_per_minute = self.events_per_minute

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

        mode: None | str | Unset
        if isinstance(self.mode, Unset):
            mode = UNSET
        elif isinstance(self.mode, Mode):
            mode = self.mode.value
        else:
            mode = self.mode

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

        field_dict.update({})
        if events_per_minute is not UNSET:
            field_dict["events_per_minute"] = events_per_minute
        if frozen_top_size is not UNSET:
            field_dict["frozen_top_size"] = frozen_top_size
        if gain_max is not UNSET:
            field_dict["gain_max"] = gain_max
        if kept_archives is not UNSET:
            field_dict["kept_archives"] = kept_archives
        if lanes is not UNSET:
            field_dict["lanes"] = lanes
        if mode is not UNSET:
            field_dict["mode"] = mode
        if on_violation is not UNSET:
            field_dict["on_violation"] = on_violation
        if order is not UNSET:
            field_dict["order"] = order
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
        from ..models.update_board_gain_max import UpdateBoardGainMax  # noqa: PLC0415
        from ..models.update_board_kept_archives import UpdateBoardKeptArchives  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_events_per_minute(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        events_per_minute = _parse_events_per_minute(d.pop("events_per_minute", UNSET))

        def _parse_frozen_top_size(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        frozen_top_size = _parse_frozen_top_size(d.pop("frozen_top_size", UNSET))

        _gain_max = d.pop("gain_max", UNSET)
        gain_max: UpdateBoardGainMax | Unset
        if isinstance(_gain_max, Unset):
            gain_max = UNSET
        else:
            gain_max = UpdateBoardGainMax.from_dict(_gain_max)

        _kept_archives = d.pop("kept_archives", UNSET)
        kept_archives: UpdateBoardKeptArchives | Unset
        if isinstance(_kept_archives, Unset):
            kept_archives = UNSET
        else:
            kept_archives = UpdateBoardKeptArchives.from_dict(_kept_archives)

        def _parse_lanes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lanes = _parse_lanes(d.pop("lanes", UNSET))

        def _parse_mode(data: object) -> Mode | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                mode_type_0 = Mode(data)

                return mode_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Mode | None | Unset, data)

        mode = _parse_mode(d.pop("mode", UNSET))

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

        update_board = cls(
            events_per_minute=events_per_minute,
            frozen_top_size=frozen_top_size,
            gain_max=gain_max,
            kept_archives=kept_archives,
            lanes=lanes,
            mode=mode,
            on_violation=on_violation,
            order=order,
            points_max=points_max,
            points_min=points_min,
            reading=reading,
            ties=ties,
            time_zone=time_zone,
            title=title,
        )

        return update_board
