"""Output of `ottla dlq peek`: dead letters with origin and error."""

import asyncio

from ottla.cli.tasks.timestamps import show_moment
from ottla.cli.views.terminal import as_json, escaped, note, plural, say, show_json
from ottla.client.cluster import Cluster
from ottla.client.groups import Groups
from ottla.client.message import Message
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.client.reader import Reader
from ottla.consumer.dead_letters import DeadLetter, read_dead_letter
from ottla.model.types import Offset, TopicPartition

POLL_MS = 500
VALUE_CHARACTERS_MAX = 400

Offsets = dict[TopicPartition, Offset]


def replay_group(topic: str) -> str:
    """The group whose offsets mark replayed letters of a topic."""
    return f"ottla-dlq-replay-{topic}"


async def unplayed(cluster: Cluster, topic: str, group: str) -> tuple[Offsets, Offsets]:
    """Offset ranges of dead letters not replayed yet, by partition."""
    known = await cluster.topic(topic)
    places = [TopicPartition(topic, index) for index in sorted(known.partitions)]
    starts = await find_offsets(cluster, dict.fromkeys(places, EARLIEST))
    ends = await find_offsets(cluster, dict.fromkeys(places, LATEST))
    committed = await Groups(cluster).offsets(group)
    begins = {
        place: max(starts[place].offset, committed[place].offset if place in committed else 0)
        for place in places
    }
    return begins, {place: ends[place].offset for place in places}


async def peek(
    cluster: Cluster,
    topic: str,
    *,
    group: str | None,
    messages_max: int,
    is_all: bool,
    has_stacktraces: bool,
    shows_json: bool,
) -> None:
    begins, ends = await unplayed(cluster, topic, group or replay_group(topic))
    if is_all:
        found = await find_offsets(cluster, dict.fromkeys(begins, EARLIEST))
        begins = {place: item.offset for place, item in found.items()}
    waiting = sum(max(ends[place] - begin, 0) for place, begin in begins.items())
    reader = Reader(cluster, {p: begin for p, begin in begins.items() if begin < ends[p]})
    shown = 0
    try:
        while reader.positions and shown < messages_max:
            for message in await reader.poll(POLL_MS):
                if shown < messages_max and message.offset < ends[message.topic_partition]:
                    _show(message, shows_json=shows_json, has_stacktrace=has_stacktraces)
                    shown += 1
            _stop_at_ends(reader, ends)
    except asyncio.CancelledError:
        pass
    finally:
        reader.close()
    if not waiting:
        note(f"{topic} has no dead letters" + (".", " that were not replayed.")[not is_all])
        return
    what = "in all" if is_all else "not replayed"
    note(f"{plural(shown, 'dead letter')} shown of about {waiting:,} {what}.")


def _stop_at_ends(reader: Reader, ends: Offsets) -> None:
    for place, position in list(reader.positions.items()):
        if position >= ends[place]:
            reader.stop(place)


def _show(message: Message, *, shows_json: bool, has_stacktrace: bool) -> None:
    letter = read_dead_letter(message)
    if shows_json:
        show_json(_as_json(message, letter))
        return
    origin = f"{letter.topic}-{letter.partition} at offset {letter.offset}"
    say(
        f"{message.topic_partition} at offset {message.offset}, {show_moment(message.timestamp_ms)}"
    )
    say(f"  from    {origin if letter.topic is not None else 'unknown'}, by {letter.group}")
    say(f"  error   {letter.error_class}: {letter.error_message}")
    say(f"  key     {_text(message.key)}")
    say(f"  value   {_text(message.value)}")
    if letter.headers:
        named = ", ".join(f"{name}={_text(value)}" for name, value in letter.headers)
        say(f"  headers {named}")
    if has_stacktrace and letter.stacktrace is not None:
        for line in letter.stacktrace.splitlines():
            say(f"  | {line}")


def _text(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = escaped(data).decode()
    if len(text) <= VALUE_CHARACTERS_MAX:
        return text
    return f"{text[:VALUE_CHARACTERS_MAX]}... ({len(data):,} bytes)"


def _as_json(message: Message, letter: DeadLetter) -> dict[str, object]:
    return {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": message.timestamp_ms,
        "original_topic": letter.topic,
        "original_partition": letter.partition,
        "original_offset": letter.offset,
        "group": letter.group,
        "error_class": letter.error_class,
        "error_message": letter.error_message,
        "stacktrace": letter.stacktrace,
        **as_json("key", message.key),
        **as_json("value", message.value),
        "headers": [{"name": name, **as_json("value", value)} for name, value in letter.headers],
    }
