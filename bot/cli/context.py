"""The options that all commands share, and the context that opens the application for them."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from bot.tasks import run_until_signal

if TYPE_CHECKING:
    from bot.adapters.terminal.display import Terminal
    from bot.adapters.terminal.output import CommandOutcome
    from bot.app import App
    from bot.serving.cluster import Role
    from bot.settings import RepositoryTable, Settings

_LOADING_SECONDS = 2.0

OpenApp = Callable[["Settings", "RepositoryTable"], AbstractAsyncContextManager["App"]]
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class CliContext:
    """The context of all commands: a way to open the application, and the options given before the command."""

    open_app: OpenApp | None = None
    repo: str | None = None
    debug: bool = False

    def run_command(self, repo: str | None, task: Callable[[App, Terminal], Awaitable[CommandOutcome]]) -> int:
        """Open the application, do the task, print its outcome; return the exit code."""

        async def work() -> CommandOutcome:
            from bot.adapters.terminal.display import Terminal

            settings = self.settings()
            table = await asyncio.to_thread(self.choose_table, repo, settings)
            async with self.open(settings, table) as app:
                return await task(app, Terminal.standard())

        return self.print_outcome(work())

    def open(self, settings: Settings, table: RepositoryTable) -> AbstractAsyncContextManager[App]:
        """Open the application for a repository."""
        if self.open_app is not None:
            return self.open_app(settings, table)
        from bot.app import App

        return App.open(settings, table, say=print_error)

    def print_outcome(self, work: Coroutine[Any, Any, CommandOutcome]) -> int:
        """Do the work, print its outcome; return the exit code."""
        outcome = asyncio.run(_run_work(work))
        if outcome.note:
            print_error(outcome.note)
        if outcome.data and not sys.stdout.isatty():
            click.echo(outcome.data, nl=False)
        elif outcome.output:
            click.echo(outcome.output)
        return 0 if outcome.ok else 1

    def serve(self, repo: str | None, role: Role) -> None:
        """Serve the platforms until the process is stopped."""
        from bot.serving import service

        settings = self.narrow_settings(repo, self.settings())
        self._run_until_signal(service.serve_team(settings, self.find_default_path(settings), print_error, role=role))

    def serve_page(self, repo: str | None, port: int) -> None:
        """Serve the page to the person at this machine until the process is stopped."""
        from bot.serving.local import serve_local_page

        settings = self.narrow_settings(repo, self.settings())
        self._run_until_signal(serve_local_page(settings, self.find_default_path(settings), print_error, port=port))

    def serve_demo(self, repo: str | None, port: int) -> None:
        """Serve the demo workspace to the person at this machine until the process is stopped."""
        from bot.serving.local import serve_demo

        settings = self.settings()
        table = self.choose_table(repo, settings)
        self._run_until_signal(serve_demo(settings, table, print_error, port=port))

    def _run_until_signal(self, serving: Coroutine[Any, Any, None]) -> None:
        from bot.monitoring.watchdog import WatchedLoop

        with asyncio.Runner(loop_factory=WatchedLoop) as runner:
            runner.run(run_until_signal(serving))

    def settings(self) -> Settings:
        """Read the settings, set up the log, and warn of an ignored citebot.toml."""
        from bot.app import make_redactor
        from bot.monitoring.logs import log_to_stderr
        from bot.settings import Settings

        settings = Settings.load()
        log_to_stderr("debug" if self.debug else settings.log_level, settings.log_format, make_redactor(settings))
        if settings.remark:
            print_error(settings.remark, logging.WARNING)
        return settings

    def choose_table(self, repo: str | None, settings: Settings) -> RepositoryTable:
        """Choose the one repository of the command."""
        from bot.cli.target import choose_table

        return choose_table(settings, self.name_repository(repo))

    def choose_tables(self, repo: str | None, settings: Settings) -> Sequence[RepositoryTable]:
        """Choose the repositories: all of citebot.toml by default."""
        from bot.cli.target import choose_tables

        return choose_tables(settings, self.name_repository(repo))

    def narrow_settings(self, repo: str | None, settings: Settings) -> Settings:
        """Limit the settings to the repository of the command line, if it names one."""
        from bot.cli.target import narrow_settings

        return narrow_settings(settings, self.name_repository(repo))

    def is_named(self, repo: str | None) -> bool:
        """Whether the command line names a repository."""
        return self.name_repository(repo) is not None

    def name_repository(self, repo: str | None) -> str | None:
        """Return the repository named before or after the command; a `UsageError` if both differ."""
        if repo and self.repo and repo != self.repo:
            raise click.UsageError(
                f"Two repositories are given: {self.repo} before the command and {repo} after it. Give one."
            )
        return repo or self.repo

    def find_default_path(self, settings: Settings) -> Path:
        """Return the path of the repository to use if citebot.toml has none."""
        return settings.repo or Path.cwd()


async def _run_work(work: Coroutine[Any, Any, CommandOutcome]) -> CommandOutcome:
    asyncio.get_running_loop().call_later(_LOADING_SECONDS, gc.enable)
    return await run_until_signal(work)


def complete_repository(_context: click.Context, _parameter: click.Parameter, beginning: str) -> list[CompletionItem]:
    """Complete names in citebot.toml, and folders."""
    from bot.cli.target import complete_names

    # bash forgets the word's prefix when it completes folders.
    return [CompletionItem(beginning, type="dir"), *map(CompletionItem, complete_names(beginning))]


def add_repo_option(command: Command) -> Command:
    """Add `--repo` to the command."""
    option = click.option(
        "--repo",
        shell_complete=complete_repository,
        metavar="NAME|PATH",
        help="The repository: its name in citebot.toml, or a path [default: the current one].",
    )
    return option(command)


def add_port_option(default: int) -> Callable[[Command], Command]:
    """Add `--port` to the command."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65_535),
        default=default,
        show_default=True,
        help="Port to listen on (0 = any free port).",
    )


def add_repeatable_repo_option(command: Command) -> Command:
    """Add a repeatable `--repo` to the command."""
    option = click.option(
        "--repo",
        "repos",
        multiple=True,
        shell_complete=complete_repository,
        metavar="NAME|PATH",
        help="The repository: its name in citebot.toml, or a path [default: the current one]; several may be given.",
    )
    return option(command)


def add_at_option(command: Command) -> Command:
    """Add `--at` to the command."""
    option = click.option(
        "--at",
        metavar="REF",
        default="",
        help="A branch, tag, commit or pull request (#12) to read instead of the newest commit.",
    )
    return option(command)


def add_json_option(command: Command) -> Command:
    """Add `--json` to the command."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")(command)


def add_graph_option(command: Command) -> Command:
    """Add `--graph` to the command."""
    option = click.option(
        "--graph",
        "picture",
        type=click.Path(dir_okay=False, path_type=Path),
        callback=_check_picture,
        metavar="FILE",
        help="Also draw several steps; FILE ends in .svg, .png or .mmd (Mermaid).",
    )
    return option(command)


def _check_picture(_context: click.Context, _parameter: click.Parameter, picture: Path | None) -> Path | None:
    if picture is not None and picture.suffix not in {".svg", ".png", ".mmd"}:
        raise click.BadParameter("The file must end in .svg, .png or .mmd.")
    return picture


def print_error(text: str, level: int = logging.INFO) -> None:
    """Print a message on standard error, in the format of the log; `level` counts in JSON."""
    from bot.markdown import replace_control_characters
    from bot.monitoring import logs

    if logs.is_json_logging():
        logs.log_always(text, level)
        return
    click.echo(replace_control_characters(text), err=True)  # it may quote a path of the repository
