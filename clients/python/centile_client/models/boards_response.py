from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.board_response import BoardResponse


T = TypeVar("T", bound="BoardsResponse")


@_attrs_define
class BoardsResponse:
    """All boards.

    Attributes:
        boards (list[BoardResponse]): The boards, by slug.
    """

    boards: list[BoardResponse]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        boards = []
        for boards_item_data in self.boards:
            boards_item = boards_item_data.to_dict()
            boards.append(boards_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "boards": boards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.board_response import BoardResponse  # noqa: PLC0415

        d = dict(src_dict)
        boards = []
        _boards = d.pop("boards")
        for boards_item_data in _boards:
            boards_item = BoardResponse.from_dict(boards_item_data)

            boards.append(boards_item)

        boards_response = cls(
            boards=boards,
        )

        boards_response.additional_properties = d
        return boards_response

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
