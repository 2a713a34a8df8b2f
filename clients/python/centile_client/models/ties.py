from enum import StrEnum


class Ties(StrEnum):
    FIRST = "first"
    SHARED = "shared"
    TIEBREAK = "tiebreak"

    def __str__(self) -> str:
        return str(self.value)
