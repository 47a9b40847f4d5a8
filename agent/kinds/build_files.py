"""Reads the commands that a repository names: targets, scripts, tasks, blocks of its documents, steps of CI."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Literal

from agent.evidence.best_places import find_headings

CommandSource = Literal["target", "script", "document", "sentence", "session", "step", "convention"]

MAX_LINES = 3_000  # of a file; one that is longer is no build file that a person wrote
_LONGEST_LINE = 400
_LONGEST_BLOCK = 20  # lines
_SHELLS = frozenset({"", "sh", "bash", "shell", "console", "zsh", "terminal", "shell-session", "shellsession", "text"})
_FENCE = re.compile(r"[ \t]{0,12}(?:`{3,}|~{3,})[ \t]{0,4}(?P<language>[\w-]{0,20})")
# What a line of a shell begins with; any other indented block is no command.
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
_TARGET = re.compile(r"(?P<name>[A-Za-z][\w.-]{0,60})[ \t]{0,4}:(?![=:])")
_RECIPE = re.compile(r"(?P<name>[A-Za-z_][\w-]{0,60})(?:[ \t]+[\w+*='\"{}$]{1,40}){0,6}[ \t]*:(?!=)")
_SECTION = re.compile(r"\[testenv(?::(?P<name>[\w:.-]{1,80}))?\]")
_QUOTED = re.compile(r"`{1,2}([^`]{3,120})`{1,2}")
_SESSION = re.compile(r"def[ \t]+(?P<name>\w{1,60})\(session\b")
_STEP = re.compile(r"[ \t]{0,40}(?:-[ \t]+)?run:[ \t]*(?P<text>\S.{0,300})?")
_TASK = re.compile(
    r"[ \t]{0,12}(?:task[ \t]+|\w{1,40}(?:::\w{1,40}){0,3}::?\w{0,40}Task\.new\(?[ \t]{0,4}):?[\"']?"
    r"(?P<name>[A-Za-z][\w:]{0,60})"
)
_YAML_TASK = re.compile(r"[ \t]{2}(?P<name>[a-z][\w:-]{0,60}):[ \t]*$")
# What is said of a command on its line, above it or right below it.
_ABOUT = re.compile(r"(?:^[ \t]*(?:#{1,2}|desc:?|\"{3})|[ \t]##)[ \t]*[\"']?(?P<text>[^!#\s\"'][^\"\n]{0,150})")


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedCommand:
    """A command that a file names: what to type, what stands about it, what kind of place names it, and its lines."""

    text: str
    about: str
    source: CommandSource
    start_line: int
    end_line: int
    body: str = ""


def read_commands(path: str, text: str) -> list[NamedCommand]:
    """Return the commands that a file names; none for a file of another kind."""
    read = _find_reader(PurePosixPath(path))
    lines = [line[:_LONGEST_LINE] for line in text.split("\n")[:MAX_LINES]]
    return list(read(lines)) if read is not None else []


def is_command_file(path: str) -> bool:
    """Whether a file of that name tells how things are run."""
    return _find_reader(PurePosixPath(path)) is not None


_Reader = Callable[[Sequence[str]], Iterator[NamedCommand]]


def _find_reader(path: PurePosixPath) -> _Reader | None:
    name = path.name.lower()
    if name in _READERS:
        return _READERS[name]
    if str(path).startswith(".github/workflows/") or name in {".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml"}:
        return _read_steps
    stem = path.stem.lower()
    is_near = len(path.parts) == 1 or path.parts[0].lower() in {"docs", "doc", "documentation"}
    is_guide = stem in _GUIDES or (is_near and any(word in stem for word in _TOPICS))
    return _read_document if is_guide and path.suffix.lower() in {".md", ".rst", ".txt", ""} else None


def _read_lines(typed: str, source: CommandSource, pattern: re.Pattern[str]) -> _Reader:
    """Make a reader for a file that names commands on lines of their own, which `typed` runs by their names."""

    def read(lines: Sequence[str]) -> Iterator[NamedCommand]:
        for at, line in enumerate(lines):
            if (found := pattern.match(line)) is None:
                continue
            inside = itertools.takewhile(
                lambda below: below.strip() and (below[0] in " \t" or line[0] == "[") and not pattern.match(below),  # noqa: B023 - used at once
                lines[at + 1 : at + _LONGEST_BLOCK],
            )
            body = [below.strip().lstrip("@-") for below in inside]
            beside = (line, *lines[max(0, at - 1) : at], *body[:1])
            about = next((said["text"] for each in beside if (said := _ABOUT.search(each)) is not None), "")
            text = f"{typed} {found['name']}" if found["name"] else typed.partition(" ")[0]
            yield _make(text, about, source, at, at + 1 + len(body), "\n".join(body))

    return read


def _read_scripts(lines: Sequence[str], runner: str = "") -> Iterator[NamedCommand]:
    """Yield the scripts of a manifest; those that PHP's Composer runs by itself are no commands."""
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


def _read_steps(lines: Sequence[str]) -> Iterator[NamedCommand]:
    job = ""
    for at, line in enumerate(lines):
        if (named := line.strip().removeprefix("- ")).startswith("name:"):
            job = named.removeprefix("name:").strip()
        found = _STEP.match(line)
        if found is None:
            continue
        written = found["text"] or ""
        first = lines[at + 1].strip() if written in {"|", ">", "|-", ">-", ""} and at + 1 < len(lines) else written
        if _COMMAND.match(first):
            yield _make(first, job, "step", at, at + 2 if first != written else at + 1)


def _read_document(lines: Sequence[str]) -> Iterator[NamedCommand]:
    """Yield the blocks of shell commands and what sentences quote, with the heading and the line above."""
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
    """Return where an indented block ends: with its paragraph, or after the output of the last of what was typed."""
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

    Where some lines stand behind a prompt, the others are what was printed, or comments.
    """
    end = min(end, start + _LONGEST_BLOCK)
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
    """Make a reader for a file that tells by being there what its tool is run with."""

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
