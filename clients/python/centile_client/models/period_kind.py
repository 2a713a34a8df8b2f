from enum import StrEnum


class PeriodKind(StrEnum):
    ALL_TIME = "all_time"
    DAY = "day"
    MONTH = "month"
    SEASON = "season"
    WEEK = "week"

    def __str__(self) -> str:
        return str(self.value)
