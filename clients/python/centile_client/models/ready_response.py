from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.cache_state import CacheState
from ..models.ready_status import ReadyStatus
from ..models.schema_edition import SchemaEdition

T = TypeVar("T", bound="ReadyResponse")


@_attrs_define
class ReadyResponse:
    """That requests can be answered, and with what.

    Attributes:
        cache (CacheState): Whether Redis answers, without which everything is only slower.
        schema (SchemaEdition): How the database's schema compares with the one that this program was built for.
        status (ReadyStatus): The word for "ready"; whatever else is no answer but a problem.
    """

    cache: CacheState
    schema: SchemaEdition
    status: ReadyStatus
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        cache = self.cache.value

        schema = self.schema.value

        status = self.status.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "cache": cache,
                "schema": schema,
                "status": status,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        cache = CacheState(d.pop("cache"))

        schema = SchemaEdition(d.pop("schema"))

        status = ReadyStatus(d.pop("status"))

        ready_response = cls(
            cache=cache,
            schema=schema,
            status=status,
        )

        ready_response.additional_properties = d
        return ready_response

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
