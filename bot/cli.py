"""The command line: what `citebot` is asked to do, and how it says that something is wrong.

Exit codes: 0 success, 1 failed or nothing found, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM. Only click is imported
before a command is known to be right, so that `--help` and mistakes are answered at once.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar, cast

import click

from agent.errors import AgentError
from bot.errors import BotError, unexpected
from bot.signals import Ended, until_ended
from indexer.errors import IndexerError

if TYPE_CHECKING:
    from bot.adapters.terminal import Terminal
    from bot.app import App
    from bot.lookups import Outcome
    from bot.settings import Settings

OpenApp = Callable[["Settings", Path], AbstractAsyncContextManager["App"]]
Command = TypeVar("Command", bound=Callable[..., Any])

INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """What all commands share: how the application is opened, and the options given before the command."""

    open_app: OpenApp | None = None
    repo: Path | None = None
    debug: bool = False

    def perform(self, repo: Path | None, task: Callable[[App, Terminal], Awaitable[Outcome]]) -> int:
        """Open the application, do the task, print its outcome; return the exit code."""
        outcome = asyncio.run(until_ended(self._opened(repo, task)))
        if outcome.note:
            _complain(outcome.note)
        if outcome.output:
            click.echo(outcome.output)
        return 0 if outcome.ok else 1

    async def _opened(self, repo: Path | None, task: Callable[[App, Terminal], Awaitable[Outcome]]) -> Outcome:
        from bot.adapters.terminal import Terminal
        from bot.app import App
        from bot.settings import Settings

        settings = Settings.load()
        _log_to_stderr("debug" if self.debug else settings.log_level)
        where = repo or self.repo or settings.repo or Path.cwd()
        async with (self.open_app or App.open)(settings, where) as app:
            return await task(app, Terminal.standard())


class Repository(click.Path):
    """A path in which `~` stands for the home folder: `make run REPO=~/code` reaches us unexpanded from some shells."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Expand the path."""
        try:
            return super().convert(Path(value).expanduser(), param, ctx)
        except RuntimeError:
            self.fail(f"There is no home folder for {value}.", param, ctx)


def repo_option(command: Command) -> Command:
    """Let the command take `--repo`."""
    option = click.option(
        "--repo", type=Repository(), metavar="PATH", help="The repository [default: the current one]."
    )
    return option(command)


def json_option(command: Command) -> Command:
    """Let the command take `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")(command)


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="citebot", message="%(package)s %(version)s")
@click.option("--debug", is_flag=True, help="Log everything, and show tracebacks.")
@repo_option
@click.pass_context
def cli(context: click.Context, repo: Path | None, *, debug: bool) -> int | None:
    """Answer questions about a repository's code, every claim linked to its lines.

    Without a command: a conversation in the terminal, or over a pipe, a question a line.
    """
    context.obj = replace(context.ensure_object(Invocation), repo=repo, debug=debug)
    return cast("int", context.invoke(chat)) if context.invoked_subcommand is None else None


@cli.command()
@repo_option
@click.pass_obj
def chat(invocation: Invocation, repo: Path | None = None) -> int:
    """Talk about the code; with input from a pipe, answer each line."""

    async def task(app: App, terminal: Terminal) -> Outcome:
        from bot import questions

        return await questions.converse(
            app, terminal, sys.stdin, interactive=sys.stdin.isatty() and sys.stdout.isatty()
        )

    return invocation.perform(repo, task)


@cli.command()
@click.argument("question")
@json_option
@repo_option
@click.pass_obj
def ask(invocation: Invocation, question: str, repo: Path | None, *, as_json: bool) -> int:
    """Answer one question."""
    if not question.strip():
        raise click.UsageError("The question is empty.")

    async def task(app: App, terminal: Terminal) -> Outcome:
        from bot import questions

        return await questions.ask(app, terminal, question, as_json=as_json)

    return invocation.perform(repo, task)


@cli.command()
@click.argument("path", type=Repository(), required=False)
@click.option("--full", is_flag=True, help="Begin from nothing.")
@json_option
@repo_option
@click.pass_obj
def index(invocation: Invocation, path: Path | None, repo: Path | None, *, full: bool, as_json: bool) -> int:
    """Index the repository at PATH: what changed since the last time."""
    if path and repo:
        raise click.UsageError("Give the repository as PATH or as --repo, not both.")

    async def task(app: App, terminal: Terminal) -> Outcome:
        from bot import lookups

        return await lookups.build(app.index, terminal, full=full, as_json=as_json)

    return invocation.perform(path or repo, task)


@cli.command()
@click.argument("query", required=False)
@click.option("-k", "limit", type=click.IntRange(min=1), default=10, show_default=True, help="How many at most.")
@click.option("--batch", type=click.File("rb"), help='Answer a file ("-": standard input) of {"id", "query"} lines.')
@click.option("--lang", "languages", multiple=True, help="Only this language; may be repeated, like all filters.")
@click.option(
    "--type", "types", multiple=True, type=click.Choice(["code", "test", "doc", "config"]), help="Only these."
)
@click.option("--folder", "folders", multiple=True, help="Only below this folder.")
@click.option("--glob", "globs", multiple=True, help="Only paths that match, such as **/*.sql.")
@click.option("--mode", type=click.Choice(["hybrid", "lexical", "vector"]), default="hybrid", show_default=True)
@json_option
@repo_option
@click.pass_obj
def search(
    invocation: Invocation,
    *,
    query: str | None,
    limit: int,
    batch: BinaryIO | None,
    languages: tuple[str, ...],
    types: tuple[Literal["code", "test", "doc", "config"], ...],
    folders: tuple[str, ...],
    globs: tuple[str, ...],
    mode: Literal["hybrid", "lexical", "vector"],
    repo: Path | None,
    as_json: bool,
) -> int:
    """Rank the places in the code that a query is about."""
    if bool(query and query.strip()) == bool(batch):
        raise click.UsageError('Give a query, or --batch with a file of {"id", "query"} lines.')
    _check(globs)

    async def task(app: App, terminal: Terminal) -> Outcome:
        from bot import batch as batches
        from bot import lookups
        from indexer.models import Filters

        known_as = tuple(language.lower() for language in languages)
        filters = Filters(languages=known_as, source_types=types, folders=folders, patterns=globs)
        how = lookups.Query(limit=limit, filters=filters, mode=mode)
        code = await lookups.pinned(app.index, terminal)
        if batch:
            return await batches.run(code, batch, how, write=click.echo, complain=terminal.note)
        return await lookups.search(code, query or "", how, as_json=as_json)

    return invocation.perform(repo, task)


@cli.command()
@click.argument("name")
@json_option
@repo_option
@click.pass_obj
def symbols(invocation: Invocation, name: str, repo: Path | None, *, as_json: bool) -> int:
    """List the definitions of NAME (`send` or `Session.send`)."""
    return _look_up(invocation, repo, "symbols", name, as_json=as_json)


@cli.command()
@click.argument("name")
@json_option
@repo_option
@click.pass_obj
def callers(invocation: Invocation, name: str, repo: Path | None, *, as_json: bool) -> int:
    """List where the function or class NAME is called."""
    return _look_up(invocation, repo, "callers", name, as_json=as_json)


@cli.command()
@click.argument("name")
@json_option
@repo_option
@click.pass_obj
def callees(invocation: Invocation, name: str, repo: Path | None, *, as_json: bool) -> int:
    """List what the function NAME calls."""
    return _look_up(invocation, repo, "callees", name, as_json=as_json)


@cli.command()
@json_option
@repo_option
@click.pass_obj
def status(invocation: Invocation, repo: Path | None, *, as_json: bool) -> int:
    """Say what is indexed, at which commit."""

    async def task(app: App, _: Terminal) -> Outcome:
        from bot import lookups

        return await lookups.status(app.index, as_json=as_json)

    return invocation.perform(repo, task)


def _look_up(
    invocation: Invocation,
    repo: Path | None,
    what: Literal["symbols", "callers", "callees"],
    name: str,
    *,
    as_json: bool,
) -> int:
    if not name.strip():
        raise click.UsageError("The name is empty.")

    async def task(app: App, terminal: Terminal) -> Outcome:
        from bot import lookups

        look_up = {"symbols": lookups.symbols, "callers": lookups.callers, "callees": lookups.callees}[what]
        return await look_up(await lookups.pinned(app.index, terminal), name, as_json=as_json)

    return invocation.perform(repo, task)


def _check(globs: Sequence[str]) -> None:
    from indexer.errors import BadPattern
    from indexer.globs import compiled

    try:
        compiled(globs)
    except BadPattern as error:
        raise click.UsageError(str(error)) from error


def _complain(text: str) -> None:
    from bot.markdown import visible

    click.echo(visible(text), err=True)  # it may quote a path of the repository


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    for package in ("bot", "agent", "indexer"):
        logging.getLogger(package).setLevel(level.upper())


def _prepare_streams() -> None:
    """A file name that is not UTF-8, or a terminal that is not, must not end a command; nor a closed stream."""
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def run(arguments: Sequence[str], *, open_app: OpenApp | None = None) -> int:
    """Do what the arguments say and return the exit code."""
    _prepare_streams()
    try:
        code = cli.main(list(arguments), "citebot", standalone_mode=False, obj=Invocation(open_app=open_app))
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except Ended as ended:
        return 128 + ended.number
    except Exception as error:  # nobody is left to hear of it
        if "--debug" in arguments:
            raise
        _complain(f"citebot: {_reason(error)}")
        return 1
    return int(code or 0)


def _reason(error: Exception) -> str:
    if isinstance(error, IndexerError | AgentError | BotError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error}. This came from the operating system; put it right and try again."
    return unexpected(error)


def main() -> None:
    """Run as a program."""
    sys.exit(run(sys.argv[1:]))
