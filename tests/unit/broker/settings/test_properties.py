"""Java's .properties text."""

import pytest

from ottla.broker.settings.properties import parse_properties


def values(text: str) -> dict[str, str]:
    return {item.key: item.value for item in parse_properties(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a : b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("  a  =  b ", {"a": "b "}),
        ("a==b", {"a": "=b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        (r"a\=b=c\:d", {"a=b": "c:d"}),
        (r"a=\t\n\\x\q", {"a": "\t\n\\xq"}),
        (r"a=\u00e9\u0041", {"a": "éA"}),
        (r"a=\ud83d\ude00", {"a": "😀"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("# a=b\n ! c=d\ne=f # g", {"e": "f # g"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=b\\\n# still the value", {"a": "b# still the value"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\u2028c", {"a": "b\u2028c"}),
        ("", {}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert values(text) == expected


def test_each_property_knows_the_line_it_begins_in() -> None:
    lines = [item.line for item in parse_properties("# c\na=1\\\n2\n\nb=3")]
    assert lines == [2, 5]


@pytest.mark.parametrize("text", [r"a=\u12", r"a=\u12g4"])
def test_a_broken_unicode_escape_names_its_line(text: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_properties("\n" + text)
