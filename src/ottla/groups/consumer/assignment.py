"""What a consumer group reads, and who of its members shall own what of it.

A change of what it reads raises the group's epoch; a target is made for an epoch, though not more
often than the group's assignment interval allows. Until then members keep to the last target.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from ottla.groups.assignors.assignment import Assignor, MemberSpec, Partitions
from ottla.groups.assignors.range import assign_ranges
from ottla.groups.assignors.uniform import assign_uniformly
from ottla.groups.consumer.group import ConsumerGroup, Target
from ottla.groups.consumer.subscription import resolve_expressions
from ottla.groups.topics import TopicFacts, metadata_hash
from ottla.groups.turn import Turn
from ottla.model.types import Uuid
from ottla.protocol import consumer_group_records as records

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}

Metadata = records.ConsumerGroupMemberMetadataValue
Expressions = Mapping[str, frozenset[str]]


def subscribe(
    turn: Turn, group: ConsumerGroup, metadata_of: dict[str, Metadata], is_changed: bool
) -> tuple[int, Expressions]:
    """The group's epoch, a new one if what it reads has changed, and the topics of expressions."""
    expressions = resolve_expressions(turn, group, metadata_of)
    hashed = metadata_hash(facts_of(turn, metadata_of, expressions).values())
    turn.on_append(lambda: setattr(group, "is_metadata_old", False))
    if not is_changed and hashed == group.metadata_hash and group.epoch:
        return group.epoch, expressions  # Epoch 0 is for who is not in yet, so nobody may get it.
    epoch = group.epoch + 1
    value = records.ConsumerGroupMetadataValue(epoch, hashed)
    turn.write(records.ConsumerGroupMetadataKey(group.id), value)
    return epoch, expressions


def facts_of(
    turn: Turn, metadata_of: Mapping[str, Metadata], expressions: Expressions
) -> dict[str, TopicFacts]:
    """The topics that there are of those that someone reads."""
    names = {name for one in metadata_of.values() for name in names_of(one, expressions)}
    found = {name: turn.around.topics.named(name) for name in names}
    return {name: one for name, one in found.items() if one is not None}


def names_of(metadata: Metadata, expressions: Expressions) -> set[str]:
    by_expression = expressions.get(metadata.subscribed_topic_regex or "", frozenset())
    return set(metadata.subscribed_topic_names) | by_expression


def may_assign(turn: Turn, group: ConsumerGroup) -> bool:
    """Whether enough time has passed since the last target; a clock that was set back is no bar."""
    made, interval_ms = group.target_timestamp, turn.consumer_times(group.id).assignment_interval_ms
    return not made <= turn.wall < made + interval_ms


def assign(
    turn: Turn,
    group: ConsumerGroup,
    metadata_of: dict[str, Metadata],
    expressions: Expressions,
    epoch: int,
) -> dict[str, Target]:
    """A new target for everyone; what changed of it is written, the epoch last."""
    facts = facts_of(turn, metadata_of, expressions)
    specs = {}
    for id_, metadata in metadata_of.items():
        topics = {facts[name].id for name in names_of(metadata, expressions) if name in facts}
        last = last_target(group, metadata, id_)
        held = frozenset((topic, index) for topic, indexes in last.items() for index in indexes)
        specs[id_] = MemberSpec(metadata.instance_id, frozenset(topics), held)
    sizes = {one.id: one.partitions for one in facts.values()}
    assignor = ASSIGNORS[_preferred(turn, metadata_of)]
    targets = {id_: _as_target(given) for id_, given in assignor(specs, sizes).items()}
    for id_, target in targets.items():
        if group.targets.get(id_) != target:
            key = records.ConsumerGroupTargetAssignmentMemberKey(group.id, id_)
            turn.write(key, target_record(target))
    value = records.ConsumerGroupTargetAssignmentMetadataValue(epoch, turn.wall)
    turn.write(records.ConsumerGroupTargetAssignmentMetadataKey(group.id), value)
    return targets


def last_target(group: ConsumerGroup, metadata: Metadata, member_id: str) -> Target:
    """A static member that is back has what was its own under its old id."""
    known = group.targets.get(member_id)
    if known is not None:
        return known
    old_id = group.static.get(metadata.instance_id or "", member_id)
    return group.targets.get(old_id, {})


def target_record(target: Target) -> records.ConsumerGroupTargetAssignmentMemberValue:
    return records.ConsumerGroupTargetAssignmentMemberValue(
        [records.TargetTopicPartition(topic, sorted(ids)) for topic, ids in target.items()]
    )


def _preferred(turn: Turn, metadata_of: Mapping[str, Metadata]) -> str:
    """The assignor that most members ask for, or the first that is configured."""
    configured = turn.settings.consumer_assignors
    votes = Counter(one.server_assignor for one in metadata_of.values())
    return max(configured, key=lambda name: votes[name])


def _as_target(given: Partitions) -> Target:
    by_topic: dict[Uuid, set[int]] = {}
    for topic, index in given:
        by_topic.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in sorted(by_topic.items())}
