"""Every command block of the page of maintenance is run, line by line, on a table that fits it."""

import shlex
from pathlib import Path

import pyarrow as pa
import pytest

import ingestd.paimon as paimon
from tests.support.code_blocks import ROOT, CodeBlock, code_blocks
from tests.support.command_line import run_command

Capture = pytest.CaptureFixture[str]
BLOCKS = [
    code_block
    for code_block in code_blocks(ROOT / "docs" / "maintenance.md")
    if not code_block.language and code_block.text.startswith("ingestd ")
]
ORDERS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("dt", pa.string(), nullable=False),
        ("note", pa.string()),
    ]
)
CLICKS = pa.schema(
    [
        ("country", pa.string()),
        ("at", pa.int64()),
        ("lat", pa.float64()),
        ("lon", pa.float64()),
        ("dt", pa.string()),
    ]
)
DAYS = ("2026-01-01", "2026-01-02")
ASKING = {"rollback", "rescale", "rebuild-index", "truncate", "drop-partition", "fast-forward"}
A_SNAPSHOT = {"42": "2"}
"""The command of the page, and an existing one."""


def stage(folder: Path, buckets: str) -> None:
    """shop.orders and shop.clicks, with a history of some snapshots."""
    warehouse = paimon.open_warehouse(str(folder))
    orders = warehouse.create(
        "shop.orders",
        ORDERS,
        primary_keys=["id", "dt"],
        partition_keys=["dt"],
        options={"bucket": buckets, "file-index.bloom-filter.columns": "note"},
    )
    clicks = warehouse.create("shop.clicks", CLICKS, partition_keys=["dt"])
    for turn in range(4):
        orders.write([{"id": turn, "dt": day, "note": f"turn {turn}"} for day in DAYS])
        one = {"country": "fr", "at": turn, "lat": 1.0, "lon": turn, "dt": DAYS[0]}
        clicks.write([one] * 3)


def lines(block: CodeBlock) -> list[list[str]]:
    return [shlex.split(line, comments=True) for line in block.text.splitlines()]


@pytest.mark.parametrize(
    "block", BLOCKS, ids=[block.first.split("#")[0].strip() for block in BLOCKS]
)
def test_every_line_of_a_block_does_its_work(
    block: CodeBlock, tmp_path: Path, capsys: Capture
) -> None:
    stage(tmp_path, "2" if " rescale " in block.text else "-1")
    for words in lines(block):
        assert words[0] == "ingestd"
        real = [
            str(tmp_path) if word == "LAKE" else A_SNAPSHOT.get(word, word) for word in words[1:]
        ]
        asks = ASKING.intersection(words) and "--dry-run" not in words
        done = run_command(capsys, *real, *(["--yes"] if asks else []))
        assert done.code == 0, (words, done.err)
        assert done.out or done.err, words
    for name in ("shop.orders", "shop.clicks"):
        assert run_command(capsys, "verify", tmp_path, name).code == 0


def test_the_page_has_such_blocks() -> None:
    verbs = {words[1] for block in BLOCKS for words in lines(block)}
    assert verbs >= {
        "tag",
        "branch",
        "compact",
        "rescale",
        "rebuild-index",
        "rewrite-file-index",
        "expire",
        "remove-orphans",
    }
