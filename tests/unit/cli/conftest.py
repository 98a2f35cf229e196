"""The tools never see the profiles and variables of whoever runs the tests."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("OTTLA_BOOTSTRAP", "OTTLA_PROFILE"):
        monkeypatch.delenv(name, raising=False)
