from enum import StrEnum


class RefusedStatus(StrEnum):
    REFUSED = "refused"

    def __str__(self) -> str:
        return str(self.value)
