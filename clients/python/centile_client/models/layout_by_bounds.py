from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="LayoutByBounds")


@_attrs_define
class LayoutByBounds:
    """One range between each two of these scores.

    Attributes:
        bounds (list[int]): 1 to 99 scores, strictly ascending. Example: [100, 1000].
    """

    bounds: list[int]

    def to_dict(self) -> dict[str, Any]:
        bounds = self.bounds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "bounds": bounds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        bounds = cast(list[int], d.pop("bounds"))

        layout_by_bounds = cls(
            bounds=bounds,
        )

        return layout_by_bounds
