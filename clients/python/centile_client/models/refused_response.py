from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.refused_status import RefusedStatus

if TYPE_CHECKING:
    from ..models.problem import Problem


T = TypeVar("T", bound="RefusedResponse")


@_attrs_define
class RefusedResponse:
    """An event of a list that was refused.

    Attributes:
        error (Problem): A problem document (RFC 9457): what went wrong, for programs and for people.
        status (RefusedStatus): The word for an event that was refused.
    """

    error: Problem
    status: RefusedStatus
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        error = self.error.to_dict()

        status = self.status.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "error": error,
                "status": status,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.problem import Problem  # noqa: PLC0415

        d = dict(src_dict)
        error = Problem.from_dict(d.pop("error"))

        status = RefusedStatus(d.pop("status"))

        refused_response = cls(
            error=error,
            status=status,
        )

        refused_response.additional_properties = d
        return refused_response

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
