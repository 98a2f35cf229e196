"""The topics of a pipeline: checked without changing anything, created before the queries start.

A missing topic of a sink is created by the brokers if `auto.create.topics.enable` is true.
"""

from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from ottla.client.admin import ResourceType
from ottla.client.blocking import Client
from ottla.client.cluster import ClientSettings
from ottla.client.errors import ClientError
from ottla.client.metadata import UnknownTopic
from ottla.spark.errors import SparkError
from ottla.spark.pipelines.model import suggestion

Value = TypeVar("Value")

CONNECT_MS_MAX: Final = 1_500
AUTO_CREATE: Final = "auto.create.topics.enable"


def find_broker(bootstrap: str) -> None:
    """ClientError if no broker answers within two seconds."""
    settings = ClientSettings(connect_ms_max=CONNECT_MS_MAX, request_ms_max=CONNECT_MS_MAX)
    with Client(bootstrap, settings) as client:
        client.run(client.cluster.refresh())


class Topics:
    def __init__(self, bootstrap: str) -> None:
        self._client = Client(bootstrap)
        self._names: list[str] | None = None
        self._is_auto_created: bool | None = None
        self.missing: dict[str, str] = {}  # Topics that will be created, each with a sentence.

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def check_source(self, name: str) -> None:
        """A topic to read must exist."""
        if not self._exists(name):
            raise SparkError(f"there is no topic {name!r}{self._similar(name)}")

    def check_target(self, name: str) -> None:
        """A topic to write must exist, or be one that the brokers will create."""
        if name in self.missing or self._exists(name):
            return
        if self._creates_topics() is False:
            raise SparkError(f"there is no topic {name!r}{self._similar(name)}")
        certainty = "will be created" if self._is_auto_created else "will be created, if allowed"
        self.missing[name] = f"topic {name!r} {certainty}{self._similar(name)}"

    def create(self, name: str) -> None:
        """Have the brokers create a missing topic."""
        self._run(self._client.cluster.topic(name, may_create=True))

    def _exists(self, name: str) -> bool:
        try:
            self._client.run(self._client.cluster.topic(name))
        except UnknownTopic:
            return False
        except ClientError as failure:
            raise SparkError(str(failure)) from failure
        return True

    def _similar(self, name: str) -> str:
        if self._names is None:
            found = self._run(self._client.admin.describe_topics())
            self._names = [topic.name for topic in found if topic.name and not topic.is_internal]
        return suggestion(name, self._names)

    def _run(self, work: Coroutine[Any, Any, Value]) -> Value:
        try:
            return self._client.run(work)
        except ClientError as failure:
            raise SparkError(str(failure)) from failure

    def _creates_topics(self) -> bool | None:
        """None if the brokers do not say."""
        if self._is_auto_created is None:
            node = next(iter(self._client.cluster.metadata.nodes))
            try:
                configs = self._client.run(
                    self._client.admin.describe_configs(ResourceType.BROKER, str(node))
                )
            except ClientError:
                return None
            values = {config.name: config.value for config in configs}
            self._is_auto_created = values.get(AUTO_CREATE) == "true"
        return self._is_auto_created
