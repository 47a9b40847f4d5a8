"""The commands of `citebot goal`: one per kind of goal, and one that resumes an interrupted run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, Unpack

import click

from bot.cli.context import CliContext, add_json_option, add_repo_option

if TYPE_CHECKING:
    from bot.adapters.terminal.display import Terminal
    from bot.adapters.terminal.output import CommandOutcome
    from bot.app import App
    from bot.cli.goal_command import GoalOptions

Command = TypeVar("Command", bound=Callable[..., Any])


class OutcomeOptions(TypedDict):
    """The destination of a run's result, and its repository."""

    patch: Path | None
    as_json: bool
    repo: str | None


class RunOptions(OutcomeOptions):
    """The limits and the approval of a new run."""

    max_iterations: int
    hitl: bool
    approved: bool


class GoalGroup(click.Group):
    """The kinds of goal; lists them for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            kinds = ", ".join(name for name in self.commands if name != "resume")
            raise click.UsageError(
                f"There is no goal {args[0][:80]!r}. There are: {kinds}. `resume` continues a run.", ctx
            )
        return super().resolve_command(ctx, args)


@click.group(cls=GoalGroup)
def goal() -> None:
    """Work on a copy of the code in a sandbox until a check passes.

    TASK says what you want. citebot prints a patch, and never changes your files. Nothing runs before you approve it.
    """


def add_outcome_options(command: Command) -> Command:
    """Add the options for the result to a command."""
    option = click.option(
        "--patch",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the patch to this file, and print the verdict.",
    )
    return option(add_json_option(add_repo_option(command)))


def add_run_options(command: Command) -> Command:
    """Add the options of starting and approving a run to a command."""
    most = click.option(
        "--max-iterations",
        type=click.IntRange(1, 100),
        default=20,
        show_default=True,
        help="The most iterations.",
    )
    hitl = click.option("--hitl", is_flag=True, help="Ask before each further iteration.")
    approved = click.option("--yes", "approved", is_flag=True, help="Approve the run.")
    return most(hitl(approved(add_outcome_options(command))))


@goal.command("pytest")
@click.argument("task")
@click.option("--select", multiple=True, metavar="TEST", help="A file, folder or test; repeatable.")
@add_run_options
@click.pass_obj
def reach_tests(invocation: CliContext, *, task: str, select: tuple[str, ...], **options: Unpack[RunOptions]) -> int:
    """Until the tests of --select pass."""
    if not select:
        raise click.UsageError("No tests are selected. Name a file, a folder or a test, as --select tests/test_a.py.")
    return _run(invocation, "pytest", task, {"select": [*select]}, options)


@goal.command("command")
@click.argument("task")
@click.argument("argv", nargs=-1, required=True, metavar="-- COMMAND ...")
@add_run_options
@click.pass_obj
def reach_command(invocation: CliContext, *, task: str, argv: tuple[str, ...], **options: Unpack[RunOptions]) -> int:
    """Until the COMMAND after -- succeeds."""
    return _run(invocation, "command", task, {"argv": [*argv]}, options)


@goal.command("claim")
@click.argument("task", metavar="CLAIM")
@add_run_options
@click.pass_obj
def reach_claim(invocation: CliContext, *, task: str, **options: Unpack[RunOptions]) -> int:
    """Until a test shows the CLAIM to be true or false."""
    return _run(invocation, "claim", task, {"claim": task}, options)


@goal.command("types")
@click.argument("task")
@click.option("--path", "paths", multiple=True, help="A file or folder; repeatable.")
@click.option("--tool", type=click.Choice(["mypy", "pyright"]), default="mypy", show_default=True)
@add_run_options
@click.pass_obj
def reach_types(
    invocation: CliContext,
    *,
    task: str,
    paths: tuple[str, ...],
    tool: Literal["mypy", "pyright"],
    **options: Unpack[RunOptions],
) -> int:
    """Until mypy or pyright finds fewer errors, and none new."""
    return _run(invocation, "types", task, {"paths": [*paths] or ["."], "tool": tool}, options)


@goal.command("lint")
@click.argument("task")
@click.option("--path", "paths", multiple=True, help="A file or folder; repeatable.")
@add_run_options
@click.pass_obj
def reach_lint(invocation: CliContext, *, task: str, paths: tuple[str, ...], **options: Unpack[RunOptions]) -> int:
    """Until ruff finds fewer problems, and none new."""
    return _run(invocation, "lint", task, {"paths": [*paths] or ["."]}, options)


@goal.command("resume")
@click.argument("run", required=False)
@add_outcome_options
@click.pass_obj
def resume(invocation: CliContext, *, run: str | None, **options: Unpack[OutcomeOptions]) -> int:
    """Continue an interrupted run: RUN, or the last one here."""

    async def work(app: App, terminal: Terminal) -> CommandOutcome:
        from bot.cli.goal_command import resume_goal

        return await resume_goal(app, terminal, run, _make_options(options, is_approved=True))

    return invocation.run_command(options["repo"], work)


def _run(invocation: CliContext, kind: str, task: str, arguments: Mapping[str, object], options: RunOptions) -> int:
    if not task.strip():
        raise click.UsageError("Say what you want.")

    async def work(app: App, terminal: Terminal) -> CommandOutcome:
        from agent import GoalRequest
        from bot.cli.goal_command import run_goal

        request = GoalRequest(
            goal=kind,
            arguments=arguments,
            task=task,
            max_iterations=options["max_iterations"],
            hitl=options["hitl"],
        )
        return await run_goal(app, terminal, request, _make_options(options, is_approved=options["approved"]))

    return invocation.run_command(options["repo"], work)


def _make_options(options: OutcomeOptions, *, is_approved: bool) -> GoalOptions:
    from bot.cli.goal_command import GoalOptions

    read = (lambda text: click.prompt(text, prompt_suffix="", err=True)) if sys.stdin.isatty() else None
    return GoalOptions(is_approved=is_approved, as_json=options["as_json"], patch=options["patch"], read=read)
