import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.spark.sessions.spark_home import light_home, use_light_home


def test_a_light_home_is_all_but_the_zip(tmp_path: Path) -> None:
    home, parent = tmp_path / "home", tmp_path / "parent"
    for name in ("bin", "jars", "python/lib"):
        (home / name).mkdir(parents=True)
    (home / "jars/spark.jar").touch()
    parent.mkdir()
    made = light_home(home, str(parent))
    assert (made / "jars/spark.jar").exists()
    assert (made / "bin").is_dir()
    assert not (made / "python").exists()


def test_a_chosen_spark_home_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    use_light_home()
    assert os.environ["SPARK_HOME"] == "/opt/spark"


def test_it_is_gone_when_the_process_ends() -> None:
    code = (
        "import os; from ottla.spark.sessions.spark_home import use_light_home; use_light_home();"
        "home = os.environ['SPARK_HOME']; assert os.path.exists(home + '/jars'); print(home)"
    )
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert not Path(done.stdout.strip()).exists()
