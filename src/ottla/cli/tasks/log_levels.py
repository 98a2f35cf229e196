"""Implementation of `ottla loggers`: each broker is asked about its own loggers."""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches

from ottla.cli.views.terminal import say, show_json, show_table
from ottla.client.admin import Admin, Operation, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model.types import NodeId

Levels = dict[str, str]


class UnknownLogger(ClientError):
    """No such logger; a person has mistyped it."""


async def list_loggers(
    cluster: Cluster, text: str, exact: bool, brokers: Sequence[int], *, as_json: bool
) -> None:
    nodes = await _nodes(cluster, brokers)
    found = dict(
        zip(nodes, await asyncio.gather(*(_levels(cluster, n) for n in nodes)), strict=True)
    )
    names = sorted({name for levels in found.values() for name in levels}, key=_root_first)
    names = [name for name in names if (name == text if exact else text in name)]
    if as_json:
        rows = [(node, name) for name in names for node in nodes if name in found[node]]
        show_json([{"broker": n, "logger": name, "level": found[n][name]} for n, name in rows])
    elif not names:
        raise UnknownLogger(f"no logger has {text!r} in its name")
    else:
        columns = [f"Broker {node}" for node in nodes] if len(nodes) > 1 else ["Level"]
        rows_shown = [[name, *(found[node].get(name, "") for node in nodes)] for name in names]
        show_table(["Logger", *columns], rows_shown)


async def set_level_of(
    cluster: Cluster, name: str, level: str | None, brokers: Sequence[int], *, as_json: bool
) -> None:
    """Set a level, or unset it (None), on these brokers, or on all that run."""
    nodes = await _nodes(cluster, brokers)
    operation = Operation.DELETE if level is None else Operation.SET
    admin = Admin(cluster)
    results = []
    for node in nodes:
        levels = await _levels(cluster, node)
        if name not in levels:
            raise _unknown(name, levels, node)
        change = (operation, name, level)
        await admin.alter_configs(ResourceType.BROKER_LOGGER, str(node), [change])
        results.append(
            {"broker": node, "logger": name, "level": (await _levels(cluster, node))[name]}
        )
    if as_json:
        show_json(results)
        return
    for result in results:
        say(f"Broker {result['broker']}: {name} logs from {result['level']} on.")


async def _nodes(cluster: Cluster, brokers: Sequence[int]) -> list[NodeId]:
    if brokers:
        return [NodeId(node) for node in brokers]
    await cluster.retrying(cluster.refresh)
    return sorted(cluster.metadata.nodes)


async def _levels(cluster: Cluster, node: NodeId) -> Levels:
    configs = await Admin(cluster).describe_configs(ResourceType.BROKER_LOGGER, str(node))
    return {config.name: config.value or "" for config in configs}


def _root_first(name: str) -> tuple[bool, str]:
    return name != "root", name


def _unknown(name: str, levels: Levels, node: NodeId) -> UnknownLogger:
    near = get_close_matches(name, levels, 1)
    hint = f"did you mean {near[0]!r}?" if near else "'ottla loggers list' shows those there are"
    return UnknownLogger(f"broker {node} has no logger {name!r}; {hint}")
