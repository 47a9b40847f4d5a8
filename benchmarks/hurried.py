"""Citebot that calls as often as it likes: `python -m benchmarks.hurried serve`.

A thousand answers within the rates of a platform take a quarter of an hour, most of it spent on waiting. Nothing but
the tables of rates is different from `citebot`.
"""

from __future__ import annotations

import bot.adapters.discord.workspace
import bot.adapters.slack.workspace
from bot.cli import main

if __name__ == "__main__":
    for workspace in (bot.adapters.discord.workspace, bot.adapters.slack.workspace):
        setattr(workspace, "RATES", {})  # noqa: B010 - mypy minds an assignment
    main()
