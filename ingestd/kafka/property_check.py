"""Check names and values of Kafka client properties with librdkafka, without creating a client."""

import ctypes
import difflib
import tempfile
from functools import cache

from confluent_kafka import cimpl

_OK, _UNKNOWN = 0, -2
_MESSAGE_BYTES = 512
_LOADS_A_LIBRARY = "plugin.library.paths"


def property_problem(name: str, value: str) -> str | None:
    """Return why librdkafka does not accept a property, or None if it does.

    For an unknown name, the text proposes a similar name if there is one. The value of
    `plugin.library.paths` is not checked, because that would load the libraries.
    """
    if name == _LOADS_A_LIBRARY:
        return None
    message = ctypes.create_string_buffer(_MESSAGE_BYTES)
    library = _library()
    conf = library.rd_kafka_conf_new()
    try:
        result = library.rd_kafka_conf_set(
            conf, name.encode(), value.encode(), message, _MESSAGE_BYTES
        )
    finally:
        library.rd_kafka_conf_destroy(conf)
    if result == _OK:
        return None
    if result != _UNKNOWN:
        return message.value.decode(errors="replace")
    close = difflib.get_close_matches(name.lower(), property_names(), n=1)
    return "no Kafka client property has this name" + (
        f"; did you mean '{close[0]}'?" if close else ""
    )


@cache
def property_names() -> frozenset[str]:
    """Return the names of all properties of librdkafka, as it prints them."""
    c_library = ctypes.CDLL(None)
    c_library.fopen.restype = ctypes.c_void_p
    c_library.fclose.argtypes = [ctypes.c_void_p]
    with tempfile.NamedTemporaryFile() as file:
        stream = c_library.fopen(file.name.encode(), b"w")
        _library().rd_kafka_conf_properties_show(stream)
        c_library.fclose(stream)
        lines = file.read().decode().splitlines()
    rows = (line.partition("|")[0].strip() for line in lines if " | " in line)
    return frozenset(name for name in rows if name and name != "Property")


@cache
def _library() -> ctypes.CDLL:
    """Return the client library of this process, with the signatures of the functions used here."""
    library = ctypes.CDLL(cimpl.__file__)
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_conf_destroy.argtypes = [ctypes.c_void_p]
    library.rd_kafka_conf_properties_show.argtypes = [ctypes.c_void_p]
    library.rd_kafka_conf_set.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    return library
