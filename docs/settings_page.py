"""Writes docs/reference/settings.md from the definitions: `python docs/settings_page.py`.

A test compares the page with what this would write, so that no setting goes undocumented.
"""

from pathlib import Path

from ottla.metadata.configs.catalogue import BROKER_TABLES, TOPIC_CONFIGS, TOPIC_SYNONYMS
from ottla.metadata.configs.definition import Definition, Service
from ottla.metadata.configs.group import GROUP_CONFIGS

PAGE = Path(__file__).parent / "reference" / "settings.md"

INTRODUCTION = """\
# Settings

<!-- Written by docs/settings_page.py from the definitions in src/ottla/metadata/configs. -->

Ottla takes Apache Kafka 4.3's settings by their names, from a `server.properties` file
(`ottla start server.properties`), from the command line (`--set key=value`) or, where the table
says so, while it runs (`ottla configs alter`, `kafka-configs.sh`). Our own start with `ottla.`.

Every setting is in one of four classes:

| class | what happens |
|---|---|
| served | it does what Kafka's documentation says |
| irrelevant | accepted, without effect here; listed once at start |
| not built | refused, by name, unless it asks for the default: nothing is silently void |
| unknown | refused, with the nearest name; `--ignore-unknown` passes over it |

Changes while the broker runs: *cluster* means for all brokers or for one, *broker* only for one,
*start* only by a restart.

## Where a default differs from Kafka's

| setting | Kafka | Ottla | why |
|---|---|---|---|
| `queued.max.request.bytes` | -1 (no limit) | 134217728, or the largest request if that is more \
| memory stays bounded whatever clients send |
| `socket.receive.buffer.bytes` | 102400 | -1 (the system's) \
| the system tunes better than any fixed size |
| `socket.send.buffer.bytes` | 102400 | -1 (the system's) | the same |
"""

TITLES = {
    "network": "Listeners, connections and requests",
    "logs": "Logs",
    "replication": "Replicas",
    "quorum": "Identity and the controller quorum",
    "groups": "Consumer and streams groups",
    "share": "Share groups",
    "transactions": "Producers and transactions",
    "tiering": "Remote storage",
    "metrics": "Metrics and quotas",
    "tls": "TLS",
    "security": "Authentication, authorisation and policies",
    "own": "Ottla's own",
}
UPDATES = {"read-only": "start", "per-broker": "broker", "cluster-wide": "cluster"}


def page() -> str:
    parts = [INTRODUCTION, _topics(), _groups()]
    for table in sorted(BROKER_TABLES, key=lambda t: not t.__name__.endswith(".own")):
        title = TITLES[table.__name__.rpartition(".")[2]]
        parts.append(f"## {title}\n")
        parts.append("| setting | type | default | allowed | class | changes | what it is |")
        parts.append("|---|---|---|---|---|---|---|")
        parts += [
            f"| `{d.name}` | {d.type.name.lower()} | {_default(d)} | {_allowed(d)} "
            f"| {d.service.value.replace('-', ' ')} | {UPDATES[d.update.value]} "
            f"| {d.documentation} |"
            for d in sorted(table.DEFINITIONS, key=lambda d: (d.service.name, d.name))
            if not d.is_internal or d.service is Service.SERVED
        ] + [""]
    return "\n".join(parts).rstrip() + "\n"


def _topics() -> str:
    lines = [
        "## Topics\n",
        "Set with `ottla topics create --config` or `ottla configs alter`. The default of a topic\n"
        "config is the broker's setting.\n",
        "| config | type | default | allowed | class | broker's setting | what it is |",
        "|---|---|---|---|---|---|---|",
    ]
    for definition in sorted(TOPIC_CONFIGS.values(), key=lambda d: d.name):
        behind = TOPIC_SYNONYMS.get(definition.name)
        lines.append(
            f"| `{definition.name}` | {definition.type.name.lower()} | {_default(definition)} "
            f"| {_allowed(definition)} | {definition.service.value.replace('-', ' ')} "
            f"| {f'`{behind}`' if behind else ''} | {definition.documentation} |"
        )
    return "\n".join(lines) + "\n"


def _groups() -> str:
    lines = [
        "## Groups\n",
        "Set for one group with `ottla configs alter group NAME`, within the broker's bounds\n"
        "(`group.*.min.*`, `group.*.max.*`). The default is the broker's setting with the\n"
        "prefix `group.`.\n",
        "| config | type | default | allowed | class | what it is |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{d.name}` | {d.type.name.lower()} | {_default(d)} | {_allowed(d)} "
        f"| {d.service.value.replace('-', ' ')} | {d.documentation} |"
        for d in sorted(GROUP_CONFIGS.values(), key=lambda d: (d.service.name != "SERVED", d.name))
    ]
    return "\n".join(lines) + "\n"


def _default(definition: Definition) -> str:
    if definition.is_required:
        return "required"
    if definition.default is None:
        return ""
    return f"`{definition.default}`" if definition.default else "empty"


def _allowed(definition: Definition) -> str:
    check = definition.check
    if check == "any":
        return ""
    if "{" in check:
        return check[check.index("{") + 1 : -1].replace(",", ", ")
    return {"throttled": "partition:broker pairs or *"}.get(check, check).replace("|", " or ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
