"""What the driver asks of the cluster: which partitions there are, and which offsets they have.

One Metadata request every so often, and one ListOffsets per leader and question; nothing else.
Failures of the client become sentences that name the option behind them.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TypeVar

from ottla.client.blocking_cluster import BlockingCluster
from ottla.client.cluster import ClientSettings
from ottla.client.errors import CannotConnect, ClientError
from ottla.client.metadata import UnknownTopic
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.env.network import Address
from ottla.model.types import ZERO_UUID, Offset, TopicPartition, Uuid
from ottla.spark.errors import BadOption, NoTopic, SparkError
from ottla.spark.options import BOOTSTRAP
from ottla.spark.source.options import Bound, SourceOptions
from ottla.spark.source.source import Source

Value = TypeVar("Value")

# Of Kafka's own: a pattern never means them.
INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))


class Discovery:
    def __init__(self, options: SourceOptions) -> None:
        access = options.access
        settings = ClientSettings(client_id=access.client_id, request_ms_max=access.request_ms_max)
        self._options = options
        self._client = BlockingCluster(access.bootstrap, settings)
        self._cluster = self._client.cluster
        self._refreshed_at: float | None = None

    def __enter__(self) -> "Discovery":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    # Topics and partitions.

    def partitions(self, *, is_anew: bool = False) -> list[TopicPartition]:
        """All partitions that are to be read, as known for some seconds or, if so asked, now."""
        age_ms = (time.monotonic() - (self._refreshed_at or 0)) * 1000
        if is_anew or self._refreshed_at is None or age_ms > self._options.metadata_age_ms_max:
            self._refresh()
        selection = self._options.selection
        topics = self._cluster.metadata.topics
        if selection.assigned:
            for topic, partition in selection.assigned:
                if topic in topics and partition not in topics[topic].partitions:
                    why = f"topic {topic!r} has no partition {partition}"
                    raise BadOption(selection.option, selection.text, why)
            return [place for place in selection.assigned if place.topic in topics]
        names = selection.names
        if selection.pattern is not None:
            matches = selection.pattern.fullmatch
            names = tuple(sorted(n for n in topics if matches(n) and n not in INTERNAL))
        return [
            TopicPartition(name, partition)
            for name in names
            if name in topics
            for partition in sorted(topics[name].partitions)
        ]

    def check_topics(self) -> None:
        """Refuse to begin with topics that do not exist; they may vanish and come back later."""
        selection = self._options.selection
        self.partitions()
        known = self._cluster.metadata.topics
        asked = selection.names or tuple(dict.fromkeys(p.topic for p in selection.assigned))
        for name in asked:
            if name not in known:
                raise NoTopic(selection.option, selection.text, f"there is no topic {name!r}")

    def topic_id(self, topic: str) -> Uuid:
        known = self._cluster.metadata.topics.get(topic)
        return ZERO_UUID if known is None else known.id

    def sources(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, Source]:
        """What a task needs to know about each partition."""

        async def leader(place: TopicPartition) -> Address:
            node_id = await self._cluster.leader_id(place)
            if node_id not in self._cluster.metadata.nodes:
                await self._cluster.refresh()
            return self._cluster.metadata.nodes[node_id].address

        async def find() -> dict[TopicPartition, Source]:
            found = {}
            for place in places:
                address = await leader(place)
                found[place] = Source(
                    place.topic, self.topic_id(place.topic), place.partition, address
                )
            return found

        return self._run(lambda: self._cluster.retrying(find))

    # Offsets.

    def ends(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Where each log ends: its last stable offset if only what is committed is read."""
        return self._offsets(dict.fromkeys(places, LATEST))

    def starts(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, Offset]:
        return self._offsets(dict.fromkeys(places, EARLIEST))

    def resolve(self, bound: Bound, places: list[TopicPartition]) -> dict[TopicPartition, Offset]:
        """The offset that an option names for each partition."""
        if bound.everywhere is not None:
            return self._offsets(dict.fromkeys(places, bound.everywhere))
        if bound.offsets is not None:
            return self._given(bound, bound.offsets, places)
        if bound.times_ms is not None:
            _check_complete(bound, bound.times_ms, places)
        times = (
            dict.fromkeys(places, bound.time_ms or 0)
            if bound.times_ms is None
            else dict(bound.times_ms)
        )
        found = self._offsets(times)
        none = [place for place, offset in found.items() if offset < 0]
        if none and not bound.is_latest_if_none:
            place = none[0]
            why = f"{place.topic}-{place.partition} has no record at or after {times[place]} ms"
            name = "startingOffsetsByTimestampStrategy"
            raise BadOption(bound.option, bound.text, f"{why}; set {name} to latest to begin there")
        return found | (self.ends(none) if none else {})

    def earliest_at(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Offset | None]:
        """The first offset at or after a time, None where there is none."""
        found = self._offsets(times)
        return {place: None if offset < 0 else offset for place, offset in found.items()}

    def _given(
        self, bound: Bound, offsets: Mapping[TopicPartition, int], places: list[TopicPartition]
    ) -> dict[TopicPartition, Offset]:
        """Offsets that the user wrote down, checked against what the log holds."""
        _check_complete(bound, offsets, places)
        starts, ends = self.starts(places), self.ends(places)
        found = {}
        for place in places:
            offset = {EARLIEST: starts[place], LATEST: ends[place]}.get(
                offsets[place], offsets[place]
            )
            low, high = starts[place], ends[place]
            if not low <= offset <= high and self._options.fails_on_data_loss:
                name = f"{place.topic}-{place.partition}"
                why = f"{name} holds the offsets {low} to {high}, and {offset} lies outside"
                raise BadOption(
                    bound.option, bound.text, f"{why}; failOnDataLoss=false takes the nearest"
                )
            found[place] = min(max(offset, low), high)
        return found

    def _offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Offset]:
        isolation = self._options.isolation
        found = self._run(lambda: find_offsets(self._cluster, times, isolation=isolation))
        return {place: item.offset for place, item in found.items()}

    # Groups.

    def commit(self, group: str, offsets: Mapping[TopicPartition, Offset]) -> None:
        from ottla.client.groups import Groups  # Only here: Spark waits for what is imported.

        self._client.run(Groups(self._cluster).commit(group, offsets))

    def _refresh(self) -> None:
        selection = self._options.selection
        names = selection.names or tuple({place.topic for place in selection.assigned})
        is_pattern = selection.pattern is not None
        self._cluster.metadata.topics.clear()  # One that is gone must not be remembered.

        async def attempt() -> None:
            await self._cluster.refresh(None if is_pattern else names)

        self._run(lambda: self._cluster.retrying(attempt))
        self._refreshed_at = time.monotonic()

    def _run(self, work: Callable[[], Awaitable[Value]]) -> Value:
        async def main() -> Value:
            return await work()

        try:
            return self._client.run(main())
        except UnknownTopic as failure:
            selection = self._options.selection
            raise NoTopic(selection.option, selection.text, str(failure)) from failure
        except CannotConnect as failure:
            raise BadOption(BOOTSTRAP, self._options.access.bootstrap, str(failure)) from failure
        except ClientError as failure:
            raise SparkError(f"the cluster cannot be asked: {failure}") from failure


def _check_complete(
    bound: Bound, given: Mapping[TopicPartition, object], places: list[TopicPartition]
) -> None:
    """As in Spark, an option that speaks of partitions has to speak of all of them."""
    for is_missing, wrong in (
        (True, sorted(set(places) - set(given))),
        (False, sorted(set(given) - set(places))),
    ):
        if wrong:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in wrong[:5])
            why = (
                f"it does not say where {names} begins or ends"
                if is_missing
                else (f"{names} is not among what is read")
            )
            raise BadOption(bound.option, bound.text, why)
