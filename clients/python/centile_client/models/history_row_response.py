from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="HistoryRowResponse")


@_attrs_define
class HistoryRowResponse:
    """One act on a player's scores.

    Attributes:
        kind (str): `score`, `void`, `reset`, `ban` or `unban`. Example: score.
        occurred_at (datetime.datetime): The time it counts for.
        points (int | None): Points, of a score. Example: 50.
        reason (None | str): Why, as whoever acted put it. Example: boss defeated.
        tiebreak (int | None): What breaks ties, of a score that has it.
        transaction_id (int): Id in the ledger. Example: 1042.
        voids (int | None): Id of the score transaction that a `void` undoes.
    """

    kind: str
    occurred_at: datetime.datetime
    points: int | None
    reason: None | str
    tiebreak: int | None
    transaction_id: int
    voids: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        occurred_at = self.occurred_at.isoformat()

        points: int | None
        points = self.points

        reason: None | str
        reason = self.reason

        tiebreak: int | None
        tiebreak = self.tiebreak

        transaction_id = self.transaction_id

        voids: int | None
        voids = self.voids

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "occurred_at": occurred_at,
                "points": points,
                "reason": reason,
                "tiebreak": tiebreak,
                "transaction_id": transaction_id,
                "voids": voids,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        occurred_at = datetime.datetime.fromisoformat(d.pop("occurred_at"))

        def _parse_points(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        points = _parse_points(d.pop("points"))

        def _parse_reason(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        reason = _parse_reason(d.pop("reason"))

        def _parse_tiebreak(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        tiebreak = _parse_tiebreak(d.pop("tiebreak"))

        transaction_id = d.pop("transaction_id")

        def _parse_voids(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        voids = _parse_voids(d.pop("voids"))

        history_row_response = cls(
            kind=kind,
            occurred_at=occurred_at,
            points=points,
            reason=reason,
            tiebreak=tiebreak,
            transaction_id=transaction_id,
            voids=voids,
        )

        history_row_response.additional_properties = d
        return history_row_response

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
