"""An answer as HTML: its Markdown with every tag as text, and its marks as links to the cited code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from agent.text.citation_markers import MARKER
from bot.pictures.flow_rendering import lay_out_flow, write_svg_part
from bot.pictures.mermaid_source import read_flowchart
from bot.pictures.placed_flow import place_flow
from bot.pictures.sequence_source import read_sequence

MAX_CHARACTERS = 40_000  # characters of an answer that are shown
_MAX_FENCES = 6  # that are highlighted
_WIDEST_ROW = 640.0  # pixels of adjacent boxes of a diagram
_NESTED = 20  # lists and quotes within each other that are read


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkLink:
    """The target of a mark: the address of a part of the page, and its name for screen readers."""

    href: str
    label: str


class Fence(NamedTuple):
    """A fenced code block: its language, and its code."""

    language: str
    code: str


class AnswerMarkup:
    """Writes answers as HTML."""

    def __init__(self) -> None:
        self._markdown = MarkdownIt("js-default", {"html": False, "linkify": False, "maxNesting": _NESTED})
        self._markdown.disable("image")
        self._markdown.validateLink = is_web_address  # type: ignore[method-assign, assignment]
        self._markdown.add_render_rule("mark", _render_mark)
        self._markdown.add_render_rule("link_open", _render_link)
        self._markdown.add_render_rule("fence", _render_fence)

    def find_fences(self, text: str) -> list[Fence]:
        """Return the fenced code blocks of an answer with a language."""
        tokens = [
            token
            for token in self._markdown.parse(text[:MAX_CHARACTERS])
            if token.type == "fence" and token.info.strip()
        ]
        return [_read_fence(token) for token in tokens[:_MAX_FENCES]]

    def find_links(self, text: str) -> list[str]:
        """Return the addresses that an answer links to, each once."""
        tokens = [child for token in self._markdown.parse(text[:MAX_CHARACTERS]) for child in token.children or ()]
        return [*dict.fromkeys(str(token.attrGet("href")) for token in tokens if token.type == "link_open")]

    def write(
        self,
        text: str,
        marks: Mapping[int, MarkLink] | None = None,
        code: Mapping[Fence, Markup] | None = None,
        links: Mapping[str, MarkLink] | None = None,
    ) -> Markup:
        """Return the HTML of an answer; a mark without a target stays text, and `code` is highlighted already.

        `links` are the addresses of parts of the page.
        """
        tokens = self._markdown.parse(text[:MAX_CHARACTERS])
        for token in tokens:
            if token.children:
                token.children = [*_split_marks(_drop_empty_links(token.children), marks or {})]
        drawings = {fence: draw_diagram(fence.code) for fence in code or () if fence.language == "mermaid"}
        env = {"code": code or {}, "drawings": drawings, "links": links or {}}
        return Markup(self._markdown.renderer.render(tokens, self._markdown.options, env))  # noqa: S704 - it escapes all text


def is_web_address(address: str) -> bool:
    """Whether a link leads to the web, and not to a script or a file."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc) and "@" not in parts.netloc


def _drop_empty_links(tokens: Sequence[Token]) -> list[Token]:
    """Keep only the words of links without a target, as in `[words]()`, which would reload the page."""
    found: list[Token] = []
    empty = False  # links do not stand within links
    for token in tokens:
        if token.type == "link_open":
            empty = not token.attrGet("href")
        if not (empty and token.type in {"link_open", "link_close"}):
            found.append(token)
    return found


def _split_marks(tokens: Sequence[Token], marks: Mapping[int, MarkLink]) -> list[Token]:
    """Make each mark of the text a separate token; links and code contain none."""
    found: list[Token] = []
    depth = 0
    for token in tokens:
        depth += token.nesting if token.type in {"link_open", "link_close"} else 0
        if token.type != "text" or depth:
            found.append(token)
            continue
        at = 0
        for match in MARKER.finditer(token.content):
            link = marks.get(int(match["mark"]))
            if link is None:
                continue
            found += [_make_text(token.content[at : match.start()]), _make_mark(match["mark"], link)]
            at = match.end()
        found.append(_make_text(token.content[at:]))
    return found


def _make_text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _make_mark(number: str, link: MarkLink) -> Token:
    return Token("mark", "a", 0, content=number, meta={"link": link})


def _render_mark(_: RendererHTML, tokens: Sequence[Token], index: int, __: OptionsDict, ___: EnvType) -> str:
    link: MarkLink = tokens[index].meta["link"]
    return (
        f'<a class="cite" href="{escape(link.href)}" hx-get="{escape(link.href)}" hx-target="#panel"'
        f' aria-label="Citation {escape(tokens[index].content)}: {escape(link.label)}">'
        f"{escape(tokens[index].content)}</a>"
    )


def _read_fence(token: Token) -> Fence:
    return Fence(token.info.split()[0].lower(), token.content.rstrip("\n"))


def _render_fence(_: RendererHTML, tokens: Sequence[Token], index: int, __: OptionsDict, env: EnvType) -> str:
    fence = _read_fence(tokens[index]) if tokens[index].info.strip() else None
    code = env["code"].get(fence) or escape(tokens[index].content.rstrip("\n"))
    written = f'<pre class="lexed" tabindex="0"><code>{code}\n</code></pre>\n'
    drawing = env["drawings"].pop(fence, "")  # once, however often it is repeated
    source = f"<details><summary>Source of the diagram</summary>{written}</details>"
    return f"<figure>{drawing}{source}</figure>\n" if drawing else written


def draw_diagram(source: str) -> str:
    """Draw a flowchart or a sequence diagram in Mermaid's language; nothing if it is not understood."""
    placed = read_sequence(source)
    if placed is None and (read := read_flowchart(source)):
        flow, direction = read
        widest = _WIDEST_ROW if direction == "downwards" else math.inf
        placed = place_flow(flow, lay_out_flow(flow, direction, widest=widest), direction, is_bare=True)
    if placed is None:
        return ""
    return f'<div class="diagram" tabindex="0" role="group" aria-label="Diagram">{write_svg_part(placed)}</div>'


def _render_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> Any:
    """Make links open in a new tab without a referrer, unless they lead to a part of the page."""
    link: MarkLink | None = env["links"].get(tokens[index].attrGet("href"))
    if link is not None:
        text = tokens[index + 1]
        text.content = text.content.strip("[]")  # as of a mark
        kind = "cite" if text.content.isdecimal() else "place"
        return (
            f'<a class="{kind}" href="{escape(link.href)}" hx-get="{escape(link.href)}" hx-target="#panel"'
            f' aria-label="{escape(link.label)}">'
        )
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    tokens[index].attrSet("target", "_blank")
    return renderer.renderToken(tokens, index, options, env)
