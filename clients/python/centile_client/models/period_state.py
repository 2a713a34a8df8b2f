from enum import StrEnum


class PeriodState(StrEnum):
    CLOSED = "closed"
    DUE = "due"
    OPEN = "open"

    def __str__(self) -> str:
        return str(self.value)
