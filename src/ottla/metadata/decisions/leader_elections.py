"""ElectLeaders, and the elections that the controller holds by itself from time to time.

Leadership drifts away from the preferred replicas with every restart; where it may, the controller
gives it back. A topic that allows unclean elections gets a leader even if nobody in sync is left.
"""

from collections.abc import Iterator
from typing import Any

from ottla.metadata.decisions.context import Outcome, Surroundings
from ottla.metadata.decisions.elections import Target, change_of
from ottla.metadata.decisions.leaderships import Elections
from ottla.metadata.image.cluster import NO_LEADER, Partition, Topic
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import elect_leaders as wire
from ottla.protocol.metadata_records import PartitionChangeRecord

PREFERRED, UNCLEAN = 0, 1
ELECTIONS_MAX = 1_000  # Of one decision: the next tick goes on.


def elect_leaders(around: Surroundings, request: wire.Request) -> Outcome:
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    written: list[Any] = []
    response = wire.Response()
    for name, indexes in _wanted(around, request):
        results = []
        for index in indexes:
            result = wire.PartitionResult(index, error_message=None)
            try:
                written.append(_elect(around, name, index, request.election_type))
            except Refusal as refusal:
                if request.topic_partitions is None and (
                    refusal.code == ErrorCode.ELECTION_NOT_NEEDED
                ):
                    continue  # Who asks for all wants to hear only of those that change.
                result.error_code, result.error_message = refusal.code, refusal.message
            results.append(result)
        response.replica_election_results.append(wire.ReplicaElectionResult(name, results))
    return Outcome(written, response)


def balance(around: Surroundings) -> list[PartitionChangeRecord]:
    """Preferred replicas lead again, as many as fit one decision."""
    changes: list[PartitionChangeRecord] = []
    for topic, index, partition in _all(around):
        if partition.leader == partition.replicas[0]:
            continue
        change = _change(around, topic, index, partition, PREFERRED)
        if change is not None:
            changes.append(change)
            if len(changes) >= ELECTIONS_MAX:
                break
    return changes


def elect_uncleanly(around: Surroundings) -> list[PartitionChangeRecord]:
    """A leader for what has none, in the topics that would rather lose records than wait."""
    changes: list[PartitionChangeRecord] = []
    for topic, index, partition in _all(around):
        if partition.leader != NO_LEADER or not Elections(around, topic).is_unclean_allowed:
            continue
        change = _change(around, topic, index, partition, UNCLEAN)
        if change is not None:
            changes.append(change)
            if len(changes) >= ELECTIONS_MAX:
                break
    return changes


def _all(around: Surroundings) -> Iterator[tuple[Topic, int, Partition]]:
    for topic in around.image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            yield topic, index, partition


def _wanted(around: Surroundings, request: wire.Request) -> Iterator[tuple[str, list[int]]]:
    if request.topic_partitions is None:
        for name, topic in sorted(around.image.topics_by_name.items()):
            yield name, sorted(topic.partitions)
    else:
        for asked in request.topic_partitions:
            yield asked.topic, asked.partitions


def _elect(
    around: Surroundings, name: str, index: int, election_type: int
) -> PartitionChangeRecord:
    topic = around.image.topics_by_name.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        message = f"No such partition as {name}-{index}"
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    is_needed = (
        partition.leader != partition.replicas[0]
        if election_type == PREFERRED
        else partition.leader == NO_LEADER
    )
    if not is_needed:
        message = "Leader election not needed for topic partition."
        raise Refusal(ErrorCode.ELECTION_NOT_NEEDED, message)
    change = _change(around, topic, index, partition, election_type)
    if change is None and election_type == PREFERRED:
        message = "The preferred leader was not available."
        raise Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, message)
    if change is None:
        message = "Eligible topic partition leaders are not available."
        raise Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message)
    return change


def _change(
    around: Surroundings, topic: Topic, index: int, partition: Partition, election_type: int
) -> PartitionChangeRecord | None:
    circumstances = Elections(around, topic).of(
        partition,
        is_unclean_allowed=election_type == UNCLEAN,
        is_preferred_wanted=election_type == PREFERRED,
    )
    return change_of(topic.id, index, partition, Target.of(partition), circumstances)
