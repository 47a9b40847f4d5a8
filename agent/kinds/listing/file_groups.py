"""Finds the files that make a group: those of a folder that is called so, those of the languages of a translation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from agent.evidence.refs import make_lines_ref
from agent.kinds.listing.narrowing import MAX_ENTRIES, is_aside
from agent.questions.terms import match_terms, split_words, stem_word
from agent.state import EvidenceRef
from indexer.text.linear_patterns import compile_pattern
from indexer.types import FileEntry, Location

_GENERIC_STEMS = frozenset({"__init__", "index", "mod", "main", "lib"})
_PROSE = frozenset({".md", ".mdx", ".rst", ".txt", ".adoc"})
_LEAST = 2
_TRANSLATIONS = compile_pattern(
    r"(?i)(?:translations?|locales?|languages?|übersetzung(?:en)?|sprachen?|traductions?|langues?|traduccion(?:es)?|idiomas?)"
)
_ENDINGS = frozenset(
    ".json .yml .yaml .po .properties .ts .js .php .ftl .arb .xlf .xliff .strings .toml .resx .lang .ini".split()
)
_LOCALE = compile_pattern(
    r"(?:^|.*[._-])([a-z]{2,3})(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}|[a-z]{2}|419))?(?:[-_][a-z0-9]{5,8})?"
)
_LANGUAGES = frozenset(
    """af am ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk km kn
    ko ky lo lt lv mk ml mn mr ms my nb ne nl nn no pa pl pt ro ru si sk sl sq sr sv sw ta te th tl tr uk ur uz vi zh
    nan fil ckb""".split()
)


def is_about_translations(target: str) -> bool:
    """Whether a list of the languages is asked for that something is translated to."""
    return _TRANSLATIONS.fullmatch(target.strip()) is not None


def find_translations(files: Sequence[FileEntry]) -> list[EvidenceRef]:
    """Return the files that are called by languages, of the folder that has most of them."""
    groups: dict[tuple[str, str], list[FileEntry]] = {}
    for entry in files:
        path = PurePosixPath(entry.path)
        if path.suffix in _ENDINGS:
            is_own = _names_language(path.stem)
            name = path.stem if is_own else next((part for part in path.parts[:-1] if _names_language(part)), "")
            if name:
                groups.setdefault(
                    (entry.path.partition(name)[0] if not is_own else str(path.parent), path.suffix), []
                ).append(entry)
    best = max(groups.values(), key=lambda group: (not is_aside(_refer(group[0])), len(group)), default=[])
    return [_refer(entry) for entry in best] if len(best) >= _LEAST else []


def _names_language(stem: str) -> bool:
    found = _LOCALE.fullmatch(stem)
    return found is not None and found[1] in _LANGUAGES


def find_files(files: Sequence[FileEntry], words: Sequence[str]) -> list[EvidenceRef]:
    """Return the files that lie in a folder of the name, such as all migrations.

    Where none is called by all words, the last one names the folder and those before it narrow, or they name it alone.
    """
    wanted = [stem_word(word) for word in words]
    found = _find_below(files, wanted)
    if len(found) < _LEAST and len(wanted) > 1:
        found = _find_below(files, wanted[-1:])
        said = [ref for ref in found if match_terms(ref["path"].replace("_", " "), wanted[:-1])]
        found = said if len(said) >= _LEAST else found
        found = found if len(found) >= _LEAST else _find_below(files, wanted[:-1])
    code = [ref for ref in found if PurePosixPath(ref["path"]).suffix not in _PROSE]
    return code or found


def _find_below(files: Iterable[FileEntry], wanted: Sequence[str]) -> list[EvidenceRef]:
    found: list[EvidenceRef] = []
    for entry in files:
        path = PurePosixPath(entry.path)
        folders = [stem_word(word) for part in path.parts[:-1][-len(wanted) :] for word in split_words(part)]
        own = [stem_word(word) for word in split_words(path.parent.name)]
        is_below = folders[-len(wanted) :] == list(wanted) or own[-len(wanted) :] == list(wanted)
        if is_below and path.stem not in _GENERIC_STEMS and len(found) < MAX_ENTRIES:
            found.append(_refer(entry))
    return found


def _refer(entry: FileEntry) -> EvidenceRef:
    ref = make_lines_ref(Location(path=entry.path, start_line=1, end_line=1), "entry", language=entry.language)
    ref["symbol"], ref["kind"] = PurePosixPath(entry.path).name, "file"
    return ref
