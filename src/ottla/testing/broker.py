"""A real broker for a test: on a free port, ready in a fraction of a second.

    with Broker() as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

It runs in a thread of the test process or, with `process=True`, in a process beside it. Its data
is in a temporary directory, removed with it, unless `data` names a directory.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

from ottla.testing.context_manager import Managed
from ottla.testing.fault_injection import FaultInjection

if TYPE_CHECKING:
    from ottla.client.message import Message
    from ottla.env.network import Address
    from ottla.testing.client import Client
    from ottla.testing.process import BrokerProcess
    from ottla.testing.request_log import SentRequest
    from ottla.testing.thread import BrokerThread

SettingValue = str | int | float | bool

# Defaults for short-lived brokers; a test may override them.
QUICK = {"auto.create.topics.enable": "true", "log.segment.delete.delay.ms": "0"}


class Broker(Managed, FaultInjection):
    def __init__(
        self,
        settings: Mapping[str, SettingValue] | None = None,
        *,
        process: bool = False,
        data: str | os.PathLike[str] | None = None,
        port: int = 0,
        **named: SettingValue,
    ) -> None:
        """Settings have Kafka's names, or are keywords: `num_partitions=3`."""
        given = {**(settings or {}), **{key_of(name): value for name, value in named.items()}}
        self._settings = {**QUICK, **{name: as_text(value) for name, value in given.items()}}
        self._is_process = process
        self._kept_data = None if data is None else os.fspath(data)
        self._port = port
        self._runner: BrokerThread | BrokerProcess | None = None
        self._address: Address | None = None
        self._is_running = False
        self.data = self._kept_data or ""  # Parent of its log directories, while it exists.

    # Lifecycle.

    def start(self) -> Self:
        """Start, or restart after `stop` or `kill`, on the same port and data."""
        assert not self._is_running, "the broker is running already"
        if self._runner is None:
            self.data = self._kept_data or tempfile.mkdtemp(prefix="ottla-")
            self._runner = self._make_runner()
        try:
            self._address = self._runner.start()
        except BaseException:
            self.close()
            raise
        self._is_running = True
        return self

    def _make_runner(self) -> "BrokerThread | BrokerProcess":
        if self._is_process:
            from ottla.testing.process import BrokerProcess

            return BrokerProcess(self.data, self._settings, self._port)
        from ottla.testing.thread import BrokerThread

        return BrokerThread(self.data, self._settings, self._port)

    def stop(self) -> None:
        """Stop it cleanly; `start` restarts it with all its data."""
        if self._is_running:
            self._is_running = False
            self._running_or_stopped().stop(cleanly=True)

    def kill(self) -> None:
        """Stop it as `kill -9` would; `start` recovers."""
        if self._is_running:
            self._is_running = False
            self._running_or_stopped().kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it permanently and remove its data, unless `data` was given."""
        runner, self._runner = self._runner, None
        if runner is not None:
            try:
                if self._is_running:
                    self._is_running = False
                    runner.stop(cleanly=self._kept_data is not None)
            finally:
                runner.close()
        if self._kept_data is None and self.data:
            shutil.rmtree(self.data, ignore_errors=True)

    # Addresses.

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, for clients."""
        return str(self._where())

    @property
    def host(self) -> str:
        return self._where().host

    @property
    def port(self) -> int:
        return self._where().port

    @property
    def is_running(self) -> bool:
        return self._is_running

    @property
    def pid(self) -> int | None:
        """Process id, if it runs in its own process."""
        return getattr(self._runner, "pid", None)

    # Topics and records, over the wire like any client.

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, SettingValue] | None = None
    ) -> str:
        """Create a topic; returns its name."""
        texts = {key: as_text(value) for key, value in (configs or {}).items()}
        self._client().create_topic(name, partitions, texts)
        return name

    def delete_topic(self, name: str) -> None:
        self._client().delete_topic(name)

    def topics(self) -> list[str]:
        """The names of all topics, sorted."""
        return self._client().topics()

    def produce(
        self,
        topic: str,
        *values: bytes | str | None,
        key: bytes | str | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
    ) -> None:
        """Produce records and wait until they are acknowledged; a missing topic is created."""
        self._client().produce(
            topic,
            [_bytes(value) for value in values],
            key=_bytes(key),
            headers=headers,
            partition=partition,
        )

    def records(self, topic: str) -> "list[Message]":
        """All current records of a topic, by partition and offset."""
        return self._client().records(topic)

    def wait_for(self, topic: str, count: int, timeout: float = 10.0) -> "list[Message]":
        """All records of a topic, once it has at least `count`; TimeoutError after `timeout` s."""
        return self._client().wait_for(topic, count, timeout)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Committed offset of a group by (topic, partition)."""
        return self._client().committed(group)

    def lag(self, group: str) -> int:
        """Records that a group has not committed yet, in the partitions that it committed."""
        return self._client().lag(group)

    def requests(self, api: str) -> "list[SentRequest]":
        """The requests of an API that clients sent since the broker started, the oldest first."""
        from ottla.testing.faults import api_key
        from ottla.testing.request_log import decode_sent

        return [decode_sent(frame) for frame in self._injector().requests(api_key(api))]

    def _client(self) -> "Client":
        from ottla.testing.client import Client

        return Client(str(self._where()))

    def _where(self) -> "Address":
        if self._address is None:
            raise RuntimeError("the broker is not running: use it in a with statement")
        return self._address

    def _injector(self) -> "BrokerThread | BrokerProcess":
        if not self._is_running:
            raise RuntimeError("the broker is not running: use it in a with statement")
        return self._running_or_stopped()

    def _running_or_stopped(self) -> "BrokerThread | BrokerProcess":
        assert self._runner is not None, "it was started once"
        return self._runner


def key_of(name: str) -> str:
    return name.replace("_", ".")


def as_text(value: SettingValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bytes(value: bytes | str | None) -> bytes | None:
    if not isinstance(value, bytes | str | None):
        raise TypeError(
            f"a key or value is bytes, str or None, not {type(value).__name__}: "
            "serialise it first, for example with json.dumps"
        )
    return value.encode() if isinstance(value, str) else value
