from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.period_response import PeriodResponse


T = TypeVar("T", bound="PeriodsResponse")


@_attrs_define
class PeriodsResponse:
    """The periods of a board.

    Attributes:
        board (str): Name of the board. Example: arena.
        periods (list[PeriodResponse]): The periods opened so far, newest first.
    """

    board: str
    periods: list[PeriodResponse]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        periods = []
        for periods_item_data in self.periods:
            periods_item = periods_item_data.to_dict()
            periods.append(periods_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "periods": periods,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.period_response import PeriodResponse  # noqa: PLC0415

        d = dict(src_dict)
        board = d.pop("board")

        periods = []
        _periods = d.pop("periods")
        for periods_item_data in _periods:
            periods_item = PeriodResponse.from_dict(periods_item_data)

            periods.append(periods_item)

        periods_response = cls(
            board=board,
            periods=periods,
        )

        periods_response.additional_properties = d
        return periods_response

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
