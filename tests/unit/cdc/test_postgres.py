"""Failed connections and their messages, without a server."""

import sys

import pytest

from ottla.cdc.errors import Interrupted, NotPossible
from ottla.cdc.postgres import connect


@pytest.mark.parametrize("replication", [False, True])
def test_an_unreachable_server_is_named_in_one_line(replication: bool) -> None:
    with pytest.raises(Interrupted) as caught:
        connect("host=127.0.0.1 port=1 dbname=x options='-c geqo=off'", replication=replication)
    sentence = str(caught.value)
    assert '"127.0.0.1", port 1' in sentence
    assert "\n" not in sentence


def test_an_invalid_dsn_is_refused() -> None:
    with pytest.raises(Exception, match="invalid"):
        connect("postgresql://[")


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with pytest.raises(NotPossible, match=r"pip install 'ottla\[cdc\]'"):
        connect("dbname=x")
