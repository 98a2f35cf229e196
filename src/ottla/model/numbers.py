"""Integers in text, parsed as Java parses them."""


def parse_integer(text: str, bits: int) -> int:
    """The number; ValueError if `text` is not one, or does not fit `bits` bits.

    Python's own parser also takes underscores and other scripts' digits, and raises an unexpected
    error for thousands of digits.
    """
    sign, digits = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("must be a whole number")
    digits = digits.lstrip("0") or "0"
    value = int(sign + digits) if len(digits) <= bits else 1 << bits
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"must be a whole number of {bits} bits")
    return value
