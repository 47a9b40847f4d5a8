"""Requests and answers of OpenAI's chat completions API."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, FailFast, Field, Tag

from agent.text.citation_markers import MARKER
from agent.text.code_marks import CodeBlockScanner, find_outside
from bot.conversations.question_context import LONGEST_QUESTION, quote_thread
from bot.markdown.formatting import to_one_line
from bot.messages import ThreadMessage
from bot.surfaces.api.problems import BadField, refuse
from bot.surfaces.ask_events import AnswerCost, Answered, CitedPlace

MODEL = "citebot"
MAX_PARTS = 1_000  # of one message
IMAGES_UNSEEN = "*I have not seen the image: I read only text.*"
ATTACHMENTS_UNREAD = "*I have not read what was attached: I read only text.*"
_NAMES = {"user": "the person who asks", "assistant": "citebot"}
_TEXTS = frozenset({"text", "input_text"})
_UNSAFE = re.compile(r"[\s<>]")


class _Sent(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")  # parameters for other models are no mistake


class ContentPart(_Sent):
    """A part of a message: text, or an unread part."""

    type: str
    text: str | None = None


def _name_content(value: object) -> str | None:
    """Return the form of a content; None for an unknown one."""
    if isinstance(value, list | tuple):
        return "parts" if len(value) <= MAX_PARTS else None
    return "text" if isinstance(value, str) else None


Content = (
    Annotated[
        Annotated[str, Tag("text")] | Annotated[tuple[ContentPart, ...], Tag("parts")],
        Discriminator(
            _name_content,
            custom_error_type="content",
            custom_error_message=f"Write text, or a list of at most {MAX_PARTS} parts",
        ),
    ]
    | None
)


class ChatTurn(_Sent):
    """A message of the conversation."""

    role: str
    content: Content = None

    @property
    def text(self) -> str:
        """Its text."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text or "" for part in self.content or () if part.type in _TEXTS)

    @property
    def unread(self) -> str:
        """Name the content other than text; empty if there is none."""
        kinds = [] if isinstance(self.content, str) else [part.type for part in self.content or ()]
        others = [kind for kind in kinds if kind not in _TEXTS]
        if not others:
            return ""
        return IMAGES_UNSEEN if all("image" in kind for kind in others) else ATTACHMENTS_UNREAD


class StreamOptions(_Sent):
    """The parts of a stream in addition to the text."""

    include_usage: bool | None = None


def _check_count(count: int | None) -> int | None:
    if count not in {None, 1}:
        raise ValueError("citebot gives one answer; ask for one")
    return count


def _check_tool_choice(choice: Any) -> Any:
    if choice not in (None, "none", "auto"):
        raise ValueError("citebot answers in text, and calls no tools of the client")
    return choice


def _check_format(form: Any) -> Any:
    if form is not None and form != {"type": "text"}:
        raise ValueError("citebot answers only in Markdown")
    return form


class CompletionRequest(_Sent):
    """A request for a chat completion. Requests for other forms of answers are refused."""

    model: Annotated[str, Field(max_length=300)]
    messages: Annotated[tuple[ChatTurn, ...], FailFast(), Field(min_length=1, max_length=2_000)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int | None, AfterValidator(_check_count)] = None
    tool_choice: Annotated[Any, AfterValidator(_check_tool_choice)] = None
    response_format: Annotated[Any, AfterValidator(_check_format)] = None


@dataclass(frozen=True, kw_only=True)
class AskedCompletion:
    """The question of a request: the last user message, with earlier ones quoted as background.

    `unread` names its attachments that are not read.
    """

    question: str
    background: tuple[str, ...]
    before: tuple[ChatTurn, ...]
    unread: str


def read_messages(messages: Sequence[ChatTurn], mask: Callable[[str], str]) -> AskedCompletion:
    """Parse a conversation, without instructions to a model and results of tools.

    Raises a problem if it contains no question.
    """
    said = [turn for turn in messages if turn.role in _NAMES]
    last = max((number for number, turn in enumerate(said) if turn.role == "user"), default=None)
    if last is None:
        raise refuse(400, errors=(BadField(field="messages", detail="There is no user message."),))
    question, earlier, unread = said[last].text, said[:last], said[last].unread
    if unread and not question.strip():
        raise refuse(400, errors=(BadField(field="messages", detail=f"The last one has no text. {unread.strip('*')}"),))
    thread = [ThreadMessage(id="", author=turn.role, text=turn.text) for turn in earlier]
    return AskedCompletion(
        question=question,
        background=tuple(quote_thread(thread, room=LONGEST_QUESTION - len(question), mask=mask, names=_NAMES)),
        before=tuple(earlier),
        unread=unread,
    )


def name_repository(model: str) -> str | None:
    """Return the repository of a model; None if the question decides, as for `citebot` itself."""
    return model.removeprefix(f"{MODEL}/") if model != MODEL else None


def describe_model(name: str) -> dict[str, Any]:
    """Return a model in the form of the list."""
    return {"id": name, "object": "model", "created": 0, "owned_by": MODEL}


def format_tail(answered: Answered, *, is_linked: bool, unread: str) -> str:
    """Write the lines below the text: unread attachments, sources unless the text has them, and freshness.

    A stream has only marks. They become links by definitions at the end, where Markdown looks for them.
    """
    shown = [f"[{each.mark}] `{describe_place(each)}`" for each in answered.citations]
    defined = [f"[{each.mark}]: <{_escape(each.url)}>" for each in answered.citations if each.url]
    listed = [] if is_linked else [" · ".join(shown), "\n".join(defined)]
    paragraphs = [unread, *listed, f"*{answered.freshness}*" if answered.freshness else ""]
    return "".join(f"\n\n{each}" for each in paragraphs if each)


def list_annotations(content: str, citations: Sequence[CitedPlace]) -> list[dict[str, Any]]:
    """Return the citations in the API's form: the cited part of the content, and its address."""
    spans = find_marks(content)
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": spans[each.mark][0],
                "end_index": spans[each.mark][1],
                "url": each.url,
                "title": describe_place(each),
            },
        }
        for each in citations
        if each.url and each.mark in spans
    ]


def find_marks(content: str) -> dict[int, tuple[int, int]]:
    """Return where each mark such as `[1]` first appears, outside code."""
    spans: dict[int, tuple[int, int]] = {}
    scanner, begin = CodeBlockScanner(), 0
    for line in content.split("\n"):
        if not scanner.take(line) and "[" in line:
            for match in find_outside(MARKER, line):
                spans.setdefault(int(match["mark"]), (begin + match.start(), begin + match.end()))
        begin += len(line) + 1
    return spans


def describe_place(place: CitedPlace) -> str:
    """Describe the cited lines."""
    lines = f"{place.first_line}" if place.first_line == place.last_line else f"{place.first_line}-{place.last_line}"
    where = f"{place.path}:{lines}" if place.path else place.commit[:12]
    return to_one_line(where).replace("`", "'")


def count_usage(cost: AnswerCost) -> dict[str, int]:
    """Return the tokens that models read and wrote for an answer."""
    return {
        "prompt_tokens": cost.input_tokens,
        "completion_tokens": cost.output_tokens,
        "total_tokens": cost.input_tokens + cost.output_tokens,
    }


def _escape(url: str | None) -> str:
    return _UNSAFE.sub("", url or "")
