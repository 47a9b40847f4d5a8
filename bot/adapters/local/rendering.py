"""Turns messages into HTML: Markdown with every tag as text, and links to code as parts of the page."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from cachetools import LRUCache
from markupsafe import Markup

from bot.adapters.local.workspace import BOT, GIT, StoredMessage, Workspace
from bot.messages import Button, MessageContent
from bot.surfaces.ask_events import CitedPlace
from bot.surfaces.web.answer_markup import AnswerMarkup, MarkLink
from bot.surfaces.web.cited_code import CodeHighlighter

_MAX_WRITTEN = 4_000_000  # characters of HTML that are kept
HOST = "code.localhost"  # a name that can lead nowhere but to this machine; the page opens such links itself
_PATH = re.compile(
    r"/(?P<name>[^/]+)/(?:blob/(?P<commit>[0-9a-f]{7,64})/(?P<path>.+)|commit/(?P<whole>[0-9a-f]{7,64}))"
)
_LINES = re.compile(r"L(?P<first>\d{1,9})(?:-L(?P<last>\d{1,9}))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownMessage:
    """A message as the page shows it."""

    message: StoredMessage
    author: str
    text: Markup
    status: Markup | str = ""
    footer: Markup | str = ""

    @property
    def is_by_bot(self) -> bool:
        """Whether citebot wrote it."""
        return self.message.author == BOT

    @property
    def is_event(self) -> bool:
        """Whether it reports an event, and has no author."""
        return self.message.author == GIT

    @property
    def is_finished(self) -> bool:
        """Whether citebot has finished it."""
        content = self.message.content
        return content is not None and not content.status

    @property
    def buttons(self) -> Sequence[tuple[int, Button]]:
        """The buttons under it, with their numbers."""
        return [*enumerate(self.message.content.buttons)] if self.message.content is not None else []


class MessageRendering:
    """Writes messages as HTML, outside the event loop; caches the result."""

    def __init__(self, workspace: Workspace, highlighter: CodeHighlighter) -> None:
        self._workspace = workspace
        self._highlighter = highlighter
        self._markup = AnswerMarkup()
        self._known: LRUCache[tuple[int, int], ShownMessage] = LRUCache(
            _MAX_WRITTEN, getsizeof=lambda shown: len(shown.text) + 1_000
        )

    async def show(self, message: StoredMessage) -> ShownMessage:
        """Return a message as the page shows it."""
        key = message.id, message.version
        shown = self._known.get(key)
        if shown is None or shown.message.replies != message.replies:
            shown = await self._write(message)
            if len(shown.text) < _MAX_WRITTEN:
                self._known[key] = shown
        return shown

    async def list_places(self, message: StoredMessage) -> Sequence[CitedPlace]:
        """List the places in the code behind a message's links, in order."""
        return [place for _, place in await asyncio.to_thread(self._find_places, message)]

    async def _write(self, message: StoredMessage) -> ShownMessage:
        content = message.content
        person = self._workspace.people.get(message.author)
        places = await asyncio.to_thread(self._find_places, message)
        links = {
            address: MarkLink(href=f"/messages/{message.id}/code/{number}", label=f"Show {describe_link(place)}")
            for number, (address, place) in enumerate(places, 1)
        }
        done = content.text if content is not None and not content.status else ""
        code = await self._highlighter.highlight_fences(self._markup, done)

        def write(text: str) -> Markup:
            return self._markup.write(text, code=code, links=links)

        name = person.name if person is not None else message.author
        if content is None:
            return ShownMessage(message=message, author=name, text=await asyncio.to_thread(write, message.text))
        status = "\n\n".join(filter(None, (content.status, _format_found(content))))
        texts = (content.text, status, content.footer)
        text, below, footer = await asyncio.to_thread(lambda: [*map(write, texts)])
        return ShownMessage(message=message, author=name, text=text, status=below, footer=footer)

    def _find_places(self, message: StoredMessage) -> list[tuple[str, CitedPlace]]:
        content = message.content
        if content is None:
            return []
        texts = (content.text, content.footer, _format_found(content))
        addresses = [address for text in texts for address in self._markup.find_links(text)]
        places = {address: read_link(address) for address in addresses}
        return [(address, place) for address, place in places.items() if place is not None]


def _format_found(content: MessageContent) -> str:
    """Write the first places found as one line."""
    places = [f"[`{place.name}`]({place.url})" if place.url else f"`{place.name}`" for place in content.found]
    return f"Found {', '.join(places)}" if places else ""


def describe_link(place: CitedPlace) -> str:
    """Name the place of a link to anyone who cannot see it."""
    lines = f":{place.first_line}-{place.last_line}" if place.last_line > place.first_line else f":{place.first_line}"
    return f"{place.path}{lines if place.first_line else ''}" if place.path else f"commit {place.commit[:12]}"


def make_web_url(repository: str) -> str:
    """Return the address that links to the code of a repository begin with."""
    return f"http://{HOST}/{repository}"


def read_link(address: str) -> CitedPlace | None:
    """Read a link to lines of code; None for any other link."""
    parts = urlsplit(address)
    found = _PATH.fullmatch(parts.path) if parts.netloc == HOST else None
    if found is None:
        return None
    lines = _LINES.fullmatch(parts.fragment)
    first = int(lines["first"]) if lines else 0
    return CitedPlace(
        mark=0,
        repository=unquote(found["name"]),
        commit=found["commit"] or found["whole"],
        path=unquote(found["path"] or ""),
        first_line=first,
        last_line=int(lines["last"] or first) if lines else first,
    )
