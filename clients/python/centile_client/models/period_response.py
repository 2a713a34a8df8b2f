from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.period_kind import PeriodKind
from ..models.period_state import PeriodState

T = TypeVar("T", bound="PeriodResponse")


@_attrs_define
class PeriodResponse:
    """A period of a board.

    Attributes:
        ends_at (datetime.datetime | None): First instant after it; null for `all_time`.
        kind (PeriodKind): The kinds of period that a board may keep.
        label (str): Its label: `2024-01-15`, `2024-01`, `all_time`, or a season's name. Example: 2024-01-15.
        name (str): Its name wherever a call takes a `period`. Example: week:2024-01-15.
        starts_at (datetime.datetime | None): First instant; null for `all_time`.
        state (PeriodState): How far a period is in its life.
    """

    ends_at: datetime.datetime | None
    kind: PeriodKind
    label: str
    name: str
    starts_at: datetime.datetime | None
    state: PeriodState
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        ends_at: None | str
        if isinstance(self.ends_at, datetime.datetime):
            ends_at = self.ends_at.isoformat()
        else:
            ends_at = self.ends_at

        kind = self.kind.value

        label = self.label

        name = self.name

        starts_at: None | str
        if isinstance(self.starts_at, datetime.datetime):
            starts_at = self.starts_at.isoformat()
        else:
            starts_at = self.starts_at

        state = self.state.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "ends_at": ends_at,
                "kind": kind,
                "label": label,
                "name": name,
                "starts_at": starts_at,
                "state": state,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_ends_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ends_at_type_0 = datetime.datetime.fromisoformat(data)

                return ends_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        ends_at = _parse_ends_at(d.pop("ends_at"))

        kind = PeriodKind(d.pop("kind"))

        label = d.pop("label")

        name = d.pop("name")

        def _parse_starts_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                starts_at_type_0 = datetime.datetime.fromisoformat(data)

                return starts_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        starts_at = _parse_starts_at(d.pop("starts_at"))

        state = PeriodState(d.pop("state"))

        period_response = cls(
            ends_at=ends_at,
            kind=kind,
            label=label,
            name=name,
            starts_at=starts_at,
            state=state,
        )

        period_response.additional_properties = d
        return period_response

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
