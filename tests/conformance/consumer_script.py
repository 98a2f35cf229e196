"""A consumer process for tests: notes in a file what it handles, one line each.

    python consumer_script.py BOOTSTRAP TOPIC GROUP FILE SECONDS_PER_RECORD [OPTION=VALUE]...

A line is `begin|end TIME PID PARTITION OFFSET`, written in one call before and after the work.
"""

import json
import os
import sys
import time

from ottla.consumer import Record, consume


def main() -> None:
    bootstrap, topic, group, path, seconds, *options = sys.argv[1:]
    notes = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(word: str, record: Record) -> None:
        line = f"{word} {time.monotonic()} {os.getpid()} {record.partition} {record.offset}\n"
        os.write(notes, line.encode())

    def handle(record: Record) -> None:
        note("begin", record)
        time.sleep(float(seconds))
        note("end", record)

    config = {name: json.loads(value) for name, value in (item.split("=", 1) for item in options)}
    consume(topic, handle, group=group, bootstrap_servers=bootstrap, **config)


if __name__ == "__main__":
    main()
