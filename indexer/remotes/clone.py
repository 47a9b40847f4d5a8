"""A bare clone of one branch of a remote repository, kept up to date below the data folder.

Other branches, tags and pull requests are fetched one at a time, when somebody asks about them.

All history of the branch is fetched, with its contents and tags, unless the operator sets a depth.
A partial clone would need the host to find out who wrote a line, which has to work while the host
is down; a shallow one lacks the answer.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import shutil
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from indexer.errors import DamagedClone, RemoteError, RepositoryError, StorageLocked
from indexer.git.git_command import decode_output, format_path
from indexer.remotes import fetch_errors
from indexer.remotes.ref_list import MAX_REFS, is_ref_name
from indexer.remotes.remote_repository import RemoteRepository
from indexer.remotes.transport import AnswerTooLong, CompletedCommand, FetchLimits, Transport
from indexer.store.data_folder import REPOSITORIES_FOLDER, map_storage_errors
from indexer.store.file_locks import lock_file
from indexer.types import BranchHead, RemoteState

log = logging.getLogger(__name__)

_LOCAL_SECONDS = 60.0  # for what git does without the network
_INCOMING = "refs/citebot/incoming"
_INCOMING_REF = "refs/citebot/incoming-ref"
_FETCHED = "refs/citebot/at"  # commits that were asked for
_LISTING = "citebot.refs"  # what the host listed last
_LOCK = "citebot.hold"
_LEFTOVERS = ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*", "objects/tmp_*")
_COMMIT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NO_CLONE = "not a git repository: "  # what git says only of its own folder, not of a remote
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Advertised:
    """A host's advertisement: its branches with commits, its default, and its redirect."""

    branches: dict[str, str]
    default: str | None
    moved: str


class RemoteClone:
    """The clone of one remote; its `HEAD` is the followed branch, at the last fetched commit.

    A failed fetch changes nothing. Clones that share `slots` limit simultaneous fetches.
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
        self._rewrite_remark = ""
        self._was_reset = False  # emptied because of damage, and not fetched since then

    async def prepare(self) -> None:
        """Create an empty repository if there is none, so that an index can be opened before the host answers.

        A damaged one is emptied; the existing index answers questions until it is fetched again.
        """
        if not await self._is_usable():
            async with self._busy, self._lock_clone() as lock:
                await self._reset(lock)

    async def renew(self) -> None:
        """Fetch everything again because the clone is damaged."""
        async with self._busy, self._lock_clone() as lock:
            await self._reset(lock)
            await self._catch_up(lock)

    async def newest(self) -> BranchHead:
        """Fetch the newest commit of the branch, unless the clone has it.

        Raises `RemoteError` with a state, or `StorageError`; the clone stays readable, unless it is
        damaged, in which case everything is fetched again.
        """
        async with self._busy, self._lock_clone() as lock:
            if not await self._is_usable():
                await self._reset(lock)
            try:
                return await self._catch_up(lock)
            except DamagedClone:
                if self._was_reset:  # fetching again did not help
                    raise
                await self._reset(lock)
                return await self._catch_up(lock)

    async def _catch_up(self, lock: int) -> BranchHead:
        advertised = await self._list_remote_branches()
        branch, commit = self._resolve_tracked_branch(advertised)
        local_head = await self._read_local_head()
        if local_head != (branch, commit) or (self._is_shallow() and self.remote.depth is None):
            async with self._slots:
                commit = await self._fetch(branch, lock)
            await self._switch(branch, commit, local_head)
        self._was_reset = False
        state: RemoteState = "moved" if advertised.moved else "force-pushed" if self._rewrite_remark else "ready"
        remark = " ".join(filter(None, (advertised.moved, self._rewrite_remark)))
        return BranchHead(commit=commit, branch=decode_output(os.fsencode(branch)), state=state, remark=remark)

    def _resolve_tracked_branch(self, advertised: _Advertised) -> tuple[str, str]:
        branch = self.remote.branch or advertised.default
        if not advertised.branches:
            place = fetch_errors.format_remote(self.remote)
            raise RemoteError("empty", f"{place} has no commit yet. Push one; it will be noticed automatically.")
        if branch is None or branch not in advertised.branches:
            raise fetch_errors.make_branch_gone_error(self.remote, branch, sorted(advertised.branches))
        return branch, advertised.branches[branch]

    async def _list_remote_branches(self) -> _Advertised:
        wanted = ("HEAD", "refs/heads/*", "refs/tags/*")
        arguments = ("ls-remote", "--quiet", "--symref", "--", self.remote.url, *wanted)
        result = await self._run_remote(*arguments, seconds=self._limits.listing)
        moved = fetch_errors.describe_redirect(self.remote, result.complaint)
        lines = [os.fsdecode(line).partition("\t") for line in result.output.split(b"\n") if line]
        heads = {name: value for value, _, name in lines}
        default = next((value for value, _, name in lines if name == "HEAD" and value.startswith("ref: ")), "")
        prefix = "refs/heads/"
        branches = {name.removeprefix(prefix): value for name, value in heads.items() if name.startswith(prefix)}
        await asyncio.to_thread(self._note_refs, list_commits_by_ref(heads))
        return _Advertised(branches=branches, default=default.removeprefix(f"ref: {prefix}") or None, moved=moved)

    def _note_refs(self, refs: dict[str, str]) -> None:
        """Record the host's refs, so that names in questions are looked up locally."""
        if refs == self.read_refs():
            return
        with map_storage_errors(self.path / _LISTING):
            draft = self.path / f"{_LISTING}.unfinished"
            draft.write_text(json.dumps(refs), encoding="utf-8", errors="replace")
            draft.replace(self.path / _LISTING)

    def read_refs(self) -> dict[str, str]:
        """Return the host's last listed branches and tags by full name; none before the first listing."""
        try:
            refs = json.loads((self.path / _LISTING).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return refs if isinstance(refs, dict) else {}

    async def fetch_ref(self, ref: str) -> str | None:
        """Fetch a ref by its full name, or a commit by its id; return the commit, None if the host has none.

        The commit stays here until `forget_fetched`. Raises `RemoteError` as `newest` does.
        """
        if not _COMMIT_ID.fullmatch(ref) and not (ref.startswith("refs/") and is_ref_name(ref)):
            return None
        async with self._busy, self._lock_clone() as lock:
            if (await self._run_local("check-ref-format", f"refs/heads/{ref}")).status:
                return None
            options = ["--quiet", "--force", "--no-write-fetch-head", "--no-recurse-submodules", "--no-tags"]
            if self.remote.depth is not None:
                options.append(f"--depth={self.remote.depth}")
            source = ("--", self.remote.url, f"+{ref}:{_INCOMING_REF}")
            try:
                async with self._slots:
                    await self._run_remote("fetch", *options, *source, seconds=self._limits.fetching, lock=lock)
            except RemoteError as error:
                if error.state == "branch gone" or _COMMIT_ID.fullmatch(ref):  # hosts need not show every commit
                    return None
                raise
            commit = await self._read_local("rev-parse", "--verify", f"{_INCOMING_REF}^{{commit}}")
            await self._read_local("update-ref", f"{_FETCHED}/{commit}", commit)
            return commit

    async def forget_fetched(self, kept: Collection[str]) -> None:
        """Let git delete the commits fetched on demand, except kept ones."""
        async with self._busy, self._lock_clone():
            listed = await self._read_local("for-each-ref", "--format=%(refname)", f"{_FETCHED}/")
            for name in listed.splitlines():
                if name.removeprefix(f"{_FETCHED}/") not in kept:
                    await self._read_local("update-ref", "-d", name)

    async def _read_local_head(self) -> tuple[str, str] | None:
        """Read the last fetched branch and commit."""
        head = await self._run_local("symbolic-ref", "--quiet", "HEAD")
        commit = await self._run_local("rev-parse", "--quiet", "--verify", "HEAD^{commit}")
        if head.status or commit.status:
            return None
        return os.fsdecode(head.output.strip()).removeprefix("refs/heads/"), decode_output(commit.output.strip())

    async def _fetch(self, branch: str, lock: int) -> str:
        """Fetch into a private ref, so that readers see the branch move only when the fetch is complete.

        Tags are fetched too. The branch is followed even if a tag cannot be stored, such as `v2`
        next to a former `v2/beta`.
        """
        await asyncio.to_thread(self._delete_leftovers)
        options = ["--quiet", "--force", "--no-write-fetch-head", "--no-recurse-submodules"]
        if self.remote.depth is not None:
            options.append(f"--depth={self.remote.depth}")
        elif self._is_shallow():
            options.append("--unshallow")
        source = ("--", self.remote.url, f"+refs/heads/{branch}:{_INCOMING}")
        try:
            await self._run_remote("fetch", *options, *source, seconds=self._limits.fetching, lock=lock)
        except RemoteError as error:
            if error.state != "failed" or isinstance(error, DamagedClone):
                raise
            log.info("%s is fetched without tags: %s", self.name, error)
            await self._run_remote("fetch", "--no-tags", *options, *source, seconds=self._limits.fetching, lock=lock)
        return await self._read_local("rev-parse", "--verify", f"{_INCOMING}^{{commit}}")

    def _is_shallow(self) -> bool:
        return (self.path / "shallow").exists()

    async def _switch(self, branch: str, commit: str, local_head: tuple[str, str] | None) -> None:
        """Move the branch, note a rewritten history, and delete branches that are no longer followed."""
        self._rewrite_remark = ""
        if local_head is not None and local_head[0] == branch:
            # In a shallow clone git cannot tell whether history was rewritten.
            if (
                not self._is_shallow()
                and (await self._run_local("merge-base", "--is-ancestor", local_head[1], commit)).status
            ):
                self._rewrite_remark = (
                    f"{fetch_errors.format_branch(branch)} was force-pushed: {local_head[1][:7]} is no longer part of "
                    f"it. It is now at {commit[:7]}."
                )
        else:
            await self._read_local("symbolic-ref", "HEAD", f"refs/heads/{branch}")
            # A branch `a` that was followed before would conflict with a branch `a/b`.
            for name in (await self._read_local("for-each-ref", "--format=%(refname)", "refs/heads/")).splitlines():
                if name != f"refs/heads/{branch}":
                    await self._read_local("update-ref", "-d", name)
        await self._read_local("update-ref", f"refs/heads/{branch}", commit)

    async def _is_usable(self) -> bool:
        """Whether there is a repository that git can open, with readable refs."""
        if not await asyncio.to_thread((self.path / "HEAD").exists):
            return False
        return not (await self._run_local("for-each-ref", "--count=1")).status

    async def _reset(self, lock: int) -> None:
        """Create an empty repository, replacing a damaged one."""
        if await asyncio.to_thread(self._delete_all):
            log.warning("The clone of %s in %s was damaged and is fetched again.", self.name, self.path)
        self._was_reset = True
        result = await self._transport.run(
            "init",
            "--quiet",
            "--bare",
            "--template=",
            "--initial-branch=main",
            seconds=_LOCAL_SECONDS,
            pass_fds=(lock,),
        )
        if result.status:
            raise fetch_errors.make_clone_error(self.remote, result.complaint, self.path)
        await self._read_local("config", "remote.origin.url", self.remote.url)

    def _delete_all(self) -> bool:
        """Delete everything but the lock; return whether there was anything."""
        with map_storage_errors(self.path / _LOCK):
            paths = [path for path in self.path.iterdir() if path.name != _LOCK]
            for path in paths:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        return bool(paths)

    async def _run_remote(self, *arguments: str, seconds: float, lock: int | None = None) -> CompletedCommand:
        """Run a command that connects to the host; a failure is a `RemoteError`."""
        try:
            result = await self._transport.run(*arguments, seconds=seconds, pass_fds=() if lock is None else (lock,))
        except TimeoutError as error:
            place = fetch_errors.format_remote(self.remote)
            raise RemoteError(
                "host down", f"{place} did not answer within {seconds:g} seconds. It will be retried automatically."
            ) from error
        except AnswerTooLong as error:
            place = fetch_errors.format_remote(self.remote)
            raise RemoteError(
                "failed", f"{place} sent more than any repository needs. Check that its url is right."
            ) from error
        if result.status and (_NO_CLONE in result.complaint or fetch_errors.is_local_damage(result.complaint)):
            raise fetch_errors.make_clone_error(self.remote, result.complaint, self.path)
        if result.status:
            raise fetch_errors.make_fetch_error(self.remote, result.complaint)
        return result

    async def _run_local(self, *arguments: str) -> CompletedCommand:
        try:
            return await self._transport.run(*arguments, seconds=_LOCAL_SECONDS)
        except TimeoutError as error:
            raise RepositoryError(f"git did not finish in {self.path}. Check the disk.") from error

    async def _read_local(self, *arguments: str) -> str:
        result = await self._run_local(*arguments)
        if result.status:
            raise fetch_errors.make_clone_error(self.remote, result.complaint, self.path)
        return os.fsdecode(result.output).strip()

    def _delete_leftovers(self) -> None:
        """Delete the leftovers of a killed git; the lock keeps others out of the clone."""
        with map_storage_errors(self.path / _LOCK):
            for path in (each for pattern in _LEFTOVERS for each in self.path.glob(pattern)):
                path.unlink(missing_ok=True)

    @asynccontextmanager
    async def _lock_clone(self) -> AsyncIterator[int]:
        """Lock the clone against other processes; git inherits the lock, should this process be killed."""
        lock = await asyncio.to_thread(self._take_lock)
        try:
            yield lock
        finally:
            os.close(lock)

    def _take_lock(self) -> int:
        with map_storage_errors(self.path / _LOCK):
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                lock = lock_file(self.path / _LOCK)
            except OSError as error:
                if error.errno in _FULL:
                    raise RemoteError(
                        "disk full",
                        f"The disk that holds {format_path(self.path)} is full. Free some space to continue.",
                    ) from error
                raise
        if lock is None:
            raise StorageLocked(
                f"Another citebot is fetching {self.name} (it holds {self.path / _LOCK}). It will be retried "
                "automatically."
            )
        return lock


def list_commits_by_ref(listed: Mapping[str, str]) -> dict[str, str]:
    """Return the commits of branches and tags as listed by `ls-remote`, where a tag's commit has a separate line."""
    peeled = "^{}"
    refs = {name: sha for name, sha in listed.items() if name.startswith("refs/") and not name.endswith(peeled)}
    named = [name for name in refs if is_ref_name(name)][:MAX_REFS]
    return {name: listed.get(name + peeled, refs[name]) for name in named}


def open_clones(remotes: list[RemoteRepository], home: Path, *, at_once: int = 4) -> list[RemoteClone]:
    """Make the clones of several remotes, of which `at_once` fetch at a time; nothing is read or fetched yet."""
    slots = asyncio.Semaphore(at_once)
    return [RemoteClone(remote, home, slots=slots) for remote in remotes]
