"""Every mechanism of the sandbox, for the contract that each has to keep, and what surrounds it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from agent.sandbox.boxes import Bubblewrap, Landlock, PythonEnvironment
from agent.sandbox.sandbox import Sandbox
from indexer.subprocesses import start_confined_async
from tests.agent.sandbox.surroundings import SYSTEM_PATH, Surroundings, open_surroundings
from tests.needs import name_params

MECHANISMS: dict[str, Callable[..., Sandbox]] = {
    "bubblewrap": Bubblewrap,
    "landlock": Landlock,
}


@pytest.fixture(scope="package")
def surroundings() -> Iterator[Surroundings]:
    if shutil.which("python3", path=SYSTEM_PATH) is None:
        pytest.skip(f"there is no python3 in {SYSTEM_PATH} to attempt anything with")
    with open_surroundings() as found:
        yield found


@pytest.fixture(scope="package", params=name_params(MECHANISMS))
def sandbox(request: pytest.FixtureRequest, surroundings: Surroundings) -> Sandbox:
    """A mechanism that holds on this machine."""
    return MECHANISMS[request.param](start_confined_async, PythonEnvironment())
