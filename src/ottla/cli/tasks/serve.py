"""Runs a broker from the command line: log, banner, exit status."""

import logging
import os
import sys
from typing import TYPE_CHECKING

from ottla import __version__
from ottla.broker.node.log_lines import JSON, configure_logging, json_line, spelled_out
from ottla.broker.node.process import Prepare, StartRefused, run
from ottla.broker.settings.error import SettingsError

if TYPE_CHECKING:
    from ottla.broker.node.broker import Broker
    from ottla.broker.settings.settings import Settings

logger = logging.getLogger("ottla.cli")

BROKEN = 70  # As in sysexits: an internal error.
DEFAULT_ADDRESS = "127.0.0.1:9092"


def serve(settings: "Settings", prepare: Prepare) -> None:
    """Prepare the directories and run until stopped; raises SettingsError."""
    configure_logging(settings.ottla_log_level, settings.ottla_log_format)
    if settings.irrelevant:
        logger.info("settings without effect here: %s", ", ".join(settings.irrelevant))
    try:
        run(settings, prepare, _announce)
    except StartRefused as refused:
        if settings.ottla_log_format == JSON:
            logger.error("%s", refused)
            sys.exit(1)
        raise SettingsError(str(refused)) from refused
    except Exception:
        logger.exception("the broker cannot go on")
        sys.exit(BROKEN)


def _announce(broker: "Broker") -> None:
    lines = banner(broker.settings, broker.image.cluster_id, _ports(broker))
    if broker.settings.ottla_log_format == JSON:
        lines = [json_line(lines[0])]  # The other lines are for a person at a terminal.
    for line in lines:
        print(spelled_out(line))
    # A reader behind a pipe must see the banner now.
    sys.stdout.flush()


def banner(settings: "Settings", cluster_id: str, ports: dict[str, int]) -> list[str]:
    """The banner once the broker serves; `ports` are the bound ones."""
    clients = [
        f"{_host(endpoint.host)}:{endpoint.port or ports[endpoint.name]}"
        for endpoint in settings.advertised_listeners
        if endpoint.name not in settings.controller_listener_names
    ]
    there = "" if clients[0] == DEFAULT_ADDRESS else f" -b {clients[0]}"
    data = ", ".join(os.path.abspath(directory) for directory in settings.log_dirs)
    return [
        f"Ottla {__version__} serves Kafka clients on {', '.join(clients)}",
        f"  data     {data} (cluster {cluster_id}, node {settings.node_id})",
        f"  produce  echo hello | ottla produce{there} greetings",
        f"  consume  ottla consume{there} greetings --from-beginning",
        "  stop     Ctrl-C",
    ]


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _ports(broker: "Broker") -> dict[str, int]:
    return {name: address.port for name, address in broker.addresses.items()}
