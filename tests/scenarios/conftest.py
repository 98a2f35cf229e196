"""`pytest tests/scenarios --rewrite` writes the transcripts anew, as the machines behave now."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="Write the transcripts anew instead of checking."
    )
