from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.quarantined_event_response import QuarantinedEventResponse


T = TypeVar("T", bound="QuarantineResponse")


@_attrs_define
class QuarantineResponse:
    """A part of a board's quarantine.

    Attributes:
        board (str): Name of the board. Example: arena.
        events (list[QuarantinedEventResponse]): The events, in the order in which they came.
        next_ (None | str): `cursor` of the next events; null after the last.
    """

    board: str
    events: list[QuarantinedEventResponse]
    next_: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        events = []
        for events_item_data in self.events:
            events_item = events_item_data.to_dict()
            events.append(events_item)

        next_: None | str
        next_ = self.next_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "events": events,
                "next": next_,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.quarantined_event_response import QuarantinedEventResponse  # noqa: PLC0415

        d = dict(src_dict)
        board = d.pop("board")

        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = QuarantinedEventResponse.from_dict(events_item_data)

            events.append(events_item)

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        quarantine_response = cls(
            board=board,
            events=events,
            next_=next_,
        )

        quarantine_response.additional_properties = d
        return quarantine_response

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
