"""A bare clone of one branch of a remote repository, kept up to date below the data folder.

All history of the branch is fetched, with its contents, unless the operator wants less of it. A partial clone would
have to ask the host whenever somebody wants to know who wrote a line, and may not fail because that is away; a shallow
one does not tell.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import DamagedClone, RepositoryError, StorageLocked
from indexer.git.git_errors import decode_output
from indexer.remotes import fetch_errors
from indexer.remotes.remote_repository import RemoteRepository
from indexer.remotes.transport import AnswerTooLong, CompletedCommand, FetchLimits, Transport
from indexer.store.data_folder import REPOSITORIES_FOLDER, map_storage_errors
from indexer.types import BranchHead, RemoteState

log = logging.getLogger(__name__)

_LOCAL_SECONDS = 60.0  # for what git does without the network
_INCOMING = "refs/citebot/incoming"
_LOCK = "citebot.hold"
_LEFTOVERS = ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*", "objects/tmp_*")
_NO_CLONE = "not a git repository: "  # what git says of its own folder, and of no remote one
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Advertised:
    """What a host shows: its branches with their commits, the default one, and where it redirected to."""

    branches: dict[str, str]
    default: str | None
    moved: str


class RemoteClone:
    """The clone of one remote; its `HEAD` is the branch that is followed, at the commit fetched last.

    A fetch that fails changes nothing. Clones that share `slots` fetch that many at a time.
    """

    def __init__(
        self,
        remote: RemoteRepository,
        home: Path,
        *,
        slots: asyncio.Semaphore | None = None,
        limits: FetchLimits | None = None,
    ) -> None:
        self.remote = remote
        self.name = remote.name
        self.path = home / REPOSITORIES_FOLDER / remote.folder_name
        self._limits = limits or FetchLimits()
        self._transport = Transport(remote, self.path, self._limits)
        self._slots = slots or asyncio.Semaphore(1)
        self._busy = asyncio.Lock()
        self._forced = ""
        self._is_anew = False  # emptied because of damage, and not fetched since

    async def prepare(self) -> None:
        """Make the repository, empty, if it is not there: an index can then be opened before the host answers.

        One that is damaged is emptied; what was indexed before answers until it is fetched again.
        """
        if not await self._is_usable():
            async with self._busy, self._lock_clone() as hold:
                await self._begin_anew(hold)

    async def renew(self) -> None:
        """Fetch everything again, where what had been fetched turned out damaged."""
        async with self._busy, self._lock_clone() as hold:
            await self._begin_anew(hold)
            await self._catch_up(hold)

    async def newest(self) -> BranchHead:
        """Fetch the newest commit of the branch, if it is not here yet.

        Raises `RemoteError` with a state, or `StorageError`; what was fetched before stays readable, unless it is
        damaged, and then everything is fetched again.
        """
        async with self._busy, self._lock_clone() as hold:
            if not await self._is_usable():
                await self._begin_anew(hold)
            try:
                return await self._catch_up(hold)
            except DamagedClone:
                if self._is_anew:  # fetched again already, which did not help
                    raise
                await self._begin_anew(hold)
                return await self._catch_up(hold)

    async def _catch_up(self, hold: int) -> BranchHead:
        there = await self._list_remote_branches()
        branch, commit = self._find_followed_branch(there)
        here = await self._here()
        if here != (branch, commit) or (self._is_shallow() and self.remote.depth is None):
            async with self._slots:
                commit = await self._fetch(branch, hold)
            await self._switch(branch, commit, here)
        self._is_anew = False
        return self._tip(branch, commit, there.moved)

    def _tip(self, branch: str, commit: str, moved: str) -> BranchHead:
        remark = " ".join(each for each in (moved, self._forced) if each)
        state: RemoteState = "moved" if moved else "force-pushed" if self._forced else "ready"
        return BranchHead(commit=commit, branch=decode_output(os.fsencode(branch)), state=state, remark=remark)

    def _find_followed_branch(self, there: _Advertised) -> tuple[str, str]:
        branch = self.remote.branch or there.default
        if not there.branches:
            raise fetch_errors.make_empty_error(self.remote)
        if branch is None or branch not in there.branches:
            raise fetch_errors.make_branch_gone_error(self.remote, branch, sorted(there.branches))
        return branch, there.branches[branch]

    async def _list_remote_branches(self) -> _Advertised:
        asked = ("ls-remote", "--quiet", "--symref", "--", self.remote.url, "HEAD", "refs/heads/*")
        done = await self._ask(*asked, seconds=self._limits.listing)
        moved = fetch_errors.describe_redirect(self.remote, done.complaint)
        lines = [os.fsdecode(line).partition("\t") for line in done.output.split(b"\n") if line]
        heads = {name: value for value, _, name in lines}
        default = next((value for value, _, name in lines if name == "HEAD" and value.startswith("ref: ")), "")
        prefix = "refs/heads/"
        branches = {name.removeprefix(prefix): value for name, value in heads.items() if name.startswith(prefix)}
        return _Advertised(branches=branches, default=default.removeprefix(f"ref: {prefix}") or None, moved=moved)

    async def _here(self) -> tuple[str, str] | None:
        """The branch and the commit that were fetched last."""
        head = await self._local("symbolic-ref", "--quiet", "HEAD")
        commit = await self._local("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        if head.status or commit.status:
            return None
        return os.fsdecode(head.output.strip()).removeprefix("refs/heads/"), decode_output(commit.output.strip())

    async def _fetch(self, branch: str, hold: int) -> str:
        """Fetch into a ref of our own, so that readers see the branch move only when everything is here."""
        await asyncio.to_thread(self._clear)
        refspec = f"+refs/heads/{branch}:{_INCOMING}"
        how = ("--quiet", "--force", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        await self._ask(
            "fetch", *how, *self._depth(), "--", self.remote.url, refspec, seconds=self._limits.fetching, hold=hold
        )
        return await self._output("rev-parse", "--verify", f"{_INCOMING}^{{commit}}")

    def _depth(self) -> tuple[str, ...]:
        if self.remote.depth is not None:
            return (f"--depth={self.remote.depth}",)
        return ("--unshallow",) if self._is_shallow() else ()

    def _is_shallow(self) -> bool:
        return (self.path / "shallow").exists()

    async def _switch(self, branch: str, commit: str, here: tuple[str, str] | None) -> None:
        """Move the branch, and on the way note a rewritten history and drop branches that are no longer followed."""
        self._forced = ""
        if here is not None and here[0] == branch:
            # Of what lies deeper than a shallow clone git cannot tell whether it was rewritten.
            if not self._is_shallow() and (await self._local("merge-base", "--is-ancestor", here[1], commit)).status:
                self._forced = fetch_errors.describe_forced_update(branch, here[1], commit)
        else:
            await self._output("symbolic-ref", "HEAD", f"refs/heads/{branch}")
            await self._drop_others(branch)
        await self._output("update-ref", f"refs/heads/{branch}", commit)

    async def _drop_others(self, branch: str) -> None:
        """A branch `a` that was followed would stand in the way of a branch `a/b`."""
        heads = (await self._output("for-each-ref", "--format=%(refname)", "refs/heads/")).splitlines()
        for name in heads:
            if name != f"refs/heads/{branch}":
                await self._output("update-ref", "-d", name)

    async def _is_usable(self) -> bool:
        """Whether there is a repository that git can open, and whose refs it can read."""
        if not await asyncio.to_thread((self.path / "HEAD").exists):
            return False
        return not (await self._local("for-each-ref", "--count=1")).status

    async def _begin_anew(self, hold: int) -> None:
        """Make an empty repository, in place of one that is damaged."""
        if await asyncio.to_thread(self._make_empty):
            log.warning("The clone of %s in %s was damaged and is fetched again.", self.name, self.path)
        self._is_anew = True
        await self._make(hold)

    def _make_empty(self) -> bool:
        """Delete everything but the lock; return whether there was anything."""
        with map_storage_errors(self.path / _LOCK):
            found = [path for path in self.path.iterdir() if path.name != _LOCK]
            for path in found:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        return bool(found)

    async def _make(self, hold: int) -> None:
        made = await self._transport.run(
            "init", "--quiet", "--bare", "--template=", "--initial-branch=main", seconds=_LOCAL_SECONDS, held=(hold,)
        )
        if made.status:
            raise fetch_errors.make_clone_error(self.remote, made.complaint, self.path)
        await self._output("config", "remote.origin.url", self.remote.url)

    async def _ask(self, *arguments: str, seconds: float, hold: int | None = None) -> CompletedCommand:
        """Run what speaks with the host; a failure is a `RemoteError`."""
        try:
            done = await self._transport.run(*arguments, seconds=seconds, held=() if hold is None else (hold,))
        except TimeoutError as error:
            raise fetch_errors.make_timeout_error(self.remote, seconds) from error
        except AnswerTooLong as error:
            raise fetch_errors.too_long(self.remote) from error
        if done.status and _NO_CLONE in done.complaint:
            raise fetch_errors.make_clone_error(self.remote, done.complaint, self.path)
        if done.status and fetch_errors.is_local_damage(done.complaint):
            raise fetch_errors.make_clone_error(self.remote, done.complaint, self.path)
        if done.status:
            raise fetch_errors.make_fetch_error(self.remote, done.complaint)
        return done

    async def _local(self, *arguments: str) -> CompletedCommand:
        try:
            return await self._transport.run(*arguments, seconds=_LOCAL_SECONDS)
        except TimeoutError as error:
            raise RepositoryError(f"git does not come to an end in {self.path}. Check the disk.") from error

    async def _output(self, *arguments: str) -> str:
        done = await self._local(*arguments)
        if done.status:
            raise fetch_errors.make_clone_error(self.remote, done.complaint, self.path)
        return os.fsdecode(done.output).strip()

    def _clear(self) -> None:
        """Take away what a git that was killed left; nobody else is at it, as the lock is held."""
        with map_storage_errors(self.path / _LOCK):
            for path in (each for pattern in _LEFTOVERS for each in self.path.glob(pattern)):
                path.unlink(missing_ok=True)

    @asynccontextmanager
    async def _lock_clone(self) -> AsyncIterator[int]:
        """Hold the clone against other processes; git inherits the lock, should this process be killed."""
        hold = await asyncio.to_thread(self._hold)
        try:
            yield hold
        finally:
            os.close(hold)

    def _hold(self) -> int:
        with map_storage_errors(self.path / _LOCK):
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                hold = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                if error.errno in _FULL:
                    raise fetch_errors.make_disk_full_error(self.path) from error
                raise
        try:
            fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(hold)
            raise StorageLocked(
                f"Another citebot is fetching {self.name} (it holds {self.path / _LOCK}). It is tried again by itself."
            ) from error
        return hold


def open_clones(remotes: list[RemoteRepository], home: Path, *, at_once: int = 4) -> list[RemoteClone]:
    """The clones of several remotes, of which so many fetch at a time; nothing is read or fetched yet."""
    slots = asyncio.Semaphore(at_once)
    return [RemoteClone(remote, home, slots=slots) for remote in remotes]
