import yaml

from ingestd.config.import_notes import Note, render, validation_error_of

GOOD = {
    "warehouse": {"path": "/lake"},
    "sources": {
        "kafka": {
            "kafka": {"bootstrap.servers": "b:1", "sasl.password": "${env:SURELY_NOT_SET}"},
            "topics": ["t"],
            "format": "json",
        }
    },
}


def test_a_configuration_that_loads_has_no_fault_whatever_the_environment() -> None:
    assert validation_error_of(GOOD) is None


def test_a_fault_is_reported_without_a_place_in_a_file_that_is_not_there() -> None:
    problem = validation_error_of({**GOOD, "defaults": {"options": {"bucket": "many"}}, "x": "y"})
    assert problem is not None
    assert problem.startswith("x: unknown key")
    assert "the result" not in problem


def test_faults_of_checks_are_found_too() -> None:
    problem = validation_error_of({**GOOD, "defaults": {"options": {"bucket": "many"}}})
    assert problem is not None
    assert "bucket" in problem


def test_notes_are_comments_and_the_essential_ones_come_first() -> None:
    notes = [Note("--a", "small"), Note("--b\nx", "grave " * 30, essential=True)]
    text = render(GOOD, notes, "Title.")
    assert yaml.safe_load(text) == GOOD
    lines = text.splitlines()
    assert lines[0] == "# Title."
    assert text.index("--b x: grave") < text.index("--a: small")
    assert all(len(line) <= 100 for line in lines)
    assert all(line.startswith("#") for line in lines[: lines.index("")])


def test_without_notes_there_is_only_the_title() -> None:
    assert render(GOOD, [], "Title.").splitlines()[:3] == ["# Title.", "", "warehouse:"]
