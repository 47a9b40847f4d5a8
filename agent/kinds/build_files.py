"""Reads the commands that a repository names: targets, scripts, tasks, blocks of its documents, steps of CI."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

CommandSource = Literal["target", "script", "document", "sentence", "session", "step", "convention"]

MAX_LINES = 3_000  # of a file; one that is longer is no build file that a person wrote
_LONGEST_LINE = 400
_LONGEST_BLOCK = 20  # lines
_SHORTEST_UNDERLINE = 3
_SHELLS = frozenset({"", "sh", "bash", "shell", "console", "zsh", "terminal", "shell-session", "shellsession", "text"})
_FENCE = re.compile(r"[ \t]{0,12}(?:`{3,}|~{3,})[ \t]{0,4}(?P<language>[\w-]{0,20})")
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<text>\S.{0,150})")
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
_TARGET = re.compile(r"(?P<name>[A-Za-z][\w.-]{0,60})[ \t]{0,4}:(?![=:])[^#]{0,200}(?:##[ \t]*(?P<about>.{1,150}))?")
_RECIPE = re.compile(r"(?P<name>[A-Za-z_][\w-]{0,60})(?:[ \t]+[\w+*='\"{}$]{1,40}){0,6}[ \t]*:(?!=)")
_COMMENT = re.compile(r"#{1,2}[ \t]?(?P<text>[^!#].{0,150})")
_SECTION = re.compile(r"\[(?P<name>[\w:.-]{1,80})\]")
_QUOTED = re.compile(r"`{1,2}([^`]{3,120})`{1,2}")
_SESSION = re.compile(r"def[ \t]+(?P<name>\w{1,60})\(")
_STEP = re.compile(r"[ \t]{0,40}(?:-[ \t]+)?run:[ \t]*(?P<text>\S.{0,300})?")
_TASK = re.compile(r"[ \t]{0,12}task[ \t]+:?[\"']?(?P<name>[A-Za-z][\w:]{0,60})")
_MADE_TASK = re.compile(
    r"[ \t]{0,12}\w{1,40}(?:::\w{1,40}){0,3}::?\w{0,40}Task\.new\(?[ \t]{0,4}:?[\"']?(?P<name>[A-Za-z][\w:]{0,60})"
)
_YAML_TASK = re.compile(r"[ \t]{2}(?P<name>[\w:-]{1,60}):[ \t]*$")


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


def _read_makefile(lines: Sequence[str]) -> Iterator[NamedCommand]:
    for at, line in enumerate(lines):
        found = _TARGET.match(line)
        if found is None or "%" in found["name"]:
            continue
        end = _find_recipe_end(lines, at)
        body = "\n".join(each.strip().lstrip("@-") for each in lines[at + 1 : end])
        about = found["about"] or _read_comment_above(lines, at)
        yield _make(f"make {found['name']}", about, "target", at, end, body)


def _find_recipe_end(lines: Sequence[str], at: int) -> int:
    end = at + 1
    while end < min(len(lines), at + _LONGEST_BLOCK) and lines[end].startswith(("\t", "    ")):
        end += 1
    return end


def _read_justfile(lines: Sequence[str]) -> Iterator[NamedCommand]:
    for at, line in enumerate(lines):
        found = _RECIPE.match(line)
        if found is not None:
            end = _find_recipe_end(lines, at)
            body = "\n".join(each.strip() for each in lines[at + 1 : end])
            yield _make(f"just {found['name']}", _read_comment_above(lines, at), "target", at, end, body)


def _read_taskfile(lines: Sequence[str]) -> Iterator[NamedCommand]:
    begins = next((at for at, line in enumerate(lines) if line.startswith("tasks:")), len(lines))
    for at in range(begins + 1, len(lines)):
        found = _YAML_TASK.match(lines[at])
        if found is not None:
            about = next((line.split("desc:", 1)[1].strip() for line in lines[at + 1 : at + 4] if "desc:" in line), "")
            yield _make(f"task {found['name']}", about, "target", at, at + 1)


def _read_package(lines: Sequence[str]) -> Iterator[NamedCommand]:
    try:
        written = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return
    scripts = written.get("scripts") if isinstance(written, dict) else None
    if not isinstance(scripts, dict):
        return
    manager = str(written.get("packageManager", "npm")).partition("@")[0]
    runner = manager if manager in {"npm", "pnpm", "yarn", "bun"} else "npm"
    for name, body in scripts.items():
        at = next((at for at, line in enumerate(lines) if line.strip().startswith(f'"{name}":')), 0)
        is_short = runner == "npm" and name in {"test", "start"}
        typed = f"{runner} {name}" if is_short else f"{runner} run {name}"
        yield _make(typed, "", "script", at, at + 1, str(body)[:_LONGEST_LINE])


def _read_composer(lines: Sequence[str]) -> Iterator[NamedCommand]:
    """Yield the scripts of PHP's Composer; those that Composer runs by itself are no commands."""
    try:
        written = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return
    scripts = written.get("scripts") if isinstance(written, dict) else None
    about = written.get("scripts-descriptions") if isinstance(written, dict) else None
    for name, body in scripts.items() if isinstance(scripts, dict) else ():
        if not name.startswith(("post-", "pre-")) and name != "auto-scripts":
            at = next((at for at, line in enumerate(lines) if line.strip().startswith(f'"{name}":')), 0)
            typed = " && ".join(map(str, body)) if isinstance(body, list) else str(body)
            said = str(about.get(name, "")) if isinstance(about, dict) else ""
            yield _make(f"composer {name}", said, "script", at, at + 1, typed[:_LONGEST_LINE])


def _read_tox(lines: Sequence[str]) -> Iterator[NamedCommand]:
    for at, line in enumerate(lines):
        found = _SECTION.match(line)
        name = found["name"] if found is not None else ""
        if name != "testenv" and not name.startswith("testenv:"):
            continue
        end = next((below for below in range(at + 1, len(lines)) if lines[below].startswith("[")), len(lines))
        body = "\n".join(lines[at + 1 : min(end, at + _LONGEST_BLOCK)])
        environment = name.partition(":")[2]
        yield _make(f"tox -e {environment}" if environment else "tox", "", "session", at, at + 1, body)


def _read_nox(lines: Sequence[str]) -> Iterator[NamedCommand]:
    for at, line in enumerate(lines):
        found = _SESSION.match(line)
        if found is not None and any("session" in above for above in lines[max(0, at - 4) : at]):
            about = lines[at + 1].strip().strip("\"'") if at + 1 < len(lines) and '"""' in lines[at + 1] else ""
            yield _make(f"nox -s {found['name']}", about, "session", at, at + 1)


def _read_rakefile(lines: Sequence[str]) -> Iterator[NamedCommand]:
    for at, line in enumerate(lines):
        found = _TASK.match(line) or _MADE_TASK.match(line)
        if found is not None:
            about = lines[at - 1].strip() if at and lines[at - 1].strip().startswith("desc ") else ""
            yield _make(f"rake {found['name']}", about.removeprefix("desc ").strip("\"'"), "target", at, at + 1)


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
    """Yield the blocks of shell commands, each with the heading and the line above it."""
    heading = above = ""
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if fence is not None:
            end = next((to for to in range(at + 1, len(lines)) if _FENCE.match(lines[to])), len(lines))
            if fence["language"].lower() in _SHELLS:
                yield from _read_block(lines, at + 1, end, f"{heading} {above}")
            at = end + 1
            continue
        if line.startswith(("    ", "\t", "  ", "   ")) and _COMMAND.match(line.strip()):
            end = _find_block_end(lines, at)
            yield from _read_block(lines, at, end, f"{heading} {above}")
            at = end
            continue
        yield from _read_inline(line, at)
        heading, above = _follow_prose(lines, at, heading, above)
        at += 1


def _find_block_end(lines: Sequence[str], at: int) -> int:
    """Return where an indented block ends: with its paragraph, or after the output of the last of what was typed."""
    is_session = _PROMPT.match(lines[at]) is not None
    end = at
    while end < len(lines) and (lines[end].startswith((" ", "\t")) or (is_session and not lines[end].strip())):
        end += 1
    if is_session:
        return end
    return next((blank for blank in range(at, end) if not lines[blank].strip()), end)


def _follow_prose(lines: Sequence[str], at: int, heading: str, above: str) -> tuple[str, str]:
    found = _HEADING.match(lines[at])
    if found is not None:
        return found["text"], ""
    if at + 1 < len(lines) and lines[at].strip() and _is_underline(lines[at + 1]):
        return lines[at].strip(), ""
    is_said = not (_is_underline(lines[at]) or lines[at].startswith(_UNSAID))
    return heading, (is_said and lines[at].strip()) or above


def _is_underline(line: str) -> bool:
    bare = line.rstrip()
    return len(bare) >= _SHORTEST_UNDERLINE and len(set(bare)) == 1 and bare[0] in "=-~^\"'`#*+"


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


def _read_inline(line: str, at: int) -> Iterator[NamedCommand]:
    """Yield the commands that a sentence quotes."""
    for quoted in _QUOTED.findall(line):
        if _COMMAND.match(quoted) and " " in quoted.strip():
            yield _make(quoted, line, "sentence", at, at + 1)


def _read_comment_above(lines: Sequence[str], at: int) -> str:
    found = _COMMENT.match(lines[at - 1]) if at else None
    return found["text"] if found is not None else ""


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
    "makefile": _read_makefile,
    "gnumakefile": _read_makefile,
    "justfile": _read_justfile,
    ".justfile": _read_justfile,
    "taskfile.yml": _read_taskfile,
    "taskfile.yaml": _read_taskfile,
    "package.json": _read_package,
    "composer.json": _read_composer,
    "tox.ini": _read_tox,
    "noxfile.py": _read_nox,
    "rakefile": _read_rakefile,
    "cargo.toml": _tell("cargo build", "cargo test", "cargo run"),
    "go.mod": _tell("go build ./...", "go test ./..."),
    "pom.xml": _tell("mvn package", "mvn test", "mvn verify"),
    "build.gradle": _tell("gradle build", "gradle test"),
    "build.gradle.kts": _tell("gradle build", "gradle test"),
    "cmakelists.txt": _tell("cmake -B build && cmake --build build", "ctest --test-dir build"),
    "docker-compose.yml": _tell("docker compose up"),
    "docker-compose.yaml": _tell("docker compose up"),
    "compose.yaml": _tell("docker compose up"),
    "dockerfile": _tell("docker build ."),
    "manage.py": _tell("python manage.py runserver", "python manage.py test", "python manage.py migrate"),
}
