"""A member of a group as a process: notes what it is given, what it handles, what it gives back.

    python group_member.py BOOTSTRAP TOPIC GROUP FILE STRATEGY

A note is one line, appended in one call, so that it outlives a kill: `WORD TIME PID PARTITION
OFFSET`. It handles one record at a time, commits what it has handled, and gives a partition back
only after that.
"""

import os
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

COMMIT_SECONDS = 0.1
NEW_PROTOCOL = "consumer"


class Member:
    def __init__(self, bootstrap: str, topic: str, group: str, path: str, strategy: str) -> None:
        self._notes = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        config: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "error",  # The group begins with offsets, and may never lose them.
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
        if strategy == NEW_PROTOCOL:
            config["group.protocol"] = NEW_PROTOCOL
        else:
            config["partition.assignment.strategy"] = strategy
            config |= {"session.timeout.ms": 2000, "heartbeat.interval.ms": 200}
        self._handled: dict[int, int] = {}  # By partition: the offset to go on with.
        self._consumer = Consumer(config)
        self._consumer.subscribe(
            [topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
        )
        self._topic = topic

    def run(self) -> None:
        due = time.monotonic()
        while True:
            message = self._consumer.poll(0.05)
            if message is not None:
                self._handle(message)
            if time.monotonic() >= due:
                self._commit()
                due = time.monotonic() + COMMIT_SECONDS

    def _handle(self, message: Message) -> None:
        partition, error = message.partition(), message.error()
        if error is None:
            self._note("handled", partition, message.offset())
            self._handled[partition] = message.offset() + 1
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._note("astray", partition, -1)

    def _commit(self) -> None:
        asked = dict(self._handled)
        if not asked:
            return
        at = time.monotonic()
        offsets = [TopicPartition(self._topic, *position) for position in asked.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException:
            return  # The group has changed, or the broker is away: they are handled again.
        for partition, offset in asked.items():
            self._note("committed", partition, offset, at)

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._note("assigned", one.partition, -1)

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        self._drop("revoked", partitions)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._drop("lost", partitions)

    def _drop(self, word: str, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._handled.pop(one.partition, None)
            self._note(word, one.partition, -1)

    def _note(self, word: str, partition: int, offset: int, at: float | None = None) -> None:
        moment = time.monotonic() if at is None else at
        os.write(self._notes, f"{word} {moment} {os.getpid()} {partition} {offset}\n".encode())


if __name__ == "__main__":
    Member(*sys.argv[1:]).run()
