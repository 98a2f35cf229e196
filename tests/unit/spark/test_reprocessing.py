import json

from ottla.cli.views import dead_letter_view
from ottla.model.types import TopicPartition
from ottla.spark.reprocessing import Waiting, _as_json, replay_group


def test_the_tool_and_the_job_share_a_group() -> None:
    assert replay_group("orders.dlq") == dead_letter_view.replay_group("orders.dlq")


def test_letters_are_counted_over_all_partitions() -> None:
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    assert Waiting({first: 3, second: 10}, {first: 5, second: 10}).letters == 2


def test_offsets_are_written_as_spark_takes_them() -> None:
    offsets = {TopicPartition("t", 0): 5, TopicPartition("t", 1): 7}
    assert json.loads(_as_json(offsets)) == {"t": {"0": 5, "1": 7}}
