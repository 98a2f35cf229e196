"""`ottla up --brokers N` on a directory that an earlier start left behind."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OTTLA = [sys.executable, "-m", "ottla.cli.main"]


@contextmanager
def up(data: Path, *options: str) -> Iterator[list[str]]:
    """The addresses of the brokers, once all of them serve; ends with Ctrl-C."""
    process = subprocess.Popen(
        [*OTTLA, "up", "--data", str(data), *options], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        addresses = re.findall(r"127\.0\.0\.1:\d+", line)
        assert addresses, f"no banner: {line!r}"
        yield addresses
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def ottla(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*OTTLA, *arguments], input=text, capture_output=True, text=True, timeout=60, check=False
    )


def test_cluster_of_three_grows_to_four_keeps_its_records_and_is_not_shrunk(
    tmp_path: Path,
) -> None:
    with up(tmp_path, "--brokers", "3", "--port", "0") as three:
        assert len(three) == 3
        wrote = ottla("produce", "-b", three[0], "greetings", text="hello\n")
        assert wrote.returncode == 0, wrote.stderr
    with up(tmp_path, "--brokers", "4") as four:
        assert four[:3] == three
        assert len(set(four)) == 4
        read = ottla("consume", "-b", four[3], "greetings", "--from-beginning", "-n", "1")
        assert read.stdout == "hello\n", read.stderr
    fewer = ottla("up", "--data", str(tmp_path), "--brokers", "3")
    assert fewer.returncode != 0
    assert "ottla brokers drain 4 --wait" in fewer.stderr
    moved = ottla("up", "--data", str(tmp_path), "--port", "19092")
    assert moved.returncode != 0
    assert "Leave --port out" in moved.stderr
