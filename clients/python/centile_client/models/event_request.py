from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="EventRequest")


@_attrs_define
class EventRequest:
    """One scoring event.

    Attributes:
        points (int): Points earned (`sum`), or the score itself (`best`, `latest`): a whole number within the board's
            bounds. Example: 50.
        user_id (str): The caller's own id of a player: 1 to 128 bytes of UTF-8 without control characters. Example:
            ada.
        id (None | str | Unset): The caller's id of the event, up to 128 bytes, unique per board and player. It makes
            retries safe: the same
            content is answered as the first time and changes nothing, other content is refused. Required with a key that
            signs. Example: match-7:ada.
        reason (None | str | Unset): Why, up to 256 bytes. Example: boss defeated.
        tiebreak (int | None | Unset): Breaks ties on `tiebreak` boards, larger wins; not on `sum` boards.
    """

    points: int
    user_id: str
    id: None | str | Unset = UNSET
    reason: None | str | Unset = UNSET
    tiebreak: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        points = self.points

        user_id = self.user_id

        id: None | str | Unset
        if isinstance(self.id, Unset):
            id = UNSET
        else:
            id = self.id

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        tiebreak: int | None | Unset
        if isinstance(self.tiebreak, Unset):
            tiebreak = UNSET
        else:
            tiebreak = self.tiebreak

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "points": points,
                "user_id": user_id,
            }
        )
        if id is not UNSET:
            field_dict["id"] = id
        if reason is not UNSET:
            field_dict["reason"] = reason
        if tiebreak is not UNSET:
            field_dict["tiebreak"] = tiebreak

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        points = d.pop("points")

        user_id = d.pop("user_id")

        def _parse_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        id = _parse_id(d.pop("id", UNSET))

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        def _parse_tiebreak(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        tiebreak = _parse_tiebreak(d.pop("tiebreak", UNSET))

        event_request = cls(
            points=points,
            user_id=user_id,
            id=id,
            reason=reason,
            tiebreak=tiebreak,
        )

        return event_request
