from enum import StrEnum


class SchemaEdition(StrEnum):
    NEWER = "newer"
    SAME = "same"

    def __str__(self) -> str:
        return str(self.value)
