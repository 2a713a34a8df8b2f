from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.history_row_response import HistoryRowResponse


T = TypeVar("T", bound="HistoryResponse")


@_attrs_define
class HistoryResponse:
    """A player's ledger.

    Attributes:
        board (str): Name of the board. Example: arena.
        history (list[HistoryRowResponse]): The acts, newest first.
        next_ (None | str): `cursor` of the next, older rows; null after the oldest.
        user_id (str): The caller's own id of the player. Example: ada.
    """

    board: str
    history: list[HistoryRowResponse]
    next_: None | str
    user_id: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        history = []
        for history_item_data in self.history:
            history_item = history_item_data.to_dict()
            history.append(history_item)

        next_: None | str
        next_ = self.next_

        user_id = self.user_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "history": history,
                "next": next_,
                "user_id": user_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.history_row_response import HistoryRowResponse  # noqa: PLC0415

        d = dict(src_dict)
        board = d.pop("board")

        history = []
        _history = d.pop("history")
        for history_item_data in _history:
            history_item = HistoryRowResponse.from_dict(history_item_data)

            history.append(history_item)

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        user_id = d.pop("user_id")

        history_response = cls(
            board=board,
            history=history,
            next_=next_,
            user_id=user_id,
        )

        history_response.additional_properties = d
        return history_response

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
