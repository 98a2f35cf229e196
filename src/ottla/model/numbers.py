"""Whole numbers that others wrote as text, read as Java reads them."""


def parse_integer(text: str, bits: int) -> int:
    """The number; ValueError if `text` is none, or does not fit so many bits.

    Python's own parser also takes underscores and other scripts' digits, and refuses thousands of
    digits with an error that nobody expects.
    """
    sign, digits = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError("must be a whole number")
    digits = digits.lstrip("0") or "0"
    value = int(sign + digits) if len(digits) <= bits else 1 << bits
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"must be a whole number of {bits} bits")
    return value
