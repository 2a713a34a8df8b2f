from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="StaleEvent")


@_attrs_define
class StaleEvent:
    """`stale`: the database cannot be reached. The next event of another kind says that it can be again.

    Attributes:
        stale_for_seconds (int): How long ago what was last shown was right.
    """

    stale_for_seconds: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        stale_for_seconds = self.stale_for_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "stale_for_seconds": stale_for_seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        stale_for_seconds = d.pop("stale_for_seconds")

        stale_event = cls(
            stale_for_seconds=stale_for_seconds,
        )

        stale_event.additional_properties = d
        return stale_event

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
