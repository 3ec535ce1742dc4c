"""The reference of the library: its examples run, and it has every public name."""

import doctest
import inspect
import re
from pathlib import Path

import ingestd.paimon as paimon
from tests.support.code_blocks import ROOT, shown

PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")


def test_the_examples_of_the_page_give_what_it_shows(tmp_path: Path) -> None:
    text = shown("docs/library.md", ">>> import").text.replace("/data/warehouse", str(tmp_path))
    examples = doctest.DocTestParser().get_doctest(text, {}, "library.md", None, 0)
    assert len(examples.examples) > 12
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert failed == 0


def test_every_public_member_has_its_heading_and_its_keywords() -> None:
    headings = set(re.findall(r"^### (.*)$", PAGE, re.MULTILINE))
    for name in paimon.__all__:
        value = getattr(paimon, name)
        if inspect.isfunction(value):
            assert f"paimon.{name}" in headings
            continue
        assert f"\n## {name}\n" in PAGE
        members = {f"{name}.{member}" for member in vars(value) if not member.startswith("_")}
        fields = {f"{name}.{field}" for field in getattr(value, "__dataclass_fields__", {})}
        assert members - fields <= headings
    assert "`Table.count(*, where: str | None=None) -> int`" in PAGE
