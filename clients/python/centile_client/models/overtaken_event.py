from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.overtaking_response import OvertakingResponse
    from ..models.period_response import PeriodResponse


T = TypeVar("T", bound="OvertakenEvent")


@_attrs_define
class OvertakenEvent:
    """`overtaken`: whom the chosen players passed, and who passed them, since the event before. Only what is certain from
    both states
    is sent: the top, and five players above and below each player that anybody has chosen; of who leaps over many, the
    nearest twenty.

        Attributes:
            board (str): Name of the board. Example: arena.
            period (PeriodResponse): A period of a board.
            players (int): Players in the ranking. Example: 1000000.
            version (str): The state that the answer is exact for; opaque: equal versions mean equal states.
            overtaken (list[OvertakingResponse]): Each pair of a look once, oldest look first.
    """

    board: str
    period: PeriodResponse
    players: int
    version: str
    overtaken: list[OvertakingResponse]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        period = self.period.to_dict()

        players = self.players

        version = self.version

        overtaken = []
        for overtaken_item_data in self.overtaken:
            overtaken_item = overtaken_item_data.to_dict()
            overtaken.append(overtaken_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "period": period,
                "players": players,
                "version": version,
                "overtaken": overtaken,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.overtaking_response import OvertakingResponse  # noqa: PLC0415
        from ..models.period_response import PeriodResponse  # noqa: PLC0415

        d = dict(src_dict)
        board = d.pop("board")

        period = PeriodResponse.from_dict(d.pop("period"))

        players = d.pop("players")

        version = d.pop("version")

        overtaken = []
        _overtaken = d.pop("overtaken")
        for overtaken_item_data in _overtaken:
            overtaken_item = OvertakingResponse.from_dict(overtaken_item_data)

            overtaken.append(overtaken_item)

        overtaken_event = cls(
            board=board,
            period=period,
            players=players,
            version=version,
            overtaken=overtaken,
        )

        overtaken_event.additional_properties = d
        return overtaken_event

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
