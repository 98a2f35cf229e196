"""CRC-32C with the processor's instruction: only the extension module of the `crc32c` package.

The package itself looks up its version on import; the modules needed for that (zipfile, email)
would take a sixth of a broker's start time.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Final

Buffer = bytes | bytearray | memoryview


def _extension() -> Callable[[Buffer], int]:
    package = find_spec("crc32c")
    assert package is not None, "crc32c is a dependency"
    found = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    assert found is not None, "crc32c has its extension"
    assert found.loader is not None, "an extension has a loader"
    module = module_from_spec(found)
    found.loader.exec_module(module)
    checksum: Callable[[Buffer], int] = module.crc32c
    return checksum


crc32c: Final = _extension()
