from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.live_standing_response import LiveStandingResponse
    from ..models.period_response import PeriodResponse
    from ..models.row_response import RowResponse


T = TypeVar("T", bound="StartedEvent")


@_attrs_define
class StartedEvent:
    """`started`: all there is to see. The first event, unless that is `continued`, and the one after `period`.

    Attributes:
        board (str): Name of the board. Example: arena.
        period (PeriodResponse): A period of a board.
        players (int): Players in the ranking. Example: 1000000.
        version (str): The state that the answer is exact for; opaque: equal versions mean equal states.
        missing (list[str]): Ids of those who have none.
        restarted (bool): Whether events may have been missed since the one that `Last-Event-ID` names.
        scores (list[RowResponse]): The top, best first.
        standings (list[LiveStandingResponse]): The chosen players who have a score, in the order asked.
    """

    board: str
    period: PeriodResponse
    players: int
    version: str
    missing: list[str]
    restarted: bool
    scores: list[RowResponse]
    standings: list[LiveStandingResponse]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        period = self.period.to_dict()

        players = self.players

        version = self.version

        missing = self.missing

        restarted = self.restarted

        scores = []
        for scores_item_data in self.scores:
            scores_item = scores_item_data.to_dict()
            scores.append(scores_item)

        standings = []
        for standings_item_data in self.standings:
            standings_item = standings_item_data.to_dict()
            standings.append(standings_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "period": period,
                "players": players,
                "version": version,
                "missing": missing,
                "restarted": restarted,
                "scores": scores,
                "standings": standings,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.live_standing_response import LiveStandingResponse  # noqa: PLC0415
        from ..models.period_response import PeriodResponse  # noqa: PLC0415
        from ..models.row_response import RowResponse  # noqa: PLC0415

        d = dict(src_dict)
        board = d.pop("board")

        period = PeriodResponse.from_dict(d.pop("period"))

        players = d.pop("players")

        version = d.pop("version")

        missing = cast(list[str], d.pop("missing"))

        restarted = d.pop("restarted")

        scores = []
        _scores = d.pop("scores")
        for scores_item_data in _scores:
            scores_item = RowResponse.from_dict(scores_item_data)

            scores.append(scores_item)

        standings = []
        _standings = d.pop("standings")
        for standings_item_data in _standings:
            standings_item = LiveStandingResponse.from_dict(standings_item_data)

            standings.append(standings_item)

        started_event = cls(
            board=board,
            period=period,
            players=players,
            version=version,
            missing=missing,
            restarted=restarted,
            scores=scores,
            standings=standings,
        )

        started_event.additional_properties = d
        return started_event

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
