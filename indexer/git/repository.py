"""One git repository, read through GitPython: its commits, the files worth indexing, changes and contents.

Everything comes from git objects. The working tree is only compared with them, nothing is fetched,
and no program from the repository's configuration is run.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path, PurePosixPath

from indexer.errors import EmptyRepository, NotARepository, RepositoryError
from indexer.git.commit_queries import CommitQueries
from indexer.git.file_selection import MAX_BYTES, FileSelection, judge_path
from indexer.git.git_command import (
    GitCommand,
    decode_output,
    format_path,
    make_missing_file_error,
    make_missing_object_error,
)
from indexer.git.gitattributes import FileAttributes, GitAttributes, is_attributes_file, list_attribute_files
from indexer.git.history import GitHistory, read_subject, read_time
from indexer.git.objects import (
    NOT_FETCHED,
    OVER_BYTES,
    OVER_FILES,
    BlobReader,
    Omission,
    TreeChanges,
    TreeEntry,
    TreeItem,
    TreeListing,
    read_tree,
)
from indexer.git.permalinks import find_web_base
from indexer.git.safe_paths import is_safe_path
from indexer.git.tags import ReleaseQueries, TagList
from indexer.secrets import redact_secrets
from indexer.text.decoding import decode_file, find_encoding, is_legacy
from indexer.types import Commit, CommitMessage, Drift, IndexLimits

_FILES = frozenset({"100644", "100755"})
_MAX_LISTED = 50
_MAX_READ = 500  # files
_LISTING = 3.0  # seconds
_Staged = tuple[bytes, int, int]
_CHANGED = re.compile(rb"^ +mtime: (\d+):(\d+)$", re.MULTILINE)
_SIZE = re.compile(rb"\bsize: (\d+)\b")
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class WorkingTree:
    """Compares files with the commit by their bytes only.

    `git status` would run the filters that a repository's configuration names.
    """

    def __init__(self, git: GitCommand, blobs: BlobReader, *, root: Path, is_bare: bool) -> None:
        self._git = git
        self._blobs = blobs
        self._root = root
        self._is_bare = is_bare

    def list_uncommitted(self, paths: Sequence[str]) -> tuple[str, ...]:
        """List the paths whose file differs from the checked-out commit; none in a bare repository."""
        if self._is_bare or not paths:
            return ()
        names = [os.fsencode(path) for path in paths[:_MAX_LISTED]]
        items = [item for item in read_tree(self._git, "HEAD", *names) if item.mode in _FILES]
        return tuple(item.path for item in items if item.path in paths and self._is_changed(item))

    def _is_changed(self, item: TreeItem) -> bool:
        if item.size is None or item.size > MAX_BYTES:
            return False
        file = self._root / item.path
        try:
            data = _read_file(file)
        except FileNotFoundError:
            return file.parent.is_dir()  # whole folders are missing where only some were checked out
        except OSError:
            return True  # something else has taken the place of the file
        committed = self._blobs.read([item.sha])[0]
        return data is None or _unify_lines(data) != _unify_lines(committed)

    def list_all_uncommitted(self, sha: str) -> tuple[str, ...]:
        """List the differences from a commit, new files included; nothing unless that commit is checked out.

        Times and sizes in git's index decide which files must be read at all.
        """
        if self._is_bare or (self._git.try_run("rev-parse", "HEAD") or b"").strip() != sha.encode():
            return ()
        staged = self._list_staged()
        if not staged:  # in a layout that git does not print so
            return ()
        touched = [
            item for item in read_tree(self._git, sha) if item.mode in _FILES and self._is_touched(item, staged)
        ][:_MAX_READ]
        changed = [item.path for item in touched if self._is_changed(item)]
        here = ("-C", str(self._root), f"--work-tree={self._root}")
        new = self._git.try_run(*here, "ls-files", "--others", "--exclude-standard", "-z", seconds=_LISTING) or b""
        return (*changed, *(decode_output(name) for name in new.split(b"\0") if name))

    def _list_staged(self) -> dict[bytes, _Staged]:
        """List git's index: each file's blob, time in nanoseconds, and size."""
        output = self._git.try_run("ls-files", "--stage", "--debug", "-z", seconds=_LISTING) or b""
        staged: dict[bytes, _Staged] = {}
        head = b""
        for part in output.split(b"\0"):  # `mode sha stage TAB name`, then lines of facts before the next of these
            facts, _, following = part.rpartition(b"\n")
            changed, size = _CHANGED.search(facts), _SIZE.search(facts)
            if head and changed and size:
                sha, _, name = head.partition(b"\t")
                staged[name] = (sha.split()[1], int(changed[1]) * 10**9 + int(changed[2]), int(size[1]))
            head = following
        return staged

    def _is_touched(self, item: TreeItem, staged: Mapping[bytes, _Staged]) -> bool:
        try:
            found = os.lstat(os.path.join(self._root, item.path))  # noqa: PTH118 - much faster over thousands of files
        except OSError:
            return True
        return staged.get(item.name) != (item.sha.encode(), found.st_mtime_ns, found.st_size)


def _read_file(file: Path) -> bytes | None:
    """Read a file of the working tree; None for one beyond the size limit, or no file at all."""
    handle = os.open(file, _OPEN)
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        data = opened.read(MAX_BYTES + 1)
        return data if len(data) <= MAX_BYTES else None


def _unify_lines(data: bytes) -> bytes:
    """Write line ends as git stores them, whatever the checkout uses."""
    return data.replace(b"\r\n", b"\n")


__all__ = ["Repository", "TreeChanges", "TreeEntry", "TreeListing"]

SHALLOW = (
    "The history is shallow, so older commits are unknown. Run `git fetch --unshallow`; for a repository with a url, "
    "remove `depth` from citebot.toml."
)
_SUBMODULE, _SYMLINK = "160000", "120000"
_MAX_PATHS = 500  # named to git one by one
_MAX_NAMED = 100_000  # bytes of such names, attribute files included; more would be too long for a command line
_GREPPING = 5.0  # seconds
_COMPARING = 5.0  # seconds; git keeps the differences in memory, and where they are too many, the whole tree is listed
_MAX_ATTRIBUTES = 10_000_000  # bytes of all `.gitattributes`; the same content may be there many times
_SAMPLES, _SAMPLED = 300, 100_000  # files that are looked at for their encoding, and the bytes of the largest
_WINDOW = 32  # blobs requested at a time; their names fit a pipe, and their contents fit memory


class Repository:
    """A git repository, bare or not; close it, or use it in a `with` statement. It may be shared by threads."""

    def __init__(self, git: GitCommand, *, root: Path, selection: FileSelection) -> None:
        self.git = git
        self._selection = selection
        self._blobs = BlobReader(git, git.git_dir)
        self.history = GitHistory(git, git.git_dir)
        self.tags = TagList(git)
        self.commits = CommitQueries(git, self.history, self.tags)
        self.releases = ReleaseQueries(git, self.tags)
        self.working_tree = WorkingTree(git, self._blobs, root=root, is_bare=root == git.git_dir)
        self.root = root
        self.git_dir = git.git_dir
        self.web_url = self._find_web_url()
        # Choose a repository's display name: its name on the web, else that of its folder
        name = PurePosixPath(self.web_url).name if self.web_url else root.name.removesuffix(".git") or root.parent.name
        self.name = decode_output(os.fsencode(name)) or "repository"

    @classmethod
    def open(
        cls, path: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = (), large: Sequence[str] = ()
    ) -> Repository:
        """Find the repository that a path is in: a working tree, a bare repository, a worktree or a submodule.

        The globs are those of `FileSelection`. Raises `NotARepository`, or `RepositoryError` where git refuses.
        """
        git, root = GitCommand.discover(_find_folder(path))
        return cls(git, root=root, selection=FileSelection(include, exclude, large))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems of the repository, as sentences."""
        return (SHALLOW,) if self.history.read_shallow_commits() else ()

    def __enter__(self) -> Repository:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that reads contents; reading again starts another one."""
        self._blobs.close()

    def commit(self, ref: str = "HEAD") -> Commit:
        """Resolve a branch, tag, sha or `HEAD`; `EmptyRepository` if there is no commit yet."""
        output = None
        if ref and not ref.startswith("-"):
            output = self.git.try_run(
                "rev-list", "-1", "--encoding=UTF-8", "--format=%H%x00%ct%x00%s", f"{ref}^{{commit}}", "--"
            )
        if not output:
            raise self._explain_missing_commit(ref)
        sha, committed_at, subject = output.partition(b"\n")[2].removesuffix(b"\n").split(b"\0", 2)
        name = self.git.try_run("rev-parse", "--symbolic-full-name", ref) or b""
        full_name = decode_output(name.removesuffix(b"\n"))
        return Commit(
            sha=sha.decode(),
            branch=redact_secrets(full_name.removeprefix("refs/heads/"))
            if full_name.startswith("refs/heads/")
            else None,
            committed_at=read_time(committed_at),
            subject=read_subject(subject),
        )

    def resolve_ref(self, ref: str = "HEAD") -> str:
        """Return the sha of a branch, tag or `HEAD`, with one command to git where `commit` needs two."""
        output = None
        if ref and not ref.startswith("-"):
            output = self.git.try_run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        if not output:
            raise self._explain_missing_commit(ref)
        return output.decode().strip()

    def count_commits_between(self, old: str, new: str) -> int | None:
        """Count the commits of `new` that `old` does not have; None if one of the two does not exist."""
        output = self.git.try_run("rev-list", "--count", f"{old}..{new}", "--")
        return None if output is None else int(output)

    def commit_messages(self, sha: str, *, since: str = "", is_beside: bool = False) -> list[CommitMessage] | None:
        """Read the messages of commits from `sha` back to `since`, newest first.

        Returns None if `since` is no ancestor of `sha`, as after a force-push, unless it `is_beside`: the head of
        another branch.
        """
        if since and not is_beside and self.git.try_run("merge-base", "--is-ancestor", since, sha) is None:
            return None
        return self.history.read_messages(sha, since=since)

    def list_changed_paths(self, old: str, new: str, paths: Sequence[str]) -> tuple[str, ...] | None:
        """List the paths that differ between two commits; None if one of the commits does not exist."""
        if not paths:
            return ()
        options = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
        output = self.git.try_run("diff-tree", "-r", *options, old, new, "--", *paths)
        return None if output is None else tuple(decode_output(name) for name in output.split(b"\0") if name)

    def measure_drift(self, old: str, new: str, paths: Sequence[str]) -> Drift:
        """Find out what changed between two commits, in general and of some paths."""
        if old == new:
            return Drift(behind=0, changed=())
        return Drift(behind=self.count_commits_between(old, new), changed=self.list_changed_paths(old, new, paths))

    def list_tree(self, sha: str) -> list[TreeItem]:
        """List everything in the tree of a commit, whatever its name."""
        return read_tree(self.git, sha)

    def files(self, sha: str, limits: IndexLimits | None = None) -> TreeListing:
        """List the files of a commit that pass the rules, up to a number, by path.

        Files missing from a partial clone are omitted; `MissingObjects` if another repository lacks
        some.
        """
        tree = read_tree(self.git, sha)
        return self._select_files(tree, self._read_attributes(tree), limits)

    def _select_files(
        self, tree: list[TreeItem], attributes: GitAttributes, limits: IndexLimits | None = None
    ) -> TreeListing:
        entries: dict[str, TreeEntry] = {}
        omissions: list[Omission] = []
        size = 0
        for item in tree:
            if limits is not None and len(entries) >= limits.files:  # to judge a million paths takes a minute
                omissions.append(Omission(path=item.path, reason=OVER_FILES))
                continue
            marks = attributes.of(item.path)
            if self._selection.is_large(item.path):
                marks = replace(marks, is_large=True)
            # Two names that differ only in undecodable bytes may look the same; the first one stays.
            reason = "undecodable name" if item.path in entries else self._judge(item, marks)
            if reason is not None:
                omissions.append(Omission(path=item.path, reason=reason))
            elif item.size is None:
                if not self._is_partial:
                    raise make_missing_file_error(item.path, self.root)
                omissions.append(Omission(path=item.path, reason=NOT_FETCHED))
            elif limits is not None and (size := size + item.size) > limits.bytes:
                omissions.append(Omission(path=item.path, reason=OVER_BYTES))
            else:
                entries[item.path] = TreeEntry(path=item.path, blob=item.sha, size=item.size, marks=marks)
        return TreeListing(entries=tuple(entries.values()), omissions=tuple(omissions))

    def compare_commits(self, old: str, new: str) -> TreeChanges | None:
        """Compare two commits under the same rules.

        None if the whole tree must be listed instead: `old` is gone, or `.gitattributes` changed and with it the
        rules, or a name may look like another one, and only the whole tree tells which of them stays, or a name cannot
        be passed to git.
        """
        options = ("-r", "-z", "--no-renames", "--name-only")
        output = self.git.try_run("diff-tree", *options, old, new, seconds=_COMPARING)
        if output is None:
            return None
        names = [name for name in output.split(b"\0") if name]
        touched = frozenset(map(decode_output, names))
        if any(is_attributes_file(path) or "\\" in path or not is_safe_path(path) for path in touched):
            return None
        listing = self.list_paths(new, names)
        return TreeChanges(
            touched=touched,
            entries=tuple(entry for entry in listing.entries if entry.path in touched),
            omissions=tuple(omission for omission in listing.omissions if omission.path in touched),
        )

    def list_paths(self, sha: str, names: Sequence[bytes]) -> TreeListing:
        """List some paths of a commit; for few, only the attributes of their own folders are read.

        For many, everything is listed, including other paths.
        """
        if not names:
            return TreeListing(entries=(), omissions=())
        if len(names) > _MAX_PATHS:
            return self.files(sha)
        paths = [*names, *sorted(list_attribute_files(names))]
        if sum(map(len, paths)) > _MAX_NAMED:
            return self.files(sha)
        items = read_tree(self.git, sha, *paths)
        files = [item for item in items if not is_attributes_file(item.path) or item.name in names]
        return self._select_files(files, self._read_attributes(items))

    def find_files_with(self, sha: str, words: Sequence[str]) -> frozenset[str]:
        """Find the files of a commit in which any of the words appears whole; none if git takes too long."""
        wanted = [word for word in words if word and "\0" not in word and "\n" not in word]
        if not wanted:
            return frozenset()
        patterns = [part for word in wanted for part in ("-e", word)]
        output = self.git.try_run("grep", "-l", "-z", "-I", "-w", "-F", *patterns, sha, "--", seconds=_GREPPING)
        return frozenset(decode_output(name).removeprefix(f"{sha}:") for name in (output or b"").split(b"\0") if name)

    def iter_blobs(self, shas: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Read contents in the given order, many at a time; `MissingObjects` at the first missing one."""
        waiting = iter(shas)
        while window := list(islice(waiting, _WINDOW)):
            yield from zip(window, self._blobs.read(window), strict=True)

    @cached_property
    def _is_partial(self) -> bool:
        """Whether git was told to fetch only some objects, even if it has forgotten the remote."""
        if self.git.try_run("config", "--get-regexp", r"^(remote\..*\.promisor|extensions\.partialclone)$"):
            return True
        packs = self.git_dir / decode_output(self.git.run("rev-parse", "--git-path", "objects/pack").strip())
        return any(packs.glob("*.promisor"))

    def count_missing_files(self, sha: str, limits: IndexLimits) -> int:
        """Count the files of a commit that a partial clone lacks."""
        return sum(one.reason == NOT_FETCHED for one in self.files(sha, limits).omissions)

    @cached_property
    def usual_encoding(self) -> str:
        """Return the encoding of most files at HEAD that are not UTF-8, by a sample; empty if there are none."""
        head = self.git.try_run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        tree = read_tree(self.git, head.decode().strip()) if head else []
        shas = [item.sha for item in tree if item.mode != _SYMLINK and 0 < (item.size or 0) < _SAMPLED]
        contents = (data for _, data in self.iter_blobs(shas[:: len(shas) // _SAMPLES + 1]))
        found = Counter(find_encoding(data) for data in contents if is_legacy(data))
        return next((encoding for encoding, _ in found.most_common() if encoding), "")

    def _read_attributes(self, tree: list[TreeItem]) -> GitAttributes:
        files = [item for item in tree if is_attributes_file(item.path) and item.mode not in {_SUBMODULE, _SYMLINK}]
        files = [item for item in files if item.size is not None and item.size <= MAX_BYTES]
        files.sort(key=lambda item: item.path.count("/"))  # where there are too many, those near the top are used
        sizes = accumulate(item.size or 0 for item in files)
        files = [item for item, size in zip(files, sizes, strict=True) if size <= _MAX_ATTRIBUTES]
        texts = (decode_file(data) or "" for _, data in self.iter_blobs(item.sha for item in files))
        return GitAttributes({item.path: content for item, content in zip(files, texts, strict=True)})

    def _judge(self, item: TreeItem, marks: FileAttributes) -> str | None:
        if not is_safe_path(item.path):
            return "unsafe path"
        if item.mode in {_SUBMODULE, _SYMLINK}:
            return "submodule" if item.mode == _SUBMODULE else "symlink"
        if not self._selection.is_selected(item.path):
            return "excluded"
        return judge_path(item.path, item.size or 0, marks)

    def _find_web_url(self) -> str | None:
        output = self.git.try_run("config", "-z", "--get-regexp", r"^remote\..*\.url$") or b""
        remotes = [decode_output(item).partition("\n") for item in output.split(b"\0") if item]
        remotes.sort(key=lambda remote: remote[0] != "remote.origin.url")
        return next((base for _, _, url in remotes if (base := find_web_base(url))), None)

    def _explain_missing_commit(self, ref: str) -> RepositoryError:
        """Explain why a name does not resolve to a commit."""
        if not self.git_dir.exists():
            return NotARepository(f"{format_path(self.root)} is no longer there. Give its new path.")
        head = self.git.try_run("rev-parse", "--verify", "--quiet", "HEAD")
        if head is None and not self.git.try_run("for-each-ref", "--count=1"):
            return EmptyRepository(f"{format_path(self.root)} has no commit yet. Commit something, then try again.")
        if head is None and ref == "HEAD":
            return RepositoryError(
                f"The branch checked out in {format_path(self.root)} has no commit. Check out another one."
            )
        is_name = not ref.startswith("-") and self.git.try_run("rev-parse", "--symbolic-full-name", ref)
        if is_name and self.git.try_run("cat-file", "-e", ref) is None:
            return make_missing_object_error(f"the commit of {ref}", self.root)
        return RepositoryError(f"{format_path(self.root)} has no branch, tag or commit {ref!r}. Check the name.")


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryPlace:
    """A repository's name and root folder."""

    name: str
    root: Path


def locate_repository(path: Path) -> RepositoryPlace:
    """Find the repository around a path; `RepositoryError` if there is none."""
    with Repository.open(path) as found:
        return RepositoryPlace(name=found.name, root=found.root)


def open_objects(path: Path) -> Repository:
    """Open the repository around a path to read its commits, indexed or not."""
    return Repository.open(path)


def _find_folder(path: Path) -> Path:
    try:
        if path.exists():
            return path.resolve() if path.is_dir() else path.resolve().parent
    except OSError as error:
        raise RepositoryError(
            f"{format_path(path)} cannot be read: {error.strerror}. Check its permissions."
        ) from error
    raise NotARepository(f"{format_path(path)} does not exist.")
