"""Convert between days since 1970 and dates of the proleptic Gregorian calendar, of any year."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

DAYS_OF_ERA = 146_097
"""Days in 400 years, after which the calendar repeats, days of the week included."""
_DAYS_TO_YEAR_0 = 719_468
"""Days from March 1st of the year 0 to January 1st of 1970."""

_Days = TypeVar("_Days", int, npt.NDArray[np.int64])


def civil_date(days: _Days) -> tuple[_Days, _Days, _Days]:
    """Convert days since 1970, a number or an array, to year, month (1 to 12) and day (1 to 31)."""
    era, day_of_era = divmod(days + _DAYS_TO_YEAR_0, DAYS_OF_ERA)
    leaps = day_of_era // 1460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leaps) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = (month_from_march + 2) % 12 + 1
    return era * 400 + year_of_era + (month <= 2), month, day


def days_since_1970(year: int, month: int, day: int) -> int:
    """Return the days from January 1st of 1970 to a date, which must exist."""
    era, year_of_era = divmod(year - (month <= 2), 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * DAYS_OF_ERA + day_of_era - _DAYS_TO_YEAR_0
