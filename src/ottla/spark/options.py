"""The options of the format `ottla`, as Spark passes them: text, with names in lower case.

Source and sink take the options they know from `Given`, by their documented names; any option left
at the end is unknown and refused by name. Options with the prefix `kafka.` are settings of Kafka's
clients: some have an effect, some have no meaning here, and some are refused because ignoring them
would be wrong.
"""

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client.dialer import Dialer
from ottla.client.session import parse_addresses
from ottla.spark.errors import BadOption

BOOTSTRAP = "kafka.bootstrap.servers"
REQUEST_MS_MAX = 30_000
CLIENT_ID = "ottla-spark"

# Passed by Spark to every source and sink of a query.
OF_SPARK = frozenset(("checkpointlocation", "queryname", "outputmode", "mergeschema"))
# Options of Spark's connector without effect here: accepted, so that a query moves unchanged.
WITHOUT_EFFECT = (
    *("groupIdPrefix", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries"),
    *("fetchOffset.retryIntervalMs", "kafka.group.id"),
)
# Kafka's settings without effect here.
KAFKA_WITHOUT_EFFECT = frozenset(
    f"kafka.{name}"
    for name in (
        *("allow.auto.create.topics", "auto.commit.interval.ms", "check.crcs", "client.dns.lookup"),
        *("connections.max.idle.ms", "default.api.timeout.ms", "exclude.internal.topics"),
        *("fetch.min.bytes", "group.protocol", "heartbeat.interval.ms", "max.poll.interval.ms"),
        *("max.poll.records", "metadata.max.age.ms", "metadata.max.idle.ms"),
        *("partition.assignment.strategy", "receive.buffer.bytes", "reconnect.backoff.max.ms"),
        *("reconnect.backoff.ms", "retry.backoff.max.ms", "retry.backoff.ms", "send.buffer.bytes"),
        *("session.timeout.ms", "socket.connection.setup.timeout.max.ms"),
        "socket.connection.setup.timeout.ms",
    )
)
KAFKA_REFUSED = {
    "kafka.auto.offset.reset": "say where to begin with 'startingOffsets'",
    "kafka.enable.auto.commit": "name a consumer group with 'group' to have progress committed",
    "kafka.interceptor.classes": "classes of the JVM cannot run here",
    "kafka.key.deserializer": "keys arrive as binary: use cast or from_json",
    "kafka.value.deserializer": "values arrive as binary: use cast or from_json",
    "kafka.key.serializer": "give the key as a string or binary column",
    "kafka.value.serializer": "give the value as a string or binary column",
    "kafka.transactional.id": "the sink chooses its own",
}
SECURITY = re.compile(r"kafka\.(?:sasl|ssl)\.")
SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
DURATION = re.compile(r"(\d+)\s*(ms|s|m|min|h|d)?", re.IGNORECASE)
SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
UNITS_MS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Access:
    """Addresses and client settings; the same on the driver and in every task."""

    bootstrap: str
    client_id: str = CLIENT_ID
    request_ms_max: int = REQUEST_MS_MAX

    @property
    def dialer(self) -> Dialer:
        return Dialer(self.client_id)


class Given:
    """The options of one reader or writer; each is taken once, and `finish` refuses the rest."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        self._written = {name.lower(): name for name in options}
        self._known: list[str] = []
        self.all = dict(self._values)  # By names in lower case; not modified.

    def names(self, prefix: str) -> list[str]:
        """The names of options, as written, with this prefix."""
        return [self._written[name] for name in sorted(self.all) if name.startswith(prefix)]

    def text(self, name: str, default: str | None = None) -> str | None:
        self._known.append(name)
        value = self._values.pop(name.lower(), None)
        return default if value is None else value

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise BadOption(name, value, "it must be true or false")
        return value.lower() == "true"

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        value = self.text(name, default)
        assert value is not None, "there is a default"
        if value.lower() not in choices:
            raise BadOption(name, value, f"it must be one of {', '.join(choices)}")
        return value.lower()

    def number(self, name: str, *, least: int = 1) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not re.fullmatch(r"-?\d+", value.strip()) or int(value) < least:
            raise BadOption(name, value, f"it must be a whole number of at least {least}")
        return int(value)

    def size(self, name: str, default: int | None = None) -> int | None:
        """Bytes in Spark's notation: `1048576`, `512k`, `256m`, `1g`."""
        value = self.text(name)
        if value is None:
            return default
        found = SIZE.fullmatch(value.strip())
        size = int(found[1]) << SHIFTS[found[2].lower()] if found else 0
        if size < 1:
            raise BadOption(name, value, "it must be a size in bytes, like 1048576, 512k or 256m")
        return size

    def duration_ms(self, name: str, default: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        found = DURATION.fullmatch(value.strip())
        if found is None:
            raise BadOption(name, value, "it must be a duration, like 500ms, 30s or 15m")
        return int(found[1]) * UNITS_MS[(found[2] or "").lower()]

    def json(self, name: str) -> dict[str, Any] | None:
        """A JSON object, like `{"orders": {"0": 23}}`."""
        value = self.text(name)
        if value is None:
            return None
        try:
            parsed = json.loads(value)
        except ValueError as failure:
            raise BadOption(name, value, f"it is not JSON: {failure}") from failure
        if not isinstance(parsed, dict):
            raise BadOption(name, value, 'it must be a JSON object, like {"orders": {"0": 23}}')
        return parsed

    def access(self) -> Access:
        """Addresses and client settings; `kafka.bootstrap.servers` is required."""
        bootstrap = self.text(BOOTSTRAP)
        if bootstrap is None:
            raise BadOption(BOOTSTRAP, None, "give the addresses of brokers, like localhost:9092")
        try:
            parse_addresses(bootstrap)
        except ValueError as failure:
            raise BadOption(BOOTSTRAP, bootstrap, str(failure)) from failure
        protocol = self.text("kafka.security.protocol", "PLAINTEXT")
        if protocol is None or protocol.upper() != "PLAINTEXT":
            why = "only PLAINTEXT is spoken yet, and a connection is never less safe than asked for"
            raise BadOption("kafka.security.protocol", protocol, why)
        return Access(
            bootstrap,
            self.text("kafka.client.id") or CLIENT_ID,
            self.number("kafka.request.timeout.ms") or REQUEST_MS_MAX,
        )

    def finish(self, of_others: Sequence[str] = ()) -> None:
        """Refuse options that were not taken; `of_others` belong to the other side and are
        accepted.
        """
        passed = (
            OF_SPARK | KAFKA_WITHOUT_EFFECT | {n.lower() for n in (*WITHOUT_EFFECT, *of_others)}
        )
        for name, value in sorted(self._values.items()):
            written = self._written[name]
            if name in KAFKA_REFUSED:
                raise BadOption(written, value, KAFKA_REFUSED[name])
            if SECURITY.match(name):
                why = "TLS and SASL are not spoken yet, and ignoring it would not be safe"
                raise BadOption(written, "…", why)
            if name not in passed:
                raise BadOption(written, value, f"there is no such option{self._similar(name)}")

    def _similar(self, name: str) -> str:
        known = {item.lower(): item for item in self._known}
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        return f"; did you mean {known[close[0]]!r}?" if close else ""
