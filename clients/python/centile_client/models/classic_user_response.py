from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.classic_user import ClassicUser


T = TypeVar("T", bound="ClassicUserResponse")


@_attrs_define
class ClassicUserResponse:
    """One player of the default board.

    Attributes:
        user_info (ClassicUser): A player's score and rank.
    """

    user_info: ClassicUser
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        user_info = self.user_info.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "user_info": user_info,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.classic_user import ClassicUser  # noqa: PLC0415

        d = dict(src_dict)
        user_info = ClassicUser.from_dict(d.pop("user_info"))

        classic_user_response = cls(
            user_info=user_info,
        )

        classic_user_response.additional_properties = d
        return classic_user_response

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
