from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="LayoutByPoints")


@_attrs_define
class LayoutByPoints:
    """100 ranges of equal width from 0 to a score.

    Attributes:
        expected_points (int): That score. Example: 5000.
    """

    expected_points: int

    def to_dict(self) -> dict[str, Any]:
        expected_points = self.expected_points

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "expected_points": expected_points,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        expected_points = d.pop("expected_points")

        layout_by_points = cls(
            expected_points=expected_points,
        )

        return layout_by_points
