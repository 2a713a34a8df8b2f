from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.period_response import PeriodResponse
    from ..models.row_response import RowResponse


T = TypeVar("T", bound="PageResponse")


@_attrs_define
class PageResponse:
    """A page of a ranking.

    Attributes:
        board (str): Name of the board. Example: arena.
        period (PeriodResponse): A period of a board.
        players (int): Players in the ranking. Example: 1000000.
        version (str): The state that the answer is exact for; opaque: equal versions mean equal states.
        next_ (None | str): `cursor` of the next page; null after the last player.
        scores (list[RowResponse]): The players, best first.
        stale (bool | None | Unset): True in a top that could not be renewed because the database cannot be reached.
        stale_for_seconds (int | None | Unset): How long ago a stale top was right.
    """

    board: str
    period: PeriodResponse
    players: int
    version: str
    next_: None | str
    scores: list[RowResponse]
    stale: bool | None | Unset = UNSET
    stale_for_seconds: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        period = self.period.to_dict()

        players = self.players

        version = self.version

        next_: None | str
        next_ = self.next_

        scores = []
        for scores_item_data in self.scores:
            scores_item = scores_item_data.to_dict()
            scores.append(scores_item)

        stale: bool | None | Unset
        if isinstance(self.stale, Unset):
            stale = UNSET
        else:
            stale = self.stale

        stale_for_seconds: int | None | Unset
        if isinstance(self.stale_for_seconds, Unset):
            stale_for_seconds = UNSET
        else:
            stale_for_seconds = self.stale_for_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "period": period,
                "players": players,
                "version": version,
                "next": next_,
                "scores": scores,
            }
        )
        if stale is not UNSET:
            field_dict["stale"] = stale
        if stale_for_seconds is not UNSET:
            field_dict["stale_for_seconds"] = stale_for_seconds

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

        def _parse_next_(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_ = _parse_next_(d.pop("next"))

        scores = []
        _scores = d.pop("scores")
        for scores_item_data in _scores:
            scores_item = RowResponse.from_dict(scores_item_data)

            scores.append(scores_item)

        def _parse_stale(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        stale = _parse_stale(d.pop("stale", UNSET))

        def _parse_stale_for_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        stale_for_seconds = _parse_stale_for_seconds(d.pop("stale_for_seconds", UNSET))

        page_response = cls(
            board=board,
            period=period,
            players=players,
            version=version,
            next_=next_,
            scores=scores,
            stale=stale,
            stale_for_seconds=stale_for_seconds,
        )

        page_response.additional_properties = d
        return page_response

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
