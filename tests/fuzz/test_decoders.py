"""Odd messages of every data format become rows or dead letters, each of them exactly once."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import Decoded
from tests.fuzz.cases import FINDINGS, irregular, load, packed, save, unpacked
from tests.fuzz.seeds import FORMATS, seeds
from tests.fuzz.verdict import judge

KEPT = sorted(FINDINGS.glob("*.json"))


@pytest.mark.parametrize("name", FORMATS)
def test_sound_messages_are_rows_of_their_own(name: str) -> None:
    for case in seeds(name)[::5]:
        judge(case)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=15, deadline=None)
@given(random=st.randoms(use_true_random=False), changes=st.integers(1, 4))
def test_odd_messages_are_in_one_place_and_cost_nobody_a_row(
    name: str, random: Random, changes: int
) -> None:
    judge(irregular(random, random.choice(seeds(name)), changes))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_finding_stays_mended(path: Path) -> None:
    judge(load(path))


@settings(max_examples=20)
@given(st.randoms(use_true_random=False), st.sampled_from(FORMATS), st.integers(0, 6))
def test_a_case_is_kept_whole(
    tmp_path_factory: pytest.TempPathFactory, random: Random, name: str, changes: int
) -> None:
    case = irregular(random, random.choice(seeds(name)), changes)
    assert unpacked(packed(case), case) == case or not case.messages
    folder = tmp_path_factory.mktemp("kept")
    assert load(save(case, "x", "why", folder)) == case


def test_a_decoder_that_loses_a_record_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    case = seeds("raw")[0]
    judge(case)
    monkeypatch.setattr("ingestd.cdc.formats.raw.RawRecords.decode", lambda *_: _nothing())
    with pytest.raises(AssertionError, match="lost"):
        judge(case)


def _nothing() -> object:
    return Decoded([], [], [], 0)
