"""Citebot that calls as often as it likes: `python -m benchmarks.hurried serve`.

A thousand answers within the rates of a platform take a quarter of an hour, most of it spent on waiting. Nothing but
the table of rates is different from `citebot`.
"""

from __future__ import annotations

import bot.adapters.slack.workspace
from bot.cli import main

if __name__ == "__main__":
    setattr(bot.adapters.slack.workspace, "RATES", {})  # noqa: B010 - mypy minds an assignment
    main()
