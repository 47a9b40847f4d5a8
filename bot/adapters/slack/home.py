"""The app's Home tab: the repositories and how up to date they are, and questions to start with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.access import AccessPolicy
from bot.adapters.slack.rendering import Block, to_mrkdwn
from bot.clock import Clock
from bot.conversations.commands import format_help
from bot.messages import IncomingMessage, Place
from bot.ports import Repositories
from bot.questions.descriptions import describe_freshness
from indexer import IndexerError

MOST_SHOWN = 40
PROMPTS: Sequence[Mapping[str, str]] = (
    {"title": "Where is something done?", "message": "Where are settings read?"},
    {"title": "Who calls it?", "message": "Who calls the main entry point?"},
    {"title": "What is indexed?", "message": "status"},
    {"title": "What can I ask?", "message": "help"},
)
_ASK = "Mention me in a channel, or write to me here. Every claim links to the exact lines and commit it came from."


class HomeTab:
    """Writes the Home tab for one person: it lists the repositories that they may ask about in a DM."""

    def __init__(self, repositories: Repositories, access: AccessPolicy, clock: Clock) -> None:
        self._repositories = repositories
        self._access = access
        self._clock = clock

    async def view(self, place: Place, person: str, *, external: bool) -> Mapping[str, Any]:
        """Return the view."""
        asking = IncomingMessage(
            place=place, id="home", author=person, text="", kind="direct", sent_at=self._clock.now(), private=True
        )
        names = [] if external else self._access.list_visible(asking, self._repositories.list_names())
        lines = [await self._describe_repository(name) for name in names]
        shown = [_make_section(to_mrkdwn(line)) for line in lines[:MOST_SHOWN]]
        if len(lines) > MOST_SHOWN:
            shown.append(_make_section(f"… and {len(lines) - MOST_SHOWN} more; send me `repos`."))
        none = _make_section("There are no repositories that you may ask about.")
        blocks = [
            {"type": "header", "text": {"type": "plain_text", "text": "Repositories"}},
            *(shown or [none]),
            {"type": "divider"},
            _make_section(_ASK),
        ]
        return {"type": "home", "blocks": [*blocks, {"type": "markdown", "text": format_help(several=len(names) > 1)}]}

    async def _describe_repository(self, name: str) -> str:
        try:
            return describe_freshness(await self._repositories.status(name), self._clock.now())
        except IndexerError as error:
            return f"{name}: {error}"


def _make_section(words: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": words[:3000]}}
