"""A real PostgreSQL: it decodes, it keeps its data over a restart, and nothing of it is left."""

import os

from tests.postgres import PostgresServer


def test_a_server_decodes_and_survives_a_restart_and_is_gone_afterwards() -> None:
    with PostgresServer() as server:
        assert server.execute("SHOW wal_level") == [("logical",)]
        server.execute("CREATE TABLE t (id int)")
        server.stop()
        server.start()
        assert server.execute("SELECT count(*) FROM t") == [(0,)]
        directory = server.directory
        owner = (directory / "data").stat().st_uid
    assert owner != 0, "it never runs as root"
    assert not os.path.exists(directory)
