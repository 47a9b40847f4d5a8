"""Finds the branch, tag, commit or pull request in a question. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from indexer import RefKind

_MAX_TEXT = 4_000  # characters that are looked at
_MAX_PARTS = 6  # of a branch's name in an address

_NAME = r"[`\"'“‘]?(?P<name>[A-Za-z0-9_][\w./+#-]{0,100})[`\"'”’]?"
_NOUN_FIRST = re.compile(
    r"\b(?P<preposition>on|at|in|from|of|for|against)\s(?:the\s)?(?P<noun>branch|tag|commit|release|version|revision)\s"
    + _NAME,
    re.IGNORECASE,
)
_NOUN_LAST = re.compile(
    r"\b(?P<preposition>on|at|in|from|of|against)\s(?:the\s|our\s)?" + _NAME
    + r"\s(?P<noun>branch|tag|release|version)\b(?!\sof\b)",
    re.IGNORECASE,
)  # fmt: skip
_PLAIN = re.compile(r"\b(?P<preposition>on|at|in)\s" + _NAME, re.IGNORECASE)
_LABEL = re.compile(r"\s{0,9}(?P<preposition>on|at)\s" + _NAME + r"\s?[,:]\s", re.IGNORECASE)
_PULL = re.compile(
    r"\b(?:in|at|on|of|from|with|for)\s(?:the\s)?(?:PR|MR|pull\srequest|merge\srequest)\s?(?P<name>[#!]?\d{1,7})\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\b(?:in|at|on)\s(?P<name>[#!]\d{1,7})\b(?![.-]?\w)", re.IGNORECASE)
# Words that may follow the name of a ref, but not in `at v2 of the protocol`.
_END = re.compile(
    r"\s?(?:$|[?,.;:!)\]\n]|(?:where|how|what|which|who|whose|why|when|is|are|does|do|did|can|and|please)\b)",
    re.IGNORECASE,
)
# A question about what happened is answered from the past of the newest commit.
_ABOUT_THE_PAST = re.compile(
    r"\b(?:what(?:'s|\sis|\swas)?\snew|chang(?:e|ed|es)|differen(?:t|ce|ces)|diff|compare[ds]?|introduced|added|removed"
    r"|deprecated|fixed|broke|broken|regressions?|released|since|between|changelog|release\snotes?|appeared|commits?"
    r"|wrote|written)\b",
    re.IGNORECASE,
)
# Names that hardly anything but a version or a branch has.
_VERSION = re.compile(r"[vV]\d{1,6}(?:\.\d{1,6}){1,4}[\w.+-]{0,20}|\d{1,6}(?:\.\d{1,6}){2}(?:[-+a-z][\w.+-]{0,20})?")
_LINE = re.compile(
    r"(?:rel|releases?|hotfix|stable|support|maint|version)[-/._]v?\d[\w.+-]{0,40}|(?:feature|hotfix|bugfix|release)/.+",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"v?\d{1,6}(?:\.\d{1,6}){0,4}[\w.+-]{0,20}", re.IGNORECASE)
_SHA = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"```[^`]{0,4000}(?:```|$)")
# Addresses of hosts' pages, after the project: the kind of page, and its object.
_PAGE = re.compile(
    r"/(?:-/)?(?P<page>tree|blob|src/branch|src/tag|src|commits?|releases/tag|tags|pulls?|pull-requests|merge_requests)/"
    r"(?P<rest>[^\s<>()\[\]|\"'`?#]{1,300})(?:[?#][\w=&;.:%+-]{1,300})?"
)
_COMPARISON = re.compile(
    r"/(?:-/)?compare/(?P<span>[^\s<>()\[\]|\"'`?#]{3,250})(?:[?#][\w=&;.:%+-]{1,300})?",
)
_PULL_SIGN = re.compile(
    r"\b(?:PR|MR|pull\srequest|merge\srequest)\s?(?P<mark>[#!]?)(?P<number>\d{1,7})\b|(?P<sign>[#!])(?P<alone>\d{1,7})\b"
    r"(?![.-]?\w)",
    re.IGNORECASE,
)
# Questions about a pull request come in two orders: `what changed in the parser in #12`, `what does #12 change`.
_WHAT_CHANGED = re.compile(r"\bwhat(?:\s(?:has|is|was|all))?\schang(?:e|ed|es)\b", re.IGNORECASE)
_WHAT_DOES = re.compile(r"\bwhat\s(?:does|did|would|will)(?:\sthe)?\s?$", re.IGNORECASE)
_CHANGE = re.compile(r"\s?change\b", re.IGNORECASE)
_TO_PULL = re.compile(r"\b(?:in|by|with|of)(?:\sthe)?\s?$", re.IGNORECASE)
_BEFORE_LINK = frozenset("in at on from of for see between with here this".split())
_PULL_PAGES = frozenset({"pull", "pulls", "pull-requests", "merge_requests"})


@dataclass(frozen=True, kw_only=True, slots=True)
class RefMention:
    """A mention of a ref in a text; `names` are its possible names, the likeliest first.

    A `strict` mention can mean nothing else; a `likely` one means something else only if no ref has a similar name. If
    it `is_named`, an answer from elsewhere has to say so.
    """

    names: tuple[str, ...]
    start: int
    end: int
    kind: RefKind | None = None
    strict: bool = False
    likely: bool = False
    is_named: bool = False
    is_address: bool = False


def find_ref_mentions(text: str, page: str = "") -> Sequence[RefMention]:
    """Find possible names of a branch, tag, commit or pull request, the clearest first; `page` is the repository's.

    The repository decides whether they exist.
    """
    seen = _CODE.sub(lambda code: " " * len(code[0]), text[:_MAX_TEXT])
    found = [*_find_addresses(seen, page), *_find_pulls(seen), *_find_nouns(seen)]
    if not _ABOUT_THE_PAST.search(seen):
        found += [*_find_numbers(seen), *_find_plain(seen)]
    kept: list[RefMention] = []
    for mention in found:
        if not any(mention.start < other.end and other.start < mention.end for other in kept):
            kept.append(mention)
    return kept


def spell_out_comparison(text: str, page: str) -> Sequence[str]:
    """Spell out the comparison behind a link to the repository's page, the likeliest wording first."""
    base, low = page.casefold().rstrip("/"), text[:_MAX_TEXT].casefold()
    start = low.find(base) if base and len(low) == len(text[:_MAX_TEXT]) else -1
    found = _COMPARISON.match(text, start + len(base)) if start >= 0 else None
    if found is None:
        return ()
    older, dots, newer = unquote(found["span"]).partition("..")
    newer = newer.removeprefix(".").rstrip("/,:;!.")
    if not (older and dots and newer):
        return ()
    span = f"between {older} and {newer}"
    start, end = _widen_link(text, start, found.end())
    rest = f"{_drop_preposition(text[:start])} {text[end:].strip()}".strip(" ?!.,:")
    plain = f"what changed {span}?"
    return (f"{rest} {span}?", plain) if len(rest.split()) > 1 else (plain,)


def spell_out_pull_request(text: str, page: str) -> str:
    """Spell out a question about a pull request's changes as a comparison with the pinned commit.

    Empty for any other question.
    """
    seen = text[:_MAX_TEXT]
    linked = next((one for one in _find_addresses(seen, page) if one.kind == "pull request"), None)
    if linked is not None:
        seen = f"{seen[: linked.start]}{linked.names[0]}{seen[linked.end :]}"
    pull = _PULL_SIGN.search(seen)
    if pull is None:
        return ""
    before, after = seen[: pull.start()], seen[pull.end() :].rstrip("?!. ")
    if asked := _WHAT_CHANGED.search(before):
        rest = before[asked.end() :]
        if (to_pull := _TO_PULL.search(rest)) is None:
            return ""
        part = f"{rest[: to_pull.start()].strip()} {after.strip()}".strip()
    elif _WHAT_DOES.search(before) and (change := _CHANGE.match(after)):
        part = after[change.end() :].strip()
    else:
        return ""
    name = f"{pull['sign'] or pull['mark'] or '#'}{pull['number'] or pull['alone']}"
    return " ".join(filter(None, ("what changed", part, f"between HEAD and {name}?")))


def _drop_preposition(before: str) -> str:
    """Drop the preposition before a link."""
    words = before.rstrip(" \t\n:(,").rsplit(maxsplit=1)
    return " ".join(words[:-1] if words and words[-1].lower() in _BEFORE_LINK else words)


def remove_mention(text: str, mention: RefMention) -> str:
    """Remove the words of a question that only say where to look, if anything is left."""
    before, after = text[: mention.start].rstrip(" \t,"), text[mention.end :]
    after = after.lstrip(" \t,:;-") if not before else after
    rest = (
        f"{before}{after}"
        if after[:1] in {"", "?", ".", ",", "!", ";", ":", ")", "\n"}
        else f"{before} {after.lstrip()}"
    )
    rest = rest.strip()
    return rest if len(rest.split()) >= 2 else text


def _find_addresses(text: str, page: str) -> Iterator[RefMention]:
    base, low = page.casefold().rstrip("/"), text.casefold()
    start = low.find(base) if base and len(low) == len(text) else -1
    while start >= 0:
        found = _PAGE.match(text, start + len(base))
        if found is not None:
            mention = _read_page(found, *_widen_link(text, start, found.end()))
            if mention is not None:
                yield mention
        start = low.find(base, start + len(base))


def _widen_link(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of the Markdown link that contains an address."""
    before, after = text[:start], text[end : end + 1]
    if before.endswith("<") and after == ">":
        return start - 1, end + 1
    label = before.rfind("[") if before.endswith("](") and after == ")" else -1
    return (label, end + 1) if label >= 0 else (start, end)


def _read_page(found: re.Match[str], start: int, end: int) -> RefMention | None:
    """Read the target of a page. Lines of a file at a commit are often quoted without meaning that commit."""
    page, rest = found["page"], unquote(found["rest"]).rstrip("/.,:;!")
    parts = rest.split("/")[:_MAX_PARTS]
    if page in _PULL_PAGES:
        names: tuple[str, ...] = (f"#{parts[0]}",) if parts[0].isascii() and parts[0].isdecimal() else ()
        kind: RefKind | None = "pull request"
    elif page in {"commit", "commits"} or _SHA.fullmatch(parts[0]):
        is_commit = bool(_SHA.fullmatch(parts[0])) and page not in {"blob", "src"}
        names, kind = ((parts[0],), "commit") if is_commit else ((), None)
    else:
        names = tuple("/".join(parts[:count]) for count in range(len(parts), 0, -1))
        kind = "tag" if page in {"releases/tag", "tags", "src/tag"} else None
    if not names:
        return None
    is_file = page in {"blob", "src"}
    return RefMention(names=names, start=start, end=end, kind=kind, strict=not is_file, is_address=True)


def _find_pulls(text: str) -> Iterator[RefMention]:
    for found in _PULL.finditer(text):
        yield RefMention(names=(found["name"],), start=found.start(), end=found.end(), kind="pull request", strict=True)


def _find_numbers(text: str) -> Iterator[RefMention]:
    for found in _NUMBER.finditer(text):
        yield RefMention(
            names=(found["name"],), start=found.start(), end=found.end(), kind="pull request", is_named=True
        )


def _find_nouns(text: str) -> Iterator[RefMention]:
    kinds: dict[str, RefKind] = {"branch": "branch", "tag": "tag", "commit": "commit"}
    for pattern in (_NOUN_FIRST, _NOUN_LAST):
        for found in pattern.finditer(text):
            noun = found["noun"].lower()
            if noun != "branch" and _ABOUT_THE_PAST.search(f"{text[: found.start()]} {text[found.end() :]}"):
                continue
            name, end = _trim_name(found)
            is_last = pattern is _NOUN_LAST
            if noun in kinds:
                is_clear = bool(_DIGIT.search(name)) or (not is_last and bool(re.search(r"[-/._]", name)))
                strict = is_clear and (noun != "commit" or bool(_SHA.fullmatch(name)))
                is_named = noun != "commit" and not (is_last and found["preposition"].lower() == "in")
            else:
                is_named = bool(_NUMBERED.fullmatch(name)) and not text[end:].lower().startswith(" of ")
                strict = is_named and "." in name and found["preposition"].lower() in {"on", "at"}
            yield RefMention(
                names=(name,),
                start=found.start(),
                end=found.end() if is_last else end,
                kind=kinds.get(noun),
                strict=strict,
                is_named=is_named,
            )


def _find_plain(text: str) -> Iterator[RefMention]:
    label = _LABEL.match(text)
    if label is not None:
        yield from _read_plain(label, is_label=True)
    for found in _PLAIN.finditer(text):
        _, end = _trim_name(found)
        if _END.match(text, end):
            yield from _read_plain(found, is_label=False)


def _read_plain(found: re.Match[str], *, is_label: bool) -> Iterator[RefMention]:
    """Read a name after a preposition; a plain word or number counts only with a label."""
    name, end = _trim_name(found)
    has_digit, is_in = bool(_DIGIT.search(name)), found["preposition"].lower() == "in"
    is_quoted = found[0].rstrip(" ,:").endswith("`") and not is_in
    if name.isdecimal() or not (has_digit or is_label or is_quoted or re.search(r"[-/]", name)):
        return
    is_sha = bool(_SHA.fullmatch(name)) and has_digit
    if is_sha and is_in:
        return
    is_line = bool(_VERSION.fullmatch(name) or _LINE.fullmatch(name))
    is_version = found["preposition"].lower() == "at" and name[:1] in "vV" and name[1:].isdecimal()
    yield RefMention(
        names=(name,),
        start=found.start(),
        end=end,
        kind="commit" if is_sha and not name.isdecimal() else None,
        strict=not is_in and (is_line or is_version),
        likely=not is_in and has_digit,
        is_named=is_line,
    )


def _trim_name(found: re.Match[str]) -> tuple[str, int]:
    """Return the name without a final punctuation mark, and where it ends."""
    name = found["name"].rstrip("./+#-")
    cut = len(found["name"]) - len(name)
    return name, found.end("name") - cut if cut else _skip_quote(found)


def _skip_quote(found: re.Match[str]) -> int:
    end = found.end("name")
    return end + 1 if found.string[end : end + 1] in {"`", '"', "'", "”", "’"} else end
