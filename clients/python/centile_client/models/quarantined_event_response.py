from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.state import State

T = TypeVar("T", bound="QuarantinedEventResponse")


@_attrs_define
class QuarantinedEventResponse:
    """An event of the quarantine, as it was submitted.

    Attributes:
        decided_at (datetime.datetime | None): When it was decided.
        decided_by (None | str): Who decided. Example: key 0123456789abcdef.
        decided_why (None | str): Why, as whoever decided put it.
        detail (str): What is allowed, and what was met. Example: 1000 in day:2024-01-15, not 5000.
        id (None | str): The caller's id of the event. Example: match-7:ada.
        points (int): Points. Example: 5000.
        quarantine_id (int): Its id in the quarantine. Example: 7.
        reason (None | str): Why, as the game put it. Example: boss defeated.
        rule (str): The rule that it broke: `points_out_of_bounds`, `too_many_events` or `gain_too_large`. Example:
            gain_too_large.
        state (State): What has become of an event.
        submitted_at (datetime.datetime): When it was submitted.
        tiebreak (int | None): What breaks ties, where it has that.
        transaction_id (int | None): Id of the score transaction that an accepted event became.
        user_id (str): The caller's own id of the player. Example: ada.
    """

    decided_at: datetime.datetime | None
    decided_by: None | str
    decided_why: None | str
    detail: str
    id: None | str
    points: int
    quarantine_id: int
    reason: None | str
    rule: str
    state: State
    submitted_at: datetime.datetime
    tiebreak: int | None
    transaction_id: int | None
    user_id: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        decided_at: None | str
        if isinstance(self.decided_at, datetime.datetime):
            decided_at = self.decided_at.isoformat()
        else:
            decided_at = self.decided_at

        decided_by: None | str
        decided_by = self.decided_by

        decided_why: None | str
        decided_why = self.decided_why

        detail = self.detail

        id: None | str
        id = self.id

        points = self.points

        quarantine_id = self.quarantine_id

        reason: None | str
        reason = self.reason

        rule = self.rule

        state = self.state.value

        submitted_at = self.submitted_at.isoformat()

        tiebreak: int | None
        tiebreak = self.tiebreak

        transaction_id: int | None
        transaction_id = self.transaction_id

        user_id = self.user_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "decided_at": decided_at,
                "decided_by": decided_by,
                "decided_why": decided_why,
                "detail": detail,
                "id": id,
                "points": points,
                "quarantine_id": quarantine_id,
                "reason": reason,
                "rule": rule,
                "state": state,
                "submitted_at": submitted_at,
                "tiebreak": tiebreak,
                "transaction_id": transaction_id,
                "user_id": user_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_decided_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                decided_at_type_0 = datetime.datetime.fromisoformat(data)

                return decided_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        decided_at = _parse_decided_at(d.pop("decided_at"))

        def _parse_decided_by(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        decided_by = _parse_decided_by(d.pop("decided_by"))

        def _parse_decided_why(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        decided_why = _parse_decided_why(d.pop("decided_why"))

        detail = d.pop("detail")

        def _parse_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        id = _parse_id(d.pop("id"))

        points = d.pop("points")

        quarantine_id = d.pop("quarantine_id")

        def _parse_reason(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        reason = _parse_reason(d.pop("reason"))

        rule = d.pop("rule")

        state = State(d.pop("state"))

        submitted_at = datetime.datetime.fromisoformat(d.pop("submitted_at"))

        def _parse_tiebreak(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        tiebreak = _parse_tiebreak(d.pop("tiebreak"))

        def _parse_transaction_id(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        transaction_id = _parse_transaction_id(d.pop("transaction_id"))

        user_id = d.pop("user_id")

        quarantined_event_response = cls(
            decided_at=decided_at,
            decided_by=decided_by,
            decided_why=decided_why,
            detail=detail,
            id=id,
            points=points,
            quarantine_id=quarantine_id,
            reason=reason,
            rule=rule,
            state=state,
            submitted_at=submitted_at,
            tiebreak=tiebreak,
            transaction_id=transaction_id,
            user_id=user_id,
        )

        quarantined_event_response.additional_properties = d
        return quarantined_event_response

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
