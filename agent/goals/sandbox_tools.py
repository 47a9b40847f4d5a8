"""The tools of a goal run, which work inside its sandbox, with the approval of the run: a shell, tests, and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, Field, field_validator

from agent.errors import AgentError
from agent.goals.goal import GoalDeps
from agent.goals.pytest_run import run_pytest
from agent.goals.workspace import Workspace
from agent.lookups.list_files import ListFiles
from agent.lookups.read_file import ReadFile
from agent.lookups.tool import MAX_CHARACTERS, OUTSIDE, Tool, ToolEvidence
from agent.ports import Deps
from agent.sandbox.sandbox import BoundedOutput, Execution, SandboxCommand
from agent.text.escaping import replace_control_characters
from agent.tools.registry import ToolRegistry, make_tool_registry

Arguments = TypeVar("Arguments", bound=BaseModel)

_MAX_OUTPUT = 5_000  # characters of each of the two
MAX_SELECTED = 50


class SandboxTool(Tool[Arguments]):
    """A tool only for goal runs; approving the run approves it."""

    needs_approval = True
    seconds = 600.0  # the sandbox has a limit of its own, which comes first
    source = "sandbox"

    def is_available(self, deps: Deps) -> bool:
        """Whether there is a working copy."""
        return isinstance(deps, GoalDeps)


def get_workspace(deps: Deps) -> Workspace:
    """Return the workspace of a goal run; a tool without one is never called."""
    if not isinstance(deps, GoalDeps):
        raise TypeError("a tool of the sandbox is called where there is none")
    return deps.workspace


class CommandFailed(AgentError):
    """A tool's command failed; the text says how."""


def fit_output(output: BoundedOutput, deps: Deps, *, most: int = MAX_CHARACTERS) -> str:
    """Return an output for a model: masked, and cut in the middle."""
    text = replace_control_characters(deps.redact(output.text)).strip("\n")
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters left out ...]\n{text[-half:]}"


class BashArguments(BaseModel):
    """A command."""

    command: str = Field(min_length=1, max_length=8_000, description="For bash, in the root of the repository.")
    seconds: int = Field(default=60, ge=1, le=300, description="How long it may take.")


class BashExec(SandboxTool[BashArguments]):
    """Runs a command of the shell."""

    name = "bash_exec"
    description = "Run a shell command in the root of the working copy: no network, no input, bounded output."
    arguments = BashArguments
    label = "Running"
    argument_shown = "command"
    cost = OUTSIDE

    async def run(self, args: BashArguments, deps: Deps) -> ToolEvidence:
        """Run the command, and return its end and its output."""
        line = ("timeout", "-s", "KILL", str(args.seconds), "bash", "-c", args.command)
        done = await get_workspace(deps).run(SandboxCommand(argv=line), shown=args.command)
        ended = done.explain()
        if done.exit_code == 137:  # 128 and KILL
            ended = f"It was killed after {done.seconds:.0f} seconds."
        written = (
            fit_output(done.stdout, deps, most=_MAX_OUTPUT),
            fit_output(done.stderr, deps, most=_MAX_OUTPUT),
        )
        parts = [f"{name}:\n{text}" for name, text in zip(("Output", "Errors"), written, strict=True) if text]
        return ToolEvidence(text="\n\n".join([ended, *(parts or ["It wrote nothing."])]))


def check_selection(select: list[str]) -> list[str]:
    """Return tests as pytest takes them; raises `ValueError` for options and empty texts."""
    for one in select:
        if not one.strip() or one.startswith(("-", "@", "/")) or ".." in one.partition("::")[0].split("/"):
            raise ValueError(f"{one[:80]!r} selects no tests. Name a file, a folder or a test of the repository.")
    return select


class SelectionArguments(BaseModel):
    """Tests."""

    select: list[str] = Field(
        min_length=1, max_length=MAX_SELECTED, description="Files, folders or tests such as tests/test_a.py::test_b."
    )

    @field_validator("select")
    @classmethod
    def _check(cls, select: list[str]) -> list[str]:
        return check_selection(select)


class RunPytest(SandboxTool[SelectionArguments]):
    """Runs tests of the present working copy."""

    name = "run_pytest"
    description = "Run tests of the working copy as it is now: each failure with its place, message and output."
    arguments = SelectionArguments
    label = "Running tests"
    argument_shown = "select"
    cost = OUTSIDE

    async def run(self, args: SelectionArguments, deps: Deps) -> ToolEvidence:
        """Run the tests."""
        run = await run_pytest(get_workspace(deps), args.select)
        details = run.format_failures() or ("" if run.is_green else run.output[-2_000:])
        text = replace_control_characters(deps.redact(f"{run.explain()}\n\n{details}".strip()))
        return ToolEvidence(text=text[:MAX_CHARACTERS])


_MAX_PATH = 500
_MAX_FILE = 400_000  # bytes that can be edited in part
_MAX_ENTRIES = 400
_ROOM = 1_000  # characters for text besides the file's own
OUTSIDE_COPY = "is no path inside the working copy. Give one from the root of the repository, such as src/parser.py."
# The last step of a path is a name that is replaced, never a link that is followed to somewhere else.
_WRITE = 'mkdir -p -- "$(dirname -- "$1")" && { [ ! -L "$1" ] || rm -- "$1"; } && cat > "$1"'
_LIST = 'find "$1" -maxdepth "$2" -name .git -prune -o -mindepth 1 -printf "%y %s %P\\n" | LC_ALL=C sort -k3'


def check_path(path: str) -> str:
    """Return a path inside the copy in plain form; raises `ValueError` for any other."""
    parts = PurePosixPath(path.strip()).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or ".git" in parts:
        raise ValueError(f"{path[:80]!r} {OUTSIDE_COPY}")
    return str(PurePosixPath(*parts))


def check_folder(path: str) -> str:
    """Return a folder inside the copy in plain form, `.` for all of it; raises `ValueError` for any other."""
    return "." if path.strip() in {"", ".", "./"} else check_path(path)


FilePath = Annotated[
    str,
    Field(max_length=_MAX_PATH, description="The path from the root of the repository."),
    AfterValidator(check_path),
]
FolderPath = Annotated[
    str, Field(max_length=_MAX_PATH, description="The folder; . for the root."), AfterValidator(check_folder)
]


class FileArguments(BaseModel):
    """Lines of a file."""

    path: FilePath
    start: int = Field(default=1, ge=1, description="The first line.")
    end: int = Field(default=400, ge=1, description="The last line.")


class FileRead(SandboxTool[FileArguments]):
    """Reads the present form of a file."""

    name = "file_read"
    description = "Read lines of a file of the working copy, as it is now."
    arguments = FileArguments
    label = "Reading"
    argument_shown = "path"

    async def run(self, args: FileArguments, deps: Deps) -> ToolEvidence:
        """Read the lines, with their numbers."""
        text = (await _read_file(args.path, deps)).decode(errors="replace")
        lines = text.split("\n")[args.start - 1 : args.end]
        shown, room = [], MAX_CHARACTERS - _ROOM
        for number, line in enumerate(map(deps.redact, lines), args.start):
            room -= len(line) + 7
            if room < 0:
                shown.append(f"There is more; read on from line {number}.")
                break
            shown.append(f"{number:5} {line}")
        return ToolEvidence(text=f"{args.path} has {text.count(chr(10))} lines.\n" + "\n".join(shown))


class FolderArguments(BaseModel):
    """A folder."""

    path: FolderPath = "."
    depth: int = Field(default=2, ge=1, le=6, description="How many levels to list.")


class FileList(SandboxTool[FolderArguments]):
    """Lists the present contents of a folder."""

    name = "file_list"
    description = "List what is in a folder of the working copy now, with sizes in bytes."
    arguments = FolderArguments
    label = "Listing"
    argument_shown = "path"

    async def run(self, args: FolderArguments, deps: Deps) -> ToolEvidence:
        """List the folder."""
        command = SandboxCommand(argv=("sh", "-c", _LIST, "sh", args.path, str(args.depth)))
        done = await _run(command, args.path, deps)
        entries = fit_output(done.stdout, deps).split("\n")
        shown = [_format_entry(entry) for entry in entries[:_MAX_ENTRIES] if entry]
        more = ["There is more; list one folder of it."] if len(entries) > _MAX_ENTRIES else []
        return ToolEvidence(text="\n".join([*shown, *more]) or "The folder is empty.")


def _format_entry(entry: str) -> str:
    kind, _, rest = entry.partition(" ")
    size, _, path = rest.partition(" ")
    return f"{path}/" if kind == "d" else f"{path} ({size})"


class WriteArguments(BaseModel):
    """A file, or a part of one, and its replacement."""

    path: FilePath
    content: str = Field(description="All of the file, or what takes the place of `replaces`.")
    replaces: str = Field(default="", description="Text that stands in the file exactly once; empty to write it whole.")


class FileWrite(SandboxTool[WriteArguments]):
    """Writes a file of the working copy."""

    name = "file_write"
    description = "Write a file of the working copy, folders included, or replace one passage of it."
    arguments = WriteArguments
    label = "Writing"
    argument_shown = "path"

    def describe_call(self, args: Mapping[str, Any], deps: Deps) -> str:
        """Name the file: people see its content in the patch."""
        return deps.redact(f"{self.name}: {args.get('path', '')}"[:_MAX_PATH])

    async def run(self, args: WriteArguments, deps: Deps) -> ToolEvidence:
        """Write the file; a replaced passage must appear once."""
        content = args.content.encode(errors="replace")
        if args.replaces:
            content = _replace_once(await _read_file(args.path, deps), args.replaces.encode(errors="replace"), content)
        command = SandboxCommand(argv=("sh", "-c", _WRITE, "sh", args.path), stdin=content)
        await _run(command, args.path, deps)
        return ToolEvidence(text=f"{args.path} is written: {len(content):,} bytes.")


async def _read_file(path: str, deps: Deps) -> bytes:
    command = SandboxCommand(argv=("head", "-c", str(_MAX_FILE + 1), "--", path))
    done = await _run(command, path, deps, kept_bytes=2 * _MAX_FILE + 4)
    if len(done.stdout.head) > _MAX_FILE:
        raise CommandFailed(f"{path} is larger than {_MAX_FILE:,} bytes. Look at it with bash_exec.")
    return done.stdout.head


def _replace_once(before: bytes, old: bytes, new: bytes) -> bytes:
    count = before.count(old)
    if count != 1:
        raise CommandFailed(
            f"The passage to replace stands in the file {count} times. Give one that stands in it exactly once, with "
            "its line breaks and blanks, or leave `replaces` out."
        )
    return before.replace(old, new)


async def _run(command: SandboxCommand, path: str, deps: Deps, *, kept_bytes: int = 0) -> Execution:
    """Run something on a path; `CommandFailed` if the path cannot be used."""
    done = await get_workspace(deps).run(command, kept_bytes=kept_bytes)
    if done.exit_code != 0:
        errors = fit_output(done.stderr, deps, most=500)
        raise CommandFailed(f"{path[:200]} could not be used. {errors or done.explain()}")
    return done


SANDBOX_TOOLS = (BashExec.name, FileRead.name, FileList.name, FileWrite.name, RunPytest.name)


def make_goal_tools() -> ToolRegistry:
    """Return a registry of all tools of a goal run; files are read only from the copy."""
    return make_tool_registry(_make_sandbox_tools(), without=(ReadFile.name, ListFiles.name))


def make_copy_tools() -> ToolRegistry:
    """Return a registry of only the sandbox's tools, for a run whose commit is no longer indexed."""
    return ToolRegistry(_make_sandbox_tools())


def _make_sandbox_tools() -> Sequence[Tool[Any]]:
    return (BashExec(), FileRead(), FileList(), FileWrite(), RunPytest())
