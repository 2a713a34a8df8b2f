from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.accepted_response import AcceptedResponse
    from ..models.quarantined_response import QuarantinedResponse
    from ..models.refused_response import RefusedResponse


T = TypeVar("T", bound="SubmitResponse")


@_attrs_define
class SubmitResponse:
    """What became of the events of a list.

    Attributes:
        results (list[AcceptedResponse | QuarantinedResponse | RefusedResponse]): One result for each event, in their
            order.
    """

    results: list[AcceptedResponse | QuarantinedResponse | RefusedResponse]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.accepted_response import AcceptedResponse  # noqa: PLC0415
        from ..models.quarantined_response import QuarantinedResponse  # noqa: PLC0415

        results = []
        for results_item_data in self.results:
            results_item: dict[str, Any]
            if isinstance(results_item_data, AcceptedResponse):
                results_item = results_item_data.to_dict()
            elif isinstance(results_item_data, QuarantinedResponse):
                results_item = results_item_data.to_dict()
            else:
                results_item = results_item_data.to_dict()

            results.append(results_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "results": results,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.accepted_response import AcceptedResponse  # noqa: PLC0415
        from ..models.quarantined_response import QuarantinedResponse  # noqa: PLC0415
        from ..models.refused_response import RefusedResponse  # noqa: PLC0415

        d = dict(src_dict)
        results = []
        _results = d.pop("results")
        for results_item_data in _results:

            def _parse_results_item(data: object) -> AcceptedResponse | QuarantinedResponse | RefusedResponse:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_event_result_type_0 = AcceptedResponse.from_dict(data)

                    return componentsschemas_event_result_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    componentsschemas_event_result_type_1 = QuarantinedResponse.from_dict(data)

                    return componentsschemas_event_result_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                componentsschemas_event_result_type_2 = RefusedResponse.from_dict(data)

                return componentsschemas_event_result_type_2

            results_item = _parse_results_item(results_item_data)

            results.append(results_item)

        submit_response = cls(
            results=results,
        )

        submit_response.additional_properties = d
        return submit_response

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
