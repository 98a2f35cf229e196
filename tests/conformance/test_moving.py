"""Moving in and out: Apache Kafka writes a directory, Ottla serves and extends it, Kafka returns.

Kafka's own tool formats the directory, once for static voters and once with `--standalone`; each
broker is stopped cleanly in one round and killed in the other.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import KafkaException, Producer, TopicCollection
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess, Flavour, Ottla
from tests.conformance.librdkafka import SECONDS_MAX, consume, consumer, create, produce

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Topic(NamedTuple):
    id: str
    partitions: int
    configs: dict[str, str]


def topics(bootstrap: str) -> dict[str, Topic]:
    """All that clients can know of the topics of a broker."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    names = [n for n in client.list_topics(timeout=SECONDS_MAX).topics if not n.startswith("__")]
    found = {}
    for name, future in client.describe_topics(TopicCollection(names)).items():
        described = future.result(SECONDS_MAX)
        resource = ConfigResource(ResourceType.TOPIC, name)
        configs = client.describe_configs([resource])[resource].result(SECONDS_MAX)
        own = {c.name: c.value for c in configs.values() if c.source == 1}
        found[name] = Topic(str(described.topic_id), len(described.partitions), own)
    return found


def written_by(author: str, codec: str) -> list[bytes]:
    return [b"%s wrote %s %d" % (author.encode(), codec.encode(), n) for n in range(50)]


def write(bootstrap: str, author: str) -> None:
    """A topic made, changed, grown and deleted, and records of every codec, idempotent or not."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    mine = f"of-{author}"
    doomed = f"doomed-{author}"
    new = [
        NewTopic(mine, 2, 1, config={"cleanup.policy": "compact", "retention.ms": "-1"}),
        NewTopic(doomed, 1, 1),
    ]
    for future in client.create_topics(new).values():
        future.result(SECONDS_MAX)
    change = ConfigEntry("segment.bytes", "1048576", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, mine, incremental_configs=[change])
    client.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)
    client.create_partitions([NewPartitions(mine, 3)])[mine].result(SECONDS_MAX)
    produce(bootstrap, doomed, [b"soon gone"])
    client.delete_topics([doomed])[doomed].result(SECONDS_MAX)
    for codec in CODECS:
        records = written_by(author, codec)
        idempotent = codec in ("none", "zstd")
        produce(bootstrap, codec, records, compression_type=codec, enable_idempotence=idempotent)


def check(bootstrap: str, authors: list[str]) -> None:
    """Every record of every author is there, in order, and nothing else."""
    for codec in CODECS:
        expected = [value for author in authors for value in written_by(author, codec)]
        found = consume(bootstrap, codec, len(expected))
        assert [message.value() for message in found] == expected
        assert [message.offset() for message in found] == list(range(len(expected)))
    names = set(topics(bootstrap)) - {"transactions"}
    assert names == {*CODECS, *(f"of-{author}" for author in authors)}


def write_what_only_kafka_serves(bootstrap: str) -> None:
    """Transactions, a group's offsets and a credential: kept by Ottla, though not served yet."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsertion = UserScramCredentialUpsertion("milena", credential, b"secret")
    for future in client.alter_user_scram_credentials([upsertion]).values():
        future.result(SECONDS_MAX)
    create(bootstrap, "transactions")
    sender = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mover"})
    sender.init_transactions(SECONDS_MAX)
    for verdict in ("commit", "abort", "commit"):
        sender.begin_transaction()
        for number in range(5):
            sender.produce("transactions", f"{verdict} {number}", partition=0)
        sender.flush(SECONDS_MAX)
        if verdict == "commit":
            sender.commit_transaction(SECONDS_MAX)
        else:
            sender.abort_transaction(SECONDS_MAX)
    reader = consumer(bootstrap, group_id="movers")
    eventually(lambda: reader.commit(offsets=[Position("none", 0, 10)], asynchronous=False))
    reader.close()


def eventually(work: Callable[[], object]) -> None:
    """Kafka's coordinators need a moment after a start."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            work()
        except KafkaException:
            assert time.monotonic() < deadline
            time.sleep(0.2)
        else:
            return


def check_transactions(bootstrap: str) -> None:
    """What was aborted is not seen by those who read what is committed."""
    values = [message.value() for message in consume(bootstrap, "transactions", 10)]
    assert values == [b"commit %d" % n for n in range(5)] * 2


def check_what_only_kafka_serves(bootstrap: str) -> None:
    check_transactions(bootstrap)
    reader = consumer(bootstrap, group_id="movers")
    (committed,) = reader.committed([Position("none", 0)], timeout=SECONDS_MAX)
    assert committed.offset == 10
    reader.close()
    client = AdminClient({"bootstrap.servers": bootstrap})
    found = client.describe_user_scram_credentials(["milena"])["milena"].result(SECONDS_MAX)
    assert len(found.scram_credential_infos) == 1


def hand_over(broker: BrokerProcess, flavour: Flavour, *, kill: bool) -> None:
    if kill:
        broker.kill()
    else:
        assert broker.stop() in (0, 143), broker.log_tail()  # A JVM ends by SIGTERM with 143.
    broker.flavour = flavour
    broker.start()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("standalone", "kill"), [(False, False), (True, True)], ids=["static-clean", "standalone-kill"]
)
def test_a_directory_moves_in_and_out(tmp_path: Path, standalone: bool, kill: bool) -> None:
    kafka = ApacheKafka(("--standalone",) if standalone else ())
    broker = BrokerProcess(kafka, tmp_path)
    if standalone:
        del broker.settings["controller.quorum.voters"]
        controller = f"127.0.0.1:{broker.controller_port}"
        broker.settings["controller.quorum.bootstrap.servers"] = controller
    try:
        broker.start()
        write(broker.bootstrap, "kafka")
        write_what_only_kafka_serves(broker.bootstrap)
        check(broker.bootstrap, ["kafka"])
        before = topics(broker.bootstrap)

        hand_over(broker, Ottla(), kill=kill)
        assert topics(broker.bootstrap) == before
        check(broker.bootstrap, ["kafka"])
        check_transactions(broker.bootstrap)
        write(broker.bootstrap, "ottla")
        check(broker.bootstrap, ["kafka", "ottla"])
        before = topics(broker.bootstrap)

        hand_over(broker, kafka, kill=kill)
        assert topics(broker.bootstrap) == before
        check(broker.bootstrap, ["kafka", "ottla"])
        check_what_only_kafka_serves(broker.bootstrap)
        write(broker.bootstrap, "kafka-again")
        check(broker.bootstrap, ["kafka", "ottla", "kafka-again"])
    finally:
        broker.kill()
