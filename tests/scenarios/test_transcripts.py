"""Every transcript holds word by word."""

from pathlib import Path

import pytest

from tests.scenarios.group_script import GroupScript
from tests.scenarios.transcript import parse, run

DIRECTORY = Path(__file__).parent
TRANSCRIPTS = sorted(path.name for path in DIRECTORY.glob("groups*.txt"))


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_transcript_of_groups_holds(name: str, request: pytest.FixtureRequest) -> None:
    path = DIRECTORY / name
    text = path.read_text()
    came = run(text, GroupScript().command)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(came)
    assert came == path.read_text()


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) >= 6


def test_a_block_without_commands_is_only_read() -> None:
    text = "# Why.\n\nsay a\nsay b\n----\na\nb\n\n# The end.\n"
    assert [block.commands for block in parse(text)] == [[], ["say a", "say b"], []]
    assert run(text, lambda line: [line.removeprefix("say ")]) == text


def test_what_came_differently_is_not_the_transcript() -> None:
    text = "say a\n----\na\n"
    assert run(text, lambda _: []) == "say a\n----\n(nothing)\n"
