"""CRC-32C, by the processor's own instruction: the extension of the `crc32c` package alone.

The package around it looks up its version when it is imported, and what that needs (zip files,
mail headers) takes a sixth of a broker's start.
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
