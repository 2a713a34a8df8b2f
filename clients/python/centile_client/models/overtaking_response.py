from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.named_player import NamedPlayer


T = TypeVar("T", bound="OvertakingResponse")


@_attrs_define
class OvertakingResponse:
    """One player who passed another.

    Attributes:
        by (NamedPlayer): A player, by name.
        new_rank (int): The same player's rank after it. Example: 7.
        old_rank (int): Rank, before, of the one who was passed. Example: 6.
        player (NamedPlayer): A player, by name.
        version (str): The version at which it had happened; several looks may be told of at once. Example:
            a3f1c2d4.2.142857.
    """

    by: NamedPlayer
    new_rank: int
    old_rank: int
    player: NamedPlayer
    version: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        by = self.by.to_dict()

        new_rank = self.new_rank

        old_rank = self.old_rank

        player = self.player.to_dict()

        version = self.version

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "by": by,
                "new_rank": new_rank,
                "old_rank": old_rank,
                "player": player,
                "version": version,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.named_player import NamedPlayer  # noqa: PLC0415

        d = dict(src_dict)
        by = NamedPlayer.from_dict(d.pop("by"))

        new_rank = d.pop("new_rank")

        old_rank = d.pop("old_rank")

        player = NamedPlayer.from_dict(d.pop("player"))

        version = d.pop("version")

        overtaking_response = cls(
            by=by,
            new_rank=new_rank,
            old_rank=old_rank,
            player=player,
            version=version,
        )

        overtaking_response.additional_properties = d
        return overtaking_response

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
