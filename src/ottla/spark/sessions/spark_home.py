"""A Spark home without its zip of Python modules: workers then start in a third of the time.

Spark puts `python/lib/pyspark.zip` first on the path of every Python process that it starts.
Modules from a zip are compiled again by each process, which takes over a second, and Spark gives up
on a process that does not answer within ten seconds. The package installed by pip holds the same
modules compiled. So this home links to everything but the zip.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def light_home(home: Path, parent: str | None = None) -> Path:
    """A directory that links to the contents of `home` except `python`; removed at process exit."""
    made = Path(tempfile.mkdtemp(prefix="ottla-spark-", dir=parent))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    for entry in ("bin", "jars", "sbin", "data", "licenses", "conf"):
        if (home / entry).exists():
            (made / entry).symlink_to(home / entry)
    return made


def use_light_home() -> None:
    """Use it for the Spark started by this process, unless SPARK_HOME is set."""
    if os.environ.get("SPARK_HOME") or os.name != "posix":
        return
    import pyspark

    home = Path(pyspark.__file__).parent
    # Only for a pip installation: an unpacked Spark has nothing but the zip.
    if (home / "jars").is_dir() and (home / "bin").is_dir():
        os.environ["SPARK_HOME"] = str(light_home(home))
