"""How many bytes an offset takes, by looking at a little of the log where a batch would begin.

No request tells how many bytes lie between two offsets. One fetch per leader with a small limit per
partition does, for the beginning; a second look in the middle of what would be read keeps one odd
record from deciding. Bytes are counted as they lie in the log, compressed or not.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping

from ottla.client.errors import ClientError
from ottla.client.offsets import READ_UNCOMMITTED
from ottla.env.network import Address
from ottla.model.types import ZERO_UUID, Offset, TopicPartition
from ottla.protocol.messages import fetch as wire
from ottla.records.batch import Batch, Buffer
from ottla.spark.arrow.batch_scan import scan
from ottla.spark.options import Access
from ottla.spark.source.fetching import NAMES_VERSION_MAX
from ottla.spark.source.idle_connections import borrow, give_back
from ottla.spark.source.planning import Range, limited_by_bytes
from ottla.spark.source.source import Source

SAMPLE_BYTES = 64 * 1024
Rates = dict[TopicPartition, float]


class Sampler:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._rates: Rates = {}  # As last seen, per partition.

    def ends(
        self,
        ranges: list[Range],
        bytes_max: int,
        sources: Callable[[], Mapping[TopicPartition, Source]],
    ) -> dict[TopicPartition, Offset]:
        """Where to stop so that all ranges together have about `bytes_max` bytes."""
        if self._is_little(ranges, bytes_max):
            return {one.place: one.end for one in ranges}
        found = sources()
        first = self._look(found, {one.place: one.start for one in ranges})
        ends = limited_by_bytes(ranges, bytes_max, first)
        middles = {one.place: (one.start + ends.get(one.place, one.end)) // 2 for one in ranges}
        second = self._look(found, middles)
        rates = {place: (rate + second.get(place, rate)) / 2 for place, rate in first.items()}
        self._rates |= rates
        return limited_by_bytes(ranges, bytes_max, rates)

    def _is_little(self, ranges: list[Range], bytes_max: int) -> bool:
        """Whether even twice of what was seen last would be within the limit."""
        if any(one.place not in self._rates for one in ranges):
            return False
        return sum(2 * self._rates[one.place] * one.size for one in ranges) <= bytes_max

    def _look(
        self, sources: Mapping[TopicPartition, Source], at: Mapping[TopicPartition, Offset]
    ) -> Rates:
        by_leader: dict[Address, list[TopicPartition]] = defaultdict(list)
        for place in at:
            by_leader[sources[place].leader].append(place)
        rates: Rates = {}
        for leader, places in by_leader.items():
            try:
                rates |= self._ask(leader, places, sources, at)
                # A batch above the limit is only sent where it comes first in an answer.
                for place in places if len(places) > 1 else ():
                    if place not in rates:
                        rates |= self._ask(leader, [place], sources, at)
            except ClientError:
                continue  # The tasks will find the new leader; until then the last rate stands.
        return {place: rates.get(place) or self._rates.get(place, 1.0) for place in at}

    def _ask(
        self,
        leader: Address,
        places: list[TopicPartition],
        sources: Mapping[TopicPartition, Source],
        at: Mapping[TopicPartition, Offset],
    ) -> Rates:
        topics: dict[str, wire.FetchTopic] = {}
        for place in places:
            topic = wire.FetchTopic(place.topic, sources[place].topic_id)
            topics.setdefault(place.topic, topic).partitions.append(
                wire.FetchPartition(
                    place.partition, fetch_offset=at[place], partition_max_bytes=SAMPLE_BYTES
                )
            )
        has_ids = all(topic.topic_id != ZERO_UUID for topic in topics.values())
        request = wire.Request(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=SAMPLE_BYTES * (len(places) + 1),
            isolation_level=READ_UNCOMMITTED,
            topics=list(topics.values()),
        )
        connection, _ = borrow(self._access, leader)
        try:
            version = connection.version_for(wire.Request, None if has_ids else NAMES_VERSION_MAX)
            answer = connection.ask(request, wire.Response, version)
        except ClientError:
            connection.close()
            raise
        names = {topic.topic_id: topic.topic for topic in topics.values()}
        rates = {}
        for answered in answer.responses:
            for result in answered.partitions:
                name = answered.topic or names[answered.topic_id]
                place = TopicPartition(name, result.partition_index)
                rate = _rate(str(sources[place]), result.records or b"", at[place])
                if rate:
                    rates[place] = rate
        give_back(self._access, connection)
        return rates


def _rate(place: str, data: Buffer, offset: Offset) -> float | None:
    found = scan(place, data, offset, offset + 1, None)
    if found.next_offset == offset:
        return None
    # The first batch may begin below the offset that was asked for, or beyond it after a gap.
    first = Batch.parse(data).base_offset
    return found.size_bytes / (found.next_offset - min(first, offset))
