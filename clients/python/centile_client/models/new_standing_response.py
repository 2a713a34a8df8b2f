from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="NewStandingResponse")


@_attrs_define
class NewStandingResponse:
    """A player's standing in one period after an event.

    Attributes:
        score (int): Score after the event. Example: 1234.
        previous_rank (int | None | Unset): The rank that the score before the event would have now; with `ranks=true`,
            and not for a newcomer. Example: 9.
        rank (int | None | Unset): Rank after the commit; with `ranks=true`. Example: 6.
    """

    score: int
    previous_rank: int | None | Unset = UNSET
    rank: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        score = self.score

        previous_rank: int | None | Unset
        if isinstance(self.previous_rank, Unset):
            previous_rank = UNSET
        else:
            previous_rank = self.previous_rank

        rank: int | None | Unset
        if isinstance(self.rank, Unset):
            rank = UNSET
        else:
            rank = self.rank

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "score": score,
            }
        )
        if previous_rank is not UNSET:
            field_dict["previous_rank"] = previous_rank
        if rank is not UNSET:
            field_dict["rank"] = rank

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        score = d.pop("score")

        def _parse_previous_rank(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        previous_rank = _parse_previous_rank(d.pop("previous_rank", UNSET))

        def _parse_rank(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        rank = _parse_rank(d.pop("rank", UNSET))

        new_standing_response = cls(
            score=score,
            previous_rank=previous_rank,
            rank=rank,
        )

        new_standing_response.additional_properties = d
        return new_standing_response

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
