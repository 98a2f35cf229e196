"""What a tail cannot do is said in one sentence, with what to do about it."""

import time

import pytest

from ottla.client.admin import Operation, ResourceType
from ottla.client.blocking import Client
from tests.cdc.tail_process import World
from tests.postgres import PostgresServer


def refused(world: World, *arguments: str) -> str:
    done = world.run("--to-end", *arguments)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def test_a_server_that_does_not_keep_what_decoding_needs_is_told_so(world: World) -> None:
    server = PostgresServer(wal_level="replica")
    try:
        server.start()
        other = World(server, world.broker, "replica")
        other.sql("CREATE TABLE t (id int PRIMARY KEY)")
        sentence = refused(other)
    finally:
        server.close()
    assert "wal_level is 'replica'" in sentence
    assert "ALTER SYSTEM SET wal_level = logical" in sentence


def test_a_user_without_the_right_to_replicate_is_told_so(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.sql(f"CREATE PUBLICATION {world.name} FOR TABLE t; CREATE ROLE {world.name} LOGIN")
    world.sql(f"GRANT SELECT ON t TO {world.name}")
    command = world.command("--to-end")
    command[5] = world.server.dsn(world.name, world.name)
    world.command = lambda *_: command  # type: ignore[method-assign]
    assert "ALTER ROLE ... REPLICATION" in refused(world)
    world.sql(f"DROP OWNED BY {world.name}; DROP ROLE {world.name}")


def test_missing_rights_are_named_with_the_statements_that_give_them(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.sql("CREATE SCHEMA s CREATE TABLE u (id int PRIMARY KEY)")
    role, database = world.name, world.name
    world.sql(f"CREATE ROLE {role} LOGIN REPLICATION")
    command = world.command("--to-end")
    command[5] = world.server.dsn(database, role)
    world.command = lambda *_: command  # type: ignore[method-assign]

    create = f"CREATE PUBLICATION {world.name} FOR TABLE public.t, s.u"
    command += ["t", "s.u"]
    sentence = refused(world).replace('"', "")
    assert "public.t is owned by" in sentence
    assert create in sentence
    assert "REPLICATION" not in sentence
    world.sql(f"{create} WITH (publish_via_partition_root = true)")
    sentence = refused(world).replace('"', "")
    grants = sentence.split("may not read the tables: ")[1]
    assert grants == f"GRANT USAGE ON SCHEMA s TO {role}; GRANT SELECT ON public.t, s.u TO {role}"
    world.sql(grants)
    world.catch_up()

    world.sql(f"SELECT pg_drop_replication_slot('{world.name}'); DROP PUBLICATION {world.name}")
    world.sql(f"ALTER TABLE t OWNER TO {role}; ALTER TABLE s.u OWNER TO {role}")
    sentence = refused(world).replace('"', "")
    grants = sentence.split("may not create the publication: ")[1]
    assert grants == f"GRANT CREATE ON DATABASE {database} TO {role}"
    world.sql(grants)
    world.catch_up()
    world.sql("DROP TABLE t, s.u")
    world.sql(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_table_that_is_not_there_or_has_no_key_is_named(world: World) -> None:
    world.sql("CREATE TABLE orders (id int PRIMARY KEY); CREATE TABLE loose (v int)")
    world.sql("CREATE TABLE mute (id int PRIMARY KEY)")
    world.sql("ALTER TABLE mute REPLICA IDENTITY NOTHING")
    assert "public.mute has REPLICA IDENTITY NOTHING" in refused(world, "mute")
    assert "no table public.order; did you mean public.orders?" in refused(world, "order")
    sentence = refused(world, "loose")
    assert "public.loose has no primary key" in sentence
    assert world.sql("SELECT 1 FROM pg_publication") == [], "nothing was made"
    assert "public.loose has no primary key: it is left out" in world.catch_up()
    assert world.broker.topics().count(f"{world.name}.public.loose") == 0


def test_a_row_that_is_too_large_ends_the_tail_and_nothing_is_passed_over(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    world.catch_up("-p", "1")
    world.sql("INSERT INTO t VALUES (1, 'small'), (2, repeat('x', 2000000)), (3, 'small')")
    assert "--set max.message.bytes" in refused(world)
    assert len(world.messages()) <= 1, "what follows it waits for it"
    topic = f"{world.name}.public.t"
    with Client(world.broker.bootstrap_servers) as client:
        change = (Operation.SET, "max.message.bytes", "3000000")
        client.run(client.admin.alter_configs(ResourceType.TOPIC, topic, [change]))
    world.catch_up()
    assert [message.key for message in world.messages()] == [b'{"id":1}', b'{"id":2}', b'{"id":3}']


@pytest.mark.slow
def test_a_slot_that_another_tail_uses_is_not_shared(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.catch_up()
    first = world.start()
    active = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    while not world.sql(active, world.name)[0][0]:
        time.sleep(0.05)
    sentence = refused(world)
    assert "active for PID" in sentence
    assert "one slot is for one tail" in sentence
    assert first.poll() is None


def test_changes_that_nobody_can_tell_any_more_are_not_passed_over_in_silence(
    world: World,
) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2)")
    world.catch_up()
    world.sql("INSERT INTO t VALUES (3, 3)")
    world.catch_up()
    world.sql("SELECT pg_drop_replication_slot(%s)", world.name)
    world.sql("DELETE FROM t WHERE id = 1; UPDATE t SET v = 4 WHERE id = 3")
    assert "is gone" in (sentence := refused(world))
    assert "--resync" in sentence
    before = len(world.messages())
    world.catch_up("--resync")
    assert world.folded() == world.selected()
    assert len(world.messages()) - before == 2, "only what differs"
    world.sql("CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u VALUES (1)")
    assert "--resync" in refused(world, "t", "u")
    world.catch_up("--resync", "t", "u")
    assert world.folded("public.u") == world.selected("public.u")
    assert len(world.messages()) - before == 2


def test_a_topic_of_somebody_else_is_not_written_to(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.broker.create_topic(f"{world.name}.public.t")
    world.broker.produce(f"{world.name}.public.t", b"mine")
    assert "was not written by a tail of a database" in refused(world)


def test_who_cannot_be_reached_is_named(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    command = world.command("--to-end", "-b", "127.0.0.1:1")
    world.command = lambda *_: command  # type: ignore[method-assign]
    assert refused(world) == "ottla: cannot connect to 127.0.0.1:1: nothing listens there"
    assert world.sql("SELECT 1 FROM pg_publication") == [], "nothing was made"
    command[5] = "host=127.0.0.1 port=1 dbname=x"
    assert "Connection refused" in refused(world)
