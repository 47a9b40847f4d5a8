"""Nothing gets out of a sandbox that gets out without one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from agent.sandbox.sandbox import Sandbox, SandboxLimits
from tests.agent.sandbox.attempts import ATTEMPTS, make_round, read_round
from tests.agent.sandbox.surroundings import Surroundings

LIMITS = SandboxLimits(seconds=120, processes=64)


@pytest.fixture(scope="package")
def outside(surroundings: Surroundings) -> Mapping[str, str]:
    """What each attempt says without a sandbox."""
    tree = surroundings.make_working_copy()
    said = read_round(surroundings.run_command_outside(make_round(surroundings.argument), tree))
    surroundings.take_planted()
    return said


@pytest.fixture(scope="package")
def inside(sandbox: Sandbox, surroundings: Surroundings, outside: Mapping[str, str]) -> Mapping[str, str]:
    """What each attempt says in a sandbox, out of which nothing is planted."""
    tree = surroundings.make_working_copy()
    result = asyncio.run(sandbox.run(make_round(surroundings.argument), tree, LIMITS))
    assert (result.ending, result.exit_code) == ("exited", 0), result.stderr.text
    assert surroundings.take_planted() == []
    return read_round(result.stdout.text)


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.exhaustive
def test_an_attempt_that_succeeds_outside_fails_in_the_sandbox(
    inside: Mapping[str, str], outside: Mapping[str, str], name: str
) -> None:
    if "OUT" not in outside[name].split():
        pytest.skip(f"it does not succeed on this machine without a sandbox either: {outside[name][-200:]}")

    assert "OUT" not in inside[name].split(), inside[name]
