"""The compose file of docs/cluster.md starts what that page says, with commands that there are."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

from bot.cli.main import cli
from bot.settings import list_variable_names

COMPOSE = Path(__file__).parents[3] / "docs" / "compose.yaml"
OTHERS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT", "AWS_ALLOW_HTTP"}


@pytest.fixture
def services() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    return found


def test_every_command_is_one_of_ours(services: Mapping[str, Any]) -> None:
    ours = [each for each in services.values() if each.get("image") == "citebot-cluster"]
    for command in (each["command"] for each in ours):
        assert CliRunner().invoke(cli, [*command, "--help"]).exit_code == 0
    given = {name for each in ours for name in each["environment"]}
    assert given - OTHERS <= set(list_variable_names())


def test_the_image_has_what_the_extra_names() -> None:
    extra = tomllib.loads((COMPOSE.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    image = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["x-citebot"]["build"]["dockerfile_inline"]
    assert [each for each in extra["cluster"] if f"'{each}'" not in image] == []
