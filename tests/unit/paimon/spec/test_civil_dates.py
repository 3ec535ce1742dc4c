"""Dates and days are those of Python's calendar, and of years that Python does not have."""

import random
from datetime import date

import numpy as np

from ingestd.paimon.spec.civil_dates import DAYS_OF_ERA, civil_date, days_since_1970

_EPOCH = date(1970, 1, 1).toordinal()


def test_dates_are_those_of_the_calendar() -> None:
    chance = random.Random(1)
    days = [chance.randint(1 - _EPOCH, date.max.toordinal() - _EPOCH) for _ in range(2_000)]
    days += [
        date(year, month, 1).toordinal() - _EPOCH for year in (4, 1900, 2000) for month in (1, 3)
    ]
    dates = [date.fromordinal(_EPOCH + day) for day in days]
    assert [civil_date(day) for day in days] == [(d.year, d.month, d.day) for d in dates]
    columns = civil_date(np.array(days, np.int64))
    assert [*zip(*(column.tolist() for column in columns), strict=True)] == [*map(civil_date, days)]


def test_days_are_those_of_their_dates_in_any_era() -> None:
    for eras in (-50, -1, 0, 60):
        for day in (-719_529, -719_528, 0, 11_016, 11_017, 146_096):
            year, month, in_month = civil_date(day + eras * DAYS_OF_ERA)
            assert year == civil_date(day)[0] + 400 * eras
            assert days_since_1970(year, month, in_month) == day + eras * DAYS_OF_ERA
