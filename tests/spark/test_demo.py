"""The worked example, in short: every sum agrees."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import need_java

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.own_jvm
@pytest.mark.timeout(400)
def test_the_shop_runs_and_its_sums_agree(tmp_path: Path) -> None:
    need_java()
    done = subprocess.run(
        [sys.executable, "-m", "examples.shop", "--seconds", "8", "--directory", tmp_path / "shop"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=380,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all sums agree" in done.stdout
    assert "DIFFERS" not in done.stdout
    assert (tmp_path / "shop" / "shop.png").stat().st_size > 10_000
