"""Rate limits: a bucket per kind of call and place, fifty calls a second in all, and a ban after too many refusals."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from tests.fakes.discord.requests import Endpoint
from tests.fakes.loopback.clock import Clock
from tests.fakes.loopback.wire import JSON

# How many calls in how many seconds; whatever is not here may be called as often as all together.
RATES = {
    "create_message": (5, 5.0),
    "edit_message": (5, 5.0),
    "delete_message": (5, 1.0),
    "create_reaction": (1, 0.25),
    "delete_own_reaction": (1, 0.25),
    "trigger_typing_indicator": (5, 5.0),
    "modify_channel": (5, 5.0),
    "create_followup_message": (5, 2.0),
    "edit_original_interaction_response": (5, 2.0),
    "edit_followup_message": (5, 2.0),
}
GLOBAL = (50, 1.0)
MAX_INVALID, INVALID_WINDOW = 10_000, 600.0


@dataclass(kw_only=True, slots=True)
class Bucket:
    """The calls of one kind in one place since `opened`."""

    key: str
    limit: int
    window: float
    opened: float
    used: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a call passes, and the headers that tell how the bucket stands; `wait` is for a call that must."""

    headers: Mapping[str, str]
    wait: float | None = None
    is_global: bool = False

    @property
    def body(self) -> JSON:
        """What a call is told that must wait."""
        wait = round(self.wait or 0, 3)
        return {"message": "You are being rate limited.", "retry_after": wait, "global": self.is_global}


class RateLimits:
    """Counts calls. `pace` divides all windows, for tests that have no time; `enabled` turns the refusals off.

    The windows pass by the fake's clock, but discord.py sleeps in real time: with a frozen clock, turn them off.
    """

    def __init__(self, clock: Clock) -> None:
        self.enabled = True
        self.pace = 1.0
        self.rates = dict(RATES)
        self.most_invalid = MAX_INVALID
        self._clock = clock
        self._buckets: dict[tuple[str, ...], Bucket] = {}
        self._lately: deque[float] = deque()
        self._invalid: deque[float] = deque()

    @property
    def banned(self) -> bool:
        """Whether Cloudflare lets nothing more through."""
        while self._invalid and self._invalid[0] <= self._clock.now() - INVALID_WINDOW:
            self._invalid.popleft()
        return len(self._invalid) >= self.most_invalid

    def count_invalid(self) -> None:
        """Remember a refusal of the kind that leads to a ban."""
        self._invalid.append(self._clock.now())

    def check(self, endpoint: Endpoint, args: Mapping[str, str]) -> Verdict:
        """Count a call, or tell how long it must wait."""
        bucket = self._bucket(endpoint, args)
        if not self.enabled:
            return Verdict(headers=self._headers(bucket))
        if not endpoint.open and (wait := self._global_wait()) > 0:
            scope = {"X-RateLimit-Global": "true", "X-RateLimit-Scope": "global", "Retry-After": str(math.ceil(wait))}
            return Verdict(headers=scope, wait=wait, is_global=True)
        if bucket.used >= bucket.limit:
            wait = bucket.opened + bucket.window - self._clock.now()
            scope = {"X-RateLimit-Scope": "user", "Retry-After": str(math.ceil(wait))}
            return Verdict(headers=self._headers(bucket) | scope, wait=wait)
        bucket.used += 1
        self._lately.append(self._clock.now())
        return Verdict(headers=self._headers(bucket))

    def _bucket(self, endpoint: Endpoint, args: Mapping[str, str]) -> Bucket:
        place = tuple(args[name] for name in endpoint.major)
        limit, window = self.rates.get(endpoint.name, GLOBAL)
        now, bucket = self._clock.now(), self._buckets.get((endpoint.name, *place))
        if bucket is None or bucket.opened + bucket.window <= now:
            key = hashlib.sha256(endpoint.name.encode()).hexdigest()[:16]
            bucket = Bucket(key=key, limit=limit, window=window / self.pace, opened=now)
            self._buckets[endpoint.name, *place] = bucket
        return bucket

    def _global_wait(self) -> float:
        most, window = GLOBAL
        now = self._clock.now()
        while self._lately and self._lately[0] <= now - window / self.pace:
            self._lately.popleft()
        return self._lately[0] + window / self.pace - now if len(self._lately) >= most else 0

    def _headers(self, bucket: Bucket) -> dict[str, str]:
        remaining = bucket.limit - bucket.used if self.enabled else bucket.limit
        after = max(0.0, bucket.opened + bucket.window - self._clock.now())
        return {
            "X-RateLimit-Limit": str(bucket.limit),
            "X-RateLimit-Remaining": str(remaining),
            "X-RateLimit-Reset": f"{self._clock.now() + after:.3f}",
            "X-RateLimit-Reset-After": f"{after:.3f}",
            "X-RateLimit-Bucket": bucket.key,
        }
