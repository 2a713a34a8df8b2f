from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.period_state import PeriodState

T = TypeVar("T", bound="SeasonResponse")


@_attrs_define
class SeasonResponse:
    """A season of a board.

    Attributes:
        board (str): Name of the board. Example: arena.
        ends_at (datetime.datetime): First instant after it.
        name (str): Name on its board. Example: spring.
        period (str): Its name wherever a call takes a `period`. Example: season:spring.
        starts_at (datetime.datetime): First instant.
        state (PeriodState): How far a period is in its life.
    """

    board: str
    ends_at: datetime.datetime
    name: str
    period: str
    starts_at: datetime.datetime
    state: PeriodState
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        ends_at = self.ends_at.isoformat()

        name = self.name

        period = self.period

        starts_at = self.starts_at.isoformat()

        state = self.state.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "ends_at": ends_at,
                "name": name,
                "period": period,
                "starts_at": starts_at,
                "state": state,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        board = d.pop("board")

        ends_at = datetime.datetime.fromisoformat(d.pop("ends_at"))

        name = d.pop("name")

        period = d.pop("period")

        starts_at = datetime.datetime.fromisoformat(d.pop("starts_at"))

        state = PeriodState(d.pop("state"))

        season_response = cls(
            board=board,
            ends_at=ends_at,
            name=name,
            period=period,
            starts_at=starts_at,
            state=state,
        )

        season_response.additional_properties = d
        return season_response

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
