"""What a decoder is fed with: messages, the schemas they refer to, and sound neighbours."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.mutations import odd_bytes, odd_document

Message = tuple[bytes | None, bytes | None]
"""Key and value."""

FINDINGS = Path(__file__).resolve().parents[1] / "golden" / "fuzz"
_KNOWN, _DECLARED, _IMAGES = 1, 2, 4
_ABSENT = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Case:
    """Messages of one data format, with the sound ones that the decoder sees before them.

    `mode` says what else the decoder receives, `schemas` are registered under 1, 2, ...
    """

    format: str
    sound: tuple[Message, ...]
    messages: tuple[Message, ...]
    schemas: tuple[str, ...] = ()
    mode: int = 0

    @property
    def knows_table(self) -> bool:
        """The decoder receives the columns of the valid messages, as those of the table."""
        return bool(self.mode & _KNOWN)

    @property
    def declares(self) -> bool:
        """Some columns have types that the configuration declares."""
        return bool(self.mode & _DECLARED)

    @property
    def images(self) -> bool:
        """Rows before changes are asked for."""
        return bool(self.mode & _IMAGES)


def irregular(random: Random, case: Case, changes: int) -> Case:
    """Return the case with `count` changes."""
    for _ in range(changes):
        case = _changed(random, case)
    return case


def _changed(random: Random, case: Case) -> Case:
    everything = [part for message in (*case.sound, *case.messages) for part in message if part]
    how = random.randrange(20)
    if how == 0:
        return replace(case, mode=random.randrange(8))
    if how == 1 and case.schemas:
        return replace(case, schemas=_with_odd_schema(random, case.schemas))
    if how == 2:
        return replace(case, messages=(*case.messages, random.choice(case.sound))[-6:])
    index = random.randrange(len(case.messages))
    key, value = case.messages[index]
    if how == 3:
        key, value = random.choice(
            ((None, value), (key, None), (key, b""), (value, key), (key, key))
        )
    elif how == 4 and key is not None:
        key = _odd_part(random, key, everything, case)
    elif value is not None:
        value = _odd_part(random, value, everything, case)
    messages = [*case.messages]
    messages[index] = (key, value)
    return replace(case, messages=tuple(messages))


def _odd_part(random: Random, part: bytes, others: Sequence[bytes], case: Case) -> bytes:
    if case.schemas or random.randrange(3) == 0:
        return odd_bytes(random, part, others)
    return odd_document(random, part, others)


def _with_odd_schema(random: Random, schemas: tuple[str, ...]) -> tuple[str, ...]:
    index = random.randrange(len(schemas))
    texts = [text.encode() for text in schemas]
    changed = odd_document if texts[index].startswith(b"{") else odd_bytes
    found = changed(random, texts[index], texts).decode("utf-8", "replace")
    return (*schemas[:index], found, *schemas[index + 1 :])


def packed(case: Case) -> bytes:
    """The case, without its format and sound messages, as bytes that a fuzzer can keep."""
    parts: list[bytes | None] = [text.encode("utf-8", "replace") for text in case.schemas]
    parts += [part for message in case.messages for part in message]
    sizes = [_ABSENT if part is None else len(part) for part in parts]
    head = bytes([case.mode, len(case.schemas)])
    return head + b"".join(
        size.to_bytes(4, "big") + (part or b"") for size, part in zip(sizes, parts, strict=True)
    )


def unpacked(data: bytes, model: Case) -> Case:
    """The case of any bytes, with the format and the sound messages of another."""
    mode, schemas = (data[0] & 7, data[1]) if len(data) > 1 else (0, 0)
    parts: list[bytes | None] = []
    at = 2
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        parts.append(None if size == _ABSENT else data[at : at + size])
        at += 0 if size == _ABSENT else size
    texts = tuple((part or b"").decode("utf-8", "replace") for part in parts[:schemas])
    rest = parts[schemas:]
    pairs = tuple(zip(rest[::2], [*rest[1::2], None], strict=False))
    return replace(model, mode=mode, schemas=texts, messages=pairs or model.messages)


def save(case: Case, name: str, why: str, folder: Path = FINDINGS) -> Path:
    """Keep a finding as a regression sample."""
    document = {
        "why": why,
        "format": case.format,
        "mode": case.mode,
        "schemas": list(case.schemas),
        "sound": [_texts(message) for message in case.sound],
        "messages": [_texts(message) for message in case.messages],
    }
    path = folder / f"{case.format}-{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Case:
    """A regression sample."""
    raw = json.loads(path.read_text("utf-8"))
    return Case(
        raw["format"],
        tuple(_message(one) for one in raw["sound"]),
        tuple(_message(message) for message in raw["messages"]),
        tuple(raw["schemas"]),
        raw["mode"],
    )


def _texts(message: Message) -> list[Any]:
    """Parts as text where they are printable ASCII, else in base64."""
    return [None if part is None else _text(part) for part in message]


def _text(part: bytes) -> Any:
    if part.isascii() and part.decode("ascii").isprintable():
        return part.decode("ascii")
    return {"base64": base64.b64encode(part).decode()}


def _message(texts: Any) -> Message:
    key, value = (
        base64.b64decode(text["base64"]) if isinstance(text, dict) else _encoded(text)
        for text in texts
    )
    return key, value


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
