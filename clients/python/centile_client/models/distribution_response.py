from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.bar_response import BarResponse
    from ..models.percentile_response import PercentileResponse
    from ..models.period_response import PeriodResponse


T = TypeVar("T", bound="DistributionResponse")


@_attrs_define
class DistributionResponse:
    """How scores are spread.

    Attributes:
        board (str): Name of the board. Example: arena.
        period (PeriodResponse): A period of a board.
        players (int): Players in the ranking. Example: 1000000.
        version (str): The state that the answer is exact for; opaque: equal versions mean equal states.
        histogram (list[BarResponse]): Up to 20 ranges of equal width from the worst score to the best; both ends belong
            to a range.
        percentiles (list[PercentileResponse]): The score at each tenth percentile, worst to best; empty without
            players.
    """

    board: str
    period: PeriodResponse
    players: int
    version: str
    histogram: list[BarResponse]
    percentiles: list[PercentileResponse]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        board = self.board

        period = self.period.to_dict()

        players = self.players

        version = self.version

        histogram = []
        for histogram_item_data in self.histogram:
            histogram_item = histogram_item_data.to_dict()
            histogram.append(histogram_item)

        percentiles = []
        for percentiles_item_data in self.percentiles:
            percentiles_item = percentiles_item_data.to_dict()
            percentiles.append(percentiles_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "board": board,
                "period": period,
                "players": players,
                "version": version,
                "histogram": histogram,
                "percentiles": percentiles,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.bar_response import BarResponse  # noqa: PLC0415
        from ..models.percentile_response import PercentileResponse  # noqa: PLC0415
        from ..models.period_response import PeriodResponse  # noqa: PLC0415

        d = dict(src_dict)
        board = d.pop("board")

        period = PeriodResponse.from_dict(d.pop("period"))

        players = d.pop("players")

        version = d.pop("version")

        histogram = []
        _histogram = d.pop("histogram")
        for histogram_item_data in _histogram:
            histogram_item = BarResponse.from_dict(histogram_item_data)

            histogram.append(histogram_item)

        percentiles = []
        _percentiles = d.pop("percentiles")
        for percentiles_item_data in _percentiles:
            percentiles_item = PercentileResponse.from_dict(percentiles_item_data)

            percentiles.append(percentiles_item)

        distribution_response = cls(
            board=board,
            period=period,
            players=players,
            version=version,
            histogram=histogram,
            percentiles=percentiles,
        )

        distribution_response.additional_properties = d
        return distribution_response

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
