"""Keeps the settings of whoever runs the tests out of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("CITEBOT_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CITEBOT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
