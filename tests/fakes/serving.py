"""Processes that serve a team: `python -m tests.fakes.serving`.

Each line of its input is a JSON list. `["start", variables, directory, point, role]` starts a process that does what
`citebot serve` does, in all roles if none is named, and answers its pid; at the point, if it is not empty, the process
gets SIGKILL (`tests.fakes.dying` tells of points; `job<` is before an answer is asked for as a job).
`["end", pid, signal]` sends the signal, unless it is 0, waits for the process and answers how it ended. `["hurry"]`
lets processes call as often as they like that are started from then on. Where `CITEBOT_TEST_LOGS` names a folder, each
process logs to a file of it. They are forked: what takes seconds to import is imported once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import agent.agent  # noqa: F401 - imported before the forks
import bot.adapters.discord.adapter
import bot.adapters.slack.adapter
import bot.jobs.queued_answers
import bot.serving.service
import indexer.index  # noqa: F401
from bot.monitoring.watchdog import WatchedLoop
from bot.serving.roles import Role
from bot.settings import Settings
from bot.tasks import TerminationSignal, run_until_signal
from tests.fakes.dying import Fuse

LONGEST = 120.0  # seconds; longer than any test waits for an answer


def start(variables: Mapping[str, str], directory: str, point: str, role: Role = "all") -> int:
    """Fork a process that serves until it is told to end."""
    child = os.fork()
    if not child:
        _serve(variables, Path(directory), point, role)
    return child


def _serve(variables: Mapping[str, str], directory: Path, point: str, role: Role) -> NoReturn:
    code = 0
    try:
        if point:
            Fuse(point).arm((bot.jobs.queued_answers.QueuedAnswerJobs, "ask_for_answer", "job"))
        os.environ.update(variables)
        if folder := variables.get("CITEBOT_TEST_LOGS"):
            name = f"{folder}/{role} {os.getpid()}.log"
            logging.basicConfig(filename=name, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
        settings = Settings.load(variables, directory)
        with asyncio.Runner(loop_factory=WatchedLoop) as runner:
            runner.run(run_until_signal(bot.serving.service.serve_team(settings, directory, _say, role=role)))
    except TerminationSignal as ended:
        code = 128 + ended.number
    finally:
        os._exit(code)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def end(pid: int, number: int) -> int:
    """Tell a process to end, and return how it did; one that does not is killed when its test has long failed."""
    if number:
        os.kill(pid, number)
    too_late = threading.Timer(LONGEST, os.kill, (pid, signal.SIGKILL))
    too_late.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        too_late.cancel()


def hurry() -> int:
    """Forget how often the platforms may be called."""
    for workspace in (bot.adapters.discord.adapter, bot.adapters.slack.adapter):
        setattr(workspace, "RATES", {})  # noqa: B010 - mypy minds an assignment
    return 0


def main() -> None:
    """Do what the lines say, one after the other."""
    verbs: Mapping[str, Callable[..., int]] = {"start": start, "end": end, "hurry": hurry}
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        print(verbs[verb](*arguments), flush=True)  # noqa: T201 - the other side reads it


if __name__ == "__main__":
    main()
