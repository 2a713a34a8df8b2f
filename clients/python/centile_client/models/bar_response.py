from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="BarResponse")


@_attrs_define
class BarResponse:
    """A range of the histogram.

    Attributes:
        from_score (int): Score of the worst player in the range. Example: 1000.
        players (int): Players in the range. Example: 412.
        to_score (int): Score of the best player in the range. Example: 1250.
    """

    from_score: int
    players: int
    to_score: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from_score = self.from_score

        players = self.players

        to_score = self.to_score

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "from_score": from_score,
                "players": players,
                "to_score": to_score,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        from_score = d.pop("from_score")

        players = d.pop("players")

        to_score = d.pop("to_score")

        bar_response = cls(
            from_score=from_score,
            players=players,
            to_score=to_score,
        )

        bar_response.additional_properties = d
        return bar_response

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
