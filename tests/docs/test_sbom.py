"""The bill of materials names every locked part once, with its hashes, always the same way."""

import json
from pathlib import Path

import pytest

from docs.sbom import bill_of_materials, crate_components, lock_entries, main, python_components

ROOT = Path(__file__).resolve().parents[2]


def test_every_locked_package_and_crate_is_in_it_with_its_hashes() -> None:
    document = bill_of_materials()
    parts = document["components"]
    entries = list(lock_entries((ROOT / "requirements.lock").read_text()))
    crates = (ROOT / "native" / "Cargo.lock").read_text().count("\nchecksum = ")
    assert len(parts) == len(entries) + crates
    references = [one["bom-ref"] for one in parts]
    assert len(set(references)) == len(references)
    assert document["dependencies"][0]["dependsOn"] == sorted(references)
    for one in parts:
        (distribution,) = one["externalReferences"]
        assert all(len(value["content"]) == 64 for value in distribution["hashes"]), one["purl"]
    names = {one["name"] for one in parts}
    assert {"pyspark", "pyarrow", "confluent-kafka"} <= names
    assert document["metadata"]["component"]["name"] == "ingestd"


def test_the_same_locks_make_the_same_bytes(tmp_path: Path) -> None:
    main(tmp_path / "build" / "a.json")
    main(tmp_path / "b.json")
    first = (tmp_path / "build" / "a.json").read_bytes()
    assert first == (tmp_path / "b.json").read_bytes()
    assert json.loads(first)["bomFormat"] == "CycloneDX"


def test_an_entry_without_a_hash_is_refused() -> None:
    good = "one==1.0 \\\n    --hash=sha256:" + "a" * 64 + "\n"
    assert [python_component["purl"] for python_component in python_components(good)] == [
        "pkg:pypi/one@1.0"
    ]
    for bad in ("one==1.0\n", "one>=1.0 --hash=sha256:" + "a" * 64):
        with pytest.raises(ValueError, match="no version or no hash"):
            list(python_components(bad))


def test_the_workspace_itself_is_no_part_of_its_own() -> None:
    text = '[[package]]\nname = "own"\nversion = "1"\n[[package]]\nname = "x"\nversion = "2"\n'
    assert [
        crate_component["name"]
        for crate_component in crate_components(text + f'checksum = "{"b" * 64}"\n')
    ] == ["x"]
