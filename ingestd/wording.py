"""Numbers with their nouns, for messages that people read."""


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the singular `thing`: `1 file`, `2 files`, `2 entries`."""
    if number == 1:
        return f"1 {thing}"
    if thing.endswith("y") and thing[-2] not in "aeiou":
        return f"{number:,} {thing[:-1]}ies"
    return f"{number:,} {thing}{'es' if thing.endswith('ch') else 's'}"
