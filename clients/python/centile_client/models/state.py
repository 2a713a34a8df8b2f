from enum import StrEnum


class State(StrEnum):
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WAITING = "waiting"

    def __str__(self) -> str:
        return str(self.value)
