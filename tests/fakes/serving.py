"""A process that serves a team, as `citebot serve` does."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path

import bot.adapters.discord.adapter
import bot.adapters.slack.adapter
import bot.jobs.queued_jobs
import bot.serving.service
from bot.monitoring.watchdog import WatchedLoop
from bot.serving.cluster import Role
from bot.settings import Settings
from bot.tasks import TerminationSignal, run_until_signal
from tests.fakes import dying
from tests.forks import import_all


def warm_up() -> None:
    """Answer a first question, and import what serving imports as soon as it needs it."""
    dying.warm_up()
    import_all("chromadb", "git", "obstore", "procrastinate", "bot.serving.platforms", "indexer.generations.pipeline")


def serve(directory: str, point: str = "", role: Role = "all", is_hurried: bool = False) -> int:
    """Serve until a signal ends this process, or SIGKILL does at a point, if there is one.

    `tests.fakes.dying` tells of points; `job<` is before an answer is asked for as a job. One that is hurried calls the
    platforms as often as it likes. Where `CITEBOT_TEST_LOGS` names a folder, it logs to a file of it.
    """
    if point:
        dying.Fuse(point).arm((bot.jobs.queued_jobs.QueuedAnswerJobs, "ask_for_answer", "job"))
    if is_hurried:
        for workspace in (bot.adapters.discord.adapter, bot.adapters.slack.adapter):
            setattr(workspace, "RATES", {})  # noqa: B010 - mypy minds an assignment
    if folder := os.environ.get("CITEBOT_TEST_LOGS"):
        name = f"{folder}/{role} {os.getpid()}.log"
        logging.basicConfig(filename=name, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    settings = Settings.load(os.environ, Path(directory))
    try:
        with asyncio.Runner(loop_factory=WatchedLoop) as runner:
            runner.run(run_until_signal(bot.serving.service.serve_team(settings, Path(directory), say, role=role)))
    except TerminationSignal as ended:
        return 128 + ended.number
    return 0


def say(text: str) -> None:
    """Tell anyone who looks at standard error."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
