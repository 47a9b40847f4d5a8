"""The compose file of docs/cluster.md starts what that page says, with commands that there are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

from bot.cli.main import cli
from bot.settings import list_variable_names

VERSION = re.compile(r"\$\{[A-Z_]+:-[\w/.-]+:(?:\d+\.\d[\w.-]*|RELEASE\.[\dTZ-]+)\}")
COMPOSE = Path(__file__).parents[3] / "docs" / "compose.yaml"
OTHERS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT", "AWS_ALLOW_HTTP"}


@pytest.fixture
def services() -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    return found


def test_every_command_is_one_of_ours(services: Mapping[str, Any]) -> None:
    ours = [each for each in services.values() if each["image"] == "citebot-cluster"]
    for command in (each["command"] for each in ours):
        assert CliRunner().invoke(cli, [*command, "--help"]).exit_code == 0
    given = {name for each in ours for name in each["environment"]}
    assert given - OTHERS <= set(list_variable_names())


def test_every_image_is_named_by_a_version_and_nothing_runs_as_root(services: Mapping[str, Any]) -> None:
    foreign = [each["image"] for each in services.values() if "citebot" not in each["image"]]
    assert [image for image in foreign if not VERSION.fullmatch(image)] == []
    users = {each.get("user") for each in services.values()}
    assert users == {"10001:10001", "postgres"}
    assert all(each["cap_drop"] == ["ALL"] for each in services.values())


def test_ports_are_on_loopback_and_the_api_has_one(services: Mapping[str, Any]) -> None:
    ports = {name: each["ports"] for name, each in services.items() if "ports" in each}
    assert all(port.startswith("127.0.0.1:") for listed in ports.values() for port in listed)
    assert {"front-1", "front-2", "answer-1", "answer-2"} == ports.keys()
