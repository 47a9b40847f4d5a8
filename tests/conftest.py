"""How much is tried: a hundred texts for each property, or as many as CITEBOT_FUZZ_EXAMPLES says (`make fuzz`).

`pytest --hypothesis-profile=thorough` puts some ten thousand texts through the pure functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

FUZZ_VARIABLE = "CITEBOT_FUZZ_EXAMPLES"

settings.register_profile("quick", deadline=None)
settings.register_profile("thorough", max_examples=1_000, deadline=None)
settings.register_profile("fuzz", max_examples=int(os.environ.get(FUZZ_VARIABLE) or 1), deadline=None, print_blob=True)
settings.load_profile("fuzz" if os.environ.get(FUZZ_VARIABLE) else "quick")


@pytest.fixture(scope="session", autouse=True)
def _restricted_umask() -> Iterator[None]:
    """What commands do that are called within this process, they do as the program does."""
    before = os.umask(0o077)
    yield
    os.umask(before)
