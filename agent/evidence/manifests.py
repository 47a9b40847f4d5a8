"""Finds the declared dependencies of a project: the lines of its manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from agent.evidence.requests import request_lines
from agent.ports import SourceFiles
from agent.state import RetrievalRequest
from indexer.text.linear_patterns import compile_pattern
from indexer.types import Location

MAX_DECLARATIONS = 3
MAX_NAMED_IN = 2  # manifests
_MAX_LINES = 80  # of one declaration; as many as are shown of a range
_MAX_READ = 20  # manifests
_WHOLE = r"[A-Za-z][\w.-]*"
# The first words of a declaration, by kind of manifest.
_BEGINS: Mapping[str, re.Pattern[str]] = {
    "pyproject.toml": re.compile(r"dependencies ?=|\[tool\.poetry\.dependencies\]"),
    "setup.cfg": re.compile(r"install_requires ?="),
    "setup.py": re.compile(r"install_requires ?="),
    "requirements.txt": re.compile(_WHOLE),
    "Pipfile": re.compile(r"\[packages\]"),
    "package.json": re.compile(r"\"dependencies\""),
    "composer.json": re.compile(r"\"require\""),
    "go.mod": re.compile(r"require\b"),
    "Cargo.toml": re.compile(r"\[dependencies\]"),
    "pom.xml": re.compile(r"<dependencies>"),
    "build.gradle": re.compile(r"dependencies ?\{"),
    "build.gradle.kts": re.compile(r"dependencies ?\{"),
    "Gemfile": re.compile(r"gem\b"),
    ".gemspec": re.compile(r"\w{1,20}\.add_(?:runtime_)?dependency\b"),
}
_WHOLE_FILES = frozenset({"requirements.txt", "Gemfile", ".gemspec"})
_END = re.compile(r"[\])}],?|</dependencies>")
_COMMENT = re.compile(r"\s*(?:#|//|--|<!--)")
# A manifest's facts about the project itself.
_OWN_NAME = compile_pattern(
    r"\s*\"?(?:name|module|description|keywords|homepage|url|repository|classifiers)\"?\s*[=: ]|\s*\"[^\"]*::"
)
_JSON_VERSION = compile_pattern(r"\s*\"[^\"]+\"\s*:\s*\"[^\"]*[\d*^~:x]")
_TOKEN = re.compile(r"[A-Za-z@][\w.@/-]*")
_SEPARATORS = re.compile(r"[-_.]+")
_VERSION = re.compile(r"\d")
# Libraries of Python whose distributions are called otherwise than what is imported.
_DISTRIBUTIONS: Mapping[str, str] = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "crypto": "pycryptodome",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "jwt": "pyjwt",
    "mysqldb": "mysqlclient",
    "openssl": "pyopenssl",
    "pil": "pillow",
    "psycopg2": "psycopg2-binary",
    "rest-framework": "djangorestframework",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


async def request_dependencies(code: SourceFiles) -> list[RetrievalRequest]:
    """Request the dependency lines of the top-level manifests."""
    manifests = [entry for entry in await code.files() if _get_kind(entry.path) is not None]
    highest = min((entry.path.count("/") for entry in manifests), default=0)
    found: list[RetrievalRequest] = []
    for entry in [entry for entry in manifests if entry.path.count("/") == highest][:MAX_DECLARATIONS]:
        kind = _get_kind(entry.path) or ""
        lines = (await code.read(entry.path)).text.split("\n")
        start = next((at for at, line in enumerate(lines) if _BEGINS[kind].match(line.strip())), None)
        if start is not None:
            end = _find_end(lines, start, is_whole=kind in _WHOLE_FILES)
            found.append(request_lines(entry.path, start + 1, end + 1, reasoning="where dependencies are declared"))
    return found


async def find_declarations(code: SourceFiles, library: str) -> list[Location]:
    """Find the lines of the manifests that name a library or a language, only those that do exactly if any does."""
    wanted = normalize_library(library)
    manifests = [entry.path for entry in await code.files() if is_manifest(entry.path)]
    found: list[tuple[int, Location]] = []
    for path in sorted(manifests, key=lambda path: (path.count("/"), path))[:_MAX_READ]:
        for number, line in enumerate((await code.read(path)).text.split("\n"), 1):
            rank = _rank_line(line, wanted, is_json=path.endswith(".json"))
            if rank is not None:
                found.append((rank, Location(path=path, start_line=number, end_line=number)))
    best = min((rank for rank, _ in found), default=0)
    first_of_file: dict[str, Location] = {}
    for rank, location in found:
        if rank == best:
            first_of_file.setdefault(location.path, location)
    return list(first_of_file.values())[:MAX_NAMED_IN]


def normalize_library(name: str) -> str:
    """Normalise a library's name as in manifests: lower case, one hyphen between its parts."""
    plain = _SEPARATORS.sub("-", name.strip().lower())
    return _DISTRIBUTIONS.get(plain, plain)


def _rank_line(line: str, wanted: str, *, is_json: bool) -> int | None:
    """Return 0 if a line declares the library, 1 if it declares the version of a part."""
    if not wanted or _COMMENT.match(line) or _OWN_NAME.match(line) or wanted not in _SEPARATORS.sub("-", line.lower()):
        return None
    if is_json and not _JSON_VERSION.match(line):
        return None
    names = [_SEPARATORS.sub("-", token.lower()).strip("-@") for token in _TOKEN.findall(line[:500])]
    names += [part for name in names if "/" in name for part in name.split("/")[-2:]]
    if wanted in names:
        return 0
    parts = {part for name in names for part in name.split("-")}
    return 1 if wanted in parts and _VERSION.search(line) else None


def is_manifest(written: str) -> bool:
    """Whether a file declares dependencies, those for tests and tools included."""
    path = PurePosixPath(written)
    is_list = path.suffix in {".txt", ".in"} and ("requirements" in path.name or path.parent.name == "requirements")
    return _get_kind(written) is not None or is_list


def _get_kind(path: str) -> str | None:
    """Return the kind of manifest that a file is, as `_BEGINS` has it."""
    name = PurePosixPath(path).name
    if name in _BEGINS:
        return name
    return ".gemspec" if name.endswith(".gemspec") else None


def _find_end(lines: Sequence[str], start: int, *, is_whole: bool) -> int:
    """Return the last line of the declaration: its bracket, or the last line before the next section."""
    first = lines[start].rstrip()
    if not is_whole and first.endswith(("]", "}", "},")) and not first.startswith("["):
        return start
    end = start
    for at in range(start + 1, min(len(lines), start + _MAX_LINES)):
        if not is_whole and _END.fullmatch(lines[at].strip()):
            return at
        if not is_whole and (lines[at].startswith("[") or not lines[at].strip()) and not first.endswith("["):
            break
        end = at if lines[at].strip() else end
    return end
