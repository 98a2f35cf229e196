"""Spark's home without its zip of Python: its workers then start in a third of the time.

Spark puts `python/lib/pyspark.zip` first on the path of every Python process that it starts. What
is imported from a zip is compiled anew by each of them, over a second of it, and Spark gives up on
a process that does not answer within ten seconds. The package that pip installed holds the same
modules compiled. So a home is made of links to everything but the zip.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def light_home(home: Path, parent: str | None = None) -> Path:
    """A directory that is `home`, but for its `python`; it is removed when this process ends."""
    made = Path(tempfile.mkdtemp(prefix="ottla-spark-", dir=parent))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    for entry in ("bin", "jars", "sbin", "data", "licenses", "conf"):
        if (home / entry).exists():
            (made / entry).symlink_to(home / entry)
    return made


def use_light_home() -> None:
    """For the Spark that this process starts, unless somebody chose a home."""
    if os.environ.get("SPARK_HOME") or os.name != "posix":
        return
    import pyspark

    home = Path(pyspark.__file__).parent
    # Only what pip installed: a Spark that was unpacked has nothing but the zip.
    if (home / "jars").is_dir() and (home / "bin").is_dir():
        os.environ["SPARK_HOME"] = str(light_home(home))
