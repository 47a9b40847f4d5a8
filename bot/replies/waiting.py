"""Describes a run's progress until the first word of its answer: the stage, and the first places it found."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from agent import AgentEvent, Citation
from bot.markdown.formatting import format_cited_place, to_one_line
from bot.markdown.safety import break_pings
from bot.messages import PlaceLink
from bot.replies.citation_links import find_chat_link

MOST_PLACES = 3
LONGEST_TARGET = 100
LONGEST_NAME = 80
LONGEST_ADDRESS = 500  # a longer one would leave little room in a message


def describe_stage(event: AgentEvent) -> str:
    """Describe the stage that an event begins, with its tool and arguments; empty if it begins none."""
    payload = event.payload
    if event.kind == "tool_start":
        target = to_one_line(str(payload["shown"])).replace("`", "") or str(payload["tool"])
        return f"{payload['label']} `{target[:LONGEST_TARGET]}`"
    return to_one_line(str(payload["stage"])) if event.kind == "step_start" else ""


class FoundPlaces:
    """The first places that a run has found, as citations; what is found later does not take their place."""

    def __init__(self) -> None:
        self.citations: Sequence[Citation] = ()

    def take(self, event: AgentEvent) -> None:
        """Add the places of an event, while there is room."""
        if event.kind != "evidence":
            return
        known = {(one.path, one.start_line, one.end_line): one for one in self.citations}
        for at, url in zip(event.payload["locations"], event.payload["urls"], strict=True):
            cited = Citation(
                mark=len(known) + 1, path=at.path, start_line=at.start_line, end_line=at.end_line, commit="", url=url
            )
            known.setdefault((at.path, at.start_line, at.end_line), cited)
        self.citations = tuple(known.values())[:MOST_PLACES]

    def make_links(self, hosts: Collection[str]) -> tuple[PlaceLink, ...]:
        """Return the places as they are linked in a chat, to the given hosts alone."""
        return tuple(_make_link(citation, hosts) for citation in self.citations)


def _make_link(citation: Citation, hosts: Collection[str]) -> PlaceLink:
    name = break_pings(to_one_line(format_cited_place(citation)).replace("`", "'"))
    shown = name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"  # the file says more than its folder
    url = find_chat_link(citation, hosts)
    return PlaceLink(name=shown, url=url if len(url) <= LONGEST_ADDRESS else "")
