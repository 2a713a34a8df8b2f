from enum import StrEnum


class Mode(StrEnum):
    BEST = "best"
    LATEST = "latest"
    SUM = "sum"

    def __str__(self) -> str:
        return str(self.value)
