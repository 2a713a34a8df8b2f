from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.user_response_metadata import UserResponseMetadata


T = TypeVar("T", bound="UserResponse")


@_attrs_define
class UserResponse:
    """A player.

    Attributes:
        avatar (None | str): Address of a picture.
        banned (bool): Whether the player is banned, and so in no ranking.
        metadata (UserResponseMetadata): Whatever the game keeps with a player.
        name (str): Name shown in lists. Example: Ada.
        user_id (str): The caller's own id. Example: ada.
    """

    avatar: None | str
    banned: bool
    metadata: UserResponseMetadata
    name: str
    user_id: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        avatar: None | str
        avatar = self.avatar

        banned = self.banned

        metadata = self.metadata.to_dict()

        name = self.name

        user_id = self.user_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "avatar": avatar,
                "banned": banned,
                "metadata": metadata,
                "name": name,
                "user_id": user_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.user_response_metadata import UserResponseMetadata  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_avatar(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        avatar = _parse_avatar(d.pop("avatar"))

        banned = d.pop("banned")

        metadata = UserResponseMetadata.from_dict(d.pop("metadata"))

        name = d.pop("name")

        user_id = d.pop("user_id")

        user_response = cls(
            avatar=avatar,
            banned=banned,
            metadata=metadata,
            name=name,
            user_id=user_id,
        )

        user_response.additional_properties = d
        return user_response

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
