"""Frozen values that the indexer returns: places in the code, symbols, hits, branch heads, states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SourceType = Literal["code", "test", "doc", "config"]
SymbolKind = Literal[
    "function",
    "method",
    "class",
    "interface",
    "struct",
    "enum",
    "trait",
    "module",
    "type",
    "constant",
    "macro",
]
ReferenceKind = Literal["call", "inherit"]
RegistrationKind = Literal[
    "route",
    "command",
    "task",
    "event",
    "model",
    "flag",
    "environment",
    "setting",
    "mount",
    # Of schemas, contracts between programs, and what is deployed.
    "table",
    "index",
    "access",  # of a table: its detail says whether it is read, written, altered, dropped or referenced
    "service",
    "rpc",
    "type",
    "resource",
    "job",
    "topic",  # its detail says whether it is produced, consumed or declared
    "client",  # of an interface: a request that is made
    "variable",  # of the environment, where it is set
    "feature",  # a flag that code asks for, or that is set, as its detail says
    "dependency",  # that a manifest declares; its detail is the version, its handler the package of the manifest
    "package",  # that is locked, or needed by another, as its help says
]
SearchMode = Literal["hybrid", "lexical", "vector"]
# A list of places is spread over files; of passages to be read, several of one file may come one after the other.
SearchAim = Literal["places", "passages"]
# The limit that a parser exceeded, or its end; or an unreadable text.
PlainReason = Literal["time", "memory", "crash", "encoding"]

# States of a repository; with the first three, work continues; the others change nothing.
RemoteState = Literal[
    "ready",
    "force-pushed",
    "moved",
    "empty",
    "branch gone",
    "not found",
    "host down",
    "host not trusted",
    "auth refused",
    "disk full",
    "indexing elsewhere",
    "failed",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """Lines of one file; both ends are 1-based and inclusive.

    An empty `commit` is the pinned one. An empty `path` means the commit itself. With several repositories,
    `repository` names one, and the path begins with that name.
    """

    path: str
    start_line: int
    end_line: int
    commit: str = ""
    repository: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    """One definition: its name, its signature and its place in the file.

    `qualified_name` joins the enclosing definitions and the name with dots (`Session.send`); `parent` is the part
    before the name, empty at the top level. `doc` is the first sentence of the documentation, or empty.
    """

    name: str
    qualified_name: str
    kind: SymbolKind
    signature: str
    doc: str
    start_line: int
    end_line: int

    @property
    def parent(self) -> str:
        """The qualified name of the enclosing definition, or an empty string."""
        return self.qualified_name.rpartition(".")[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """One use of a name: a call, or a base class.

    `qualifier` is the text before the last dot, arrow or double colon (`self`, `os.path`, `Foo`), or empty;
    `scope` is the qualified name of the innermost definition around it, empty at module level.
    """

    name: str
    qualifier: str
    kind: ReferenceKind
    line: int
    scope: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """One imported name: `from module import name as alias`; `name` is empty for an import of the module itself.

    `alias` is the file's name for it (`np` for `import numpy as np`; otherwise the imported name).
    """

    module: str
    name: str
    alias: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Registration:
    """One thing that a file offers by a name other than a definition's: a route, a command, an option.

    `name` is its name for users (`GET /users`, `--timeout`, `DATABASE_URL`), `detail` its default or other details of
    its kind, `help` its author's description, and `handler` the called definition; each may be empty. A `mount` offers
    nothing itself: it puts its name before the routes of the module in `handler`.
    """

    kind: RegistrationKind
    name: str
    detail: str
    help: str
    handler: str
    line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Consecutive lines of a file that are ranked and cited as one.

    `scope` is the qualified name of the definition that the first line lies within, `names` the definitions
    that begin in the chunk.
    """

    start_line: int
    end_line: int
    text: str
    scope: str
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedFile:
    """Everything the parser found in one file; the chunks cover every non-blank line and do not overlap.

    `plain` tells why the file was read as plain text although its language has a grammar.
    """

    language: str
    chunks: tuple[Chunk, ...]
    symbols: tuple[Symbol, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    registrations: tuple[Registration, ...] = ()
    plain: PlainReason | None = None

    def count_names(self) -> int:
        """The number of definitions, uses of names, imports and registrations."""
        return len(self.symbols) + len(self.references) + len(self.imports) + len(self.registrations)


@dataclass(frozen=True, kw_only=True, slots=True)
class Definition:
    """A symbol and its file."""

    path: str
    symbol: Symbol

    @property
    def location(self) -> Location:
        """The lines of the whole definition."""
        return Location(path=self.path, start_line=self.symbol.start_line, end_line=self.symbol.end_line)


@dataclass(frozen=True, kw_only=True, slots=True)
class RegistrationSite:
    """A registration and its file."""

    path: str
    registration: Registration

    @property
    def location(self) -> Location:
        """The line of the registration."""
        line = self.registration.line
        return Location(path=self.path, start_line=line, end_line=line)


@dataclass(frozen=True, kw_only=True, slots=True)
class Subclass:
    """A type that inherits from another, implements it or mixes it in; `base` is the name by which it does so."""

    definition: Definition
    base: str
    is_direct: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class CallSite:
    """One edge of the call graph: caller, callee and line.

    `caller` is None for a call at module level, `callee` None for a name from outside the repository or without a known
    definition. `ambiguous` is set if the syntax cannot tell which of several definitions is called.
    """

    path: str
    line: int
    name: str
    caller: Definition | None
    callee: Definition | None
    ambiguous: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class FileImport:
    """One import of repository code: the files that it may mean, several if it names a folder."""

    path: str
    line: int
    targets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Filters:
    """The files that a search may look at; an empty tuple does not restrict.

    `folders` are path prefixes (`src/api`), `patterns` gitignore-style globs (`**/*.sql`).
    """

    languages: tuple[str, ...] = ()
    source_types: tuple[SourceType, ...] = ()
    folders: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One chunk that answers a query. Scores compare within one result only; the best is first."""

    location: Location
    text: str
    score: float
    language: str
    source_type: SourceType
    scope: str
    symbols: tuple[Symbol, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Passage:
    """Lines of a file as they are at the indexed commit, secrets masked."""

    location: Location
    text: str
    language: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEntry:
    """One indexed file."""

    path: str
    language: str
    source_type: SourceType
    lines: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryOverview:
    """A repository at a glance.

    `languages` and `folders`, to two levels, have the number of their files; `starts` are its entry files, and
    `introduction` holds the README's paragraphs that describe it.
    """

    files: int
    lines: int
    languages: tuple[tuple[str, int], ...]
    folders: tuple[tuple[str, int], ...]
    starts: tuple[str, ...]
    introduction: tuple[Passage, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainFile:
    """A file that is searched as plain text, as its parser took too long, needed too much memory, or crashed.

    With the reason `encoding` it is parsed, but some of its characters may be wrong.
    """

    path: str
    reason: PlainReason


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """A commit of a repository; `branch` is None when HEAD is detached."""

    sha: str
    branch: str | None
    committed_at: int
    subject: str


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexStatus:
    """The state of a repository's index. `commit` is None before the first generation is ready.

    `branches` are the kept branches besides the followed one.
    """

    repository: str
    path: str
    commit: str | None
    branch: str | None
    indexed_at: float | None
    commits_behind: int | None
    files: int
    chunks: int
    symbols: int
    embedder: str
    disk_bytes: int
    skipped: dict[str, int]
    plain_files: tuple[PlainFile, ...] = ()
    warnings: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """An unindexed path of a commit, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexLimits:
    """The limits on the index of one repository: files, their bytes, and chunks.

    The other limits follow from the chunks and exceed those of hand-written code: memory and disk are bounded for any
    repository. 200,000 chunks are indexed within 2 GB.
    """

    files: int = 100_000
    bytes: int = 1_000_000_000
    chunks: int = 200_000

    @property
    def names(self) -> int:
        """The maximum of indexed definitions, uses of names, imports and registrations."""
        return 100_000 + 25 * self.chunks

    @property
    def words(self) -> int:
        """The maximum of distinct words and names."""
        return 100_000 + 8 * self.chunks

    @property
    def postings(self) -> int:
        """The maximum of words in chunks, each counted once per chunk."""
        return 100_000 + 120 * self.chunks


# What is not known of the files of a language: definitions without a grammar or the program ctags; calls with that.
UnparsedReason = Literal["grammar", "ctags", "calls"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unparsed:
    """The files of a language of which not everything is known."""

    language: str
    files: int
    reason: UnparsedReason


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """The part of a commit that was read, and the rest: without it, no "no" is credible.

    `files` counts the indexed files, `skipped` the others by reason. `uncommitted` are paths that differ in the working
    tree, `holding` unindexed files that contain some words. `unparsed` counts files whose definitions or calls are
    unknown. It `is_behind` while newer commits are being indexed.
    """

    files: int
    skipped: Mapping[str, int]
    uncommitted: tuple[str, ...] = ()
    holding: tuple[LeftOut, ...] = ()
    unparsed: tuple[Unparsed, ...] = ()
    is_behind: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Drift:
    """The changes in a repository since a commit; None if they are unknown.

    `uncommitted` are the paths that differ in the working tree from what is committed.
    """

    behind: int | None
    changed: tuple[str, ...] | None
    uncommitted: tuple[str, ...] = ()


# What became of lines: nothing; they are elsewhere; only white space, or only comments differ; something differs that
# the claim does not name; something that it names; they are gone.
LineFate = Literal["same", "moved", "reformatted", "commented", "edited", "changed", "gone"]
TELLING_FATES: frozenset[LineFate] = frozenset({"changed", "gone"})  # after which a claim may be wrong


@dataclass(frozen=True, kw_only=True, slots=True)
class CitedLines:
    """Lines of a file at a commit, and the words of the claim that they support, in lower case."""

    path: str
    start_line: int
    end_line: int
    words: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowedLines:
    """The place of cited lines at a later commit, and their fate; deleted lines keep their last place."""

    path: str
    start_line: int
    end_line: int
    fate: LineFate


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """The progress of a refresh; `total` is 0 until it is known."""

    stage: Literal["listing", "parsing", "embedding", "writing", "done"]
    done: int
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RefreshReport:
    """The result of a refresh; `changed` counts parsed files, `removed` deleted ones."""

    commit: str
    previous: str | None
    changed: int
    removed: int
    files: int
    chunks: int
    seconds: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """One whole line that matches a pattern."""

    location: Location
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Matches:
    """The lines that patterns were found in: code, tests, documents, data, each by path and line.

    Not `complete` where a bound ended the search: of time, after `files_searched` of the `files`; of lines in one of
    the `cut_files`; or of lines in all. `counts` says of each pattern how many lines it has, one more than the limit
    where there are more.
    """

    lines: tuple[Match, ...]
    files_searched: int
    complete: bool
    files: int = 0
    is_out_of_time: bool = False
    cut_files: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """A commit; `committed_at` is in seconds since the epoch, the author's address is left out.

    `body` is the message below the subject, and `paths` are the files that it touched; they are empty if they were
    not asked for.
    """

    sha: str
    author: str
    committed_at: int
    subject: str
    body: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitMessage:
    """The message of a commit, secrets masked, and its touched files."""

    subject: str
    body: str
    paths: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileHistory:
    """The commits that touched a file, newest first, and the one that last wrote one of its lines.

    `last_changed` is None if no line was asked for or git could not tell. Not `complete`: there are older ones.
    `horizon` is that of a `CommitLog`.
    """

    path: str
    revisions: tuple[Revision, ...]
    complete: bool
    line: int = 0
    last_changed: Revision | None = None
    horizon: Revision | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LogQuery:
    """A selection of commits up to the pinned one; an empty field does not restrict.

    `after` and `until` are tags, branches or commits as people write them; `release` is a tag and selects the commits
    since the release before it, `newest` for the newest release. `since` and `before` are times in seconds since the
    epoch. `path` is a file or a folder; `lines`, first and last, are of that file. `text` was added or removed by a
    commit; `author` is a part of a name, and all `words` are in the message, both in any case.
    """

    path: str = ""
    after: str = ""
    until: str = ""
    release: str = ""
    since: int = 0
    lines: tuple[int, int] | None = None
    text: str = ""
    limit: int = 20
    before: int = 0
    author: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitLog:
    """Commits without merges, newest first. Not `complete`: there are older ones, or git could not tell.

    `total` counts all of them, None if that is unknown; `after` and `until` are the resolved ends. `horizon` is the
    newest commit of a shallow clone before which nothing was fetched.
    """

    revisions: tuple[Revision, ...]
    total: int | None
    complete: bool
    horizon: Revision | None = None
    after: Tag | None = None
    until: Tag | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DeployMark:
    """The mark of an environment's commit: a branch, a tag, a pattern of tags, or the commit that `written` led to.

    `problem` says why that is unknown.
    """

    written: str
    ref: str = ""
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deployment:
    """A deployment in an environment, as its operator has `written` it: a branch, a tag, a pattern of tags, an address.

    `release` is the oldest one that contains its commit. `lacking` are the commits in question that it lacks, and
    `behind` counts how far it is behind the pinned code; None if git cannot tell. If nothing is known, `problem` says
    why.
    """

    environment: str
    written: str
    sha: str = ""
    release: str = ""
    lacking: frozenset[str] | None = None
    behind: int | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Releases:
    """The oldest release that has each commit, by commit, and what runs where; `since` is None without releases.

    `branches` has the release branch of each commit that is on one and in no release.
    """

    since: Mapping[str, str] | None
    branches: Mapping[str, str] = field(default_factory=dict)
    deployments: tuple[Deployment, ...] = ()


RefKind = Literal["branch", "tag", "commit", "pull request"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedRef:
    """A branch, a tag, a commit or a pull request that somebody named, and its present commit.

    `name` is short, as people write it: `release-2.1`, `v5.0.2`, `#12`. `full_name` is git's name, empty for a commit.
    One that `is_followed` is the branch that is always indexed.
    """

    kind: RefKind
    name: str
    commit: str
    full_name: str = ""
    is_followed: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedRefs:
    """The commits of a repository's branches, tags and pull requests by their full names; `followed` is a branch."""

    commits: Mapping[str, str] = field(default_factory=dict)
    followed: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tag:
    """A commit's name, and its time in seconds since the epoch."""

    name: str
    sha: str
    created_at: int


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffQuery:
    """The two commits of a comparison, as people write them; without `until`, the pinned one is the newer.

    Only `paths`, files or folders, are looked at, all if there are none; of a file only what touches `lines`, the
    first and the last of the newer commit. `limit` is how many changed places are read; with `is_whole` all lines of
    every place, in the order of the files.
    """

    after: str
    until: str = ""
    paths: tuple[str, ...] = ()
    lines: tuple[int, int] | None = None
    limit: int = 40
    is_whole: bool = False


FileFate = Literal["added", "changed", "removed", "renamed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFile:
    """A file that differs between two commits; `former` is what it was called in the older one, empty if the same.

    `added` and `removed` count lines, None if git could not tell.
    """

    path: str
    fate: FileFate
    source_type: SourceType
    former: str = ""
    added: int | None = None
    removed: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedPlace:
    """Consecutive lines that were replaced, secrets masked. Where there are none on one side, the line before is named.

    `removed` are the first lines of the older side and `added` of the newer; `removed_count` and `added_count` are all.
    It is `trivial` where only white space differs, or a comment that is addressed to a checker.
    """

    path: str
    former: str
    old_line: int
    new_line: int
    removed_count: int
    added_count: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    trivial: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The difference between two commits. `base` is their last common ancestor, empty if none is known.

    If the branches diverged, only changes on the newer one since `base` count, and `behind` counts the commits only on
    the older. `files` and `places` begin with the most telling; `total` counts all changed files, and `folded` the
    hidden ones by reason. Not `is_complete`: git took too long, or too many files differ.
    """

    older: Tag
    newer: Tag
    base: str
    ahead: int | None
    behind: int | None
    files: tuple[ChangedFile, ...] = ()
    places: tuple[ChangedPlace, ...] = ()
    total: int = 0
    folded: tuple[tuple[str, int], ...] = ()
    is_complete: bool = True
    is_shallow: bool = False

    @property
    def start(self) -> str:
        """The commit of removed lines."""
        return self.base or self.older.sha

    @property
    def has_diverged(self) -> bool:
        """Whether the older commit is not an ancestor of the newer."""
        return bool(self.base) and self.base != self.older.sha


@dataclass(frozen=True, kw_only=True, slots=True)
class Contributor:
    """Somebody who changed some files: how many commits, when they began and ended, and how many lines are left.

    `newest` is the last of the commits.
    """

    name: str
    commits: int
    first_at: int
    last_at: int
    newest: str
    lines: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Contributors:
    """The authors of some files, the busiest first. Lines are counted only within one file, else `lines` is 0.

    Not `complete`: there are older commits that are not known.
    """

    people: tuple[Contributor, ...]
    commits: int
    lines: int
    complete: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LineOrigin:
    """A commit that last wrote some lines of a file, how many of those asked for, and the first of them."""

    revision: Revision
    lines: int
    first_line: int


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeOwners:
    """The owners of a path, from a line of a CODEOWNERS file; email addresses are left out."""

    location: Location
    pattern: str
    owners: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class BranchHead:
    """The newest commit of the branch that is followed; it can be read here.

    `remark` is a sentence for people, empty in the state `ready`.
    """

    commit: str
    branch: str | None
    state: RemoteState = "ready"
    remark: str = ""
