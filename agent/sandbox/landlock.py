"""The sandbox of Landlock, for machines that refuse name spaces to ordinary users: rules of the kernel for files."""

from __future__ import annotations

import marshal
import signal
import sys

from agent.sandbox.box_folders import BoxFolders, find_user
from agent.sandbox.box_sandbox import BoxSandbox
from agent.sandbox.environment import list_language_settings, make_variables
from agent.sandbox.kernel import landlock_launcher
from agent.sandbox.kernel.seccomp import build_filter
from agent.sandbox.kernel.syscalls import find_architecture
from agent.sandbox.sandbox import SandboxCommand, SandboxLimits
from agent.sandbox.supervision import GRACE, BoxLaunch, BoxPipes

_READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"),
    "/etc/ssl/openssl.cnf",  # without which node does not start
    *("/dev/urandom", "/dev/random", "/dev/zero"),
)


class Landlock(BoxSandbox):
    """Runs commands by a launcher that gives up its rights before it becomes the command.

    The command still sees which files there are, and the machine has one network and one list of processes; so it is
    allowed no sockets, and nothing that names processes or changes the modes and times of files.
    """

    mechanism = "Landlock"

    def _make_launch(
        self, command: SandboxCommand, folders: BoxFolders, limits: SandboxLimits, pipes: BoxPipes
    ) -> BoxLaunch:
        filter_program = build_filter(find_architecture(), isolated=False)
        variables = make_variables(
            self._python,
            home=str(folders.home),
            tmp=str(folders.tmp),
            support=str(folders.support),
            report=pipes.report_end,
            added=command.variables,
        )
        orders = {
            "argv": list(command.argv),
            "variables": variables,
            "folder": str(folders.working_copy),
            "readable": [*_READABLE, *list_language_settings(), *map(str, self._python.folders), str(folders.support)],
            "writable": [*map(str, folders.writable), "/dev/null"],
            "limits": {
                "AS": limits.address_bytes,
                "CPU": limits.cpu_seconds,
                "FSIZE": limits.file_bytes,
                "NOFILE": limits.descriptors,
                "CORE": 0,
            },
            "processes": limits.processes,
            "seconds": limits.seconds + GRACE,
            "user": find_user(),
            "filter": filter_program,
            "status": pipes.status_end,
            "report": pipes.report_end,
        }
        orders_file = pipes.keep(marshal.dumps(orders))
        line = [sys.executable, "-I", "-S", landlock_launcher.__file__, orders_file]
        return BoxLaunch(line=line, pipes=pipes, signal=signal.SIGTERM)
