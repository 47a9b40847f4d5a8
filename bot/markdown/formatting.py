"""Answers and citations as text that is safe to send: it pings nobody, and links only to allowed hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from agent.text.citation_markers import format_marker
from agent.text.code_marks import CodeFence, find_spans
from bot.markdown.splitting import read_lines
from indexer import is_safe_path

if TYPE_CHECKING:
    from agent import Citation

# Characters that could steer a terminal: control characters (but newline and tab), direction overrides, surrogates.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LINKABLE = re.compile(r"(https?|file)://")
_GAP = "\u200b"  # shows nothing, and breaks a ping apart
_MARKER = "```"
_NO_TICK = "\u02cb"  # looks like a backtick: a real one would open code that swallows what is meant to be code
_PING = re.compile(r"@(?=(?:everyone|here|channel)\b)|<(?=[!@#/])", re.IGNORECASE)
_FENCE_INSIDE = re.compile(r"``(?=`)")  # Discord ends a code block at three backticks, wherever they stand
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{0,24}")  # platforms hide the text behind it
_DEFINITION = re.compile(r"\](?=:)")  # where a link is defined that stands elsewhere
_TILDES = re.compile(r"~~(?=~)")  # open a code block in Slack, and none in Discord
_LONG_RUN = re.compile(r"(`{40})`+")  # is a fence to others, and none to us
_LINK = re.compile(r"!?\[(?P<label>[^\[\]\n]{0,500})\]\((?P<target>[^()\n]{0,2000})\)")
_ANGLE = re.compile(
    r"<(?P<target>[a-z][a-z0-9+.-]{1,20}:[^<>\n|]{0,2000})(?:\|(?P<label>[^<>\n]{0,500}))?>", re.IGNORECASE
)
_BARE = re.compile(r"(?:[a-z][a-z0-9+.-]{1,20}://|www\.)[^\s<>`\x00]+", re.IGNORECASE)
_TRAILING = ".,;:!?'\")]}*_"
_MAX_NESTED = 10  # links within links that are read; what is nested deeper is taken apart
_OPENERS = re.compile(r"\](?=\()|<(?=[a-z])", re.IGNORECASE)
_MASK = re.compile("\x00([0-9]+)\x00")


def replace_control_characters(text: str) -> str:
    """Replace every character that would control the terminal."""
    return _UNSHOWABLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def to_one_line(text: str) -> str:
    """Make text safe within a line."""
    return " ".join(replace_control_characters(text).split())


def format_location(path: str, start_line: int, end_line: int) -> str:
    """Name lines in the editors' form: `path:12-20`."""
    lines = str(start_line) if start_line == end_line else f"{start_line}-{end_line}"
    # A newline in a name must not begin a line.
    return f"{replace_control_characters(path.replace(chr(10), chr(0)))}:{lines}"


def format_cited_place(citation: Citation) -> str:
    """Name the target of a citation: lines of a file, or a commit; with several repositories, also its repository."""
    label = f"{citation.repository}/" if citation.repository else ""
    if not citation.path:
        return f"{label.replace('/', ' ')}commit {citation.commit[:12]}"
    where = f" at {citation.commit[:8]}" if citation.is_elsewhere else ""
    cells = f" ({citation.cells})" if citation.cells else ""
    return format_location(f"{label}{citation.path}", citation.start_line, citation.end_line) + cells + where


def find_link_target(citation: Citation, root: Path | None) -> str | None:
    """Return the target of a click on the citation: the permalink, else the file of a working tree at `root`."""
    if citation.url and _LINKABLE.match(citation.url):
        return quote_link(citation.url)
    is_there = bool(citation.path) and not citation.is_elsewhere
    file = root / citation.path if root and is_there and is_safe_path(citation.path) else None
    return file.as_uri() if file and file.is_absolute() else None


def quote_link(address: str) -> str:
    """Escape a web address for a Markdown link."""
    return quote(address, safe=":/?#[]@!$&'*+,;=%~")


def format_footnote(citation: Citation) -> str:
    """Write one plain line for a citation: its mark, its lines, its address if it has one."""
    line = f"{format_marker(citation.mark)} {format_cited_place(citation)}"
    return f"{line}  {to_one_line(citation.url)}" if citation.url else line


def format_dollars(dollars: float | None) -> str:
    """Write a cost, or that its price is unknown."""
    if dollars is None:
        return "price not set"
    return "$0" if dollars == 0 else f"${dollars:.4f}" if dollars < 1 else f"${dollars:.2f}"


def neutralize(text: str, hosts: Collection[str], *, growing: bool = False) -> str:
    """Neutralise pings, and links to hosts other than the named ones, everywhere outside code.

    A host is named as `github.com`, with its port unless it is the scheme's default. Control
    characters are removed. An open code block is closed, unless the text is `growing`; a stray
    backtick is made harmless. Code is written in the one form that every platform reads alike, so
    that the same text is code everywhere.
    """
    masks: list[str] = []

    def mask_code(code: str) -> str:
        masks.append(code)
        return f"\x00{len(masks) - 1}\x00"

    shown = _LONG_RUN.sub(r"\1", replace_control_characters(text))
    bare = _mask_code(shown, mask_code, growing=growing).replace("`", _NO_TICK)
    for pattern in (_TILDES, _DEFINITION):
        bare = pattern.sub(lambda found: found.group() + _GAP, bare)
    bare = _mask_links(bare, hosts, mask_code)
    bare = _BARE.sub(lambda found: _mask_address(found, hosts, mask_code), bare)
    return _unmask_text(break_pings(bare), masks)


def break_pings(text: str) -> str:
    """Break every ping apart, in code as well."""
    return _PING.sub(lambda found: found.group() + _GAP, text)


def is_allowed_link(address: str, hosts: Collection[str]) -> bool:
    """Whether a web address unambiguously leads to one of the hosts."""
    if not address.isascii() or _PING.search(address) or re.search(r"[\s\\<>\"`|\x00-\x1f]", address):
        return False
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return False
    name = f"{parts.hostname}:{port}" if port else parts.hostname
    return parts.scheme in {"https", "http"} and "@" not in parts.netloc and name in hosts


def _mask_code(text: str, masked: Callable[[str], str], *, growing: bool) -> str:
    """Put a mask in the place of every code block and of every code span."""
    kept: list[str] = []
    block: list[str] = []
    fence: CodeFence | None = None
    for line in read_lines(text):
        fence = line.fence
        if line.in_code:
            block.append(line.text)
            if fence is None:
                kept.append(masked(_write_block(block[:-1]) + _MARKER + block[-1].strip(" \t`")))
                block = []
        else:
            kept.append(_mask_spans(line.text, masked))
    if fence is not None:
        kept.append(masked(_write_block(block, is_open=growing) + ("" if growing else _MARKER)))
    return "".join(kept)


def _write_block(lines: Sequence[str], *, is_open: bool = False) -> str:
    """Write a code block without its end: three backticks in the first column, and nowhere in it."""
    language = _LANGUAGE.match(lines[0].lstrip(" \t`"))
    code = _FENCE_INSIDE.sub("``" + _GAP, "".join(lines[1:]))
    opener = _MARKER + (language.group() if language else "") + ("\n" if lines[0].endswith("\n") else "")
    if not is_open:
        opener = f"{opener.rstrip()}\n"
        # Discord takes the end of a block with nothing in it for the beginning of another one.
        code = code if code.strip("\n") else f"{_GAP}\n"
        code = code if code.endswith("\n") else f"{code}\n"
    return opener + code


def _mask_spans(line: str, masked: Callable[[str], str]) -> str:
    """Mask the code spans of a line; unclosed ones are not code on every platform."""
    kept: list[str] = []
    at = 0
    for start, end in find_spans(line):
        span = line[start:end]
        count = len(span) - len(span.lstrip("`"))
        ticks, code = span[:count], span[count:-count]
        # A span that holds three backticks is a block to Discord, and would end at them.
        broken = _FENCE_INSIDE.sub("``" + _GAP, code)
        if broken != code or len(ticks) > len(_MARKER):
            ticks = _MARKER
        kept += [line[at:start], masked(f"{ticks}{broken}{ticks}")]
        at = end
    return "".join([*kept, line[at:]])


def _mask_links(text: str, hosts: Collection[str], masked: Callable[[str], str]) -> str:
    """Mask the links that may stay, and leave the words of the others, until those make up no further link."""
    for _ in range(_MAX_NESTED):
        shorter = _LINK.sub(lambda found: _mask_link(found, hosts, masked), text)
        shorter = _ANGLE.sub(lambda found: _mask_autolink(found, hosts, masked), shorter)
        if shorter == text:
            return text
        text = shorter
    return _OPENERS.sub(lambda found: found.group() + _GAP, text)


def _unmask_text(text: str, masks: list[str]) -> str:
    """Restore all masks; the label of a link may contain some too."""
    while "\x00" in text:
        text = _MASK.sub(lambda found: masks[int(found[1])] + _separate(found, masks), text)
    return text


def _separate(found: re.Match[str], masks: list[str]) -> str:
    """Keep the backticks of two neighbours apart: together they would be one delimiter."""
    following = _MASK.match(found.string, found.end())
    if following is None or not masks[int(found[1])].endswith("`"):
        return ""
    return _GAP if masks[int(following[1])].startswith("`") else ""


def _mask_link(found: re.Match[str], hosts: Collection[str], masked: Callable[[str], str]) -> str:
    label, target = found["label"], found["target"]
    if found.group().startswith("!") or not label.strip() or not is_allowed_link(target, hosts):
        return label
    # A label that is an address itself could say one place and lead to another.
    shown = _BARE.sub(lambda inner: masked(_format_code(inner.group())), break_pings(label))
    return masked(f"[{shown}]({target})")


def _mask_autolink(found: re.Match[str], hosts: Collection[str], masked: Callable[[str], str]) -> str:
    label, target = found["label"], found["target"]
    if not is_allowed_link(target, hosts):
        return label or masked(_format_code(target))
    return masked(f"[{break_pings(label)}]({target})" if label else found.group())


def _mask_address(found: re.Match[str], hosts: Collection[str], masked: Callable[[str], str]) -> str:
    address = found.group()
    core = address.rstrip(_TRAILING)
    kept = masked(core if is_allowed_link(core, hosts) else _format_code(core)) + address[len(core) :]
    # Text without a space before it would be read as a part of the address.
    return f"{kept} " if found.string[found.end() : found.end() + 1] == "\x00" else kept


def _format_code(address: str) -> str:
    """An address as code: it can be read and copied, and is neither clicked nor fetched for a preview."""
    return f"`{address.replace('`', '')}`"
