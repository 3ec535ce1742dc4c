"""Parse Protobuf schemas of a registry, which are `.proto` files, into message types.

Services, extensions and all options but the presence of fields are skipped, because they are not
required to read messages. Groups are not supported.
Specification: https://protobuf.dev/programming-guides/proto3/
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ingestd.cdc.avro.aliases import Names

# An unterminated comment or string is rejected, because searching for its end at every later
# position would take quadratic time.
_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<blank>\s+)|(?P<endless>/\*)"""
    r"""|(?P<string>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')|(?P<unclosed>["'])"""
    r"""|(?P<word>[\w.]+)|(?P<sign>.)""",
    re.DOTALL,
)
_COMMENT_MARKS = re.compile(r"^[ \t]*(?:/{2,}|/\*+|\*+/?)[ \t]?|[ \t]*\*+/$", re.MULTILINE)
_ENDLESS = {"endless": "comment", "unclosed": "string"}
_MAX_DEPTH = 64
_LONGEST_NAME = 500
"""Maximum length of a full name, which each nested type repeats."""
_LABELS = frozenset({"optional", "required", "repeated"})
_VISIBILITY = frozenset({"export", "local"})
SCALARS = frozenset(
    {
        "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64",
        "fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes",
    }
)  # fmt: skip


class ProtobufSchemaError(ValueError):
    """A schema is invalid, or uses an unsupported feature; the message states the reason."""


@dataclass(frozen=True, slots=True)
class ProtoField:
    """A field of a message.

    `type_name` is a scalar type, or the full name of a message or an enum. If `has_presence`, an
    absent field is null; otherwise it has the default of its type. For a map, `key_type` is the
    type of its keys, and `type_name` the type of its values. `oneof` is the name of the oneof that
    contains the field. `comment` precedes the field, or follows it on the same line.
    """

    name: str
    number: int
    type_name: str
    repeated: bool = False
    has_presence: bool = True
    key_type: str | None = None
    comment: str | None = None
    oneof: str | None = None


@dataclass(slots=True)
class ProtoTypes:
    """Types by full name: the fields of messages, and the names of enum values by number.

    `tops` are the top-level messages of the main file in order, and `nested` the messages that are
    declared in each message. `comments` are the comments of messages.
    """

    messages: dict[str, list[ProtoField]] = field(default_factory=dict)
    enums: dict[str, dict[int, str]] = field(default_factory=dict)
    nested: dict[str, list[str]] = field(default_factory=dict)
    tops: list[str] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)

    def message_at(self, indexes: Iterable[int]) -> str:
        """Return the full name of the message type at the message indexes of a schema frame.

        `indexes` has at least one index: that of a top-level message, followed by the indexes of
        nested messages. Raises ProtobufSchemaError if the message does not exist.
        """
        inside = self.tops
        name = ""
        for index in indexes:
            if not 0 <= index < len(inside):
                raise ProtobufSchemaError(f"{name or 'the schema'} has no message {index}")
            name = inside[index]
            inside = self.nested[name]
        return name

    def message_named(self, name: str) -> str:
        """Return the full name of the top-level message of the main file with this short name.

        Raises ProtobufSchemaError if the message does not exist.
        """
        for full_name in self.tops:
            if full_name.rpartition(".")[2] == name:
                return full_name
        raise ProtobufSchemaError(f"the schema has no message {name!r}")


def parse_protobuf(text: str, references: Iterable[str] = ()) -> ProtoTypes:
    """Parse a `.proto` file; `references` are the texts of the files that it imports.

    Raises ProtobufSchemaError if the schema is invalid or not supported.
    """
    types = ProtoTypes()
    for reference in references:
        _File(reference, types).read()
        types.tops.clear()
    _File(text, types).read()
    _resolve(types)
    return types


def _resolve(types: ProtoTypes) -> None:
    """Replace the type names of all fields by full names.

    Raises ProtobufSchemaError if two fields of a message share a name or number.
    """
    for message, fields in types.messages.items():
        names, numbers = {field.name for field in fields}, {field.number for field in fields}
        if min(len(names), len(numbers)) < len(fields):
            raise ProtobufSchemaError(f"message {message} has two fields of one name or number")
        for index, proto_field in enumerate(fields):
            if proto_field.type_name not in SCALARS:
                full = _full_name(types, proto_field.type_name, message)
                fields[index] = replace(proto_field, type_name=full)


def _full_name(types: ProtoTypes, name: str, scope: str) -> str:
    """Return the full name of a type that is used in a scope.

    The innermost enclosing scope that declares the name takes precedence.
    """
    if name.startswith("."):
        return name[1:]
    while True:
        full = f"{scope}.{name}" if scope else name
        if full in types.messages or full in types.enums:
            return full
        if not scope:
            return name  # well-known types need not be registered
        scope = scope.rpartition(".")[0]


class _File:
    """A parser of one file, which adds the declared types to `types`."""

    def __init__(self, text: str, types: ProtoTypes) -> None:
        self._comments: dict[int, str] = {}
        self._tokens = list(_tokens(text, self._comments))
        self._at = 0
        self._types = types
        self._package = ""
        self._implicit = False

    def read(self) -> None:
        """Parse the whole file. Raises ProtobufSchemaError if it is invalid."""
        try:
            while self._at < len(self._tokens):
                self._statement()
        except (IndexError, ValueError) as error:
            if isinstance(error, ProtobufSchemaError):
                raise
            raise ProtobufSchemaError(f"the Protobuf schema cannot be read: {error}") from error

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _expect(self, wanted: str) -> None:
        token = self._next()
        if token != wanted:
            raise ProtobufSchemaError(f"the Protobuf schema has {token!r} in place of {wanted!r}")

    def _statement(self) -> None:
        word = self._next()
        if word in ("syntax", "edition"):
            self._expect("=")
            self._implicit = self._next().strip("\"'") == "proto3"
            self._expect(";")
        elif word == "package":
            self._package = self._next()
            self._expect(";")
        elif word == "message":
            self._types.tops.append(self._message(self._package, 0))
        elif word == "enum":
            self._enum(self._package)
        elif word == "option":
            self._implicit = self._skip_options()
        elif word not in (";", *_VISIBILITY):
            self._skip_statement()

    def _skip_options(self) -> bool:
        """Skip options; return whether fields that they apply to have implicit presence."""
        start = self._at
        self._skip_statement()
        for index in range(start, self._at - 2):
            if self._tokens[index].removeprefix("features.") == "field_presence":
                return self._tokens[index + 2] == "IMPLICIT"
        return self._implicit

    def _skip_statement(self) -> None:
        """Skip a statement up to its semicolon or the end of its block."""
        depth = 0
        while True:
            token = self._next()
            depth += (token in ("{", "[")) - (token in ("}", "]"))
            if depth == 0 and token in (";", "}"):
                return

    def _message(self, scope: str, depth: int) -> str:
        name = self._next()
        full = _scoped(scope, name)
        if depth > _MAX_DEPTH:
            raise ProtobufSchemaError("the Protobuf schema is too deep")
        self._types.messages[full] = []
        self._types.nested[full] = []
        if (comment := self._comments.get(self._at - 2)) is not None:
            self._types.comments[full] = comment
        self._expect("{")
        self._members(full, depth)
        return full

    def _members(self, full: str, depth: int, oneof: str | None = None) -> None:
        while (word := self._next()) != "}":
            if word == "message":
                self._types.nested[full].append(self._message(full, depth + 1))
            elif word == "enum":
                self._enum(full)
            elif word == "oneof":
                if oneof is not None:
                    raise ProtobufSchemaError("the Protobuf schema has a oneof in a oneof")
                name = self._next()
                self._expect("{")
                self._members(full, depth, name)
            elif word in ("reserved", "extensions", "option", "extend"):
                self._skip_statement()
            elif word != ";" and not self._is_visibility(word):
                self._types.messages[full].append(self._field(word, oneof))

    def _is_visibility(self, word: str) -> bool:
        return word in _VISIBILITY and self._tokens[self._at] in ("message", "enum")

    def _field(self, word: str, oneof: str | None) -> ProtoField:
        comment = self._comments.get(self._at - 1)
        label = word if word in _LABELS else ""
        kind = self._next() if label else word
        if kind == "group":
            raise ProtobufSchemaError("the Protobuf schema has a group, which is not supported")
        key_type = None
        if kind == "map" and self._tokens[self._at] == "<":
            self._expect("<")
            key_type = self._next()
            self._expect(",")
            kind = self._next()
            self._expect(">")
        name = self._next()
        self._expect("=")
        number = int(self._next(), 0)
        implicit = self._implicit
        if self._tokens[self._at] == "[":
            implicit = self._skip_options()
        else:
            self._expect(";")
        presence = oneof is not None or label in ("optional", "required") or not implicit
        comment = comment or self._comments.get(-self._at)
        repeated = label == "repeated"
        return ProtoField(name, number, kind, repeated, presence, key_type, comment, oneof)

    def _enum(self, scope: str) -> None:
        name = self._next()
        values: dict[int, str] = {}
        self._expect("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved"):
                self._skip_statement()
            elif word != ";":
                self._expect("=")
                sign = -1 if self._tokens[self._at] == "-" else 1
                self._at += sign < 0
                values.setdefault(sign * int(self._next(), 0), word)
                if self._tokens[self._at] == "[":
                    self._skip_statement()
                else:
                    self._expect(";")
        self._types.enums[_scoped(scope, name)] = values


def _tokens(text: str, comments: dict[int, str]) -> Iterator[str]:
    """Yield the words, strings and punctuation characters of a file.

    Comments are added to `comments`: a comment before the token with index n under the key n, and a
    comment after it on the same line under the key -(n + 1). Raises ProtobufSchemaError if a token
    is invalid.
    """
    count, same_line, leading = 0, False, list[str]()
    for match in _TOKEN.finditer(text):
        kind, word = match.lastgroup, match.group()
        if kind == "blank":
            same_line &= "\n" not in word
            leading = leading if word.count("\n") < 2 else []
            continue
        if kind == "comment":
            plain = _COMMENT_MARKS.sub("", word).strip()
            if same_line:
                comments[-count] = plain
            else:
                leading.append(plain)
            continue
        if kind in _ENDLESS:
            raise ProtobufSchemaError(f"the Protobuf schema has a {_ENDLESS[kind]} without an end")
        if kind == "word" and len(word) > _LONGEST_NAME:
            raise ProtobufSchemaError(f"the Protobuf schema has a name of {len(word)} characters")
        if leading:
            comments[count] = "\n".join(leading)
        count, same_line, leading = count + 1, True, []
        yield word


def _scoped(scope: str, name: str) -> str:
    """Return the full name of a type declared in a scope.

    Raises ProtobufSchemaError if the name is too long, or nested too deeply.
    """
    full = f"{scope}.{name}" if scope else name
    if len(full) > _LONGEST_NAME or full.count(".") > _MAX_DEPTH:
        raise ProtobufSchemaError(f"the Protobuf schema is too deep, or a name too long: {name}")
    return full


WELL_KNOWN: Mapping[str, tuple[ProtoField, ...]] = {
    "google.protobuf.Timestamp": (
        ProtoField("seconds", 1, "int64", has_presence=False),
        ProtoField("nanos", 2, "int32", has_presence=False),
    ),
    "google.protobuf.Duration": (
        ProtoField("seconds", 1, "int64", has_presence=False),
        ProtoField("nanos", 2, "int32", has_presence=False),
    ),
    "google.type.Date": (
        ProtoField("year", 1, "int32", has_presence=False),
        ProtoField("month", 2, "int32", has_presence=False),
        ProtoField("day", 3, "int32", has_presence=False),
    ),
    "confluent.type.Decimal": (
        ProtoField("value", 1, "bytes", has_presence=False),
        ProtoField("precision", 2, "uint32", has_presence=False),
        ProtoField("scale", 3, "int32", has_presence=False),
    ),
    **{
        f"google.protobuf.{name}": (ProtoField("value", 1, kind, has_presence=False),)
        for name, kind in {
            "DoubleValue": "double",
            "FloatValue": "float",
            "Int64Value": "int64",
            "UInt64Value": "uint64",
            "Int32Value": "int32",
            "UInt32Value": "uint32",
            "BoolValue": "bool",
            "StringValue": "string",
            "BytesValue": "bytes",
        }.items()
    },
}
"""The fields of message types that every file may import without a registered reference."""


def former_names(older: Iterable[ProtoField], newer: Iterable[ProtoField]) -> Names:
    """Return pairs of the old and new name of renamed fields, given the fields of two schemas.

    Field numbers identify fields, so a field with the same number and type but another name was
    renamed. A field with the same number and another type is not considered renamed. An old name
    that is the new name of another field is omitted.
    Specification: https://protobuf.dev/programming-guides/proto3/#updating
    """
    fields = list(newer)
    names = {field.name for field in fields}
    before = {field.number: field for field in older}
    pairs = ((before.get(field.number), field) for field in fields)
    return tuple(
        (old.name, new.name)
        for old, new in pairs
        if old is not None and old.name not in names and _same_type(old, new)
    )


def _same_type(old: ProtoField, new: ProtoField) -> bool:
    return (old.type_name, old.repeated, old.key_type) == (
        new.type_name,
        new.repeated,
        new.key_type,
    )
