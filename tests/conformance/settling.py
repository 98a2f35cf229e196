"""Apache Kafka may confirm a change before its broker has seen it; Ottla has seen it by then."""

import time

from ottla.protocol.messages import api_versions, describe_quorum
from tests.conformance.raw import Connection

METADATA = describe_quorum.Request(
    topics=[
        describe_quorum.RequestTopicData(
            "__cluster_metadata", [describe_quorum.RequestPartitionData(0)]
        )
    ]
)
SECONDS_MAX = 20

is_needed = False  # Whether the tests run against Apache Kafka.


def settle(bootstrap: str) -> None:
    """Called between a change and what shows it. Nobody has to wait for Ottla."""
    if is_needed:
        wait_until_seen(bootstrap)


def wait_until_seen(bootstrap: str) -> None:
    """Until the broker's image holds all that the controller has decided by now."""
    deadline = time.monotonic() + SECONDS_MAX
    with Connection(bootstrap) as connection:
        quorum = connection.ask(METADATA, 2).topics[0].partitions[0]
        while _offset_seen(connection) < quorum.high_watermark - 1:
            assert time.monotonic() < deadline, "the broker does not follow its controller"
            time.sleep(0.01)


def _offset_seen(connection: Connection) -> int:
    return int(connection.ask(api_versions.Request("ottla", "1"), 4).finalized_features_epoch)
