"""Finds the target of a question about the past: everything, a file, a folder, a definition, or a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.evidence.definitions import find_hit_definition
from agent.evidence.path_lookup import FilePathLookup, find_folder, follow_path
from agent.evidence.refs import is_test_or_docs, sort_definitions
from agent.ports import CodeSearch
from agent.questions.mentions import find_mentions, is_code_like, normalize_name
from agent.questions.terms import find_content_terms, match_terms
from indexer.types import Definition, Hit, Location

_LONGEST = 300  # characters
_SEARCHED = 8
_MIN_TEXT = 3
_OUTER = re.compile(
    r"(?i)(?:the|this|that|these|those|our|your|my|a|an|whole|entire|current|all|der|die|das|den|dem|ein|eine|le|la|les"
    r"|un|une|el|los|las|una)\s+"
)
_NOUN = (
    r"function|method|class|struct|interface|trait|enum|type|constant|variable|macro|file|folder|directory|dir|module"
    r"|package|command|flag|option|setting|argument|parameter|switch|key|keyword|feature"
    r"|datei|ordner|klasse|funktion|methode|fichier"
    r"|dossier|classe|fonction|archivo|carpeta|clase|función|code|support"
)  # fmt: skip
_BEFORE = re.compile(rf"(?i)(?:{_NOUN})s?\s+")
_AFTER = re.compile(rf"(?i)(?:{_NOUN})s?")
_EVERYTHING = frozenset(
    """project repo repository codebase library package app application tool service software program code source
    everything it this here all main projekt programm projet dépôt proyecto repositorio""".split()
) | {"code base", "source code", ""}
_QUOTED = re.compile(r"[\"'`“]([^\"'`“”]{3,100})[\"'`”]")
_JOINTS = re.compile(r"[\W_]+")  # separators of words that a name may join
_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]{1,60}")


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryTarget:
    """The target of a question; all is empty for the whole repository. `is_guess` marks one found by a search.

    `text` was added or removed by commits; `lines` are those of the file `path`. `former` is its old name, if the
    question uses that; a file that `is_gone` does not exist at the commit.
    """

    path: str = ""
    is_folder: bool = False
    lines: tuple[int, int] | None = None
    symbol: str = ""
    kind: str = ""
    text: str = ""
    is_guess: bool = False
    former: str = ""
    is_gone: bool = False

    @property
    def location(self) -> Location:
        """The lines to cite: those of the definition, or the first one of the file."""
        first, last = self.lines or (1, 1)
        return Location(path=self.path, start_line=first, end_line=last)


async def find_target(code: CodeSearch, written: str) -> HistoryTarget | None:
    """Find the target of a person's words; None if nothing in the repository matches."""
    bare = strip_nouns(written)
    if means_everything(bare, code.repository):
        return HistoryTarget()
    if (lines := await _find_lines(code, written)) is not None:
        return lines
    if " " not in bare and (file := await _find_file(code, bare)) is not None:
        return file
    names = [normalize_name(bare)] if " " not in bare else list(find_mentions(written).names)
    for name in names:
        if found := sort_definitions(await code.definitions(name), ()):
            return _refer_to(found[0])
    folder = await find_folder(code, bare) if " " not in bare else None
    if folder is not None:
        return HistoryTarget(path=folder, is_folder=True)
    text = _find_text(written, bare)
    return HistoryTarget(text=text) if text else await _search_target(code, bare)


async def _find_file(code: CodeSearch, written: str) -> HistoryTarget | None:
    """Find the file of a path, code first among files of one name, or the fate of a deleted one."""
    alike = FilePathLookup(await code.files(), [written]).find_alike(written)
    if alike:
        chosen = min(alike, key=lambda entry: (is_test_or_docs(entry.path), entry.path.count("/")))
        return HistoryTarget(path=chosen.path, is_guess=len(alike) > 1)
    if not find_mentions(written).paths:
        return None
    former = await follow_path(code, written.removeprefix("./"))
    if former is None:
        return None
    if not former.path:
        return HistoryTarget(path=written.removeprefix("./"), is_gone=True)
    return HistoryTarget(path=former.path, former=written)


def means_everything(bare: str, repository: str) -> bool:
    """Whether words mean the whole repository."""
    return bare.lower() in _EVERYTHING or bare.lower() == repository.lower()


async def _find_lines(code: CodeSearch, written: str) -> HistoryTarget | None:
    """Find lines given by number: "line 40 of src/app.py"."""
    numbered = [mention for mention in find_mentions(written[:_LONGEST]).paths if mention.start_line]
    names = FilePathLookup(await code.files(), [mention.path for mention in numbered]) if numbered else None
    for mention in numbered:
        entry = names.find(mention.path) if names is not None else None
        if entry is not None and mention.start_line <= entry.lines:
            last = min(max(mention.end_line, mention.start_line), entry.lines)
            return HistoryTarget(path=entry.path, lines=(mention.start_line, last))
    return None


def strip_nouns(written: str) -> str:
    """Drop articles and the kind of thing: `walk` from "the walk function"."""
    bare = " ".join(written[:_LONGEST].split()).strip("`'\" ?!.,")
    for pattern in (_OUTER, _OUTER, _BEFORE):
        if found := pattern.match(bare):
            bare = bare[found.end() :]
    before, _, last = bare.rpartition(" ")
    return (before if before and _AFTER.fullmatch(last) else bare).strip("`'\" /")


def _find_text(written: str, bare: str) -> str:
    """Find text in a question to search for: an option, a quotation, an undefined name."""
    if flag := _FLAG.search(written):
        bare_flag = flag[0].lstrip("-")
        return bare_flag if "-" in bare_flag else flag[0]  # code writes `exec-batch`, where one word is everywhere
    if quoted := _QUOTED.search(written):
        return quoted[1]
    is_name = " " not in bare and (is_code_like(bare) or "-" in bare or bare.isupper())
    return bare if is_name and len(bare) >= _MIN_TEXT else ""


async def _search_target(code: CodeSearch, words: str) -> HistoryTarget | None:
    """Find the best definition or file for the words; code before tests and prose."""
    terms = find_content_terms(words)
    hits = await code.search(words, limit=_SEARCHED) if terms else ()
    for hit in sorted(hits, key=lambda one: is_test_or_docs(one.location.path)):
        about = next(iter(await find_hit_definition(code, hit, terms)), None)
        said = f"{hit.location.path} {about.symbol.qualified_name if about else ''} {hit.text}"
        joined = _JOINTS.sub("", said.lower())
        if not all(term.removesuffix("y") in joined for term in terms):
            continue  # not all that was asked for
        return _choose_outer(hit, about, await code.find_enclosing(about.location) if about else (), terms)
    return None


def _choose_outer(
    hit: Hit, about: Definition | None, around: Sequence[Definition], terms: frozenset[str]
) -> HistoryTarget:
    """Choose the outermost definition with a word of the question in its name, else the inner one, else the file."""
    named = [one for one in around if match_terms(one.symbol.name, terms)]
    chosen = next(iter(named), about)
    if chosen is None:
        return HistoryTarget(path=hit.location.path, is_guess=True)
    return _refer_to(chosen, is_guess=True)


def _refer_to(definition: Definition, *, is_guess: bool = False) -> HistoryTarget:
    symbol = definition.symbol
    return HistoryTarget(
        path=definition.path,
        lines=(symbol.start_line, symbol.end_line),
        symbol=symbol.qualified_name,
        kind=symbol.kind,
        is_guess=is_guess,
    )
