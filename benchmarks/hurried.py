"""Citebot that calls as often as it likes: `python -m benchmarks.hurried serve`.

A thousand answers within the rates of a platform take a quarter of an hour, most of it spent on waiting. Nothing but
the tables of rates is different from `citebot`.
"""

from __future__ import annotations

import bot.adapters.discord.adapter
import bot.adapters.slack.adapter
from bot.cli.main import main

if __name__ == "__main__":
    for workspace in (bot.adapters.discord.adapter, bot.adapters.slack.adapter):
        setattr(workspace, "RATES", {})  # noqa: B010 - mypy minds an assignment
    main()
