"""Processes that serve a team: `python -m tests.fakes.serving`.

Each line of its input is a JSON list. `["start", variables, directory, point]` starts a process that does what
`citebot serve` does, and answers its pid; at the point, if it is not empty, the process gets SIGKILL
(`tests.fakes.dying` tells of points). `["end", pid, signal]` sends the signal, unless it is 0, waits for the process
and answers how it ended. `["hurry"]` lets processes call as often as they like that are started from then on. They are
forked: what takes seconds to import is imported once.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import agent.agent  # noqa: F401 - imported before the forks
import bot.adapters.discord.adapter
import bot.adapters.slack.adapter
import bot.serving.service
import indexer.index  # noqa: F401
from bot.monitoring.watchdog import WatchedLoop
from bot.settings import Settings
from bot.tasks import TerminationSignal, run_until_signal
from tests.fakes.dying import Fuse


def start(variables: Mapping[str, str], directory: str, point: str) -> int:
    """Fork a process that serves until it is told to end."""
    child = os.fork()
    if not child:
        _serve(variables, Path(directory), point)
    return child


def _serve(variables: Mapping[str, str], directory: Path, point: str) -> NoReturn:
    code = 0
    try:
        if point:
            Fuse(point).arm()
        os.environ.update(variables)
        settings = Settings.load(variables, directory)
        with asyncio.Runner(loop_factory=WatchedLoop) as runner:
            runner.run(run_until_signal(bot.serving.service.serve_team(settings, directory, _say)))
    except TerminationSignal as ended:
        code = 128 + ended.number
    finally:
        os._exit(code)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def end(pid: int, number: int) -> int:
    """Tell a process to end, and return how it did."""
    if number:
        os.kill(pid, number)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


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
