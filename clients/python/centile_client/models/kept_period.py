from enum import StrEnum


class KeptPeriod(StrEnum):
    ALL_TIME = "all_time"
    DAY = "day"
    MONTH = "month"
    WEEK = "week"

    def __str__(self) -> str:
        return str(self.value)
