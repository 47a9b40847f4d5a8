"""Finds code named in a question: identifiers, files, lines, hex codes, and the project by its own name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from agent.questions.intents.placeholders import separate_scripts

MAX_NAMES = 4
_MAX_LINKED = 4_000  # characters

# Every pattern starts at a word's edge and repeats within bounds, so that no question makes it slow.
_SPAN = re.compile(r"`([^`\n]{1,200})`")
# Parts of paths, also those that frameworks give a meaning: `+page`, `(group)`, `[id]`, `[[...slug]]`, `$name`, `_x~`.
_FOLDER = r"(?:[\w.@+$~-]{1,80}|\([\w.-]{1,80}\)|\[{1,2}(?:\.\.\.)?[\w-]{1,80}\]{1,2})/"
_FILE = r"(?:[\w@+$~-]|\[{1,2}(?:\.\.\.)?[\w-]{1,80}\]{1,2})"
# Files whose names begin with a dot, as methods are written too: `.env.local`, `.gitignore`, `.eslintrc.json`.
_DOTTED = (
    r"\.(?:env|git[a-z]{2,20}|docker[a-z]{2,20}|[a-z]{2,20}(?:rc|ignore|config|version))(?:[.-][A-Za-z0-9]{1,20}){0,3}"
)
_PATH = re.compile(
    rf"(?<![\w./@+$~-])/?(?P<path>(?:{_FOLDER}){{0,20}}{_DOTTED}|(?:{_FOLDER}){{0,20}}{_FILE}[\w.@+-]{{0,118}}\.[A-Za-z][A-Za-z0-9]{{0,9}}|(?:{_FOLDER}){{1,20}}[\w@+-][\w.@+-]{{0,80}})"
    r"(?:(?::|\#L|,?\ lines?\ )(?P<start>\d{1,7})(?:\ ?(?:-|to)\ ?L?(?P<end>\d{1,7}))?)?(?![\w@])",
    re.VERBOSE,
)
_LINE_OF = re.compile(
    r"\blines?\s+(\d{1,7})(?:\s?(?:-|to)\s?(\d{1,7}))?\s+(?:of|in)\s+`?([\w./@-]{1,300})", re.IGNORECASE
)
_NAME = re.compile(r"(?<![\w./@$])[^\W\d][\w$]{0,120}(?:(?:\.|::|\#|->)[^\W\d]\w{0,120}){0,8}(?:\(\))?", re.VERBOSE)
_HEX = re.compile(r"(?<!\w)(?:0[xX][0-9A-Fa-f]{2,16}|#[0-9A-Fa-f]{6}(?:[0-9A-Fa-f]{2})?)(?!\w)")
# A link to a file on a host of code, as GitHub, GitLab, Gitea and Bitbucket write it, in a chat's brackets or not.
_LINK = re.compile(
    r"(?:\[\[?[^\[\]\n]{0,200}\]\]?\()?<?https?://[^\s/|<>]{1,100}/[^\s|<>?#]{1,200}?/(?:blob|src|tree|raw|blame)/"
    r"(?:(?:commit|branch|tag)/)?(?P<ref>[^\s/|<>?#]{1,100})/(?P<path>[^\s|<>?#]{1,300})(?:\?[^\s|<>#]{0,200})?"
    r"(?:#(?:L|lines-)?(?P<start>\d{1,7})(?:C\d{1,5})?(?:[-:]L?(?P<end>\d{1,7})(?:C\d{1,5})?)?)?(?:\|[^<>\n]{0,300})?>?"
)
_SHA = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_ABBREVIATION = re.compile(r"\w\.\w")
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
_ENDS = "?!.,:;"
_POSSESSIVE = ("'s", "’s")


@dataclass(frozen=True, kw_only=True, slots=True)
class PathMention:
    """A file, or lines of it, as written in a question; the numbers are 0 without a line.

    `commit` is that of a link.
    """

    path: str
    start_line: int
    end_line: int
    commit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mentions:
    """The names in a question. `names` look like code, `words` are capitalised words that may be a class."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    paths: tuple[PathMention, ...]
    codes: tuple[str, ...]

    @property
    def anything(self) -> bool:
        """Whether the question names code, and so refers to nothing earlier."""
        return bool(self.names or self.paths or self.codes)


@lru_cache(maxsize=64)  # several lookups ask about one question
def find_mentions(question: str) -> Mentions:
    """Find all code named in a question, in order."""
    text = separate_scripts(question.replace("\\", "/"))
    paths = _find_paths(text)
    bare = _PATH.sub(lambda found: found[0] if _is_dotted_name(found) else " ", text)
    spans = [span for span in _SPAN.findall(text) if not _PATH.fullmatch(span) or "/" not in span]
    names = [normalize_name(span) for span in spans if _NAME.fullmatch(normalize_name(span).rstrip("!?"))]
    words = [(found.start(), found[0]) for found in _NAME.finditer(_SPAN.sub(" ", bare))]
    names += [normalize_name(word) for _, word in words if is_code_like(word)]
    plain = [word for at, word in words if at > 0 and len(word) > 2 and not is_code_like(word)]
    return Mentions(
        names=_drop_repeats(names)[:MAX_NAMES],
        words=_drop_repeats(word for word in plain if word[0].isupper())[:MAX_NAMES],
        paths=paths[:MAX_NAMES],
        codes=_drop_repeats(_HEX.findall(text))[:MAX_NAMES],
    )


def replace_links(text: str) -> str:
    """Replace links to lines on a code host by path and lines."""
    return _LINK.sub(lambda found: _format_linked(*found.group("path", "start", "end")), text[:_MAX_LINKED])


def find_linked_lines(text: str) -> tuple[PathMention, ...]:
    """Find the links to lines of a file at a commit."""
    found = (
        PathMention(
            path=unquote(link["path"]),
            start_line=int(link["start"]),
            end_line=max(int(link["start"]), int(link["end"] or 0)),
            commit=link["ref"].lower(),
        )
        for link in _LINK.finditer(text[:_MAX_LINKED])
        if link["start"] and _SHA.fullmatch(link["ref"])
    )
    return tuple(dict.fromkeys(found))[:MAX_NAMES]


def _format_linked(path: str, start: str | None, end: str | None) -> str:
    path = unquote(path)
    return f"{path}:{start}-{end or start}" if start else path


def normalize_name(text: str) -> str:
    """Write a name as in the index: dots between its parts, no call brackets, no full stop."""
    inner = text.strip("`").strip()
    bare = inner.rstrip("?.!,;:").removesuffix("()")
    mark = inner[len(bare) : len(bare) + 1]
    # In Ruby a name may end in a mark: `save!`, and `valid?` where it is set off from the sentence.
    if bare[-1:].isalnum() and (mark == "!" or (mark == "?" and text.startswith("`"))):
        bare += mark
    return re.sub(r"::|#|->", ".", bare)


def refer_to_project(question: str, repository: str) -> str:
    """Write "this project" for the repository's name; in backticks, a path or a longer name it means something else."""
    name = repository.rpartition("/")[2].lower()
    return " ".join(_replace_name(word, name) for word in question.split())


def is_code_like(word: str) -> bool:
    """Whether a word looks like code: snake_case, camelCase, dotted, or with call brackets."""
    if word.endswith("()"):
        return True
    parts = re.split(r"\.|::|#|->", word)
    if len(parts) > 1:
        return any(len(part) > 1 for part in parts)
    return "_" in word.strip("_") or (word.startswith("__") and len(word) > 4) or bool(_HUMP.search(word))


def _find_paths(text: str) -> tuple[PathMention, ...]:
    found = [
        PathMention(path=path, start_line=int(start), end_line=int(end or start))
        for start, end, path in _LINE_OF.findall(text)
        if "." in path or "/" in path
    ]
    seen = {(mention.path, mention.start_line) for mention in found}
    for match in _PATH.finditer(text):
        path = match["path"].rstrip(".")
        start = int(match["start"] or 0)
        if (path, start) not in seen and not _ABBREVIATION.fullmatch(path):
            seen.add((path, start))
            found.append(PathMention(path=path, start_line=start, end_line=int(match["end"] or start)))
    return tuple(found)


def _is_dotted_name(found: re.Match[str]) -> bool:
    """Whether a supposed file may also be a dotted name (`Session.send`)."""
    return "/" not in found[0] and not found["start"] and _NAME.fullmatch(found[0]) is not None


def _drop_repeats(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for item in items if item))


def _replace_name(word: str, name: str) -> str:
    bare = word.rstrip(_ENDS)
    owned = next((end for end in _POSSESSIVE if bare.endswith(end)), "")
    if not name or bare.removesuffix(owned).lower() != name:
        return word
    return f"this project{owned}{word[len(bare) :]}"
