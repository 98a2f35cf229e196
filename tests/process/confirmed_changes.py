"""Changes through one broker, each followed by a question to the same broker."""

from ottla.client.blocking_connection import BlockingConnection
from ottla.metadata.image.cluster import TOPIC_RESOURCE
from ottla.protocol.messages import (
    create_partitions,
    create_topics,
    delete_topics,
    describe_configs,
    incremental_alter_configs,
    metadata,
)

SET = 0
TIMEOUT_MS = 20_000


def stale_answers(broker: BlockingConnection, number: int) -> list[str]:
    """Create, grow, alter and delete a topic; what the broker did not know after each."""
    name, retention, stale = f"topic-{number}", str(7000 + number), []
    topic = create_topics.CreatableTopic(name, 1, 1)
    created = broker.ask(create_topics.Request([topic]), create_topics.Response)
    assert created.topics[0].error_code == 0
    if _partitions(broker, name) != 1:
        stale.append(f"{name} is not created")

    wider = create_partitions.CreatePartitionsTopic(name, 2, None)
    grown = broker.ask(create_partitions.Request([wider], TIMEOUT_MS), create_partitions.Response)
    assert grown.results[0].error_code == 0
    if _partitions(broker, name) != 2:
        stale.append(f"{name} has not grown")

    config = incremental_alter_configs.AlterableConfig("retention.ms", SET, retention)
    resource = incremental_alter_configs.AlterConfigsResource(TOPIC_RESOURCE, name, [config])
    altered = broker.ask(
        incremental_alter_configs.Request([resource]), incremental_alter_configs.Response
    )
    assert altered.responses[0].error_code == 0
    if _retention(broker, name) != retention:
        stale.append(f"{name} is not altered")

    gone = delete_topics.Request([delete_topics.DeleteTopicState(name)], timeout_ms=TIMEOUT_MS)
    assert broker.ask(gone, delete_topics.Response).responses[0].error_code == 0
    if _partitions(broker, name) != 0:
        stale.append(f"{name} is not deleted")
    return stale


def _partitions(broker: BlockingConnection, name: str) -> int:
    topic = metadata.MetadataRequestTopic(name=name)
    wanted = metadata.Request([topic], allow_auto_topic_creation=False)
    return len(broker.ask(wanted, metadata.Response).topics[0].partitions)


def _retention(broker: BlockingConnection, name: str) -> str | None:
    resource = describe_configs.DescribeConfigsResource(TOPIC_RESOURCE, name, ["retention.ms"])
    answer = broker.ask(describe_configs.Request([resource]), describe_configs.Response)
    return answer.results[0].configs[0].value
