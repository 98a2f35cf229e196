"""What the topic says is what the table says, whatever happens to its rows and to its shape."""

from collections.abc import Iterator

import psycopg2
import pytest

from ottla.cdc.position import Position
from tests.cdc.tail_process import World, header
from tests.postgres import PostgresServer, binaries, packaged

TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'so "so"', 'happy');
CREATE DOMAIN cents AS numeric(20, 2);
CREATE DOMAIN small_cents AS cents;
CREATE TABLE t (
  id bigint PRIMARY KEY, i smallint, n numeric, f float8, r real, b boolean, s text, c char(8),
  v varchar, d date, at timestamp, atz timestamptz, tm time, iv interval, u uuid, j json, jb jsonb,
  raw bytea, ints int[], texts text[], nested int[][], moods mood[], m mood, cents small_cents,
  jsons jsonb[], doubled bigint GENERATED ALWAYS AS (id * 2) STORED, "odd ""name" text
);
"""
ROWS = """
INSERT INTO t VALUES
 (1, -5, 12345678901234567890.1234567890, 1e300, 0.1, true, E'a "b" \\\\ \\n\\t\\u0001 ü 🜲', 'ab',
  '', '2026-02-28', '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05+02', '23:59:59.5',
  '1 day 02:03:04', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{"k": [1, 2.50, null]}', '{"x": "y"}',
  '\\xdeadbeef', '{1,NULL,3}', '{a,"b,c","d\\"e","NULL",NULL,""}', '{{1,2},{3,4}}',
  '{sad,"so \\"so\\""}', 'happy', 12.5, array['{"a": 1}', '[]']::jsonb[], DEFAULT, 'x'),
 (9007199254740993, 0, 'NaN', 'Infinity', '-0', false, NULL, NULL, 'x', '0044-03-15 BC',
  'infinity', '-infinity', NULL, '-1 mons', NULL, '[]', 'null', '', '{}', '{}', '[0:1]={7,8}',
  NULL, NULL, 0, NULL, DEFAULT, NULL);
"""


@pytest.fixture(scope="module", params=["system", "package"])
def any_server(request: pytest.FixtureRequest, server: PostgresServer) -> Iterator[PostgresServer]:
    """The PostgreSQL that the tests use, and the newest one that the package brings."""
    newest = packaged("pginstall18")
    if request.param == "system":
        yield server
    elif not newest.exists():
        pytest.skip("the package brings no PostgreSQL 18")
    else:
        other = PostgresServer(newest)
        try:
            other.start()
            yield other
        finally:
            other.close()


def test_values_of_all_kinds_are_written_as_postgresql_writes_json(
    any_server: PostgresServer, world: World
) -> None:
    here = World(any_server, world.broker, f"{world.name}_{any_server.port}")
    try:
        here.sql(TYPES)
        here.sql(ROWS)
        here.catch_up()
        in_snapshot = here.folded()
        here.sql("UPDATE t SET id = id + 10")
        here.catch_up()
        in_stream = here.folded()
        expected = here.selected()
    finally:
        here.close()
    for row in expected.values():
        del row["doubled"]  # What is generated is not in the log, and not in the topic.
        assert row in in_stream.values()
    assert in_stream == expected
    for row in in_snapshot.values():
        row["id"] += 10
    assert list(in_snapshot.values()) == list(in_stream.values()), "it looks the same in both"


def test_every_change_of_a_row_is_a_record_with_its_headers(world: World) -> None:
    world.sql("CREATE TABLE t (a int, b text, v text, PRIMARY KEY (b, a))")
    world.sql("INSERT INTO t VALUES (1, 'x', 'old')")
    world.catch_up("-p", "1")
    world.sql("INSERT INTO t VALUES (2, 'y', 'new')")
    world.sql("BEGIN; UPDATE t SET v = 'v' WHERE a = 2; UPDATE t SET a = 3 WHERE a = 2; COMMIT")
    world.sql("DELETE FROM t")
    world.catch_up()
    assert [(m.key, m.value, header(m, "op"), header(m, "index")) for m in world.messages()] == [
        (b'{"a":1,"b":"x"}', b'{"a":1,"b":"x","v":"old"}', "r", "0"),
        (b'{"a":2,"b":"y"}', b'{"a":2,"b":"y","v":"new"}', "c", "1"),
        (b'{"a":2,"b":"y"}', b'{"a":2,"b":"y","v":"v"}', "u", "2"),
        (b'{"a":2,"b":"y"}', None, "d", "3"),
        (b'{"a":3,"b":"y"}', b'{"a":3,"b":"y","v":"v"}', "u", "4"),
        (b'{"a":1,"b":"x"}', None, "d", "1"),
        (b'{"a":3,"b":"y"}', None, "d", "2"),
    ]
    places = [Position(int(header(m, "lsn")), int(header(m, "index"))) for m in world.messages()]
    assert places == sorted(set(places))
    xids = [header(m, "xid") for m in world.messages()]
    assert xids[0] == ""
    assert xids[2] == xids[3] == xids[4] != xids[5]
    assert all(abs(m.timestamp_ms - int(header(m, "ts"))) == 0 for m in world.messages())


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_a_large_value_that_an_update_does_not_touch_is_not_lost(
    world: World, identity: str
) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, big text, n int)")
    world.sql("ALTER TABLE t ALTER big SET STORAGE EXTERNAL")
    world.sql(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    world.catch_up()
    world.sql("INSERT INTO t SELECT i, repeat(i::text, 9000), 0 FROM generate_series(1, 3) i")
    world.sql("UPDATE t SET n = 1")
    world.sql("UPDATE t SET big = 'small now' WHERE id = 1")
    world.sql("UPDATE t SET id = 4 WHERE id = 2")
    world.sql("DELETE FROM t WHERE id = 3")
    told = world.catch_up()
    assert world.folded() == world.selected()
    assert ("REPLICA IDENTITY FULL" in told) == (identity == "DEFAULT")
    after_update = [m.value for m in world.messages() if m.key == b'{"id":1}'][1]
    # As it was, where the log has it; else as it is now.
    assert (b"1111" in (after_update or b"")) == (identity == "FULL")


def test_a_truncated_table_ends_every_key_and_begins_anew(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY)")
    world.sql("INSERT INTO t SELECT generate_series(1, 50); INSERT INTO u VALUES (1)")
    world.catch_up("-p", "3")
    world.sql("BEGIN; INSERT INTO t VALUES (51); TRUNCATE t; INSERT INTO t VALUES (7); COMMIT")
    world.sql("INSERT INTO t VALUES (8); TRUNCATE u")
    world.catch_up()
    assert world.folded() == world.selected()
    assert list(world.folded()) != []
    assert world.folded("public.u") == {}
    ended = [m.key for m in world.messages() if header(m, "op") == "t"]
    assert len(ended) == len(set(ended)) == 51


def test_a_table_that_changes_its_shape_is_followed(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    world.sql("INSERT INTO t VALUES (1, 'one')")
    world.catch_up()
    world.sql("INSERT INTO t VALUES (2, 'two')")
    world.sql("ALTER TABLE t ADD COLUMN extra jsonb DEFAULT '{}', DROP COLUMN v")
    world.sql("CREATE TYPE mood AS ENUM ('sad'); ALTER TABLE t ADD COLUMN moods mood[]")
    world.sql("INSERT INTO t VALUES (3, '[1]', '{sad}')")
    world.catch_up()
    values = [message.value for message in world.messages()]
    assert values == [
        b'{"id":1,"v":"one"}',
        b'{"id":2,"v":"two"}',
        b'{"id":3,"extra":[1],"moods":["sad"]}',
    ]


def test_partitions_of_a_table_are_one_topic(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v int) PARTITION BY RANGE (id)")
    world.sql("CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (0) TO (10)")
    world.sql("CREATE TABLE t_high PARTITION OF t FOR VALUES FROM (10) TO (20)")
    world.sql("INSERT INTO t VALUES (1, 1), (11, 1)")
    world.catch_up()
    world.sql("UPDATE t SET id = id + 9 WHERE id = 1; INSERT INTO t VALUES (12, 0)")
    world.catch_up()
    assert world.folded() == world.selected()
    assert len(world.folded()) == 3


def test_what_a_publication_leaves_out_is_left_out_of_the_snapshot_too(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, shown text, hidden text)")
    world.sql("INSERT INTO t VALUES (1, 'a', 'x'), (-1, 'b', 'x')")
    try:
        world.sql(f"CREATE PUBLICATION {world.name} FOR TABLE t (id, shown) WHERE (id > 0)")
    except psycopg2.Error:
        pytest.skip(f"{binaries()} is older than 15")
    world.catch_up()
    world.sql("INSERT INTO t VALUES (2, 'c', 'x'), (-2, 'd', 'x')")
    world.catch_up()
    assert world.folded() == {
        '{"id":1}': {"id": 1, "shown": "a"},
        '{"id":2}': {"id": 2, "shown": "c"},
    }
