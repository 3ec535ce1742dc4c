"""Findings of a check."""

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.table.verify.verify_findings import Finding, VerifyFindings


def test_each_finding_is_kept_once_in_the_order_of_discovery() -> None:
    findings = VerifyFindings()
    findings.warning("b", "x", "odd")
    findings.error("a", "x", "wrong")
    findings.warning("b", "x", "odd")
    assert list(findings.found) == [
        Finding("warning", "b", "x", "odd"),
        Finding("error", "a", "x", "wrong"),
    ]


@pytest.mark.parametrize(
    ("raised", "code"),
    [(FormatError("torn"), "torn-code"), (FileNotFoundError(2, "", "f"), "missing-file")],
)
def test_what_cannot_be_read_becomes_a_finding(raised: Exception, code: str) -> None:
    findings = VerifyFindings()
    with findings.reading("data-1", "torn-code"):
        raise raised
    (finding,) = findings.found
    assert (finding.severity, finding.code, finding.where) == ("error", code, "data-1")


def test_errors_of_the_program_are_no_findings() -> None:
    with pytest.raises(ValueError, match="bug"), VerifyFindings().reading("x"):
        raise ValueError("bug")
