from enum import StrEnum


class Role(StrEnum):
    ADMIN = "admin"
    READER = "reader"
    SERVER = "server"

    def __str__(self) -> str:
        return str(self.value)
