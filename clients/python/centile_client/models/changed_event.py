from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.live_standing_response import LiveStandingResponse
    from ..models.period_response import PeriodResponse
    from ..models.row_response import RowResponse


T = TypeVar("T", bound="ChangedEvent")


@_attrs_define
class ChangedEvent:
    """`changed`: what is other than before. No scores and no standings where that is only the state of the period.

    Attributes:
        board (str): Name of the board. Example: arena.
        period (PeriodResponse): A period of a board.
        players (int): Players in the ranking. Example: 1000000.
        version (str): The state that the answer is exact for; opaque: equal versions mean equal states.
        missing (list[str]): Ids of all chosen players who have no score.
        standings (list[LiveStandingResponse]): The chosen players of whom anything changed.
        scores (list[RowResponse] | None | Unset): The whole top, if anything in it changed.
    """

    board: str
    period: PeriodResponse
    players: int
    version: str
    missing: list[str]
    standings: list[LiveStandingResponse]
    scores: list[RowResponse] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        period = self.period.to_dict()

        players = self.players

        version = self.version

        missing = self.missing

        standings = []
        for standings_item_data in self.standings:
            standings_item = standings_item_data.to_dict()
            standings.append(standings_item)

        scores: list[dict[str, Any]] | None | Unset
        if isinstance(self.scores, Unset):
            scores = UNSET
        elif isinstance(self.scores, list):
            scores = []
            for scores_type_0_item_data in self.scores:
                scores_type_0_item = scores_type_0_item_data.to_dict()
                scores.append(scores_type_0_item)

        else:
            scores = self.scores

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "period": period,
                "players": players,
                "version": version,
                "missing": missing,
                "standings": standings,
            }
        )
        if scores is not UNSET:
            field_dict["scores"] = scores

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

        standings = []
        _standings = d.pop("standings")
        for standings_item_data in _standings:
            standings_item = LiveStandingResponse.from_dict(standings_item_data)

            standings.append(standings_item)

        def _parse_scores(data: object) -> list[RowResponse] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                scores_type_0 = []
                _scores_type_0 = data
                for scores_type_0_item_data in _scores_type_0:
                    scores_type_0_item = RowResponse.from_dict(scores_type_0_item_data)

                    scores_type_0.append(scores_type_0_item)

                return scores_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[RowResponse] | None | Unset, data)

        scores = _parse_scores(d.pop("scores", UNSET))

        changed_event = cls(
            board=board,
            period=period,
            players=players,
            version=version,
            missing=missing,
            standings=standings,
            scores=scores,
        )

        changed_event.additional_properties = d
        return changed_event

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
