"""Citebot that calls as often as it likes, and writes down what holds its event loop: `python -m benchmarks.gauged`.

Each line of the file that `GAUGE` names is for how many seconds the loop was held by one round of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import bot.adapters.discord.adapter
import bot.adapters.slack.adapter
from bot.cli.main import main
from bot.monitoring.metrics import ConversationMetrics

if __name__ == "__main__":
    gauge = Path(os.environ.pop("GAUGE")).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 - until the end
    setattr(ConversationMetrics, "measure_stall", lambda _, seconds: print(seconds, file=gauge))  # noqa: B010 - mypy minds
    for workspace in (bot.adapters.discord.adapter, bot.adapters.slack.adapter):
        setattr(workspace, "RATES", {})  # noqa: B010
    main()
