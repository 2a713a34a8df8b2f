from enum import StrEnum


class OnViolation(StrEnum):
    QUARANTINE = "quarantine"
    REFUSE = "refuse"

    def __str__(self) -> str:
        return str(self.value)
