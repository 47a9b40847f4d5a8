"""The command line: the commands of `citebot`, their exit codes, and the display of errors.

Exit codes: 0 success, 1 failed or nothing found, 2 wrong usage, 130 Ctrl-C, 143 SIGTERM. Only click
is imported before a command is valid, so that help and usage errors appear at once.
"""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

import click

from agent import AgentError
from bot.cli.command_groups import GroupedCommands
from bot.cli.context import (
    CliContext,
    OpenApp,
    add_at_option,
    add_graph_option,
    add_json_option,
    add_port_option,
    add_repeatable_repo_option,
    add_repo_option,
    complete_repository,
    print_error,
)
from bot.cli.data_commands import backup, evaluate, gaps, migrate, questions, replay, restore, sweep
from bot.cli.goals import goal
from bot.errors import BotError, describe_unexpected
from bot.storage.data_folder_access import restrict_umask
from bot.tasks import TerminationSignal
from indexer import IndexerError

if TYPE_CHECKING:
    from bot.adapters.terminal.display import Terminal
    from bot.adapters.terminal.output import CommandOutcome
    from bot.app import App
    from bot.cli.programs import Editor

INTERRUPTED = 130
_CHOICES = """Ask a question here (Ctrl-D to leave), or run one of:
  citebot web     ask in the browser
  citebot demo    try it in a chat workspace in the browser
  citebot serve   answer a team in Slack and Discord
  citebot --help  list all commands
"""


@click.group(cls=GroupedCommands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="citebot", message="%(package)s %(version)s")
@click.option("--debug", is_flag=True, help="Log everything, and show tracebacks.")
@add_repo_option
@click.pass_context
def cli(context: click.Context, repo: str | None, *, debug: bool) -> int | None:
    """Answer questions about a repository's code, every claim linked to its lines.

    Without a command, it starts a conversation, or answers each line from a pipe.

    \b
    Completion in bash: eval "$(_CITEBOT_COMPLETE=bash_source citebot)"
    """
    context.obj = replace(context.ensure_object(CliContext), repo=repo, debug=debug)
    if context.invoked_subcommand is not None:
        return None
    if sys.stdin.isatty() and sys.stdout.isatty():
        click.echo(_CHOICES, err=True)
    return cast("int", context.invoke(chat))


@cli.command()
@add_repo_option
@click.pass_obj
def chat(invocation: CliContext, repo: str | None = None) -> int:
    """Ask in a conversation; with input from a pipe, answer each line."""
    from bot.adapters.terminal.last_answer import set_echo

    interactive = sys.stdin.isatty() and sys.stdout.isatty()

    async def task(app: App, terminal: Terminal) -> CommandOutcome:
        from bot.cli.conversation import chat

        return await chat(app, terminal, sys.stdin, interactive=interactive)

    # Input typed before the prompt waits for it, and exists nowhere else.
    with set_echo(on=False) if interactive else nullcontext():
        return invocation.run_command(repo, task)


@cli.command()
@click.argument("question")
@click.option("--trace", is_flag=True, help="Print each step on standard error.")
@click.option("--verbose", is_flag=True, help="Like --trace, plus every change of the graph's state.")
@add_at_option
@add_json_option
@add_repeatable_repo_option
@click.pass_obj
def ask(
    invocation: CliContext,
    *,
    question: str,
    repos: tuple[str, ...],
    at: str,
    trace: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """Answer one question, about one repository or several.

    Name several as --repo A --repo B.
    """
    if not question.strip():
        raise click.UsageError("The question is empty.")
    tracing: Literal["off", "on", "verbose"] = "verbose" if verbose else "on" if trace else "off"
    named: list[str | None] = [*dict.fromkeys(filter(None, (invocation.repo, *repos)))]
    if at and len(named) > 1:
        raise click.UsageError("--at is for a question about one repository.")

    async def work() -> CommandOutcome:
        from bot.adapters.terminal.display import Terminal
        from bot.cli.ask import ask
        from bot.cli.target import choose_table

        settings = invocation.settings()
        async with AsyncExitStack() as stack:
            apps: list[App] = []
            for name in named or [None]:
                table = await asyncio.to_thread(choose_table, settings, name)
                apps.append(await stack.enter_async_context(invocation.open(settings, table)))
            return await ask(apps, Terminal.standard(), question, at=at, as_json=as_json, tracing=tracing)

    return invocation.print_outcome(work())


@cli.command()
@click.option(
    "--role",
    type=click.Choice(["all", "front", "answer", "index"]),
    default="all",
    show_default=True,
    help="The role of this process when several share the work: front, answer or index.",
)
@add_repo_option
@click.pass_obj
def serve(invocation: CliContext, repo: str | None, role: Literal["all", "front", "answer", "index"]) -> None:
    """Answer a team in Slack and Discord (Ctrl-C or SIGTERM to stop).

    It serves the repositories of citebot.toml, or that of --repo; without either, the current one.
    Without platform tokens, it only watches them, receives push webhooks and shows metrics.
    """
    invocation.serve(repo, role)


@cli.command()
@add_port_option(8082)
@add_repo_option
@click.pass_obj
def web(invocation: CliContext, repo: str | None, port: int) -> None:
    """Open the web interface (Ctrl-C to stop).

    It prints an address that only this machine can reach. It covers the repositories of citebot.toml, or that of
    --repo; without either, the current one.
    """
    invocation.serve_page(repo, port)


@cli.command()
@add_port_option(8083)
@add_repo_option
@click.pass_obj
def demo(invocation: CliContext, repo: str | None, port: int) -> None:
    """Try it in a chat workspace in the browser (Ctrl-C to stop).

    You need no account. You play three people in two channels and a direct conversation. citebot answers about a copy
    of the current repository, or that of --repo. It prints an address that only this machine can reach.
    """
    invocation.serve_demo(repo, port)


@cli.command()
@click.option(
    "--print-config",
    "editor",
    type=click.Choice(["claude", "cursor", "vscode"]),
    help="Print the configuration of an editor, with absolute paths, and exit.",
)
@add_repo_option
@click.pass_obj
def mcp(invocation: CliContext, repo: str | None, editor: Editor | None) -> int:
    """Serve an editor or an agent over MCP on standard input and output.

    It serves the repository of --repo or the current one; outside any repository, all of citebot.toml.
    """
    from bot.cli.programs import FOR_PROGRAMS, format_config

    if editor is not None:
        click.echo(format_config(editor, repo))
        return 0

    async def work() -> CommandOutcome:
        from bot.cli.programs import serve_mcp

        settings = invocation.settings()
        tables = await asyncio.to_thread(invocation.choose_tables, repo, settings)
        return await serve_mcp(settings, tables, say=print_error)

    if sys.stdin.isatty():
        raise click.UsageError(FOR_PROGRAMS)
    return invocation.print_outcome(work())


@cli.command()
@click.argument("person", metavar="PERSON")
def token(person: str) -> None:
    """Create an API token for PERSON (slack:U123, discord:123).

    The token is for MCP and the HTTP API of `citebot serve`.
    """
    from bot.cli.programs import write_token

    click.echo(write_token(person))


@cli.command()
@click.argument("path", required=False, metavar="[NAME|PATH]", shell_complete=complete_repository)
@click.option("--full", is_flag=True, help="Start from scratch.")
@add_json_option
@add_repo_option
@click.pass_obj
def index(invocation: CliContext, path: str | None, repo: str | None, *, full: bool, as_json: bool) -> int:
    """Index a repository, or its changes since the last time.

    The default is the current repository; outside any repository, all of citebot.toml.
    """
    if path and repo:
        raise click.UsageError("Give the repository as an argument or as --repo, not both.")

    async def work() -> CommandOutcome:
        from bot.adapters.terminal.display import Terminal
        from bot.cli.query import index_all

        settings = invocation.settings()
        tables = await asyncio.to_thread(invocation.choose_tables, path or repo, settings)
        opening = [partial(invocation.open, settings, table) for table in tables]
        return await index_all(opening, Terminal.standard(), full=full, as_json=as_json)

    return invocation.print_outcome(work())


@cli.command()
@click.argument("query", required=False)
@click.option("-k", "limit", type=click.IntRange(min=1), default=10, show_default=True, help="The most results.")
@click.option("--batch", type=click.File("rb"), help='A file of {"id", "query"} lines to answer ("-": standard input).')
@click.option("--lang", "languages", multiple=True, help="Only this language; may be repeated, like all filters.")
@click.option(
    "--type",
    "types",
    multiple=True,
    type=click.Choice(["code", "test", "doc", "config"]),
    help="Only files of this kind.",
)
@click.option("--folder", "folders", multiple=True, help="Only below this folder.")
@click.option("--glob", "globs", multiple=True, help="Only paths that match, such as **/*.sql.")
@click.option("--mode", type=click.Choice(["hybrid", "lexical", "vector"]), default="hybrid", show_default=True)
@add_at_option
@add_json_option
@add_repo_option
@click.pass_obj
def search(
    invocation: CliContext,
    *,
    query: str | None,
    limit: int,
    batch: BinaryIO | None,
    languages: tuple[str, ...],
    types: tuple[Literal["code", "test", "doc", "config"], ...],
    folders: tuple[str, ...],
    globs: tuple[str, ...],
    mode: Literal["hybrid", "lexical", "vector"],
    at: str,
    repo: str | None,
    as_json: bool,
) -> int:
    """List the places in the code that match a query, best first."""
    if bool(query and query.strip()) == bool(batch):
        raise click.UsageError('Give a query, or --batch with a file of {"id", "query"} lines.')
    if globs:
        from indexer import BadPattern, compile_globs

        try:
            compile_globs(globs)
        except BadPattern as error:
            raise click.UsageError(str(error)) from error

    async def task(app: App, terminal: Terminal) -> CommandOutcome:
        from bot.cli.query import Listing, SearchQuery, pin_named, run_batch, run_search
        from indexer import Filters

        known_as = tuple(language.lower() for language in languages)
        filters = Filters(languages=known_as, source_types=types, folders=folders, patterns=globs)
        how = SearchQuery(limit=limit, filters=filters, mode=mode)
        code = await pin_named(app, terminal, at)
        if batch:
            return await run_batch(code, batch, how, write=click.echo, complain=terminal.note)
        return await run_search(code, query or "", how, Listing(terminal=terminal, as_json=as_json))

    return invocation.run_command(repo, task)


def _make_name_command(what: Literal["symbols", "callers", "callees"], purpose: str) -> click.Command:
    """Make a command that looks up a name; calls can be drawn as well."""

    @click.argument("name")
    @add_at_option
    @add_json_option
    @add_repo_option
    @click.pass_obj
    def look_up(
        invocation: CliContext, name: str, repo: str | None, *, at: str, as_json: bool, picture: Path | None = None
    ) -> int:
        if not name.strip():
            raise click.UsageError("The name is empty.")

        async def task(app: App, terminal: Terminal) -> CommandOutcome:
            from agent import normalize_name
            from bot.cli.query import Listing, list_calls, list_definitions, pin_named

            listing = Listing(terminal=terminal, as_json=as_json)
            written = normalize_name(name) or name
            code = await pin_named(app, terminal, at)
            if what == "symbols":
                return await list_definitions(code, written, listing)
            if picture is not None:
                from bot.cli.diagram import draw_calls

                await draw_calls(code, written, what, picture, terminal)
            return await list_calls(code, written, listing, what)

        return invocation.run_command(repo, task)

    return click.command(what, help=purpose)(look_up if what == "symbols" else add_graph_option(look_up))


@cli.command()
@click.option("--files", is_flag=True, help="List the files that are not indexed, with the reason.")
@add_json_option
@add_repo_option
@click.pass_obj
def status(invocation: CliContext, repo: str | None, *, files: bool, as_json: bool) -> int:
    """Show what is indexed, at which commit, and the disk space used.

    It shows all repositories of citebot.toml, or that of --repo.
    """

    async def work() -> CommandOutcome:
        from bot.app import read_all_statuses
        from bot.cli.query import list_left_out
        from bot.cli.upkeep import show_all_statuses, show_status

        settings = invocation.settings()
        if settings.repositories and not invocation.is_named(repo) and not files:
            return await show_all_statuses(await read_all_statuses(settings), settings, as_json=as_json)
        table = await asyncio.to_thread(invocation.choose_table, repo, settings)
        async with invocation.open(settings, table) as app:
            if files:
                return await list_left_out(await app.index.pin(), as_json=as_json)
            return await show_status(await app.index.status(), app.settings, as_json=as_json)

    return invocation.print_outcome(work())


@cli.command()
@click.option("--call-model", is_flag=True, help="Also ask the language model for one word.")
@click.option(
    "--live",
    multiple=True,
    metavar="CHANNEL",
    help="Also post, edit and delete a message in the channel with this id, and call the model; may be repeated.",
)
@add_json_option
@add_repo_option
@click.pass_obj
def doctor(invocation: CliContext, repo: str | None, *, call_model: bool, live: tuple[str, ...], as_json: bool) -> int:
    """Check the set-up, and say how to fix problems."""

    async def work() -> CommandOutcome:
        from bot.cli.doctor import format_report, report_invalid_settings, run_doctor
        from bot.errors import SettingsError

        try:
            settings = invocation.settings()
        except SettingsError as error:
            return format_report(report_invalid_settings(error), as_json=as_json)
        settings = await asyncio.to_thread(invocation.narrow_settings, repo, settings)
        where = invocation.find_default_path(settings)
        found = await run_doctor(
            settings, where, open_app=invocation.open_app, call_model=call_model or bool(live), live=live
        )
        return format_report(found, as_json=as_json)

    return invocation.print_outcome(work())


@cli.command()
@click.option(
    "--since", "days", type=click.IntRange(1, 36_500), metavar="DAYS", help="Only ratings of the last DAYS days."
)
@add_json_option
@click.pass_obj
def feedback(invocation: CliContext, *, days: int | None, as_json: bool) -> int:
    """List the ratings of answers, and how citebot found each answer."""

    async def work() -> CommandOutcome:
        from bot.cli.upkeep import export_feedback
        from bot.clock import SystemClock

        return await export_feedback(invocation.settings(), SystemClock(), days=days, as_json=as_json)

    return invocation.print_outcome(work())


@cli.command()
@click.option("--mermaid", "form", flag_value="mermaid", help="As Mermaid, for documents [default].")
@click.option("--ascii", "form", flag_value="ascii", help="As boxes and arrows, for a terminal.")
@click.option("--png", "picture", type=click.Path(dir_okay=False, path_type=Path), help="As a picture in this file.")
def graph(form: str | None, picture: Path | None) -> None:
    """Draw the steps that citebot takes from a question to its answer."""
    if form and picture:
        raise click.UsageError("Give one of --mermaid, --ascii and --png.")
    from bot.cli.diagram import format_boxes, format_mermaid

    if picture is None:
        click.echo(format_boxes() if form == "ascii" else format_mermaid())
        return
    from bot.cli.diagram import draw_png

    picture.write_bytes(draw_png())
    print_error(f"Drawn in {picture}.")


@cli.command()
@click.argument("name", default="")
def languages(name: str) -> None:
    """List the supported languages, or only NAME."""
    from indexer import list_languages

    rows = [f"{each.name:<16}{each.found}  ({' '.join(each.files)})" for each in list_languages()]
    rows = [row for row in rows if name.lower() in row.lower()]
    if not rows:
        raise click.UsageError(f"No language is called {name!r}. `citebot languages` lists them.")
    click.echo("\n".join(rows))


for _command in (
    backup, evaluate, gaps, goal, migrate, questions, replay, restore, sweep,
    _make_name_command("symbols", "List the definitions of NAME (`send` or `Session.send`)."),
    _make_name_command("callers", "List the callers of the function or class NAME."),
    _make_name_command("callees", "List the functions that NAME calls."),
):  # fmt: skip
    cli.add_command(_command)


@cli.command("map")
@click.argument("folder", default="")
@add_graph_option
@add_at_option
@add_json_option
@add_repo_option
@click.pass_obj
def map_folder(
    invocation: CliContext, *, folder: str, repo: str | None, at: str, as_json: bool, picture: Path | None
) -> int:
    """List which parts of a folder import each other.

    The parts are its sub-folders and modules. The default is the whole repository.
    """

    async def task(app: App, terminal: Terminal) -> CommandOutcome:
        from bot.cli.diagram import list_modules
        from bot.cli.query import pin_named

        code = await pin_named(app, terminal, at)
        return await list_modules(code, folder, picture, terminal, as_json=as_json)

    return invocation.run_command(repo, task)


def run(arguments: Sequence[str], *, open_app: OpenApp | None = None) -> int:
    """Run the command of the arguments and return the exit code."""
    # A file name that is not UTF-8, or a terminal that is not, must not end a command; nor a closed stream
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    try:
        code = cli.main(list(arguments), "citebot", standalone_mode=False, obj=CliContext(open_app=open_app))
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except TerminationSignal as ended:
        return 128 + ended.number
    except Exception as error:  # nobody is left to hear of it
        if "--debug" in arguments:
            raise
        print_error(f"citebot: {_describe_error(error)}", logging.ERROR)
        return 1
    return int(code or 0)


def _describe_error(error: Exception) -> str:
    if isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:  # a task group wraps errors
        return _describe_error(error.exceptions[0])
    if isinstance(error, IndexerError | AgentError | BotError):
        from indexer import describe_error

        return describe_error(error)
    if isinstance(error, OSError):
        return f"{error}. This error comes from the operating system; fix it and try again."
    return describe_unexpected(error)


def main() -> None:
    """Run as a program.

    Garbage is not collected during loading, because looking for it takes a tenth of a start and
    finds none. Nor at the end.
    """
    restrict_umask()
    gc.disable()
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)
