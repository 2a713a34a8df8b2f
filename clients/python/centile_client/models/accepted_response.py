from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.accepted_status import AcceptedStatus

if TYPE_CHECKING:
    from ..models.accepted_response_periods import AcceptedResponsePeriods


T = TypeVar("T", bound="AcceptedResponse")


@_attrs_define
class AcceptedResponse:
    """An event that is in the ledger.

    Attributes:
        occurred_at (datetime.datetime): The time it counts for.
        periods (AcceptedResponsePeriods): The player's standing per period, by the period's name. Example: {'all_time':
            {'score': 1234}, 'week:2024-01-15': {'score': 50}}.
        repeated (bool): Whether this is the answer of an earlier call with the same id.
        status (AcceptedStatus): The word for an event that is in the ledger.
        transaction_id (int): Id of the score transaction in the ledger. Example: 1042.
    """

    occurred_at: datetime.datetime
    periods: AcceptedResponsePeriods
    repeated: bool
    status: AcceptedStatus
    transaction_id: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        occurred_at = self.occurred_at.isoformat()

        periods = self.periods.to_dict()

        repeated = self.repeated

        status = self.status.value

        transaction_id = self.transaction_id

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "occurred_at": occurred_at,
                "periods": periods,
                "repeated": repeated,
                "status": status,
                "transaction_id": transaction_id,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.accepted_response_periods import AcceptedResponsePeriods  # noqa: PLC0415

        d = dict(src_dict)
        occurred_at = datetime.datetime.fromisoformat(d.pop("occurred_at"))

        periods = AcceptedResponsePeriods.from_dict(d.pop("periods"))

        repeated = d.pop("repeated")

        status = AcceptedStatus(d.pop("status"))

        transaction_id = d.pop("transaction_id")

        accepted_response = cls(
            occurred_at=occurred_at,
            periods=periods,
            repeated=repeated,
            status=status,
            transaction_id=transaction_id,
        )

        accepted_response.additional_properties = d
        return accepted_response

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
