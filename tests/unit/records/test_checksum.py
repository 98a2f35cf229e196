import subprocess
import sys

import crc32c as package

from ottla.records.checksum import crc32c


def test_checksum_is_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(bytearray(b"123456789"))) == package.crc32c(b"123456789")


def test_checksum_does_not_import_package_metadata() -> None:
    code = "import sys, ottla.records.checksum; print('importlib.metadata' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
