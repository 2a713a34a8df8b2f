from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.put_user_metadata_type_0 import PutUserMetadataType0


T = TypeVar("T", bound="PutUser")


@_attrs_define
class PutUser:
    """What is to be known of a player; what is absent stays.

    Attributes:
        avatar (None | str | Unset): Address of a picture, up to 1,024 bytes; null removes it. Example:
            https://example.com/ada.png.
        metadata (None | PutUserMetadataType0 | Unset): Whatever the game keeps with a player, up to 8,192 bytes.
        name (None | str | Unset): Name shown in lists, up to 128 bytes; a new player's is the id. Example: Ada.
    """

    avatar: None | str | Unset = UNSET
    metadata: None | PutUserMetadataType0 | Unset = UNSET
    name: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.put_user_metadata_type_0 import PutUserMetadataType0  # noqa: PLC0415

        avatar: None | str | Unset
        if isinstance(self.avatar, Unset):
            avatar = UNSET
        else:
            avatar = self.avatar

        metadata: dict[str, Any] | None | Unset
        if isinstance(self.metadata, Unset):
            metadata = UNSET
        elif isinstance(self.metadata, PutUserMetadataType0):
            metadata = self.metadata.to_dict()
        else:
            metadata = self.metadata

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if avatar is not UNSET:
            field_dict["avatar"] = avatar
        if metadata is not UNSET:
            field_dict["metadata"] = metadata
        if name is not UNSET:
            field_dict["name"] = name

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.put_user_metadata_type_0 import PutUserMetadataType0  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_avatar(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        avatar = _parse_avatar(d.pop("avatar", UNSET))

        def _parse_metadata(data: object) -> None | PutUserMetadataType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                metadata_type_0 = PutUserMetadataType0.from_dict(data)

                return metadata_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PutUserMetadataType0 | Unset, data)

        metadata = _parse_metadata(d.pop("metadata", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        put_user = cls(
            avatar=avatar,
            metadata=metadata,
            name=name,
        )

        return put_user
