"""kcat, where it is installed."""

import shutil
import subprocess

import pytest

KCAT = shutil.which("kcat") or shutil.which("kafkacat")

pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed.")


def kcat(bootstrap: str, *arguments: str, text: str = "") -> str:
    return subprocess.run(
        [str(KCAT), "-b", bootstrap, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout


def test_kcat_produces_consumes_lists_and_queries(bootstrap: str, topic: str) -> None:
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-K:", text="k1:one\nk2:two\n")
    read = kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-K:")
    assert read == "k1:one\nk2:two\n"
    assert f'topic "{topic}" with 1 partitions' in kcat(bootstrap, "-L", "-t", topic)
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 2"
