"""A program of its own: runs bubblewrap, hands it no descriptor that is not its own, and ends it when citebot dies.

    python -I -S box_watch.py LIFELINE OTHERS COMMAND...

The first number is a descriptor that ends when citebot does; `OTHERS`, joined by commas, are held until the box has
ended. None of them is in the box, where anyone who has the same user could open it again by `/proc`.
"""

from __future__ import annotations

import os
import select
import sys
import time

_KILL = 9
_BUILDING = (
    1.0  # seconds that bubblewrap is left: killed while it builds a box, it would leave its first process behind
)
_WORST = b"1000"  # the kernel ends the box first where the machine has no memory left


def main() -> int:
    """Run the command until it or citebot ends; return its exit code."""
    lifeline = int(sys.argv[1])
    for descriptor in (lifeline, *map(int, sys.argv[2].split(","))):
        os.set_inheritable(descriptor, False)
    child = os.fork()
    if child == 0:
        _become(sys.argv[3:])
    os.close(0)  # the input is the command's alone
    ended = os.pidfd_open(child)
    if ended not in select.select([lifeline, ended], [], [])[0]:
        time.sleep(_BUILDING)
        os.kill(child, _KILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _become(command: list[str]) -> None:
    """Become a command, without returning."""
    try:
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(_WORST)
        os.execvp(command[0], command)  # noqa: S606 - there is no shell
    except OSError as error:
        os.write(2, f"failed to execute {command[0]}: {error.strerror}\n".encode(errors="replace"))
    os._exit(127)


if __name__ == "__main__":
    sys.exit(main())
