from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.role import Role
from ..types import UNSET, Unset

T = TypeVar("T", bound="CreateKey")


@_attrs_define
class CreateKey:
    """What a new key is to be.

    Attributes:
        name (str): Whom it is for; of each name two keys work at most, so that one can take the other's place. Example:
            match server.
        role (Role): What a key is for.
        all_boards (bool | Unset): Whether the key is for all boards. An admin key always is.
        boards (list[str] | None | Unset): Boards of the key, each once. Absent for a key for all boards, and for an
            admin key. Example: ['arena'].
        expires_at (datetime.datetime | None | Unset): When it stops working; never when absent.
        signed (bool | Unset): Whether its requests have to be signed. Refused where the service has no master key to
            keep the signing secret under.
    """

    name: str
    role: Role
    all_boards: bool | Unset = UNSET
    boards: list[str] | None | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET
    signed: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        role = self.role.value

        all_boards = self.all_boards

        boards: list[str] | None | Unset
        if isinstance(self.boards, Unset):
            boards = UNSET
        elif isinstance(self.boards, list):
            boards = self.boards

        else:
            boards = self.boards

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        signed = self.signed

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "role": role,
            }
        )
        if all_boards is not UNSET:
            field_dict["all_boards"] = all_boards
        if boards is not UNSET:
            field_dict["boards"] = boards
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if signed is not UNSET:
            field_dict["signed"] = signed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        role = Role(d.pop("role"))

        all_boards = d.pop("all_boards", UNSET)

        def _parse_boards(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                boards_type_0 = cast(list[str], data)

                return boards_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        boards = _parse_boards(d.pop("boards", UNSET))

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        signed = d.pop("signed", UNSET)

        create_key = cls(
            name=name,
            role=role,
            all_boards=all_boards,
            boards=boards,
            expires_at=expires_at,
            signed=signed,
        )

        return create_key
