"""What all commands share: their options, and opening what they work with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bot.tasks import run_until_signal

if TYPE_CHECKING:
    from bot.adapters.terminal.display import Terminal
    from bot.adapters.terminal.output import CommandOutcome
    from bot.app import App
    from bot.settings import Settings

OpenApp = Callable[["Settings", Path], AbstractAsyncContextManager["App"]]
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class CliContext:
    """What all commands share: how the application is opened, and the options given before the command."""

    open_app: OpenApp | None = None
    repo: Path | None = None
    debug: bool = False

    def run_command(self, repo: Path | None, task: Callable[[App, Terminal], Awaitable[CommandOutcome]]) -> int:
        """Open the application, do the task, print its outcome; return the exit code."""

        async def work() -> CommandOutcome:
            from bot.adapters.terminal.display import Terminal
            from bot.app import App

            settings = self.settings()
            async with (self.open_app or App.open)(settings, self.repository(repo, settings)) as app:
                return await task(app, Terminal.standard())

        return self.print_outcome(work())

    def print_outcome(self, work: Coroutine[Any, Any, CommandOutcome]) -> int:
        """Do the work, print its outcome; return the exit code."""
        outcome = asyncio.run(run_until_signal(work))
        if outcome.note:
            print_error(outcome.note)
        if outcome.output:
            click.echo(outcome.output)
        return 0 if outcome.ok else 1

    def serve(self, repo: Path | None) -> None:
        """Serve the platforms until the process is stopped."""
        from bot.monitoring.watchdog import WatchedLoop
        from bot.serving import service

        settings = self.settings()
        with asyncio.Runner(loop_factory=WatchedLoop) as runner:
            runner.run(run_until_signal(service.serve_team(settings, self.repository(repo, settings), print_error)))

    def settings(self) -> Settings:
        """Read the settings, set up the log, and warn of a citebot.toml that is not read."""
        from bot.app import make_redactor
        from bot.monitoring.logs import log_to_stderr
        from bot.settings import Settings

        settings = Settings.load()
        log_to_stderr("debug" if self.debug else settings.log_level, settings.log_format, make_redactor(settings))
        if settings.remark:
            print_error(settings.remark, logging.WARNING)
        return settings

    def repository(self, repo: Path | None, settings: Settings) -> Path:
        """Which repository is meant."""
        return repo or self.repo or settings.repo or Path.cwd()

    def is_named(self, repo: Path | None) -> bool:
        """Whether the command line says which repository is meant."""
        return (repo or self.repo) is not None


class RepositoryPath(click.Path):
    """A path in which `~` stands for the home folder: `make run REPO=~/code` reaches us unexpanded from some shells."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Expand the path."""
        try:
            return super().convert(Path(value).expanduser(), param, ctx)
        except RuntimeError:
            self.fail(f"There is no home folder for {value}.", param, ctx)


def add_repo_option(command: Command) -> Command:
    """Let the command take `--repo`."""
    option = click.option(
        "--repo", type=RepositoryPath(), metavar="PATH", help="The repository [default: the current one]."
    )
    return option(command)


def add_json_option(command: Command) -> Command:
    """Let the command take `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")(command)


def print_error(text: str, level: int = logging.INFO) -> None:
    """Print a message on standard error, in the format of the log; `level` counts where that is JSON."""
    from bot.markdown import replace_control_characters
    from bot.monitoring import logs

    if logs.is_json_logging():
        logs.log_always(text, level)
        return
    click.echo(replace_control_characters(text), err=True)  # it may quote a path of the repository
