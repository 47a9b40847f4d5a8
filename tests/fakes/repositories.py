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

    def commit(self, message: str = "change", *, author: str = "") -> str:
        """Commit the whole working tree, changed or not, and return the commit's sha; `author` is `Name <address>`."""
        self.git("add", "--all", "--force")
        by = (f"--author={author}",) if author else ()
        self.git("commit", "--quiet", "--allow-empty", "--message", message, *by)
        self._clock += 60
        return self.sha()

    def commit_names(self, *names: bytes, content: bytes, folder: bytes = b"") -> str:
        """Commit a file under names that no working tree can hold, beside what is committed; a slash stays in its name.

        With a folder, they are in it, and that may be called anything as well.
        """
        blob = self._store("blob", content)
        entries = b"".join(b"100644 %s\0%s" % (name, bytes.fromhex(blob)) for name in sorted(names))
        if folder:
            entries = b"40000 %s\0%s" % (folder, bytes.fromhex(self._store("tree", entries)))
        listed = self.git("ls-tree", "-z", "HEAD").split("\0")
        for mode, _, sha, name in (entry.replace("\t", " ", 1).split(" ", 3) for entry in listed if entry):
            entries += b"%s %s\0%s" % (mode.lstrip("0").encode(), os.fsencode(name), bytes.fromhex(sha))
        commit = self.git("commit-tree", "-p", "HEAD", "-m", "names", self._store("tree", entries))
        self._clock += 60
        self.git("update-ref", "HEAD", commit)
        return commit

    def commit_claiming(self, time: bytes, *, subject: bytes, author: bytes) -> str:
        """Commit what is in the working tree with a time, a subject and an author that no git would write so."""
        self.git("add", "--all")
        tree, parent = self.git("write-tree"), self.sha()
        who = author + b"<ann@example.org> " + time + b" +0000"
        lines = (b"tree " + tree.encode(), b"parent " + parent.encode(), b"author " + who, b"committer " + who)
        commit = self._store("commit", b"\n".join((*lines, b"", subject)) + b"\n")
        self.git("update-ref", "HEAD", commit)
        return commit

    def commit_nested(self, breadth: int, depth: int, *, empty: bool = False) -> str:
        """Commit folders that hold one folder under several names, and so on: of a few objects, billions of files."""
        blob = self._store("blob", b"def nested():\n    return 1\n")
        tree = self._store("tree", b"" if empty else b"100644 a.py\0" + bytes.fromhex(blob))
        for _ in range(depth):
            tree = self._store(
                "tree", b"".join(b"40000 %d\0%s" % (each, bytes.fromhex(tree)) for each in range(breadth))
            )
        commit = self.git("commit-tree", "-p", "HEAD", "-m", "nested", tree)
        self._clock += 60
        self.git("update-ref", "HEAD", commit)
        return commit

    def _store(self, kind: str, data: bytes) -> str:
        """Write an object as it is, whatever git thinks of it, and return its name."""
        command = [*_GIT, "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
        environment = _environment(self._clock)
        done = subprocess.run(command, cwd=self.root, env=environment, input=data, capture_output=True, check=True)
        return done.stdout.decode().strip()

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
