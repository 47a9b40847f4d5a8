"""Finds the commands that a question asks for: how to run, build, test, lint or release, as the repository says it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import PurePosixPath

from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import Retrieved
from agent.kinds.build_files import CommandSource, NamedCommand, is_command_file, read_commands
from agent.ports import CodeSearch
from agent.questions.terms import find_content_terms, match_terms
from agent.state import EvidenceRef, RetrievalRequest
from indexer.errors import UnknownPath
from indexer.types import Location

MAX_FILES = 60
MAX_COMMANDS = 24
_FOREIGN_TERMS, _LEAST_SAID = 2, 3  # words of a question, of which the best command says a third
# What is said and typed for each purpose, the plainest word first; its first letters are enough.
_PURPOSES: dict[str, tuple[str, ...]] = {
    "test": ("test", "check", "spec", "pytest", "unit", "tox", "verify", "jest", "vitest", "tap", "ctest", "probar"),
    "lint": ("lint", "ruff", "flake8", "eslint", "mypy", "clippy", "vet", "biome", "style", "typecheck", "pre-commit"),
    "format": ("format", "fmt", "prettier", "black", "style"),
    "build": ("build", "compile", "make", "dist", "bundle", "package", "configure", "bauen", "constru"),
    "run": ("run", "start", "serve", "dev", "up", "runserver", "bootrun", "launch", "exec"),
    "release": ("release", "publish", "deploy", "version", "tag", "upload", "ship"),
    "install": (
        "install",
        "setup",
        "init",
        "bootstrap",
        "venv",
        "deps",
        "requirements",
        "develop",
        "environment",
        "all",
    ),
    "benchmark": ("bench", "benchmark", "profile"),
}
_VERBS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"test|spec|prueb|probar|テスト|测试|check|verif"), "test"),
    (re.compile(r"lint|type.?check|static"), "lint"),
    (re.compile(r"format|fmt"), "format"),
    (re.compile(r"releas|publi|deploy|ship|veröffentlich|发布|部署|cut"), "release"),
    (re.compile(r"install|instal|set ?up|bootstrap|develop|dependenc|deps|environment|安装"), "install"),
    (re.compile(r"build|compil|bundl|package|bau|constru|ビルド|构建|编译"), "build"),
    (re.compile(r"bench|profil"), "benchmark"),
    (
        re.compile(r"run|start|launch|serv|exec|debug|laufen|lanc|ejecut|corr|起動|实行|実行|运行|启动|bring|spin"),
        "run",
    ),
)
_SOURCES: dict[CommandSource, float] = {
    "target": 1.0,
    "script": 1.0,
    "document": 0.9,
    "sentence": 0.85,
    "session": 0.8,
    "step": 0.45,
    "convention": 0.35,
}
_RUNNER = re.compile(
    r"(?:make(?=\s+\w)|(?:npm|pnpm|yarn|bun|uv|poetry|hatch|pdm|composer) run(?:-script)?|just|task"
    r"|docker[ -]compose run(?: --rm)?|bundle exec|npx|uvx)\s+"
)
_INSTALLS = re.compile(
    r"(?:sudo )?(?:composer (?:require|remove)|pip3? install|npm (?:i|install) \S|yarn add|gem install|go get"
    r"|cargo add|brew install|apt(?:-get)? install|docker pull)\b"
)
_NO_CHECK = frozenset({"checkout", "checkouts"})
_LEAST_SHORTENED = 3
_WORD = re.compile(r"[a-z]+|[0-9]+")
_LISTED = re.compile(r"make targets?|npm scripts?|package\.json scripts?|recipes|environments|sessions", re.IGNORECASE)
_FILLER = find_content_terms(
    "run running build building test tests locally project command commands script what in"
) | find_content_terms(
    "comment lancer les la le des wie womit führe führt lasse laufen ich man die der das den aus starte baue teste cómo"
    " como se ejecuto ejecutar las los el pruebas corro puedo"
)


async def fetch_commands(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Return the commands that fit the question, best first; of a question for all of them, all."""
    files = [entry.path for entry in await code.files() if is_command_file(entry.path)]
    nearest = sorted(files, key=lambda path: (path.count("/"), path.startswith("."), path))[:MAX_FILES]
    found: list[tuple[str, NamedCommand]] = []
    for path in nearest:
        try:
            text = (await code.read(path)).text
        except UnknownPath:
            continue  # it has gone, or is larger than what is read
        found += [(path, command) for command in read_commands(path, text)]
    question = request["query"]
    if _LISTED.search(question):
        listed = [one for one in found if one[1].source in {"target", "script", "session"}]
        return Retrieved(refs=[_refer(path, command, 1.0) for path, command in listed], totals={"all": 1})
    own = find_content_terms(code.repository)
    ranked = [_rank_commands(found, question, purpose, own) for purpose in find_purposes(question)]
    merged = [one for group in zip_longest(*ranked) for one in group if one is not None]
    return Retrieved(refs=[_refer(path, command, score) for path, command, score in merged[:MAX_COMMANDS]])


def _rank_commands(
    found: Sequence[tuple[str, NamedCommand]], question: str, purpose: str, own: frozenset[str]
) -> list[tuple[str, NamedCommand, float]]:
    """Rank the commands for one purpose; none where the question names things of which no command says anything."""
    words = _PURPOSES[purpose]
    wanted = find_content_terms(question) - _FILLER - own - set(words[:1])
    scored = [(path, command, _score_command(path, command, words, wanted)) for path, command in found]
    best: dict[tuple[str, int, str], tuple[str, NamedCommand, float]] = {}
    for one in sorted((one for one in scored if one[2] > 0), key=lambda one: -one[2]):
        path, command, _ = one
        block = (path, command.start_line, "") if command.source == "document" else ("", 0, command.text)
        best.setdefault(block, one)
    _, first, _ = next(iter(best.values()), ("", None, 0.0))
    said = match_terms(f"{first.text} {first.body} {first.about}", wanted) if first is not None else ()
    least = _LEAST_SAID - (purpose == "run")  # half of them, where nothing else tells what it is to do
    is_foreign = len(wanted) >= _FOREIGN_TERMS and least * len(said) < len(wanted)
    return [] if is_foreign else list(best.values())


def find_purposes(question: str) -> list[str]:
    """Return what the commands asked for are to do: to build and to test, say; to run where nothing else is said."""
    lowered = question[:300].lower()
    found = [purpose for pattern, purpose in _VERBS if pattern.search(lowered)]
    return [purpose for purpose in found if purpose != "run" or len(found) == 1][:2] or ["run"]


def _score_command(path: str, command: NamedCommand, words: Sequence[str], wanted: frozenset[str]) -> float:
    """Weigh what is typed over what is said about it; words of the question beyond its purpose weigh most."""
    typed, body, about = _cut_runner(command.text.lower()), command.body.lower(), command.about.lower()
    if words is not _PURPOSES["install"] and _INSTALLS.match(command.text.lower()):
        return 0.0  # what is installed has the word in its name
    said = sum(weight for text, weight in ((typed, 3.0), (body, 1.0), (about, 1.5)) if _has_word(text, words))
    plain = 0.4 if _has_word(typed, words[:1]) else 0.0
    found = match_terms(typed, wanted) | _find_shortened(typed, wanted)
    beside = match_terms(f"{body} {about} {path}", wanted) - found
    if not said and not found:
        return 0.0
    depth = 0.85 ** PurePosixPath(path).parent.as_posix().count("/") if "/" in path else 1.0
    longer = 0.08 * min(len(typed.split()), 12)
    return (said + plain + 4.0 * len(found) + 1.2 * len(beside) - longer) * _SOURCES[command.source] * depth


def _cut_runner(typed: str) -> str:
    """Cut what only starts a command: the `run` of `npm run lint` and the `make` of `make docs` say nothing of it."""
    found = _RUNNER.match(typed)
    return typed[found.end() :] if found is not None else typed


def _find_shortened(typed: str, wanted: frozenset[str]) -> frozenset[str]:
    """Return the words of which a beginning is typed: `cov` for coverage."""
    parts = [part for part in _WORD.findall(typed) if len(part) >= _LEAST_SHORTENED]
    return frozenset(term for term in wanted if any(term.startswith(part) for part in parts))


def _has_word(text: str, words: Sequence[str]) -> bool:
    """Whether a word of the text begins like one of the words; `pre-commit` is looked for as it stands."""
    parts = set(_WORD.findall(text)) - _NO_CHECK
    return any(word in text if "-" in word else any(part.startswith(word) for part in parts) for word in words)


def _refer(path: str, command: NamedCommand, score: float) -> EvidenceRef:
    lines = Location(path=path, start_line=command.start_line, end_line=command.end_line)
    return make_lines_ref(
        lines,
        "entry",
        score=score,
        symbol=command.text,
        kind=command.source,
        doc=command.about,
        signature="" if command.source == "document" else " ".join(command.body.split())[:200],
    )
