"""Finds the commands that a question asks for: how to run, build, test, lint or release."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Literal

from agent.evidence.best_places import find_headings
from agent.evidence.refs import make_lines_ref
from agent.evidence.requests import Retrieved
from agent.ports import CodeSearch
from agent.questions.terms import find_content_terms, match_terms
from agent.state import EvidenceRef, RetrievalRequest
from indexer.errors import UnknownPath
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import Location

MAX_FILES = 60
MAX_COMMANDS = 24
_FOREIGN_TERMS, _MIN_SAID = 2, 3  # words of a question, of which the best command says a third
# Words and commands for each purpose, the plainest word first; its first letters are enough.
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
_MIN_SHORTENED = 3
_WORD = re.compile(r"[a-z]+|[0-9]+")
_LISTED = re.compile(r"make targets?|npm scripts?|package\.json scripts?|recipes|environments|sessions", re.IGNORECASE)
_FILLER = find_content_terms(
    "run running build building test tests locally project command commands script what in"
) | find_content_terms(
    "comment lancer les la le des wie womit führe führt lasse laufen ich man die der das den aus starte baue teste cómo"
    " como se ejecuto ejecutar las los el pruebas corro puedo"
)


async def fetch_commands(code: CodeSearch, request: RetrievalRequest) -> Retrieved:
    """Return the commands that match the question, best first, or all if it asks for all."""
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
    """Rank the commands for one purpose; none if the question names something that no command mentions."""
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
    least = _MIN_SAID - (purpose == "run")  # half of them, if nothing else determines its purpose
    is_foreign = len(wanted) >= _FOREIGN_TERMS and least * len(said) < len(wanted)
    return [] if is_foreign else list(best.values())


def find_purposes(question: str) -> list[str]:
    """Return the purposes of the requested commands, such as to build and to test; by default, to run."""
    lowered = question[:300].lower()
    found = [purpose for pattern, purpose in _VERBS if pattern.search(lowered)]
    return [purpose for purpose in found if purpose != "run" or len(found) == 1][:2] or ["run"]


def _score_command(path: str, command: NamedCommand, words: Sequence[str], wanted: frozenset[str]) -> float:
    """Weight a command's words above its description; words of the question beyond its purpose weigh most."""
    typed, body, about = _cut_runner(command.text.lower()), command.body.lower(), command.about.lower()
    if words is not _PURPOSES["install"] and _INSTALLS.match(command.text.lower()):
        return 0.0  # an installed program has the word in its name
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
    """Drop words that only start a command: the `run` of `npm run lint` and the `make` of `make docs`."""
    found = _RUNNER.match(typed)
    return typed[found.end() :] if found is not None else typed


def _find_shortened(typed: str, wanted: frozenset[str]) -> frozenset[str]:
    """Find the words that a typed word abbreviates: `cov` for coverage."""
    parts = [part for part in _WORD.findall(typed) if len(part) >= _MIN_SHORTENED]
    return frozenset(term for term in wanted if any(term.startswith(part) for part in parts))


def _has_word(text: str, words: Sequence[str]) -> bool:
    """Whether a word of the text begins like one of the words; `pre-commit` must match exactly."""
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


CommandSource = Literal["target", "script", "document", "sentence", "session", "convention"]

MAX_LINES = 3_000  # of a file; one that is longer is no build file that a person wrote
_LONGEST_LINE = 400
_MAX_BLOCK = 20  # lines
_SHELLS = frozenset({"", "sh", "bash", "shell", "console", "zsh", "terminal", "shell-session", "shellsession", "text"})
_FENCE = re.compile(r"[ \t]{0,12}(?:`{3,}|~{3,})[ \t]{0,4}(?P<language>[\w-]{0,20})")
# Beginnings of shell lines; any other indented block is no command.
_COMMAND = re.compile(
    r"(?:[$>#%][ \t]+)?(?:sudo[ \t]+)?(?:[A-Z_]{2,30}=\S{1,80}[ \t]+)?(?:[\w.-]{0,30}/[\w./-]{1,80}|(?:npm|npx|pnpm"
    r"|yarn|bun|make|cmake|ninja|cargo|go|python3?|pip3?|pipx|uv|uvx|poetry|hatch|tox|nox|pytest|pre-commit|docker|docker-compose|podman"
    r"|mvn|gradle|rake|bundle|gem|ruby|rails|mix|dotnet|php|composer|swift|zig|bazel|just|task|git|cd|source|export|apt|apt-get"
    r"|brew|autoreconf|meson|deno|node|kubectl|helm|mkdir|cp|ctest|twine|invoke|sphinx-build|mkdocs|flake8|mypy|ruff|black"
    r"|conda|virtualenv|createdb|psql|goreleaser|golangci-lint|tsc|jest|vitest|eslint|prettier)(?=[ \t]|$))"
)
_PROMPT = re.compile(r"[ \t]{0,12}[$>%][ \t]+\S")
_UNSAID = (".. ", "    # ")  # directives, and comments of a block: they say nothing of a command
_MERE_STEP = re.compile(r"(?:[$>#%][ \t]+)?cd[ \t]+\S{1,200}")  # on the way to a command
_TARGET = compile_pattern(r"(?P<name>[A-Za-z][\w.-]*)[ \t]*:(?:[^=:]|$)")
_RECIPE = compile_pattern(r"(?P<name>[A-Za-z_][\w-]*)(?:[ \t]+[\w+*='\"{}$]+)*[ \t]*:(?:[^=]|$)")
_SECTION = re.compile(r"\[testenv(?::(?P<name>[\w:.-]{1,80}))?\]")
_QUOTED = re.compile(r"`{1,2}([^`]{3,120})`{1,2}")
_SESSION = re.compile(r"def[ \t]+(?P<name>\w{1,60})\(session\b")
_TASK = compile_pattern(
    r"[ \t]*(?:task[ \t]+|\w+(?:::\w+)*::?\w*Task\.new\(?[ \t]*):?[\"']?"
    r"(?P<name>[A-Za-z][\w:]*)"
)
_YAML_TASK = re.compile(r"[ \t]{2}(?P<name>[a-z][\w:-]{0,60}):[ \t]*$")
# The description of a command on its line, above it or right below it.
_ABOUT = re.compile(r"(?:^[ \t]*(?:#{1,2}|desc:?|\"{3})|[ \t]##)[ \t]*[\"']?(?P<text>[^!#\s\"'][^\"\n]{0,150})")


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedCommand:
    """A command in a file: its text, the words around it, the kind of place, and its lines."""

    text: str
    about: str
    source: CommandSource
    start_line: int
    end_line: int
    body: str = ""


def read_commands(path: str, text: str) -> list[NamedCommand]:
    """Return the commands in a file; none for other kinds of files."""
    read = _find_reader(PurePosixPath(path))
    lines = [line[:_LONGEST_LINE] for line in text.split("\n")[:MAX_LINES]]
    return list(read(lines)) if read is not None else []


def is_command_file(path: str) -> bool:
    """Whether a file of that name shows how to run things."""
    return _find_reader(PurePosixPath(path)) is not None


_Reader = Callable[[Sequence[str]], Iterator[NamedCommand]]


def _find_reader(path: PurePosixPath) -> _Reader | None:
    name = path.name.lower()
    if name in _READERS:
        return _READERS[name]
    stem = path.stem.lower()
    is_near = len(path.parts) == 1 or path.parts[0].lower() in {"docs", "doc", "documentation"}
    is_guide = stem in _GUIDES or (is_near and any(word in stem for word in _TOPICS))
    return _read_document if is_guide and path.suffix.lower() in {".md", ".rst", ".txt", ""} else None


def _read_lines(typed: str, source: CommandSource, pattern: re.Pattern[str] | Pattern) -> _Reader:
    """Make a reader for files with a command per line, which `typed` runs by name."""

    def read(lines: Sequence[str]) -> Iterator[NamedCommand]:
        for at, line in enumerate(lines):
            if (found := pattern.match(line)) is None:
                continue
            inside = itertools.takewhile(
                lambda below: below.strip() and (below[0] in " \t" or line[0] == "[") and not pattern.match(below),  # noqa: B023 - used at once
                lines[at + 1 : at + _MAX_BLOCK],
            )
            body = [below.strip().lstrip("@-") for below in inside]
            beside = (line, *lines[max(0, at - 1) : at], *body[:1])
            about = next((said["text"] for each in beside if (said := _ABOUT.search(each)) is not None), "")
            text = f"{typed} {found['name']}" if found["name"] else typed.partition(" ")[0]
            yield _make(text, about, source, at, at + 1 + len(body), "\n".join(body))

    return read


def _read_scripts(lines: Sequence[str], runner: str = "") -> Iterator[NamedCommand]:
    """Yield the scripts of a manifest, without those that PHP's Composer runs itself."""
    try:
        written = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return
    scripts = written.get("scripts") if isinstance(written, dict) else None
    if not isinstance(scripts, dict):
        return
    manager = runner or str(written.get("packageManager", "npm")).partition("@")[0]
    manager = manager if manager in {"pnpm", "yarn", "bun", "composer"} else "npm"
    for name, body in scripts.items():
        if manager == "composer" and (name.startswith(("post-", "pre-")) or name == "auto-scripts"):
            continue
        at = next((at for at, line in enumerate(lines) if line.strip().startswith(f'"{name}":')), 0)
        is_short = manager == "composer" or (manager == "npm" and name in {"test", "start"})
        typed = " && ".join(map(str, body)) if isinstance(body, list) else str(body)
        text = f"{manager} {name}" if is_short else f"{manager} run {name}"
        yield _make(text, "", "script", at, at + 1, typed[:_LONGEST_LINE])


def _read_document(lines: Sequence[str]) -> Iterator[NamedCommand]:
    """Yield blocks of shell commands and commands quoted in sentences, with the heading and the line above."""
    titles = find_headings(lines)
    heading = above = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence := _FENCE.match(line):
            end = next((to for to in range(at + 1, len(lines)) if _FENCE.match(lines[to])), len(lines))
            if fence["language"].lower() in _SHELLS:
                yield from _read_block(lines, at + 1, end, f"{heading} {above}")
            at = end + 1
            continue
        if line.startswith(("  ", "\t")) and _COMMAND.match(line.strip()):
            end = _find_block_end(lines, at)
            yield from _read_block(lines, at, end, f"{heading} {above}")
            at = end
            continue
        for quoted in _QUOTED.findall(line):
            if _COMMAND.match(quoted) and " " in quoted.strip():
                yield _make(quoted, line, "sentence", at, at + 1)
        if at + 1 in titles:
            heading, above = titles[at + 1], ""
        elif any(map(str.isalpha, line)) and not line.startswith(_UNSAID):
            above = line.strip()
        at += 1


def _find_block_end(lines: Sequence[str], at: int) -> int:
    """Return the end of an indented block: of its paragraph, or of the output of its last command."""
    is_session = _PROMPT.match(lines[at]) is not None
    return next(
        (
            end
            for end in range(at + 1, len(lines))
            if not (lines[end].startswith((" ", "\t")) if lines[end].strip() else is_session)
        ),
        len(lines),
    )


def _read_block(lines: Sequence[str], start: int, end: int, about: str) -> Iterator[NamedCommand]:
    """Yield each command of a block, with the whole block as its body and its lines.

    If some lines follow a prompt, the others are output or comments.
    """
    end = min(end, start + _MAX_BLOCK)
    if prompts := [at for at in range(start, end) if _PROMPT.match(lines[at])]:
        end = prompts[-1] + 1
    typed = [line.strip() for line in lines[start:end]]
    for line in [lines[at].strip() for at in prompts] or typed:
        if _COMMAND.match(line) and not _MERE_STEP.fullmatch(line):
            yield _make(line.lstrip("$>%# "), about, "document", start, end, "\n".join(typed))


def _make(  # noqa: PLR0917 - the fields of a command in their order, at some ten places
    text: str, about: str, source: CommandSource, at: int, end: int, body: str = ""
) -> NamedCommand:
    return NamedCommand(
        text=" ".join(text.split()),
        about=" ".join(about.split()).strip(" :*_`"),
        source=source,
        start_line=at + 1,
        end_line=max(end, at + 1),
        body=body,
    )


def _tell(*commands: str) -> _Reader:
    """Make a reader for a file whose existence shows how its tool is run."""

    def read(lines: Sequence[str]) -> Iterator[NamedCommand]:  # noqa: ARG001 - as every reader
        for command in commands:
            yield _make(command, "", "convention", 0, 1)

    return read


_GUIDES = frozenset(
    "readme contributing hacking install building development developing releasing testing develop release".split()
)
_TOPICS = ("contribut", "develop", "install", "build", "releas", "test", "setup", "hack", "deploy", "running")
_READERS: dict[str, _Reader] = {
    **dict.fromkeys(("makefile", "gnumakefile"), _read_lines("make", "target", _TARGET)),
    **dict.fromkeys(("justfile", ".justfile"), _read_lines("just", "target", _RECIPE)),
    **dict.fromkeys(("taskfile.yml", "taskfile.yaml"), _read_lines("task", "target", _YAML_TASK)),
    "package.json": _read_scripts,
    "composer.json": partial(_read_scripts, runner="composer"),
    "tox.ini": _read_lines("tox -e", "session", _SECTION),
    "noxfile.py": _read_lines("nox -s", "session", _SESSION),
    "rakefile": _read_lines("rake", "target", _TASK),
    "cargo.toml": _tell("cargo build", "cargo test", "cargo run"),
    "go.mod": _tell("go build ./...", "go test ./..."),
    "pom.xml": _tell("mvn package", "mvn test", "mvn verify"),
    **dict.fromkeys(("build.gradle", "build.gradle.kts"), _tell("gradle build", "gradle test")),
    "cmakelists.txt": _tell("cmake -B build && cmake --build build", "ctest --test-dir build"),
    **dict.fromkeys(("docker-compose.yml", "docker-compose.yaml", "compose.yaml"), _tell("docker compose up")),
    "dockerfile": _tell("docker build ."),
    "manage.py": _tell("python manage.py runserver", "python manage.py test", "python manage.py migrate"),
}
