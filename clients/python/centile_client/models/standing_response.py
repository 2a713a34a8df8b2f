from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.period_response import PeriodResponse
    from ..models.row_response import RowResponse


T = TypeVar("T", bound="StandingResponse")


@_attrs_define
class StandingResponse:
    """A player's standing.

    Attributes:
        board (str): Name of the board. Example: arena.
        period (PeriodResponse): A period of a board.
        players (int): Players in the ranking. Example: 1000000.
        version (str): The state that the answer is exact for; opaque: equal versions mean equal states.
        above (list[RowResponse]): The players just above, best first.
        avatar (None | str): Address of a picture.
        below (list[RowResponse]): The players just below, best first.
        percentile (float): 100 × players strictly worse ÷ max(players − 1, 1). Example: 99.4.
        position (int): Place in the total order, from 1, never shared. Example: 7.
        rank (int): Rank, shared among equals on `shared` boards. Example: 6.
        reached_at (datetime.datetime): When the score was reached.
        score (int): Score. Example: 1234.
        user_id (str): The caller's own id of the player. Example: ada.
        user_name (str): Name. Example: Ada.
    """

    board: str
    period: PeriodResponse
    players: int
    version: str
    above: list[RowResponse]
    avatar: None | str
    below: list[RowResponse]
    percentile: float
    position: int
    rank: int
    reached_at: datetime.datetime
    score: int
    user_id: str
    user_name: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        period = self.period.to_dict()

        players = self.players

        version = self.version

        above = []
        for above_item_data in self.above:
            above_item = above_item_data.to_dict()
            above.append(above_item)

        avatar: None | str
        avatar = self.avatar

        below = []
        for below_item_data in self.below:
            below_item = below_item_data.to_dict()
            below.append(below_item)

        percentile = self.percentile

        position = self.position

        rank = self.rank

        reached_at = self.reached_at.isoformat()

        score = self.score

        user_id = self.user_id

        user_name = self.user_name

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "period": period,
                "players": players,
                "version": version,
                "above": above,
                "avatar": avatar,
                "below": below,
                "percentile": percentile,
                "position": position,
                "rank": rank,
                "reached_at": reached_at,
                "score": score,
                "user_id": user_id,
                "user_name": user_name,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.period_response import PeriodResponse  # noqa: PLC0415
        from ..models.row_response import RowResponse  # noqa: PLC0415

        d = dict(src_dict)
        board = d.pop("board")

        period = PeriodResponse.from_dict(d.pop("period"))

        players = d.pop("players")

        version = d.pop("version")

        above = []
        _above = d.pop("above")
        for above_item_data in _above:
            above_item = RowResponse.from_dict(above_item_data)

            above.append(above_item)

        def _parse_avatar(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        avatar = _parse_avatar(d.pop("avatar"))

        below = []
        _below = d.pop("below")
        for below_item_data in _below:
            below_item = RowResponse.from_dict(below_item_data)

            below.append(below_item)

        percentile = d.pop("percentile")

        position = d.pop("position")

        rank = d.pop("rank")

        reached_at = datetime.datetime.fromisoformat(d.pop("reached_at"))

        score = d.pop("score")

        user_id = d.pop("user_id")

        user_name = d.pop("user_name")

        standing_response = cls(
            board=board,
            period=period,
            players=players,
            version=version,
            above=above,
            avatar=avatar,
            below=below,
            percentile=percentile,
            position=position,
            rank=rank,
            reached_at=reached_at,
            score=score,
            user_id=user_id,
            user_name=user_name,
        )

        standing_response.additional_properties = d
        return standing_response

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
