"""The commands that look after the data folder: saved, restored, swept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bot.invocation import Invocation, json_option, repo_option

if TYPE_CHECKING:
    from bot.lookups import Outcome


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--no-indexes", "indexes", flag_value=False, default=True, help="Leave out what can be rebuilt.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@json_option
@click.pass_obj
def backup(invocation: Invocation, file: Path, *, indexes: bool, force: bool, as_json: bool) -> int:
    """Save conversations, messages, ratings and indexes in FILE; citebot may keep running."""

    async def work() -> Outcome:
        from bot import upkeep
        from bot.clock import SystemClock

        home = invocation.settings().home
        return await upkeep.backup(home, file, SystemClock(), indexes=indexes, force=force, as_json=as_json)

    return invocation.conclude(work())


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace what the data folder holds.")
@json_option
@click.pass_obj
def restore(invocation: Invocation, file: Path, *, force: bool, as_json: bool) -> int:
    """Restore what FILE holds; no other citebot may be running."""

    async def work() -> Outcome:
        from bot import upkeep

        return await upkeep.restored(invocation.settings().home, file, force=force, as_json=as_json)

    return invocation.conclude(work())


@click.command()
@click.option("--unused-indexes", "unused", is_flag=True, help="Remove the indexes of no repository in citebot.toml.")
@json_option
@repo_option
@click.pass_obj
def sweep(invocation: Invocation, repo: Path | None, *, unused: bool, as_json: bool) -> int:
    """Delete what is older than RETENTION_DAYS, and free its disk space.

    `citebot serve` does so every day; unused indexes go only when asked for here.
    """

    async def work() -> Outcome:
        from bot import upkeep
        from bot.adapters.terminal import Terminal
        from bot.clock import SystemClock

        settings = invocation.settings()
        where = invocation.repository(repo, settings)
        return await upkeep.sweep(settings, where, Terminal.standard(), SystemClock(), unused=unused, as_json=as_json)

    return invocation.conclude(work())
