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
_LEAST_PARTS = 3
_DEEPEST_PARTS = 3
_SUBPROJECTS = frozenset(
    map(stem_word, "module package crate gem workspace subproject project submodule component".split())
)
_BUILDERS = frozenset("maven gradle npm cargo yarn pnpm go sub build workspace our ruby rust node".split())
_MANIFESTS = frozenset(
    "pom.xml build.gradle build.gradle.kts cargo.toml package.json go.mod pyproject.toml setup.py composer.json".split()
)
_HEADERS = (".h", ".hpp", ".hh", ".hxx")
_FORMS = {
    "header": _HEADERS,
    "headers": _HEADERS,
    "sql": (".sql",),
    "yaml": (".yml", ".yaml"),
    "json": (".json",),
    "proto": (".proto",),
}
_INTERNAL = compile_pattern(r"(?i)internal|private|compat|(?:^|/)(?:tests?|samples?|examples?)/")
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


def find_parts(files: Sequence[FileEntry], words: Sequence[str]) -> list[EvidenceRef]:
    """Return the folders in a folder of the name, such as all examples, each with the files beside them.

    The folder nearest to the top counts, if most of what it holds lies in folders of its own.
    """
    wanted = [stem_word(word) for word in words]
    held: dict[str, list[FileEntry]] = {}
    for entry in files:
        parts = PurePosixPath(entry.path).parts
        for at, folder in enumerate(parts[:_DEEPEST_PARTS]):
            own = [stem_word(word) for word in split_words(folder)]
            if at < len(parts) - 1 and own[-len(wanted) :] == wanted:
                held.setdefault("/".join(parts[: at + 1]), []).append(entry)
                break
    top = min(held, key=lambda folder: (folder.count("/"), -len(held[folder])), default="")
    return _describe_parts(top, held[top]) if top else []


def _describe_parts(top: str, entries: Sequence[FileEntry]) -> list[EvidenceRef]:
    inner: dict[str, list[FileEntry]] = {}
    own: list[FileEntry] = []
    for entry in entries:
        name, sign, _ = entry.path[len(top) + 1 :].partition("/")
        if sign:
            inner.setdefault(name, []).append(entry)
        elif PurePosixPath(name).suffix not in _PROSE and PurePosixPath(name).stem not in _GENERIC_STEMS:
            own.append(entry)
    if len(inner) < _LEAST_PARTS or len(own) > len(inner):
        return []
    refs = [_refer(entry) for entry in own]
    for name, within in inner.items():
        ref = _refer(within[0])
        ref["symbol"], ref["kind"] = f"{name}/", "folder"
        refs.append(ref)
    return sorted(refs, key=lambda ref: ref["symbol"])


def find_subprojects(files: Sequence[FileEntry], words: Sequence[str]) -> list[EvidenceRef]:
    """Return the folders that are built by themselves, where modules, crates or packages are asked for."""
    if stem_word(words[-1]) not in _SUBPROJECTS or not _BUILDERS.issuperset(words[:-1]):
        return []
    found: dict[str, EvidenceRef] = {}
    for entry in files:
        path = PurePosixPath(entry.path)
        is_manifest = path.name.lower() in _MANIFESTS or path.suffix in {".gemspec", ".csproj", ".cabal"}
        if is_manifest and str(path.parent) != "." and str(path.parent) not in found:
            ref = _refer(entry)
            ref["symbol"], ref["kind"] = f"{path.parent}/", "folder"
            found[str(path.parent)] = ref
    return list(found.values()) if len(found) >= _LEAST else []


def find_files_of_form(files: Sequence[FileEntry], words: Sequence[str]) -> list[EvidenceRef]:
    """Return the files of a form that the words name, such as header files; `public` ones lie apart."""
    endings = _FORMS.get(words[-2]) if len(words) > 1 and words[-1] in {"file", "files"} else _FORMS.get(words[-1])
    if not endings:
        return []
    found = [entry for entry in files if entry.path.endswith(endings)]
    if "public" in words:
        apart = [entry for entry in found if "include/" in f"/{entry.path}" or "public/" in f"/{entry.path}"]
        found = apart or [entry for entry in found if not _INTERNAL.search(entry.path)]
    return [_refer(entry) for entry in found[:MAX_ENTRIES]]


def _refer(entry: FileEntry) -> EvidenceRef:
    ref = make_lines_ref(Location(path=entry.path, start_line=1, end_line=1), "entry", language=entry.language)
    ref["symbol"], ref["kind"] = PurePosixPath(entry.path).name, "file"
    return ref
