"""The commands that save, restore and sweep the data folder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.cli.context import CliContext, add_json_option, add_repo_option, print_error

if TYPE_CHECKING:
    from bot.adapters.terminal.output import CommandOutcome
    from bot.app import App
    from bot.settings import RepositoryTable


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--no-indexes", "indexes", flag_value=False, default=True, help="Leave out the indexes, which can be rebuilt."
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@add_json_option
@click.pass_obj
def backup(invocation: CliContext, file: Path, *, indexes: bool, force: bool, as_json: bool) -> int:
    """Save conversations, messages, ratings and indexes in FILE.

    citebot may keep running.
    """

    async def work() -> CommandOutcome:
        from bot.cli.upkeep import save_data_folder
        from bot.clock import SystemClock

        home = invocation.settings().home
        return await save_data_folder(home, file, SystemClock(), indexes=indexes, force=force, as_json=as_json)

    return invocation.print_outcome(work())


@click.command()
@click.option(
    "--export", "folder", required=True, metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="Write a file for each lookup into this new folder.",
)  # fmt: skip
@click.option(
    "--since", "days", type=click.IntRange(1, 36_500), metavar="DAYS", help="Only questions of the last DAYS days."
)
@add_json_option
@click.pass_obj
def questions(invocation: CliContext, folder: Path, *, days: int | None, as_json: bool) -> int:
    """Export the kept questions, with secrets masked.

    Each becomes one line of training examples. None are kept unless `keep_question_days` is set. Only the accounts in
    `questions` of [access] may export them.
    """

    async def work() -> CommandOutcome:
        from bot.cli.upkeep import export_questions
        from bot.clock import SystemClock

        return await export_questions(invocation.settings(), SystemClock(), folder, days=days, as_json=as_json)

    return invocation.print_outcome(work())


@click.command()
@click.option("--days", type=click.IntRange(1, 36_500), default=30, show_default=True, help="How many days to cover.")
@add_json_option
@click.pass_obj
def gaps(invocation: CliContext, *, days: int, as_json: bool) -> int:
    """Report unanswered questions, and the reasons.

    Adds the nearest places and their owners from CODEOWNERS. Shows questions, with secrets masked, if
    `keep_question_days` keeps them. Only the accounts in `questions` of [access] may read this.
    """

    async def work() -> CommandOutcome:
        from bot.cli.gaps import report_gaps
        from bot.clock import SystemClock

        settings = invocation.settings()
        tables: Sequence[RepositoryTable] = settings.repositories
        tables = tables or await asyncio.to_thread(invocation.choose_tables, None, settings)
        opening = [partial(invocation.open, settings, table) for table in tables]
        return await report_gaps(settings, SystemClock(), opening, days=days, as_json=as_json)

    return invocation.print_outcome(work())


@click.command()
@click.argument("run", default="")
@add_json_option
@click.pass_obj
def replay(invocation: CliContext, run: str, *, as_json: bool) -> int:
    """Derive the answer of a RUN again, and compare the two.

    Uses the same commit and the recorded replies of models; no model is asked. Also lists rejected
    evidence. Fails if anything differs. Without RUN, lists the newest answers. Only the accounts in `questions` of
    [access] may read this.
    """

    async def work() -> CommandOutcome:
        from bot.cli.replay import list_answers, replay_answer
        from bot.clock import SystemClock

        settings = invocation.settings()
        if not run:
            return await list_answers(settings, SystemClock(), as_json=as_json)
        tables: Sequence[RepositoryTable] = settings.repositories
        tables = tables or await asyncio.to_thread(invocation.choose_tables, None, settings)
        opening = [partial(invocation.open, settings, table) for table in tables]
        return await replay_answer(settings, SystemClock(), opening, run, as_json=as_json)

    return invocation.print_outcome(work())


@click.command("eval")
@click.argument("file", metavar="QUESTIONS.toml", type=click.Path(path_type=Path))
@click.option(
    "--threshold", type=click.IntRange(0, 100), metavar="PERCENT",
    help="Also fail if fewer than this percentage is right.",
)  # fmt: skip
@click.option("--accept", is_flag=True, help="Compare later runs with this one.")
@click.option("--no-model", is_flag=True, help="Answer without a language model, even if one is set.")
@add_json_option
@add_repo_option
@click.pass_obj
def evaluate(
    invocation: CliContext,
    file: Path,
    *,
    threshold: int | None,
    accept: bool,
    no_model: bool,
    as_json: bool,
    repo: str | None,
) -> int:
    """Ask questions with known answers, and compare.

    Each question of QUESTIONS.toml lists places or words that a right answer must have. Fails if a question got worse
    since the last run. A question without a `repository` is about that of --repo.
    """

    async def work() -> CommandOutcome:
        from bot.adapters.terminal.display import Terminal
        from bot.cli.evaluation import read_questions, run_evaluation

        settings = invocation.settings()
        settings = settings.model_copy(update={"model": "none"}) if no_model else settings
        asked = await asyncio.to_thread(read_questions, file)
        async with AsyncExitStack() as stack:
            apps: dict[str | None, App] = {}
            for name in dict.fromkeys(name for one in asked for name in (one.repositories or (None,))):
                table = await asyncio.to_thread(invocation.choose_table, name or repo, settings)
                apps[name] = await stack.enter_async_context(invocation.open(settings, table))
            return await run_evaluation(
                settings, file, asked, apps, Terminal.standard(), threshold=threshold, accept=accept, as_json=as_json
            )

    return invocation.print_outcome(work())


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace the contents of the data folder.")
@add_json_option
@click.pass_obj
def restore(invocation: CliContext, file: Path, *, force: bool, as_json: bool) -> int:
    """Restore a backup from FILE. Stop every other citebot first."""

    async def work() -> CommandOutcome:
        from bot.cli.upkeep import restore_data_folder

        return await restore_data_folder(invocation.settings().home, file, force=force, as_json=as_json)

    return invocation.print_outcome(work())


@click.command()
@click.option("--to-postgres", "target", flag_value="postgres", help="From the data folder to the database.")
@click.option("--to-sqlite", "target", flag_value="sqlite", help="From the database to the data folder.")
@add_json_option
@click.pass_obj
def migrate(invocation: CliContext, target: str | None, *, as_json: bool) -> int:
    """Move messages and conversations to Postgres, or back.

    DATABASE_URL names the database, CITEBOT_HOME the folder. Stop every citebot first. The target must be empty; the
    source stays unchanged, so you can go back. If the copy lacks anything, nothing is moved. Indexes stay where they
    are.
    """
    if target is None:
        raise click.UsageError("Give --to-postgres or --to-sqlite.")

    async def work() -> CommandOutcome:
        from bot.cli.upkeep import migrate_data_folder

        return await migrate_data_folder(invocation.settings(), target, print_error, as_json=as_json)

    return invocation.print_outcome(work())


@click.command()
@click.option(
    "--unused-indexes", "unused", is_flag=True, help="Also delete the indexes of repositories not in citebot.toml."
)
@add_json_option
@add_repo_option
@click.pass_obj
def sweep(invocation: CliContext, repo: str | None, *, unused: bool, as_json: bool) -> int:
    """Delete data older than RETENTION_DAYS, and free disk space.

    `citebot serve` does this daily, but never deletes unused indexes.
    """

    async def work() -> CommandOutcome:
        from bot.adapters.terminal.display import Terminal
        from bot.cli.upkeep import sweep_data_folder
        from bot.clock import SystemClock

        settings = invocation.settings()
        chosen = await asyncio.to_thread(invocation.narrow_settings, repo, settings)
        return await sweep_data_folder(
            settings, chosen, Terminal.standard(), SystemClock(), unused=unused, as_json=as_json
        )

    return invocation.print_outcome(work())
