from enum import StrEnum


class Reading(StrEnum):
    KEY = "key"
    PUBLIC = "public"

    def __str__(self) -> str:
        return str(self.value)
