"""Integers of variable length, seven bits in a byte, as Avro, Protobuf and Kafka encode them."""


def varint(number: int) -> bytes:
    """An unsigned number; a negative one as 64 bits."""
    number, encoded = number & 2**64 - 1, bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def zigzag(number: int) -> bytes:
    """A signed number of 64 bits, so that small negative ones are short, too."""
    return varint(number << 1 ^ number >> 63)
