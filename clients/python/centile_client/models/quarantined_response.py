from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.quarantined_status import QuarantinedStatus

T = TypeVar("T", bound="QuarantinedResponse")


@_attrs_define
class QuarantinedResponse:
    """An event that broke a rule of its board, and is kept apart until an administrator decides.

    Attributes:
        detail (str): The rule that it broke. Example: points: board arena allows 0 to 100 points per event.
        quarantine_id (int): Its id in the board's quarantine. Example: 7.
        repeated (bool): Whether this is the answer of an earlier call with the same id.
        status (QuarantinedStatus): The word for an event that is kept apart.
    """

    detail: str
    quarantine_id: int
    repeated: bool
    status: QuarantinedStatus
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        detail = self.detail

        quarantine_id = self.quarantine_id

        repeated = self.repeated

        status = self.status.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "detail": detail,
                "quarantine_id": quarantine_id,
                "repeated": repeated,
                "status": status,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        detail = d.pop("detail")

        quarantine_id = d.pop("quarantine_id")

        repeated = d.pop("repeated")

        status = QuarantinedStatus(d.pop("status"))

        quarantined_response = cls(
            detail=detail,
            quarantine_id=quarantine_id,
            repeated=repeated,
            status=status,
        )

        quarantined_response.additional_properties = d
        return quarantined_response

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
