"""Every mechanism of the sandbox, for the contract that each has to keep, and what surrounds it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator

import pytest

from agent.sandbox.bubblewrap import Bubblewrap
from agent.sandbox.environment import PythonEnvironment
from agent.sandbox.landlock import Landlock
from agent.sandbox.sandbox import Sandbox, StartProgram
from agent.sandbox.trials import try_sandbox
from indexer.subprocesses import start_confined_async
from tests.agent.sandbox.surroundings import SYSTEM_PATH, Surroundings, open_surroundings

MECHANISMS: dict[str, Callable[[StartProgram, PythonEnvironment], Sandbox]] = {
    "bubblewrap": Bubblewrap,
    "landlock": Landlock,
}


@pytest.fixture(scope="package")
def surroundings() -> Iterator[Surroundings]:
    if shutil.which("python3", path=SYSTEM_PATH) is None:
        pytest.skip(f"there is no python3 in {SYSTEM_PATH} to attempt anything with")
    with open_surroundings() as found:
        yield found


@pytest.fixture(scope="package", params=MECHANISMS)
def sandbox(request: pytest.FixtureRequest, surroundings: Surroundings) -> Sandbox:
    """A mechanism that holds on this machine; skips with the reason where it does not."""
    trial = asyncio.run(
        try_sandbox(MECHANISMS[request.param](start_confined_async, PythonEnvironment()), surroundings.root)
    )
    if trial.problem:
        pytest.skip(f"{request.param} cannot be used here: {trial.problem} {trial.advice}")
    return trial.sandbox
