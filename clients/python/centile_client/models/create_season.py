from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="CreateSeason")


@_attrs_define
class CreateSeason:
    """A new season.

    Attributes:
        ends_at (datetime.date | datetime.datetime): Where a season begins or ends.
        name (str): Name on its board. Example: spring.
        starts_at (datetime.date | datetime.datetime): Where a season begins or ends.
    """

    ends_at: datetime.date | datetime.datetime
    name: str
    starts_at: datetime.date | datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        ends_at: str
        if isinstance(self.ends_at, datetime.date):
            ends_at = self.ends_at.isoformat()
        else:
            ends_at = self.ends_at.isoformat()

        name = self.name

        starts_at: str
        if isinstance(self.starts_at, datetime.date):
            starts_at = self.starts_at.isoformat()
        else:
            starts_at = self.starts_at.isoformat()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "ends_at": ends_at,
                "name": name,
                "starts_at": starts_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_ends_at(data: object) -> datetime.date | datetime.datetime:
            try:
                if not isinstance(data, str):
                    raise TypeError()
                componentsschemas_season_edge_type_0 = datetime.date.fromisoformat(data)

                return componentsschemas_season_edge_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, str):
                raise TypeError()
            componentsschemas_season_edge_type_1 = datetime.datetime.fromisoformat(data)

            return componentsschemas_season_edge_type_1

        ends_at = _parse_ends_at(d.pop("ends_at"))

        name = d.pop("name")

        def _parse_starts_at(data: object) -> datetime.date | datetime.datetime:
            try:
                if not isinstance(data, str):
                    raise TypeError()
                componentsschemas_season_edge_type_0 = datetime.date.fromisoformat(data)

                return componentsschemas_season_edge_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, str):
                raise TypeError()
            componentsschemas_season_edge_type_1 = datetime.datetime.fromisoformat(data)

            return componentsschemas_season_edge_type_1

        starts_at = _parse_starts_at(d.pop("starts_at"))

        create_season = cls(
            ends_at=ends_at,
            name=name,
            starts_at=starts_at,
        )

        return create_season
