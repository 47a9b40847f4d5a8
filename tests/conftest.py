"""The number of texts of a property, and what all tests have around them.

A run tries the same few texts each time; `make fuzz` tries others, as many as CITEBOT_FUZZ_EXAMPLES says.
`pytest --hypothesis-profile=thorough` puts some ten thousand texts through the pure functions.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.fakes.gemini import FakeGemini, running_gemini
from tests.forks import ForkServer, open_fork_server

pytest_plugins = ("tests.leftovers", "tests.selection")

FUZZ_VARIABLE = "CITEBOT_FUZZ_EXAMPLES"

settings.register_profile("quick", max_examples=40, deadline=None, derandomize=True, database=None)
settings.register_profile("thorough", max_examples=1_000, deadline=None)
settings.register_profile("fuzz", max_examples=int(os.environ.get(FUZZ_VARIABLE) or 1), deadline=None, print_blob=True)
settings.load_profile("fuzz" if os.environ.get(FUZZ_VARIABLE) else "quick")


@pytest.fixture(scope="session", autouse=True)
def _restricted_umask() -> Iterator[None]:
    """What commands do that are called within this process, they do as the program does."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture(scope="session", autouse=True)
def _heard_interrupts() -> Iterator[None]:
    """Programs that are started here hear Ctrl-C, even where the tests themselves were started in the background."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def forks(_restricted_umask: None, _heard_interrupts: None) -> Iterator[ForkServer]:
    """Start processes that need not import citebot."""
    with open_fork_server() as server:
        yield server


@pytest.fixture
def gemini() -> Iterator[FakeGemini]:
    """A Gemini that answers as the test scripts it."""
    with running_gemini() as fake:
        yield fake


def pytest_sessionfinish() -> None:
    if "tests.fakes.postgres" in sys.modules:
        from tests.fakes.postgres import drop_prepared_databases

        drop_prepared_databases()
