"""File and directory names of a table.

Paths are plain strings with `/`; no file system is accessed. Values in a partition path are
formatted as Java formats them, because every reader derives the directory from the partition row.

Specification: https://paimon.apache.org/docs/1.4/concepts/basic-concepts/#file-layouts
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.civil_dates import civil_date
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)
from ingestd.paimon.spec.decimal_digits import unscaled
from ingestd.paimon.spec.float_text import java_double, java_float

MAIN_BRANCH = "main"
BRANCH_MARK = "$branch_"
"""Between the name of a table and the name of one of its branches, as in `orders$branch_fix`."""
DEFAULT_PARTITION_NAME = "__DEFAULT_PARTITION__"
POSTPONE_BUCKET = -2

_ESCAPES = {
    ord(char): f"%{ord(char):02X}" for char in [*map(chr, range(0x20)), *"\"#%'*/:=?\\\x7f{}[]^"]
}
_NOT_BLANK_IN_JAVA = "\x85\xa0\u2007\u202f"
_MILLIS_OF_DAY = 86_400_000
_NANOS_OF_SECOND = 1_000_000_000


def file_numbers(names: Iterable[str], prefix: str) -> list[int]:
    """Return the numbers of the files that are named by a prefix and a number, ascending."""
    tails = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(tail) for tail in tails if tail.isascii() and tail.isdigit())


def escape(text: str) -> str:
    """Escape text for a path: characters with a special meaning in file systems become %XX."""
    return text.translate(_ESCAPES)


def partition_path(
    keys: Sequence[str],
    types: Sequence[DataType],
    values: Sequence[object],
    default_name: str,
    legacy: bool,
) -> str:
    """Return the directories of a partition, each with a trailing slash ("dt=2024/hr=1/").

    Without partition keys, the path is "". `default_name` is the directory name of null and blank
    values. `legacy` is the value of the option `partition.legacy-name`.

    Raises UnsupportedError for a value without a text form, and, unless `legacy`, for a date or
    timestamp whose year is not between 0 and 9999.
    """
    parts = []
    for key, t, value in zip(keys, types, values, strict=True):
        text = "" if value is None else _value_text(key, t, value, legacy)
        named = default_name if _is_blank(text) else text
        parts.append(f"{escape(key)}={escape(named)}/")
    return "".join(parts)


def java_text(name: str, t: DataType, value: object, *, legacy: bool) -> str:
    """Return the text of a non-null value: Java's internal form if `legacy`, else its cast to text.

    `name` is the column, for error messages. Raises UnsupportedError for a value without a text
    form, and, unless `legacy`, for a date or timestamp whose year is not between 0 and 9999.
    """
    return _value_text(name, t, value, legacy)


def _is_blank(text: str) -> bool:
    return not text or (text.isspace() and not any(char in _NOT_BLANK_IN_JAVA for char in text))


def _value_text(key: str, t: DataType, value: object, legacy: bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _decimal_text(value, t.scale or 0)
    if isinstance(value, float):
        return java_float(value) if t.root == "FLOAT" else java_double(value)
    if isinstance(value, int):
        return _number_text(t, value, legacy)
    if isinstance(value, bytes) and t.root in BINARY_ROOTS and not legacy:
        return value.decode(errors="replace")
    if isinstance(value, str):
        return value
    raise UnsupportedError(
        f"partition column '{key}' of type {t} has no directory name; partition by another column"
    )


def _number_text(t: DataType, value: int, legacy: bool) -> str:
    if t.root in TIMESTAMP_ROOTS:
        return _timestamp_text(t, value, legacy)
    if legacy or t.root in INTEGER_ROOTS:
        return str(value)
    if t.root == "DATE":
        return _date_text(value, legacy=False)
    return _time_text(value, t.precision or 0)


def _decimal_text(value: Decimal, scale: int) -> str:
    number = unscaled(value, scale)
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = digits if scale == 0 else f"{digits[:-scale]}.{digits[-scale:]}"
    return f"-{text}" if number < 0 else text


def _date_text(days: int, legacy: bool) -> str:
    year, month, day = civil_date(days)
    if legacy:
        sign = "-" if year < 0 else "+" if year > 9999 else ""
        return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"
    if not 0 <= year <= 9999:
        raise UnsupportedError(f"a partition of the year {year} has no directory name")
    return f"{year:04d}-{month:02d}-{day:02d}"


def _time_text(millis: int, precision: int) -> str:
    seconds, rest = divmod(millis % _MILLIS_OF_DAY, 1000)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    if precision == 0:
        return text
    digits = f"{rest:03d}".rstrip("0") or "0"
    return f"{text}.{digits[:precision]}"


def _timestamp_text(t: DataType, value: int, legacy: bool) -> str:
    precision = t.precision or 0
    unit = 1_000_000 if precision <= 3 else 1000 if precision <= 6 else 1
    seconds, nanos = divmod(value * unit, _NANOS_OF_SECOND)
    days, second_of_day = divmod(seconds, 86_400)
    minutes, second = divmod(second_of_day, 60)
    date, clock = _date_text(days, legacy), f"{minutes // 60:02d}:{minutes % 60:02d}"
    fraction = f"{nanos:09d}"
    if not legacy:
        kept = max(len(fraction.rstrip("0")), precision)
        return f"{date} {clock}:{second:02d}" + (f".{fraction[:kept]}" if kept else "")
    if nanos:
        kept = 3 if nanos % 1_000_000 == 0 else 6 if nanos % 1000 == 0 else 9
        return f"{date}T{clock}:{second:02d}.{fraction[:kept]}"
    return f"{date}T{clock}:{second:02d}" if second else f"{date}T{clock}"


@dataclass(frozen=True, slots=True)
class TablePaths:
    """The paths of one table; `root` is its directory, without a trailing slash.

    A branch has its own schemas, snapshots, long-lived changelogs, tags and consumers; it shares
    all other directories with the main branch.
    """

    root: str
    branch: str = MAIN_BRANCH

    @property
    def branch_root(self) -> str:
        """Directory of the branch's own metadata."""
        if self.branch == MAIN_BRANCH:
            return self.root
        return f"{self.branches_dir}/branch-{self.branch}"

    @property
    def branches_dir(self) -> str:
        """Directory of the branches except the main branch."""
        return f"{self.root}/branch"

    @property
    def schema_dir(self) -> str:
        """Directory of the schema files."""
        return f"{self.branch_root}/schema"

    @property
    def snapshot_dir(self) -> str:
        """Directory of the snapshot files and hints."""
        return f"{self.branch_root}/snapshot"

    @property
    def tag_dir(self) -> str:
        """Directory of the tags, each a copy of a snapshot file."""
        return f"{self.branch_root}/tag"

    @property
    def consumer_dir(self) -> str:
        """Directory of the progress files of consumers."""
        return f"{self.branch_root}/consumer"

    @property
    def manifest_dir(self) -> str:
        """Directory of manifests, manifest lists and index manifests."""
        return f"{self.root}/manifest"

    @property
    def index_dir(self) -> str:
        """Directory of the table index files."""
        return f"{self.root}/index"

    def schema(self, schema_id: int) -> str:
        """Return the path of a schema file; ids start at 0."""
        return f"{self.schema_dir}/schema-{schema_id}"

    @property
    def changelog_dir(self) -> str:
        """Directory of the long-lived changelogs."""
        return f"{self.branch_root}/changelog"

    def changelog(self, snapshot_id: int) -> str:
        """Return the path of a long-lived changelog, by the id of its expired snapshot."""
        return f"{self.changelog_dir}/changelog-{snapshot_id}"

    def snapshot(self, snapshot_id: int) -> str:
        """Return the path of a snapshot file; ids start at 1."""
        return f"{self.snapshot_dir}/snapshot-{snapshot_id}"

    @property
    def latest_hint(self) -> str:
        """Hint file with the id of the newest snapshot; it may be outdated."""
        return f"{self.snapshot_dir}/LATEST"

    @property
    def earliest_hint(self) -> str:
        """Hint file with the id of the oldest snapshot; it may be outdated."""
        return f"{self.snapshot_dir}/EARLIEST"

    def manifest(self, name: str) -> str:
        """Return the path of a manifest, manifest list or index manifest."""
        return f"{self.manifest_dir}/{name}"

    def index(self, name: str) -> str:
        """Return the path of a table index file."""
        return f"{self.index_dir}/{name}"

    def statistics(self, name: str) -> str:
        """Return the path of a statistics file."""
        return f"{self.root}/statistics/{name}"

    def bucket_dir(self, partition_path: str, bucket: int) -> str:
        """Return the directory of a bucket.

        `partition_path` has the directories of the partition, each with a trailing slash.
        """
        name = "postpone" if bucket == POSTPONE_BUCKET else str(bucket)
        return f"{self.root}/{partition_path}bucket-{name}"

    def data_file(self, partition_path: str, bucket: int, name: str) -> str:
        """Return the path of a data file in the directory of its bucket.

        `partition_path` has the directories of the partition, each with a trailing slash.
        """
        return f"{self.bucket_dir(partition_path, bucket)}/{name}"
