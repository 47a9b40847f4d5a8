"""Targets that a sandbox has to keep out of reach: files, sockets and a process of the user that runs commands."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent.sandbox.box_folders import find_user, give_away, make_passable, remove_folder
from agent.sandbox.kernel.seccomp import find_architecture
from agent.sandbox.sandbox import SandboxCommand
from tests.waiting import LIMIT_SECONDS

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """A place on the machine with a home folder and what listens there; `argument` tells a program where it is."""

    root: Path
    home: Path
    secret: str
    descriptor: int
    argument: str

    def make_working_copy(self) -> Path:
        """Make an empty working copy."""
        folder = Path(tempfile.mkdtemp(dir=self.root))
        make_passable(folder)
        tree = folder / "tree"
        tree.mkdir(mode=0o700)
        give_away(tree)
        return tree

    def take_planted(self) -> list[str]:
        """Return what attempts have put into the home folder, and remove it."""
        found = [path for path in self.home.iterdir() if path.name in {"planted", "moved", "raced"}]
        for path in found:
            path.unlink()
        return [path.name for path in found]

    def run_command_outside(self, command: SandboxCommand, tree: Path, path: str = SYSTEM_PATH) -> str:
        """Run a command in a working copy without a sandbox, as the user that commands in a sandbox run as."""
        user = find_user()
        identity = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"]
        done = subprocess.run(
            [*identity, "prlimit", "--as=1073741824", "--nproc=4000", "--", *command.argv],
            cwd=tree,
            env={"PATH": path, "TOKEN": self.secret, **command.variables},
            pass_fds=[self.descriptor], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        )  # fmt: skip
        return done.stdout + done.stderr


@contextmanager
def open_surroundings() -> Iterator[Surroundings]:
    """Make a place with everything that an attempt aims at, and remove it."""
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="citebot-sandbox-"))
        stack.callback(remove_folder, root)
        make_passable(root)
        secret = secrets.token_hex(16)
        home = root / "home"
        for name in (".ssh/id_ed25519", "data/inbox.sqlite", "src/other/app.py", "notes", "mount/x"):
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(secret)
        for path in (home, *home.rglob("*")):
            give_away(path)
        abstract = f"citebot-{secrets.token_hex(8)}"
        ports = [
            stack.enter_context(_listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))),
            stack.enter_context(_listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))),
        ]
        for address in (str(home / "run.sock"), f"\0{abstract}"):
            stack.enter_context(_listening(socket.AF_UNIX, socket.SOCK_STREAM, address))
        stack.enter_context(_listening(socket.AF_UNIX, socket.SOCK_DGRAM, str(home / "log.sock")))
        for name in ("run.sock", "log.sock"):
            give_away(home / name)
        descriptor = os.open(home / "notes", os.O_RDONLY)
        stack.callback(os.close, descriptor)
        os.set_inheritable(descriptor, True)
        os.environ["CITEBOT_TEST_SECRET"] = secret  # as citebot has its tokens
        stack.callback(os.environ.pop, "CITEBOT_TEST_SECRET")
        victim = stack.enter_context(_sleeping(secret, home / ".ssh/id_ed25519"))
        places = {
            "home": str(home), "secret": secret, "victim": victim, "descriptor": descriptor, "abstract": abstract,
            "tcp": ports[0], "udp": ports[1], "mount_point": str(home / "mount"),
            "numbers": dict(find_architecture().numbers),
        }  # fmt: skip
        yield Surroundings(root=root, home=home, secret=secret, descriptor=descriptor, argument=json.dumps(places))


@contextmanager
def _listening(family: int, kind: int, address: object) -> Iterator[int]:
    """Answer every greeting at an address; yields the port, if there is one."""

    def answer() -> None:
        with suppress(OSError):  # closed, which ends the thread
            while True:
                if kind == socket.SOCK_STREAM:
                    peer, _ = listener.accept()
                    with peer:
                        peer.recv(9)
                        peer.send(b"welcome")
                else:
                    _, sender = listener.recvfrom(9)
                    if sender:
                        listener.sendto(b"welcome", sender)

    with socket.socket(family, kind) as listener:
        listener.bind(address)  # type: ignore[arg-type]  # a path, a name or a host with a port
        if kind == socket.SOCK_STREAM:
            listener.listen()
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        name = listener.getsockname()
        yield name[1] if family == socket.AF_INET else 0
        listener.shutdown(socket.SHUT_RDWR) if kind == socket.SOCK_STREAM else None


@contextmanager
def _sleeping(secret: str, file: Path) -> Iterator[int]:
    """Run a process that has a secret in its environment and a file open, as the user that commands run as."""
    user = find_user()
    sleep = shutil.which("sleep", path=SYSTEM_PATH)
    assert sleep is not None
    with (
        file.open() as opened,
        subprocess.Popen(
            [sleep, "600"], stdin=opened, env={"TOKEN": secret}, user=user, group=user, extra_groups=_no_groups(user)
        ) as process,
    ):
        try:
            yield process.pid
        finally:
            process.kill()


def _no_groups(user: int | None) -> Sequence[int] | None:
    return None if user is None else []


def list_processes(marker: str) -> list[int]:
    """List the processes of the machine that have a text in their command line or their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and int(folder.name) != os.getpid():
                text = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
                found += [int(folder.name)] if marker.encode() in text else []
    return found
