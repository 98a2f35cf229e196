import subprocess
import sys

import crc32c as package

from ottla.records.checksum import crc32c


def test_it_is_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(bytearray(b"123456789"))) == package.crc32c(b"123456789")


def test_it_does_not_load_what_a_broker_has_no_use_for() -> None:
    code = "import sys, ottla.records.checksum; print('importlib.metadata' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
