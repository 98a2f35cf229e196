"""ElectLeaders, and periodic elections by the controller.

Restarts move leadership away from preferred replicas; the controller moves it back if that is
enabled. A topic that allows unclean elections gets a leader even without a replica in sync.
"""

from collections.abc import Iterator
from typing import Any

from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.decisions.elections import Target, change_of
from ottla.metadata.decisions.leaderships import Elections
from ottla.metadata.image.cluster import NO_LEADER, Partition, Topic
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import elect_leaders as wire
from ottla.protocol.metadata_records import PartitionChangeRecord

PREFERRED, UNCLEAN = 0, 1
ELECTIONS_MAX = 1_000  # Per decision; the next tick continues.


def elect_leaders(context: DecisionContext, request: wire.Request) -> Outcome:
    if request.election_type not in (PREFERRED, UNCLEAN):
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    written: list[Any] = []
    response = wire.Response()
    for name, indexes in _wanted(context, request):
        results = []
        for index in indexes:
            result = wire.PartitionResult(index, error_message=None)
            try:
                written.append(_elect(context, name, index, request.election_type))
            except Refusal as refusal:
                if request.topic_partitions is None and (
                    refusal.code == ErrorCode.ELECTION_NOT_NEEDED
                ):
                    continue  # A request for all partitions gets only those that change.
                result.error_code, result.error_message = refusal.code, refusal.message
            results.append(result)
        response.replica_election_results.append(wire.ReplicaElectionResult(name, results))
    return Outcome(written, response)


def balance(context: DecisionContext) -> list[PartitionChangeRecord]:
    """Elect preferred replicas, as many as fit one decision."""
    changes: list[PartitionChangeRecord] = []
    for topic, index, partition in _all(context):
        if partition.leader == partition.replicas[0]:
            continue
        change = _change(context, topic, index, partition, PREFERRED)
        if change is not None:
            changes.append(change)
            if len(changes) >= ELECTIONS_MAX:
                break
    return changes


def elect_uncleanly(context: DecisionContext) -> list[PartitionChangeRecord]:
    """Elect leaders for leaderless partitions of topics that allow unclean elections."""
    changes: list[PartitionChangeRecord] = []
    for topic, index, partition in _all(context):
        if partition.leader != NO_LEADER or not Elections(context, topic).is_unclean_allowed:
            continue
        change = _change(context, topic, index, partition, UNCLEAN)
        if change is not None:
            changes.append(change)
            if len(changes) >= ELECTIONS_MAX:
                break
    return changes


def _all(context: DecisionContext) -> Iterator[tuple[Topic, int, Partition]]:
    for topic in context.image.topics_by_id.values():
        for index, partition in topic.partitions.items():
            yield topic, index, partition


def _wanted(context: DecisionContext, request: wire.Request) -> Iterator[tuple[str, list[int]]]:
    if request.topic_partitions is None:
        for name, topic in sorted(context.image.topics_by_name.items()):
            yield name, sorted(topic.partitions)
    else:
        for asked in request.topic_partitions:
            yield asked.topic, asked.partitions


def _elect(
    context: DecisionContext, name: str, index: int, election_type: int
) -> PartitionChangeRecord:
    topic = context.image.topics_by_name.get(name)
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
    change = _change(context, topic, index, partition, election_type)
    if change is None and election_type == PREFERRED:
        message = "The preferred leader was not available."
        raise Refusal(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, message)
    if change is None:
        message = "Eligible topic partition leaders are not available."
        raise Refusal(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, message)
    return change


def _change(
    context: DecisionContext, topic: Topic, index: int, partition: Partition, election_type: int
) -> PartitionChangeRecord | None:
    election = Elections(context, topic).of(
        partition,
        is_unclean_allowed=election_type == UNCLEAN,
        is_preferred_wanted=election_type == PREFERRED,
    )
    return change_of(topic.id, index, partition, Target.of(partition), election)
