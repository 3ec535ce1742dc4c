"""Which tags a table makes by itself: one for each period of time, named by when it began.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-tags/

Pure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.option_types import TableOption
from ingestd.paimon.spec.snapshot import Snapshot

MODE = honoured.TAG_CREATION.name

_DAILY = {
    "with_dashes": "%Y-%m-%d",
    "without_dashes": "%Y%m%d",
    "without_dashes_and_spaces": "%Y%m%d",
}
_HOURLY = {
    "with_dashes": "%Y-%m-%d %H",
    "without_dashes": "%Y%m%d %H",
    "without_dashes_and_spaces": "%Y%m%d%H",
}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (tags name times without a zone)
_NO_WATERMARK = -(2**63)


@dataclass(frozen=True, slots=True)
class TagPeriods:
    """The rules of a table.

    `name` is a format of strftime; `zone` of the times that names tell, None: this machine's.
    `completed`: a period without a snapshot has a tag as well, as soon as one comes.
    """

    length: timedelta
    name: str
    is_daily: bool
    by_watermark: bool
    zone: tzinfo | None
    delay: timedelta
    most: int | None
    retained_ms: int | None
    completed: bool

    def begin_of(self, tag: str) -> datetime | None:
        """When the period of a tag began; None if the name is not one of these."""
        text = tag.partition(" ")[0] if self.is_daily else tag
        try:
            begin = datetime.strptime(text, self.name)  # noqa: DTZ007  (without a zone)
        except ValueError:
            return None
        return begin if begin.strftime(self.name) == text else None

    def time_of(self, snapshot: Snapshot) -> datetime | None:
        """The local time that a snapshot stands for; None if it has no watermark to tell it."""
        millis = snapshot.watermark if self.by_watermark else snapshot.time_millis
        if millis is None or millis == _NO_WATERMARK:
            return None
        return datetime.fromtimestamp(millis / 1000, self.zone).replace(tzinfo=None)

    def tag_at(self, time: datetime, due: datetime | None) -> datetime | None:
        """The period whose tag a snapshot of that time gets: the last that is over.

        `due` is the period behind that of the newest tag; None, as long as that is not over.
        """
        if due is not None and time - self.delay < due + self.length:
            return None
        if due is not None and self.completed:
            return due
        return _EPOCH + ((time - _EPOCH) // self.length - 1) * self.length


def tag_periods(options: Mapping[str, str]) -> TagPeriods | None:
    """The rules in the options of a table; None if it makes no tags by itself.

    ConfigError and UnsupportedError name an option that cannot be followed.
    """
    mode = honoured.TAG_CREATION.of(options)
    if mode == "none":
        return None
    if mode not in ("process-time", "watermark"):
        raise UnsupportedError(
            f"option '{MODE}' = '{mode}' is not supported; supported: none, process-time, watermark"
        )
    _refuse_callbacks(options)
    length, name, is_daily = _period(options)
    delay = timedelta(milliseconds=honoured.TAG_DELAY.of(options))
    if delay >= length:
        name = honoured.TAG_DELAY.name
        raise ConfigError(f"option '{name}' = '{options[name]}' is not less than a period")
    by_watermark = mode == "watermark"
    return TagPeriods(
        length=length,
        name=name,
        is_daily=is_daily,
        by_watermark=by_watermark,
        zone=_zone(options, honoured.WATERMARK_ZONE if by_watermark else honoured.PROCESS_ZONE),
        delay=delay,
        most=honoured.TAG_MAX.of(options),
        retained_ms=honoured.TAG_TIME.of(options),
        completed=honoured.TAG_COMPLETION.of(options),
    )


def _refuse_callbacks(options: Mapping[str, str]) -> None:
    if honoured.TAG_CALLBACKS.of(options).strip():
        raise UnsupportedError("option 'tag.callbacks' is not supported: there is no Java here")
    if honoured.TAG_SUCCESS_FILE.of(options):
        raise UnsupportedError("option 'tag.create-success-file' = 'true' is not supported")


def _period(options: Mapping[str, str]) -> tuple[timedelta, str, bool]:
    duration = honoured.TAG_DURATION.of(options)
    if duration is not None:
        name = honoured.TAG_DURATION.name
        if not duration:
            raise ConfigError(f"option '{name}' = '{options[name]}': no period")
        return timedelta(milliseconds=duration), "%Y%m%d%H%M", False
    period, formatter = honoured.TAG_PERIOD.of(options), honoured.TAG_FORMATTER.of(options)
    if formatter not in _DAILY:
        raise UnsupportedError(
            f"option '{honoured.TAG_FORMATTER.name}' = '{formatter}' is not supported"
        )
    found = _PERIODS.get(period)
    if found is None:
        raise UnsupportedError(f"option '{honoured.TAG_PERIOD.name}' = '{period}' is not supported")
    return found(formatter)


_PERIODS: Mapping[str, Callable[[str], tuple[timedelta, str, bool]]] = {
    "daily": lambda formatter: (timedelta(days=1), _DAILY[formatter], True),
    "hourly": lambda formatter: (timedelta(hours=1), _HOURLY[formatter], False),
    "two-hours": lambda _: (timedelta(hours=2), _HOURLY["with_dashes"], False),
}


def _zone(options: Mapping[str, str], option: TableOption[str | None]) -> tzinfo | None:
    name = option.of(options)
    try:
        return None if name is None else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UnsupportedError(
            f"option '{option.name}' = '{name}' is not supported; give a zone such as Europe/Berlin"
        ) from error
