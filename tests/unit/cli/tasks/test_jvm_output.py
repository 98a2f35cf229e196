import os
import subprocess
import threading

from ottla.cli.tasks.jvm_output import STDERR, JvmOutput


def test_lines_of_a_process_are_passed_on_until_it_ends() -> None:
    output = JvmOutput()
    lines: list[str] = []
    has_both = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            has_both.set()

    output.write = write
    before = os.fstat(STDERR)
    with output.captured():
        process = subprocess.Popen(
            ["sh", "-c", "echo one >&2; read line; echo $line >&2"],
            stdin=subprocess.PIPE,
            text=True,
        )
    assert os.path.samestat(os.fstat(STDERR), before), "this process has its own back"
    process.communicate("two\n", timeout=30)
    assert has_both.wait(30)
    assert lines == ["one", "two"]
