from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ChosenRequest")


@_attrs_define
class ChosenRequest:
    """Just these players.

    Attributes:
        users (list[str]): Ids of the players. Example: ['ada', 'bob'].
        period (None | str | Unset):
    """

    users: list[str]
    period: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        users = self.users

        period: None | str | Unset
        if isinstance(self.period, Unset):
            period = UNSET
        else:
            period = self.period

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "users": users,
            }
        )
        if period is not UNSET:
            field_dict["period"] = period

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        users = cast(list[str], d.pop("users"))

        def _parse_period(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        period = _parse_period(d.pop("period", UNSET))

        chosen_request = cls(
            users=users,
            period=period,
        )

        return chosen_request
