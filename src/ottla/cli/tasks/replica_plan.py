"""Which brokers get which replicas: few moves, even loads, different racks. Pure.

Replicas that are where they may be stay, unless a broker has more than its share.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from ottla.model.types import NodeId, TopicPartition

Replicas = dict[TopicPartition, list[NodeId]]
Racks = Mapping[NodeId, str | None]  # Of the brokers that may get replicas.


class CannotPlace(ValueError):
    """There are fewer brokers than replicas."""


def spread(current: Mapping[TopicPartition, Sequence[NodeId]], racks: Racks) -> Replicas:
    """Replicas on these brokers alone, as many as now, evenly, and led evenly."""
    plan = {place: _placed(replicas, len(replicas), racks) for place, replicas in current.items()}
    loads = Counter(dict.fromkeys(racks, 0))
    for replicas in plan.values():
        loads.update(replicas)
    _fill(plan, {place: len(replicas) for place, replicas in current.items()}, racks, loads)
    _even_out(plan, racks, loads)
    _even_leaders(plan, racks)
    return plan


def resized(
    current: Mapping[TopicPartition, Sequence[NodeId]],
    in_sync: Mapping[TopicPartition, Sequence[NodeId]],
    factor: int,
    racks: Racks,
    loads: Mapping[NodeId, int],
) -> Replicas:
    """Replicas added to, or taken from, each partition; `loads` counts those of all topics.

    The first replica stays. Those out of sync go first, then those of the busiest broker.
    """
    counted = Counter({node: loads.get(node, 0) for node in racks})
    plan: Replicas = {}
    for place, replicas in current.items():
        kept = list(replicas)
        while len(kept) > factor:
            going = max(
                kept[1:],
                key=lambda node: (node not in in_sync[place], loads.get(node, 0), kept.index(node)),
            )
            kept.remove(going)
            counted[going] -= 1
        plan[place] = kept
    _fill(plan, dict.fromkeys(plan, factor), racks, counted)
    return plan


def _placed(replicas: Sequence[NodeId], factor: int, racks: Racks) -> list[NodeId]:
    return [node for node in replicas if node in racks][:factor]


def _fill(
    plan: Replicas, factors: Mapping[TopicPartition, int], racks: Racks, loads: "Counter[NodeId]"
) -> None:
    """Add what is missing, each on the least loaded broker of the rack with the fewest."""
    for place, replicas in plan.items():
        if factors[place] > len(racks) and factors[place] > len(replicas):
            raise CannotPlace(
                f"{place} needs {factors[place]} brokers, and there are {len(racks)} to choose from"
            )
        while len(replicas) < factors[place]:
            used = Counter(racks.get(node) for node in replicas)
            node = min(
                (node for node in racks if node not in replicas),
                key=lambda node: (used[racks[node]], loads[node], node),
            )
            replicas.append(node)
            loads[node] += 1


def _even_out(plan: Replicas, racks: Racks, loads: "Counter[NodeId]") -> None:
    """Move replicas from the busiest brokers to the idlest; racks stay as different as they are."""
    for _ in range(sum(map(len, plan.values()))):
        by_load = sorted(racks, key=lambda node: (loads[node], node))
        if not any(_shifted(plan, racks, loads, idle, by_load) for idle in by_load):
            return


def _shifted(
    plan: Replicas, racks: Racks, loads: "Counter[NodeId]", idle: NodeId, by_load: list[NodeId]
) -> bool:
    """Move one replica to `idle` from the busiest broker that has two more; False if none can."""
    for busy in reversed(by_load):
        if loads[busy] - loads[idle] < 2:
            return False
        for replicas in plan.values():
            if busy not in replicas or idle in replicas:
                continue
            others = {racks[node] for node in replicas if node != busy}
            if racks[idle] in others and racks[busy] not in others:
                continue
            replicas[replicas.index(busy)] = idle
            loads[busy] -= 1
            loads[idle] += 1
            return True
    return False


def _even_leaders(plan: Replicas, racks: Racks) -> None:
    """Let each broker be the first replica of as many partitions as the others, or one more."""
    leads = Counter(dict.fromkeys(racks, 0))
    leads.update(replicas[0] for replicas in plan.values())
    for _ in range(len(plan)):
        is_changed = False
        for replicas in plan.values():
            best = min(replicas, key=lambda node: (leads[node], replicas.index(node)))
            if leads[replicas[0]] - leads[best] >= 2:
                leads[replicas[0]] -= 1
                leads[best] += 1
                replicas.remove(best)
                replicas.insert(0, best)
                is_changed = True
        if not is_changed:
            return
