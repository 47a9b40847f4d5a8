"""Rate limits: tiers per method and workspace, and one post a second in a channel."""

from __future__ import annotations

import math
from collections import defaultdict, deque

from tests.fakes.loopback.clock import Clock

TIER_1, TIER_2, TIER_3, TIER_4, SPECIAL = 1, 20, 50, 100, 600
WORKSPACE_POSTS = 300  # "several hundred messages a minute"

PER_MINUTE = {
    "apps.connections.open": TIER_2,
    "assistant.threads.setStatus": SPECIAL,
    "auth.test": SPECIAL,
    "chat.appendStream": TIER_4,
    "chat.postEphemeral": TIER_4,
    "chat.postMessage": WORKSPACE_POSTS,
    "chat.startStream": TIER_2,
    "chat.stopStream": TIER_2,
    "files.completeUploadExternal": TIER_4,
    "files.getUploadURLExternal": TIER_4,
    "views.publish": TIER_4,
}  # whatever is not here is of tier 3


class RateLimits:
    """Counts calls in a sliding window. `window` seconds hold their share of what a minute may hold."""

    def __init__(self, clock: Clock) -> None:
        self.enabled = True
        self.per_minute = dict(PER_MINUTE)
        self.window = 60.0
        self.post_interval = 1.0
        self._clock = clock
        self._calls: dict[tuple[str, str], deque[float]] = defaultdict(deque)
        self._posts: dict[tuple[str, str], float] = {}

    def check(self, method: str, team: str, channel: str) -> int | None:
        """Count the call, or return the whole seconds after which to try again."""
        if not self.enabled:
            return None
        wait = max(self._wait_for_tier(method, team), self._wait_for_channel(method, team, channel))
        if wait > 0:
            return math.ceil(wait)
        self._calls[method, team].append(self._clock.now())
        if method == "chat.postMessage":
            self._posts[team, channel] = self._clock.now()
        return None

    def _wait_for_tier(self, method: str, team: str) -> float:
        now, calls = self._clock.now(), self._calls[method, team]
        while calls and calls[0] <= now - self.window:
            calls.popleft()
        allowed = max(1, round(self.per_minute.get(method, TIER_3) * self.window / 60))
        return calls[-allowed] + self.window - now if len(calls) >= allowed else 0

    def _wait_for_channel(self, method: str, team: str, channel: str) -> float:
        last = self._posts.get((team, channel))
        if method != "chat.postMessage" or last is None:
            return 0
        return last + self.post_interval - self._clock.now()
