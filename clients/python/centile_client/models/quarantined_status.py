from enum import StrEnum


class QuarantinedStatus(StrEnum):
    QUARANTINED = "quarantined"

    def __str__(self) -> str:
        return str(self.value)
