"""How much is tried: `pytest --hypothesis-profile=thorough` puts some ten thousand texts through the pure functions."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("quick", deadline=None)
settings.register_profile("thorough", max_examples=1_000, deadline=None)
settings.load_profile("quick")
