"""Finds the repositories that a text names, by their names, web pages, channels and aliases. Pure functions.

A run names a repository read at another commit than its newest as `shop@` with that commit's id.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_TEXT = 4_000  # characters that are looked at

_NOUN = r"(?:repos?|repositor(?:y|ies)|projects?|code\s?bases?)"
_PREPOSITION = r"(?:in|inside|within|across|of|for|from|about|at|on|over)"
_ARTICLE = r"(?:(?:both|the|our|your|my)\s+){0,2}"
_OPEN, _CLOSE = "[`\"'“‘*]{0,2}", "[`\"'”’*]{0,2}"
# Words that may follow an ordinary word in `in web, where ...`, but not in `in web requests`.
_END = rf"(?=\s*(?:{_NOUN}\b|$|[?,.;:!)\]\n]|(?:where|how|what|which|who|whose|why|when|is|are|does|do|did|can)\b))"
_EVERYWHERE = re.compile(
    rf"(?:^\s*|\b{_PREPOSITION}\s+)(?:(?:all|every|each|both)\s+(?:of\s+)?(?:(?:the|our|your|my)\s+)?{_NOUN}\b)"
    rf"|\bacross\s+(?:(?:the|our|your|my)\s+)?(?:repos|repositories|projects|code\s?bases)\b",
    re.IGNORECASE,
)
_FILLER = re.compile(
    rf"\b(?:{_PREPOSITION}|{_NOUN}|the|use|it|it's|its|i|mean|meant|one|please|ok|okay|yes|that|this|is|would|be|and|or)\b"
    r"|[^\w\s]",
    re.IGNORECASE,
)

# Words that are so common that, alone, they do not even hint at a repository.
EVERYDAY = frozenset(
    "admin agent android api app apps auth backend base bot build cache ci cli client clients cloud code common config "
    "console contrib core dashboard data database db demo deploy design dev doc docs email engine event events example "
    "examples extension framework front frontend gateway go helper helpers home image images index indexer infra "
    "integration internal ios java job jobs js kernel lib libs library library log logging logs main manager master "
    "message messages metrics mobile model models module modules monitor monorepo network node notifications package "
    "packages page pages parser patch platform plugin plugins portal private proxy public python queue release report "
    "reports rest router runtime rust schema script scripts sdk search security server service services settings setup "
    "shared site source src stack static storage store stream style system task tasks template templates test testing "
    "tests theme tool tooling tools type types ui user users util utils view views web webapp website worker workers"
    .split()
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryProfile:
    """Other marks of a repository: its web page, and its channels."""

    page: str = ""
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedRepositories:
    """The repositories named in a text, in order; `question` lacks the words that only name them."""

    repositories: tuple[str, ...]
    question: str
    everywhere: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """Names found together, their clarity (0 is clearest), and their place."""

    rank: int
    names: tuple[str, ...]
    start: int
    end: int


def pin_name(repository: str, commit: str) -> str:
    """Name a repository at a commit."""
    return f"{repository}@{commit}"


def split_pinned_name(name: str) -> tuple[str, str]:
    """Return the repository and the commit in a name; the commit is empty if there is none."""
    repository, _, commit = name.rpartition("@")
    return (repository, commit) if repository and _COMMIT.fullmatch(commit) else (name, "")


def find_named(text: str, signs: Mapping[str, RepositoryProfile]) -> NamedRepositories:
    """Find the repositories that a text explicitly names, possibly several.

    Only the clearest mention counts: an address of its page or `team/shop`; `shop: ...` or `in
    shop, ...` at the beginning; `in shop`, `the shop repo`; a name in quotes, or one that is no
    word, such as `shop-api`.
    """
    if not signs:
        return NamedRepositories(repositories=(), question=text)
    everywhere = _EVERYWHERE.search(text[:_MAX_TEXT])
    if everywhere is not None:
        span = _Found(rank=0, names=tuple(signs), start=everywhere.start(), end=everywhere.end())
        return NamedRepositories(repositories=tuple(signs), question=_remove_names(text, [span]), everywhere=True)
    found = sorted(_Names(signs).find_mentions(text[:_MAX_TEXT]), key=lambda each: (each.rank, each.start))
    clearest = [each for each in found if each.rank == found[0].rank]
    names = tuple(dict.fromkeys(name for each in clearest for name in each.names))
    return NamedRepositories(repositories=names, question=_remove_names(text, clearest))


def find_only_named(text: str, signs: Mapping[str, RepositoryProfile]) -> tuple[str, ...]:
    """Return the repositories of a text that names nothing else: `shop`, `the website one, please`."""
    names = _Names(signs)
    rest, found = names.remove_names(text[:_MAX_TEXT])
    return found if not _FILLER.sub(" ", rest).strip() else ()


def find_hinted(text: str, signs: Mapping[str, RepositoryProfile]) -> Collection[str]:
    """Return the repositories whose names occur anywhere in a text, except everyday words."""
    _, found = _Names(signs).remove_names(text[:_MAX_TEXT])
    return [name for name in found if name.casefold() not in EVERYDAY]


class _Names:
    """The names of repositories: their own names, their pages' paths, and the last part of either."""

    def __init__(self, signs: Mapping[str, RepositoryProfile]) -> None:
        self._signs = signs
        self._meant = map_aliases(signs)
        words = "|".join(re.escape(each) for each in sorted(self._meant, key=len, reverse=True)) or r"(?!)"
        self._name = rf"(?<![\w./@-])(?:{words})(?:\.git)?(?![\w@-]|[./]\w)"
        one = rf"{_OPEN}{self._name}{_CLOSE}"
        between = rf"(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*&\s*)(?:in\s+)?{_ARTICLE}"
        self._list = rf"{one}(?:{between}{one}){{0,9}}"

    def find_mentions(self, text: str) -> Iterator[_Found]:
        """Find all clear mentions, of any rank."""
        yield from self._find_addresses(text)
        yield from self._find_label(text)
        yield from self._find_phrases(text)
        yield from self._find_words(text)

    def remove_names(self, text: str) -> tuple[str, tuple[str, ...]]:
        """Remove the names from a text, and return their repositories, unless a name has several."""
        pattern = re.compile(self._name, re.IGNORECASE)
        return pattern.sub(" ", text), self._resolve_names(text)

    def _find_addresses(self, text: str) -> Iterator[_Found]:
        low = text.casefold()
        for name, sign in self._signs.items():
            page = sign.page.casefold().rstrip("/")
            start = low.find(page) if page else -1
            if start >= 0 and not re.match(r"[\w-]", low[start + len(page) :]):
                yield _Found(rank=0, names=(name,), start=start, end=start + len(page))
        for match in re.finditer(self._name, text, re.IGNORECASE):
            if "/" in match[0]:
                yield _Found(rank=0, names=self._resolve_names(match[0]), start=match.start(), end=match.end())

    def _find_label(self, text: str) -> Iterator[_Found]:
        labelled = rf"\s*(?:\[\s*{self._list}\s*\]\s*:?|{self._list}\s*(?::(?!//)|\s[-–—]\s))\s*"
        phrase = rf"\s*(?:in|inside|within|across|for|about)\s+{_ARTICLE}{self._list}(?:\s+{_NOUN})?\s*[,:]\s*"
        match = re.match(rf"{labelled}|{phrase}", text, re.IGNORECASE)
        if match is not None:
            yield _Found(rank=1, names=self._resolve_names(match[0]), start=0, end=match.end())

    def _find_phrases(self, text: str) -> Iterator[_Found]:
        after = rf"\b{_PREPOSITION}\s+{_ARTICLE}(?:{_NOUN}\s+)?(?P<list>{self._list})"
        before = rf"(?P<list>{self._list})\s+{_NOUN}\b"
        end = re.compile(_END, re.IGNORECASE)
        for pattern in (after, before):
            for match in re.finditer(pattern, text, re.IGNORECASE):
                if pattern is before or self._is_clear(match["list"]) or end.match(text, match.end()):
                    yield _Found(rank=2, names=self._resolve_names(match["list"]), start=match.start(), end=match.end())

    def _find_words(self, text: str) -> Iterator[_Found]:
        for match in re.finditer(rf"{_OPEN}{self._name}{_CLOSE}", text, re.IGNORECASE):
            if self._is_clear(match[0]):
                yield _Found(rank=3, names=self._resolve_names(match[0]), start=match.start(), end=match.end())

    def _is_clear(self, written: str) -> bool:
        """Whether this cannot be an ordinary word: it is quoted, or spelt as no word is."""
        is_quoted = written[0] in "`\"'“‘" and written[-1] in "`\"'”’"
        names = self._resolve_names(written)
        return is_quoted or any(not re.fullmatch(r"[^\W\d_]+", name) and name in self._signs for name in names)

    def _resolve_names(self, text: str) -> tuple[str, ...]:
        found = (match[0].casefold() for match in re.finditer(self._name, text, re.IGNORECASE))
        meant = (self._meant.get(each) or self._meant.get(each.removesuffix(".git"), "") for each in found)
        return tuple(dict.fromkeys(filter(None, meant)))


def _remove_names(text: str, found: Collection[_Found]) -> str:
    """Remove the words that only name the repositories, at the beginning or at the end."""
    for each in found:
        several = len(each.names) > 1
        rest = text[each.end :]
        is_address = each.rank == 0 and "/" in text[each.start : each.end]
        if each.rank <= 1 and (each.start == 0 or not text[: each.start].strip()) and not is_address:
            return _prefer_shorter(rest.lstrip(" \t,:-"), text)
        if several and not rest.strip(" \t\n?.!"):
            return _prefer_shorter(text[: each.start].rstrip(" \t,") + rest.strip(), text)
        if several and not text[: each.start].strip():
            return _prefer_shorter(rest.lstrip(" \t,:-"), text)
    return text


def _prefer_shorter(shorter: str, text: str) -> str:
    return shorter if len(shorter.split()) >= 2 else text


def map_aliases(signs: Mapping[str, RepositoryProfile]) -> Mapping[str, str]:
    """Map the aliases of repositories, lower case, to their names; an ambiguous alias belongs to none."""
    meant: defaultdict[str, set[str]] = defaultdict(set)
    for name, sign in signs.items():
        path = unquote(urlsplit(sign.page).path).strip("/")
        for alias in (name.rpartition("/")[2], path, path.rpartition("/")[2]):
            meant[alias.casefold()].add(name)
    single = {alias: next(iter(names)) for alias, names in meant.items() if alias and len(names) == 1}
    exact: defaultdict[str, list[str]] = defaultdict(list)
    for name in signs:
        exact[name.casefold()].append(name)
    return single | {alias: names[0] for alias, names in exact.items() if len(names) == 1}
