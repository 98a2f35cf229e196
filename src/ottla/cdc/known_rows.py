"""A topic's view of its table, by key: on disk, since a table may be larger than memory.

The store is a private temporary SQLite file, deleted when it is closed.
"""

import sqlite3
from collections.abc import Iterator
from hashlib import blake2b

DIGEST_BYTES = 16
ROWS_AT_A_TIME = 1000


class KnownRows:
    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute(
            "CREATE TABLE known (key BLOB PRIMARY KEY, digest BLOB, is_seen INTEGER DEFAULT 0)"
            " WITHOUT ROWID"
        )
        self._database.execute("BEGIN")

    def close(self) -> None:
        self._database.close()

    def learn(self, key: bytes, value: bytes | None) -> None:
        """Add a record of the topic: the last one of a key wins, a tombstone deletes it."""
        if value is None:
            self._database.execute("DELETE FROM known WHERE key = ?", (key,))
        else:
            self._database.execute(
                "INSERT OR REPLACE INTO known (key, digest) VALUES (?, ?)", (key, _digest(value))
            )

    def see(self, key: bytes, value: bytes) -> bool:
        """The table has this row; returns whether the topic has the same."""
        found = self._database.execute("SELECT digest FROM known WHERE key = ?", (key,)).fetchone()
        if found is None:
            return False
        self._database.execute("UPDATE known SET is_seen = 1 WHERE key = ?", (key,))
        return bool(found[0] == _digest(value))

    def unseen(self) -> Iterator[bytes]:
        """Keys of the topic that are not in the table, in a stable order."""
        rows = self._database.execute("SELECT key FROM known WHERE is_seen = 0 ORDER BY key")
        while some := rows.fetchmany(ROWS_AT_A_TIME):
            for (key,) in some:
                yield key


def _digest(value: bytes) -> bytes:
    return blake2b(value, digest_size=DIGEST_BYTES).digest()
