import pytest

from ingestd.ingest.dead_letters.shown_bytes import shown_bytes


@pytest.mark.parametrize(
    ("content", "form", "text"),
    [
        (None, "null", "null"),
        (b"", "empty", "empty"),
        (b"null", "text", "null"),
        ("größe\n\t".encode(), "text", "größe\n\t"),
        (b'{"id": 1}', "json", '{"id": 1}'),
        (b"{bad", "text", "{bad"),
        (b"[" * 100_000, "text", "[" * 100_000),
        (b"\x00\x00\x00\x01\x02\x04ab", "framed", "schema 258, then 046162"),
        (b"\x00\x00\x00\x00\x07", "framed", "schema 7, then "),
        (b"\x00\x01", "hex", "0001"),
        (b"\x01\x02", "hex", "0102"),
        (b"\xff\x00", "hex", "ff00"),
        ("\x85".encode(), "hex", "c285"),
    ],
)
def test_bytes_are_shown_as_what_they_are(content: bytes | None, form: str, text: str) -> None:
    shown = shown_bytes(content)
    assert (shown.form, str(shown)) == (form, text)
