"""Output of records."""

import json
from dataclasses import replace

from ottla.cli.views.record_output import RecordOutput
from ottla.client.message import Message

MESSAGE = Message("t", 2, 7, -1, False, b"\x1bkey", b"va\xfflue", (("h", b"1"), ("n", None)))
PLAIN = RecordOutput("text", False, False, False, False, b"\t", b"\n", False)


def test_text_is_the_value_and_a_delimiter() -> None:
    assert PLAIN.render(MESSAGE) == b"va\xfflue\n"
    assert PLAIN.render(MESSAGE._replace(value=None)) == b"null\n"


def test_all_parts_come_in_order_with_separators() -> None:
    everything = replace(
        PLAIN,
        has_keys=True,
        has_headers=True,
        has_timestamps=True,
        has_places=True,
        separator=b"|",
    )
    assert everything.render(MESSAGE) == b"-|2:7|h=1,n=null|\x1bkey|va\xfflue\n"


def test_control_characters_are_escaped_on_a_terminal() -> None:
    safe = replace(PLAIN, has_keys=True, is_for_terminal=True)
    assert safe.render(MESSAGE) == b"\\x1bkey\tva\\xfflue\n"


def test_raw_is_the_values_own_bytes() -> None:
    raw = replace(PLAIN, format_name="raw", is_for_terminal=True, delimiter=b"")
    assert raw.render(MESSAGE) == b"va\xfflue"
    assert raw.render(MESSAGE._replace(value=None)) == b""


def test_json_has_all_fields() -> None:
    line = replace(PLAIN, format_name="json").render(MESSAGE)
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "topic": "t",
        "partition": 2,
        "offset": 7,
        "timestamp": -1,
        "timestamp_type": "CreateTime",
        "key": "\x1bkey",
        "value_base64": "dmH/bHVl",
        "headers": [{"name": "h", "value": "1"}, {"name": "n", "value": None}],
    }


def test_separators_are_taken_as_they_are_typed() -> None:
    chosen = RecordOutput.choose(
        format_name="text",
        keys=True,
        headers=False,
        timestamps=False,
        places=False,
        separator="\\t",
        delimiter="\\0",
    )
    assert chosen.render(MESSAGE._replace(key=b"k", value=b"v")) == b"k\tv\0"
