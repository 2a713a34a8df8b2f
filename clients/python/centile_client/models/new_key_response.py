from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.key_state import KeyState
from ..models.role import Role
from ..types import UNSET, Unset

T = TypeVar("T", bound="NewKeyResponse")


@_attrs_define
class NewKeyResponse:
    """A new key.

    Attributes:
        boards (list[str]): Boards that it is for; all when empty. Example: ['arena'].
        created_at (datetime.datetime): When it was made.
        expires_at (datetime.datetime | None): When it stops working.
        id (str): Its id, which is part of its text. Example: 0123456789abcdef.
        last_used_at (datetime.datetime | None): When it was last used, to the minute.
        name (str): Whom it is for. Example: match server.
        revoked_at (datetime.datetime | None): When it was revoked.
        role (Role): What a key is for.
        signed (bool): Whether its requests have to be signed.
        state (KeyState): Whether a key works.
        key (str): Its text, to be sent as `Authorization: Bearer …`. Shown this once and stored nowhere. Example:
            ctl_0123456789abcdef_….
        signing_secret (None | str | Unset): What its requests are signed with, if they have to be. Shown this once,
            too. Example: ctls_….
    """

    boards: list[str]
    created_at: datetime.datetime
    expires_at: datetime.datetime | None
    id: str
    last_used_at: datetime.datetime | None
    name: str
    revoked_at: datetime.datetime | None
    role: Role
    signed: bool
    state: KeyState
    key: str
    signing_secret: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        boards = self.boards

        created_at = self.created_at.isoformat()

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        id = self.id

        last_used_at: None | str
        if isinstance(self.last_used_at, datetime.datetime):
            last_used_at = self.last_used_at.isoformat()
        else:
            last_used_at = self.last_used_at

        name = self.name

        revoked_at: None | str
        if isinstance(self.revoked_at, datetime.datetime):
            revoked_at = self.revoked_at.isoformat()
        else:
            revoked_at = self.revoked_at

        role = self.role.value

        signed = self.signed

        state = self.state.value

        key = self.key

        signing_secret: None | str | Unset
        if isinstance(self.signing_secret, Unset):
            signing_secret = UNSET
        else:
            signing_secret = self.signing_secret

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "boards": boards,
                "created_at": created_at,
                "expires_at": expires_at,
                "id": id,
                "last_used_at": last_used_at,
                "name": name,
                "revoked_at": revoked_at,
                "role": role,
                "signed": signed,
                "state": state,
                "key": key,
            }
        )
        if signing_secret is not UNSET:
            field_dict["signing_secret"] = signing_secret

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        boards = cast(list[str], d.pop("boards"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        id = d.pop("id")

        def _parse_last_used_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_used_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_used_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_used_at = _parse_last_used_at(d.pop("last_used_at"))

        name = d.pop("name")

        def _parse_revoked_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                revoked_at_type_0 = datetime.datetime.fromisoformat(data)

                return revoked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        revoked_at = _parse_revoked_at(d.pop("revoked_at"))

        role = Role(d.pop("role"))

        signed = d.pop("signed")

        state = KeyState(d.pop("state"))

        key = d.pop("key")

        def _parse_signing_secret(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        signing_secret = _parse_signing_secret(d.pop("signing_secret", UNSET))

        new_key_response = cls(
            boards=boards,
            created_at=created_at,
            expires_at=expires_at,
            id=id,
            last_used_at=last_used_at,
            name=name,
            revoked_at=revoked_at,
            role=role,
            signed=signed,
            state=state,
            key=key,
            signing_secret=signing_secret,
        )

        new_key_response.additional_properties = d
        return new_key_response

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
