"""A controller with brokers, whose decisions are applied, for the tests of this folder."""

# ruff: noqa: ANN401  Requests and records are of whatever class their API has.

from itertools import count
from random import Random
from typing import Any

from ottla.metadata.decisions.context import ControllerSettings, DecisionContext
from ottla.metadata.decisions.controller import Controller
from ottla.metadata.image.features import METADATA_VERSION, METADATA_VERSION_MAX, SUPPORTED
from ottla.metadata.image.ids import new_uuid
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import broker_heartbeat, broker_registration, create_topics
from ottla.protocol.metadata_records import FeatureLevelRecord

CLUSTER = "aZSxcrjtRrO_dWhnyP37Bw"
NOW = Monotonic(1_000)


class ControllerDriver:
    """A controller whose decisions are appended and applied at once."""

    def __init__(
        self,
        brokers: int = 1,
        *,
        features: dict[str, int] | None = None,
        settings: ControllerSettings | None = None,
        seed: int = 0,
    ) -> None:
        self._random = Random(seed)
        self.random_bytes = self._random.randbytes
        self._settings = settings or ControllerSettings(NodeId(1))
        self.controller = self._controller(None)
        self.written: list[Any] = []
        self._tickets = count(1)
        self.write(FeatureLevelRecord(METADATA_VERSION, METADATA_VERSION_MAX))
        for name, level in (features or {}).items():
            self.write(FeatureLevelRecord(name, level))
        self.epochs: dict[int, int] = {}
        for node in range(1, brokers + 1):
            self.register(node)
            self.heartbeat(node)

    def _controller(self, image: ClusterImage | None) -> Controller:
        return Controller(
            CLUSTER,
            self._settings,
            below=self._random.randrange,
            new_uuid=lambda: new_uuid(self.random_bytes),
            image=image,
        )

    def fail_over(self) -> None:
        """Another controller takes over the committed state: no broker has contacted it."""
        self.image.take_delta()
        self.controller = self._controller(self.image.frozen())
        self.controller.activated(NOW)

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    @property
    def context(self) -> DecisionContext:
        return self.controller._context

    def write(self, *records: Any) -> None:
        for record in records:
            self.written.append(record)
            self.controller.apply(self.image.offset + 1, record)

    def ask(self, request: Any, now: int = NOW) -> Any:
        """The reply; the decision is applied."""
        reply, records = self.decide(request, now)
        self.write(*records)
        return reply

    def decide(self, request: Any, now: int = NOW) -> tuple[Any, list[Any]]:
        ticket = next(self._tickets)
        decision = self.controller.decide(ticket, request, Monotonic(now))
        assert [answered for answered, _ in decision.replies] == [ticket]
        return decision.replies[0][1], decision.records

    def tick(self, now: int) -> list[Any]:
        records = self.controller.tick(Monotonic(now)).records
        self.write(*records)
        return records

    def registration(self, node: int, **change: Any) -> broker_registration.Request:
        fields: dict[str, Any] = {
            "broker_id": node,
            "cluster_id": CLUSTER,
            "incarnation_id": self.random_bytes(16),
            "listeners": [broker_registration.Listener("PLAINTEXT", f"host{node}", 9092, 0)],
            "features": [broker_registration.Feature(n, *r) for n, r in SUPPORTED.items()],
            "rack": None,
            "log_dirs": [bytes([node] * 16)],
            "previous_broker_epoch": -1,
        }
        return broker_registration.Request(**(fields | change))

    def register(self, node: int, **change: Any) -> int:
        response = self.ask(self.registration(node, **change))
        self.epochs[node] = response.broker_epoch
        return response.broker_epoch

    def heartbeat(self, node: int, now: int = NOW, **change: Any) -> broker_heartbeat.Response:
        return self.ask(
            broker_heartbeat.Request(
                broker_id=node,
                broker_epoch=self.epochs[node],
                current_metadata_offset=self.image.offset,
                **change,
            ),
            now,
        )

    def create(self, name: str, partitions: int = 1, factor: int = 1, **configs: str) -> Any:
        topic = create_topics.CreatableTopic(
            name,
            partitions,
            factor,
            [],
            [
                create_topics.CreatableTopicConfig(key.replace("_", "."), value)
                for key, value in configs.items()
            ],
        )
        return self.ask(create_topics.Request([topic])).topics[0]


def state_of(image: ClusterImage) -> dict[str, Any]:
    """All contents of an image, without its history."""
    passing = {"offset", "_changes", "_transaction"}
    return {name: value for name, value in vars(image).items() if name not in passing}


def replayed(records: list[Any]) -> ClusterImage:
    image = ClusterImage(CLUSTER)
    for offset, record in enumerate(records):
        image.apply(offset, record)
    return image
