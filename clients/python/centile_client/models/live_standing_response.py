from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.row_response import RowResponse


T = TypeVar("T", bound="LiveStandingResponse")


@_attrs_define
class LiveStandingResponse:
    """A chosen player.

    Attributes:
        avatar (None | str): Address of a picture.
        position (int): Place in the total order, from 1, never shared. Example: 7.
        rank (int): Rank, shared among equals on `shared` boards. Example: 6.
        reached_at (datetime.datetime): When the score was reached.
        score (int): Score. Example: 1234.
        user_id (str): The caller's own id of the player. Example: ada.
        user_name (str): Name. Example: Ada.
        above (list[RowResponse]): Up to four players just above, best first.
        below (list[RowResponse]): Up to four players just below, best first.
        percentile (float): 100 × players strictly worse ÷ max(players − 1, 1), to two decimals, rounded down. Example:
            99.4.
    """

    avatar: None | str
    position: int
    rank: int
    reached_at: datetime.datetime
    score: int
    user_id: str
    user_name: str
    above: list[RowResponse]
    below: list[RowResponse]
    percentile: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        avatar: None | str
        avatar = self.avatar

        position = self.position

        rank = self.rank

        reached_at = self.reached_at.isoformat()

        score = self.score

        user_id = self.user_id

        user_name = self.user_name

        above = []
        for above_item_data in self.above:
            above_item = above_item_data.to_dict()
            above.append(above_item)

        below = []
        for below_item_data in self.below:
            below_item = below_item_data.to_dict()
            below.append(below_item)

        percentile = self.percentile

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "avatar": avatar,
                "position": position,
                "rank": rank,
                "reached_at": reached_at,
                "score": score,
                "user_id": user_id,
                "user_name": user_name,
                "above": above,
                "below": below,
                "percentile": percentile,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.row_response import RowResponse  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_avatar(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        avatar = _parse_avatar(d.pop("avatar"))

        position = d.pop("position")

        rank = d.pop("rank")

        reached_at = datetime.datetime.fromisoformat(d.pop("reached_at"))

        score = d.pop("score")

        user_id = d.pop("user_id")

        user_name = d.pop("user_name")

        above = []
        _above = d.pop("above")
        for above_item_data in _above:
            above_item = RowResponse.from_dict(above_item_data)

            above.append(above_item)

        below = []
        _below = d.pop("below")
        for below_item_data in _below:
            below_item = RowResponse.from_dict(below_item_data)

            below.append(below_item)

        percentile = d.pop("percentile")

        live_standing_response = cls(
            avatar=avatar,
            position=position,
            rank=rank,
            reached_at=reached_at,
            score=score,
            user_id=user_id,
            user_name=user_name,
            above=above,
            below=below,
            percentile=percentile,
        )

        live_standing_response.additional_properties = d
        return live_standing_response

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
