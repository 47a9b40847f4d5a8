"""An answer while it is written, as the content of a reply, with its marks linked to their lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agent import AgentEvent, Answer, Citation, describe_meanings
from agent.text.citation_markers import find_markers, format_marker, replace_markers
from bot.markdown.formatting import (
    break_pings,
    find_link_target,
    format_cited_place,
    is_allowed_link,
    neutralize,
    to_one_line,
)
from bot.messages import Button, ButtonAction, MessageContent, PlaceLink

MAX_PLACES = 3
LONGEST_TARGET = 100
LONGEST_NAME = 80
LONGEST_ADDRESS = 500  # a longer one would leave little room in a message
LONGEST_REPEATS = 1_500  # characters of links on marks that have one already: they count in every message


def describe_stage(event: AgentEvent) -> str:
    """Describe the stage of an event, with its tool and arguments; empty if it begins none."""
    payload = event.payload
    if event.kind == "tool_start":
        target = to_one_line(str(payload["shown"])).replace("`", "") or str(payload["tool"])
        return f"{payload['label']} `{target[:LONGEST_TARGET]}`"
    return to_one_line(str(payload["stage"])) if event.kind == "step_start" else ""


class FoundPlaces:
    """The first places of a run as citations; later ones do not replace them."""

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
        self.citations = tuple(known.values())[:MAX_PLACES]

    def make_links(self, hosts: Collection[str]) -> tuple[PlaceLink, ...]:
        """Return the places as links for a chat, only to the given hosts."""
        return tuple(_make_link(citation, hosts) for citation in self.citations)


def _make_link(citation: Citation, hosts: Collection[str]) -> PlaceLink:
    name = break_pings(to_one_line(format_cited_place(citation)).replace("`", "'"))
    shown = name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"  # the file says more than its folder
    url = find_chat_link(citation, hosts)
    return PlaceLink(name=shown, url=url if len(url) <= LONGEST_ADDRESS else "")


LONGEST_STATUS = 140


MAX_ASKED = 2  # buttons for what else a question may mean


ASK_ANEW = "Ask anew"  # around an earlier answer


VERIFY = "*Shall I verify this by running it? Write `verify`.*"


SMALL_TALK = "out_of_scope"  # the route of a reply that says nothing of the code, such as to thanks


class StreamingAnswer:
    """The visible answer of one run, kept up to date by its events."""

    def __init__(self, run_id: str, hosts: Collection[str]) -> None:
        self.answer: Answer | None = None
        self._run_id = run_id
        self._hosts = hosts
        self._status = "Reading the question"
        self._found = FoundPlaces()
        self._text = ""
        self._remark = ""
        self._note = ""

    def begin_with(self, remark: str) -> None:
        """Put a line before the answer, if it is not empty."""
        self._remark = neutralize(remark, self._hosts)

    def end_with(self, note: str) -> None:
        """Put a line after the answer, if it is not empty."""
        self._note = neutralize(f"*{note}*", self._hosts) if note else ""

    def wait(self, before: int) -> None:
        """Show how many questions are answered first."""
        self._status = describe_place_in_line(before) or "Reading the question"

    def take(self, event: AgentEvent) -> bool:
        """Take an event; False if it changes nothing visible."""
        payload = event.payload
        match event.kind:
            case "step_start" | "tool_start":
                line = neutralize(to_one_line(describe_stage(event)), ())
                self._status = (
                    line if len(line) <= LONGEST_STATUS else f"{line[: LONGEST_STATUS - 1].replace('`', '')}…"
                )
            case "evidence":
                self._found.take(event)
            case "token":
                self._text += str(payload["text"])
            case "reset":
                self._text = str(payload["text"])
            case "answer":
                self.answer = payload["answer"]
            case _:
                return False
        return True

    def partial_content(self) -> MessageContent:
        """Return the content so far."""
        written = neutralize(self._text, self._hosts, growing=True)
        return MessageContent(
            text=_join_paragraphs(self._remark, written),
            status=f"{self._status} …",
            found=() if written else self._found.make_links(self._hosts),
            buttons=(self._make_button("stop", "Stop"),),
        )

    @property
    def text_so_far(self) -> str:
        """The text of a stopped run, without marks unless its answer was complete."""
        if self.answer is not None and self.answer.route != "stopped":
            return self.final_content().text
        text = replace_markers(self._text, [""] * len(find_markers(self._text)))
        written = neutralize(text, self._hosts).rstrip()
        return _join_paragraphs(self._remark, written) if written else ""

    def content_at_stop(self, sentence: str) -> MessageContent:
        """Return the text up to an interruption, with the sentence that says so below it."""
        written = self.text_so_far
        return MessageContent(text=_join_paragraphs(written, f"*{sentence}*") if written else sentence)

    @property
    def text_with_marks(self) -> str:
        """The answer with its marks unchanged; `ValueError` before there is one."""
        if self.answer is None:
            raise ValueError("The run has not finished.")
        safe = neutralize(self.answer.text, self._hosts).rstrip()
        return _join_paragraphs(self._remark, safe, self._describe_missing(self.answer))

    def final_content(
        self,
        freshness: str = "",
        *,
        sharing: bool = False,
        verifying: bool = False,
        asking: bool = False,
        renewing: bool = False,
    ) -> MessageContent:
        """Return the answer, its marks linked to their lines; `ValueError` before there is one.

        With `verifying`, it offers to check the answer by a run; with `asking`, buttons ask the
        other meanings; with `renewing`, one asks it anew.
        """
        if self.answer is None:
            raise ValueError("The run has not finished.")
        meanings = self.answer.meanings if asking else ()
        offer = describe_meanings(meanings) if meanings else ""
        safe = neutralize(self.answer.text.replace(offer, ""), self._hosts).rstrip()
        ask = tuple(
            Button(action="ask", label=to_one_line(one.replace("`", "")), value=f"{self._run_id}.{number}")
            for number, one in enumerate(meanings[:MAX_ASKED])
        )
        verify = (self._make_button("verify", "Verify"),) if verifying else ()
        renew = (self._make_button("again", ASK_ANEW),) if renewing else ()
        text, unlinked = link_marks(safe, self.answer.citations, self._hosts)
        return MessageContent(
            text=_join_paragraphs(
                self._remark,
                text,
                format_sources(unlinked),
                self._describe_missing(self.answer),
                self._note,
                VERIFY * verifying,
            ),
            footer=freshness if self.answer.read_at and self.answer.route != SMALL_TALK else "",
            buttons=(*renew, *verify, *ask, *self._make_buttons(self.answer, sharing=sharing)),
        )

    def _describe_missing(self, answer: Answer) -> str:
        """Say which of the requested repositories are missing, and why."""
        return "\n".join(
            f"*{neutralize(name, ())} is missing from this answer:* {neutralize(to_one_line(reason), self._hosts)}"
            for name, reason in answer.missing.items()
        )

    def _make_buttons(self, answer: Answer, *, sharing: bool) -> tuple[Button, ...]:
        if answer.route == "paused":
            return self._make_button("approve", "Approve"), self._make_button("abort", "Abort")
        if answer.route in {"failed", "stopped", "blocked", SMALL_TALK}:
            return ()
        return make_feedback_buttons(self._run_id, sharing=sharing)

    def _make_button(self, action: Any, label: str) -> Button:
        return Button(action=action, label=label, value=self._run_id)


def describe_place_in_line(before: int) -> str:
    """Say how many questions are answered first; empty if none is."""
    questions = "question is" if before == 1 else "questions are"
    return f"Waiting: {before} {questions} ahead of yours" if before else ""


def make_feedback_buttons(run_id: str, *, sharing: bool = False) -> tuple[Button, ...]:
    """Make the buttons below an answer; a private one can be shared."""
    labels: dict[ButtonAction, str] = {"good": "Helpful", "bad": "Not helpful"}
    labels |= {"share": "Share"} if sharing else {}
    return tuple(Button(action=action, label=label, value=run_id) for action, label in labels.items())


def _join_paragraphs(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def link_marks(text: str, citations: Sequence[Citation], hosts: Collection[str]) -> tuple[str, Sequence[Citation]]:
    """Make the marks of safe text links; also return the citations without a link."""
    targets = {citation.mark: target for citation in citations if (target := find_chat_link(citation, hosts))}
    marks = [marker.number for marker in find_markers(text)]
    linked = replace_markers(text, _write_marks(marks, targets)) if targets else text
    return linked, [citation for citation in citations if citation.mark not in targets.keys() & set(marks)]


def format_sources(citations: Sequence[Citation]) -> str:
    """List citations in one line: each path once, with its marks and lines."""
    by_path: dict[tuple[str, str], list[str]] = {}
    for citation in citations:
        where = format_cited_place(citation).replace("`", "'")
        shown = by_path.setdefault((citation.repository, citation.path), [])
        place = f":{where.rpartition(':')[2]}" if shown and citation.path else where
        shown.append(f"{format_marker(citation.mark)} {neutralize(f'`{place}`', ())}")
    return " · ".join(", ".join(places) for places in by_path.values())


def find_chat_link(citation: Citation, hosts: Collection[str]) -> str:
    """Return the web address of the cited lines; empty if there is no permitted one."""
    target = find_link_target(citation, None) or ""
    return target if is_allowed_link(target, hosts) else ""


def _write_marks(marks: Sequence[int], targets: Mapping[int, str]) -> Sequence[str]:
    """Write each mark as a link, and repeated ones too while there is room."""
    left, seen = LONGEST_REPEATS, set[int]()
    written: list[str] = []
    for mark in marks:
        target = targets.get(mark, "")
        if mark in seen:
            left -= len(target)
        is_linked = bool(target) and (mark not in seen or left >= 0)
        written.append(f"[{format_marker(mark)}]({target})" if is_linked else format_marker(mark))
        seen.add(mark)
    return written
