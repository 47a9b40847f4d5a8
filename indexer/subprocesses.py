"""The only place that starts programs: finds them, and sets their folder and environment.

None of them gets citebot's tokens. None is searched or started in the current folder, which may be
the repository in question.
"""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from git.cmd import Git

# Variables that programs may inherit: the user, the language and time zone, and the places of their files.
_INHERITED = frozenset(
    """HOME USER LOGNAME LANG LANGUAGE TZ TMPDIR XDG_CONFIG_HOME
    GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM""".split()
)
# Those that reach other machines also inherit proxies, trusted certificates and the ssh agent.
_INHERITED_BY_NETWORK = frozenset(
    """http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY SSH_AUTH_SOCK
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_SSL_CERT GIT_SSL_KEY""".split()
)
# The person's own editor also inherits where it shows itself, and where it finds its settings.
_INHERITED_BY_EDITOR = frozenset(
    """TERM COLORTERM TERM_PROGRAM TERMINFO NO_COLOR TMUX SHELL DISPLAY XAUTHORITY WAYLAND_DISPLAY XDG_RUNTIME_DIR
    XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME DBUS_SESSION_BUS_ADDRESS SSH_TTY VSCODE_IPC_HOOK_CLI""".split()
)
# Lists of folders; one that is empty or relative would mean the current one.
_SEARCHED = frozenset({"PATH", "LD_LIBRARY_PATH"})
# The settings of every git: no prompts, no implicit fetching, no locks for reading, and messages in English.
_GIT = {
    "LC_ALL": "C",
    "LANGUAGE": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
}
# And those of a git that reaches a host by ssh, where nobody can answer a prompt.
_GIT_BY_NETWORK = {
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=3",
    "GIT_SSH_VARIANT": "ssh",
}
# Everything that a repository's configuration could have run is off, as is fetching what a partial clone left out.
_GIT_CONFIG = (
    "core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.pager=cat", "core.askPass=",
    "core.sshCommand=false", "core.alternateRefsCommand=", "credential.helper=", "diff.external=",
    "diff.relative=false", "log.showSignature=false", "protocol.allow=never",
)  # fmt: skip
_GIT_OPTIONS = (
    "--no-pager", "--no-replace-objects", "--literal-pathspecs",
    *(word for setting in _GIT_CONFIG for word in ("-c", setting)),
)  # fmt: skip
_READ_AT_ONCE = 1 << 16
_FOLDER = os.sep  # always there, and nobody but root can put anything into it


def select_environment(variables: Mapping[str, str], *, network: bool = False) -> dict[str, str]:
    """Choose the variables that a program may inherit; with `network`, also those for reaching other machines."""
    allowed = _INHERITED | _INHERITED_BY_NETWORK if network else _INHERITED
    chosen = {name: value for name, value in variables.items() if name in allowed or name.startswith("LC_")}
    for name in _SEARCHED & variables.keys():
        if folders := os.pathsep.join(filter(os.path.isabs, variables[name].split(os.pathsep))):
            chosen[name] = folders
    return {"PATH": os.defpath} | chosen


def _make_git_environment(protocols: str = "") -> dict[str, str]:
    """Make the environment of git; with protocols, joined by colons, it may also reach other machines.

    The variable that allows them takes precedence over a repository's configuration.
    """
    by_network = _GIT_BY_NETWORK if protocols else {}
    inherited = select_environment(os.environ, network=bool(protocols))
    return inherited | _GIT | by_network | {"GIT_ALLOW_PROTOCOL": protocols}


def find_program(name: str) -> str:
    """Return the path of a program; `FileNotFoundError` if no folder of the PATH has it."""
    return _search_path(name, select_environment(os.environ)["PATH"])


@lru_cache(maxsize=8)
def _search_path(name: str, path: str) -> str:
    found = shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found


def start_program(line: Sequence[str], *, pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a program to communicate with through pipes, in a separate session so that Ctrl-C does not reach it."""
    return subprocess.Popen(
        [find_program(line[0]), *line[1:]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=select_environment(os.environ),
        cwd=_FOLDER,
        pass_fds=pass_fds,
        start_new_session=True,
    )


def find_editor() -> list[str]:
    """Return the words of the person's editor command; empty without one."""
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(os.environ.get(name, ""))
        except ValueError:  # a quotation mark that is not closed
            continue
        if words:
            return words
    return []


def start_editor(line: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start the person's editor at citebot's terminal; no shell reads its arguments."""
    return subprocess.Popen([find_program(line[0]), *line[1:]], env=_make_editor_environment(), cwd=_FOLDER)


def _make_editor_environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name in _INHERITED_BY_EDITOR}
    return select_environment(os.environ) | own


def start_git(arguments: Sequence[str]) -> Git.AutoInterrupt:
    """Start git in a local repository, through GitPython; it reaches no other machine."""
    # GitPython can add variables to the environment but not take any away; `env` can, before git begins.
    program = find_program("git")
    pairs = [f"{name}={value}" for name, value in _make_git_environment().items()]
    return _load_gitpython().execute(
        [find_program("env"), "-i", *pairs, program, *_GIT_OPTIONS, *arguments],
        istream=subprocess.PIPE,
        as_process=True,
    )


async def start_git_async(
    arguments: Sequence[str], *, protocols: str = "", pass_fds: Sequence[int] = ()
) -> asyncio.subprocess.Process:
    """Start git in a separate session; it may use only the `protocols`, joined by colons, to reach other machines."""
    return await finish_start(
        asyncio.create_subprocess_exec(
            find_program("git"),
            *_GIT_OPTIONS,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_make_git_environment(protocols),
            cwd=_FOLDER,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    )


async def start_confined_async(line: Sequence[str], *, pass_fds: Sequence[int] = ()) -> asyncio.subprocess.Process:
    """Start the process that confines an untrusted program, without any sensitive variables."""
    return await finish_start(
        asyncio.create_subprocess_exec(
            find_program(line[0]),
            *line[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_make_bare_environment(),
            cwd=_FOLDER,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    )


async def finish_start(start: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """Start a program in a separate session; if the caller is cancelled, kill all of it.

    The library would kill only the program itself, and then wait until its children have closed the
    pipes.
    """
    starting = asyncio.ensure_future(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.shield(_end_start(starting))
        raise


async def _end_start(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    with suppress(OSError):  # it could not be started: then there is nothing to end
        await kill_session(await starting)


async def kill_session(process: asyncio.subprocess.Process) -> None:
    """Kill the rest of a program's session, including its children, and wait for it."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # The library reports the end only after the pipes close, which cannot happen while they are full.
        await process.communicate()


def _make_bare_environment() -> dict[str, str]:
    return {"PATH": os.defpath}


def read_output(process: subprocess.Popen[bytes], *, seconds: float | None, most: int) -> tuple[bytes, bytes]:
    """Read a program's output and errors until it ends; one that takes longer or writes more is killed.

    Raises `TimeoutError`, or `OverflowError` for more than `most` bytes.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    try:
        found = _read_pipes(process, deadline, most)
        process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    return found


def _read_pipes(process: subprocess.Popen[bytes], deadline: float | None, most: int) -> tuple[bytes, bytes]:
    outputs = {pipe: bytearray() for pipe in (process.stdout, process.stderr) if pipe is not None}
    with selectors.DefaultSelector() as selector:
        for pipe, part in outputs.items():
            selector.register(pipe, selectors.EVENT_READ, part)
        while selector.get_map():
            ready = selector.select(None if deadline is None else max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, _READ_AT_ONCE)
                key.data.extend(data)
                if not data:
                    selector.unregister(key.fileobj)
            if sum(map(len, outputs.values())) > most:
                raise OverflowError
    output, complaint = map(bytes, outputs.values())
    return output, complaint


def _load_gitpython() -> Git:
    """Return GitPython's runner; importing the whole package would run git with all of the environment."""
    if "git" not in sys.modules:
        spec = importlib.util.find_spec("git")
        if spec is None:
            raise ModuleNotFoundError("No module named 'git'", name="git")
        sys.modules.setdefault("git", importlib.util.module_from_spec(spec))
    from git.cmd import Git  # takes 100 ms to import

    return Git(_FOLDER)
