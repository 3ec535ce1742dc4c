"""Hashes of values, against published test vectors and the standard library."""

import hashlib
import hmac
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from ingestd.errors import ConfigError, SecretLookupError
from ingestd.ingest.computed.expressions import digests
from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.expression import read_expression, run_expression
from ingestd.paimon.spec.data_types import DataType
from tests.support.sql_values import Columns, values

COLUMNS: Columns = {
    "s": ("STRING", ["abc", "", None, "Größe"]),
    "b": ("BYTES", [b"\xff\x00", b"", None, b"Hi There"]),
}
KEY = "\x0b" * 20


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("md5(s)", "900150983cd24fb0d6963f7d28e17f72"),
        ("sha2(s, 224)", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
        ("sha2(s, 256)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("sha2(s, 0)", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "left(sha2(s, 384), 32) || left(sha2(s, 512), 32)",
            "cb00753f45a35e8bb5a03d699ac65007ddaf35a193617abacc417349ae204131",
        ),
    ],
)
def test_hashes_are_those_of_the_standards(sql: str, wanted: str) -> None:
    found = values(sql, COLUMNS)
    assert (found[0], found[2]) == (wanted, None)


def test_all_values_are_hashed_by_their_bytes() -> None:
    texts = [None if text is None else text.encode() for text in COLUMNS["s"][1]]
    for name, data in (("s", texts), ("b", COLUMNS["b"][1])):
        expected = [None if one is None else hashlib.sha256(one).hexdigest() for one in data]
        assert values(f"sha2({name}, 256)", COLUMNS) == expected


def test_a_slice_is_hashed_as_a_slice() -> None:
    texts = pa.array(["a", None, "bc", "d"]).slice(1)
    expression = read_expression("sha2(s, 256)")
    made = run_expression(expression, {"s": DataType("STRING")}, Frame({"s": texts}, 3))
    assert made is not None
    assert made.values.to_pylist() == [
        None,
        *(hashlib.sha256(text).hexdigest() for text in (b"bc", b"d")),
    ]


@pytest.mark.parametrize("bits", [0, 224, 256, 384, 512])
def test_without_the_extension_hashes_are_equal(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [None, "", "a" * 55, "a" * 56, "Größe", "\0", "x" * 100_000, None]
    arrays = [
        pa.array(texts),
        pa.array(texts).slice(3, 4),
        pa.array([None, None], pa.string()),
        pa.array([], pa.string()),
        pa.array([None if text is None else text.encode() for text in texts], pa.binary()),
    ]
    expressions = [read_expression(f"sha2(s, {bits})")] * len(arrays)

    def hashed() -> list[list[str | None]]:
        made: list[list[str | None]] = []
        for expression, array in zip(expressions, arrays, strict=True):
            root = "BYTES" if pa.types.is_binary(array.type) else "STRING"
            frame = Frame({"s": array}, len(array))
            cells = run_expression(expression, {"s": DataType(root)}, frame)
            assert cells is not None
            cells.values.validate(full=True)
            made.append(cells.values.to_pylist())
        return made

    with_extension = hashed()
    assert with_extension[0][0] is None
    assert {len(text) for text in with_extension[0] if text} == {(bits or 256) // 4}
    monkeypatch.setattr(digests, "native_columns", lambda: None)
    assert hashed() == with_extension


def test_hmac_is_that_of_rfc_4231(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HASH_KEY", KEY)
    (tmp_path / "key").write_text(f"{KEY}\n")
    wanted = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
    assert values("hmac(b, 'env:HASH_KEY')", COLUMNS)[3] == wanted
    assert values(f"hmac(b, 'file:{tmp_path}/key', 'sha256')", COLUMNS)[2:] == [None, wanted]
    other = hmac.new(KEY.encode(), b"Hi There", "sha512").hexdigest()
    assert values("hmac(b, 'env:HASH_KEY', 'sha512')", COLUMNS)[3] == other


def test_an_expression_never_contains_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HASH_KEY", "very-secret")
    expression = read_expression("hmac(s, 'env:HASH_KEY')")
    values("hmac(s, 'env:HASH_KEY')", COLUMNS)
    assert b"very-secret" not in pickle.dumps(expression)
    assert "very-secret" not in repr(expression)


def test_hex_is_the_text_of_the_bytes() -> None:
    assert values("hex(b)", COLUMNS) == ["FF00", "", None, "4869205468657265"]
    assert values("hex(s)", COLUMNS) == ["616263", "", None, "4772C3B6C39F65"]
    frame = Frame({"b": pa.array([b"a", None, b"\x01\xfe"], pa.binary()).slice(1)}, 2)
    made = run_expression(read_expression("hex(b)"), {"b": DataType("BYTES")}, frame)
    assert made is not None
    assert made.values.to_pylist() == [None, "01FE"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("hmac(s, 'a plain key')", "is a reference to its key: 'env:NAME'"),
        ("hmac(s, 'env:NOT_SET_HERE')", "NOT_SET_HERE is not set"),
        ("hmac(s, 'file:relative')", "'file:/PATH'"),
        ("hmac(s, 'file:/no/such/file')", "/no/such/file cannot be read"),
        ("hmac(s, 'env:EMPTY_KEY')", "is empty"),
        ("hmac(s, 'env:HASH_KEY', 'md5')", "one of sha256, sha384, sha512"),
        ("hmac(s, t)", "must be a constant text"),
        ("sha2(s, 1)", "224, 256, 384 or 512, not 1"),
        ("md5(1)", "md5 does not take INT"),
    ],
)
def test_other_arguments_are_refused(
    monkeypatch: pytest.MonkeyPatch, sql: str, message: str
) -> None:
    monkeypatch.setenv("EMPTY_KEY", "")
    monkeypatch.setenv("HASH_KEY", KEY)
    with pytest.raises((ConfigError, SecretLookupError), match=message):
        read_expression(sql)
