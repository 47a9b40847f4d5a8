"""Small real git repositories for tests: fixed authors and dates, and nothing read from the user's configuration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_FIRST_COMMIT = 1_700_000_000
_GIT = ("git", "-c", "protocol.file.allow=always", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0")


class GitRepo:
    """A repository in a folder of its own; every commit is one minute after the one before.

    Paths are names below the root; a `bytes` path is for names that are not valid UTF-8.
    """

    def __init__(self, root: Path, *, branch: str = "main") -> None:
        self.root = root
        self._clock = _FIRST_COMMIT
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--template=", f"--initial-branch={branch}")

    def write(self, path: str | bytes, content: str | bytes = "") -> Path:
        """Write a file of the working tree, line ends as given, and return its path."""
        target = self._place(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link."""
        place = self._place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def remove(self, path: str) -> None:
        """Delete a file of the working tree."""
        self._place(path).unlink()

    def rename(self, old: str, new: str) -> None:
        """Move a file of the working tree."""
        target = self._place(new)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._place(old).rename(target)

    def commit(self, message: str = "change") -> str:
        """Commit the whole working tree, changed or not, and return the commit's sha."""
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        self._clock += 60
        return self.sha()

    def submodule(self, path: str, other: GitRepo) -> None:
        """Add another repository as a submodule."""
        self.git("submodule", "--quiet", "add", str(other.root), path)

    def branch(self, name: str, *, at: str = "HEAD") -> None:
        """Make a branch and check it out."""
        self.git("checkout", "--quiet", "-B", name, at)

    def checkout(self, ref: str) -> None:
        """Check out a branch, or a commit (HEAD is then detached)."""
        self.git("checkout", "--quiet", ref)

    def sha(self, ref: str = "HEAD") -> str:
        """Resolve a name to a sha."""
        return self.git("rev-parse", "--verify", ref)

    def git(self, *arguments: str) -> str:
        """Run git in the repository and return its output; a failure raises `CalledProcessError`."""
        return run_git(self.root, *arguments, clock=self._clock)

    def _place(self, path: str | bytes) -> Path:
        return self.root / (os.fsdecode(path) if isinstance(path, bytes) else path)


def run_git(folder: Path, *arguments: str, clock: int = _FIRST_COMMIT) -> str:
    """Run git in any folder with the fixed environment, e.g. to clone."""
    done = subprocess.run([*_GIT, *arguments], cwd=folder, env=_environment(clock), capture_output=True, check=True)
    return os.fsdecode(done.stdout).removesuffix("\n")


def _environment(clock: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = {"NAME": "Ada Example", "EMAIL": "ada@example.org", "DATE": f"{clock} +0000"}
    fixed = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()}
    return kept | fixed | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
