"""The present branches, tags and pull requests of a repository, and the meaning of written names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from indexer.git.git_command import GitCommand, decode_output
from indexer.git.tags import SHA, is_release, list_refs, match_tag, read_version, resolve_commit
from indexer.remotes.addresses import Address
from indexer.text.linear_patterns import compile_pattern
from indexer.types import NamedRef, RefKind, Tag

MAX_REFS = 20_000
_TIMEOUT_SECONDS = 10.0
_LONGEST = 200  # characters of a name that anybody would write
_MAX_COMPARED = 5_000  # names that a misspelt one is compared with
_PLACES = ("refs/heads", "refs/tags", "refs/remotes/origin", "refs/pull", "refs/merge-requests", "refs/pull-requests")
_NUMBER = re.compile(r"[#!]?(\d{1,9})")
# Names that git refuses; it would read some of these as an option, or as a path to another commit.
_NO_NAME = re.compile(r"^[-/.]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[/.]$|^@$")
# How hosts name a pull request in the subject of the commit that merges it; and GitLab, in its message.
_MERGED = (
    r"\(#{0}\)$", "^Merge pull request #{0} ", r"^Merged in .*\(pull request #{0}\)$", "^See merge request .*!{0}$",
)  # fmt: skip
_MAX_MERGED = 50  # commits that speak of one
_LATEST = frozenset({"latest", "newest", "last"})
_PULLS = ("refs/pull/{}/head", "refs/merge-requests/{}/head", "refs/pull-requests/{}/from", "refs/pull/{}/merge")

_KINDS: Mapping[str, RefKind] = {"refs/heads/": "branch", "refs/remotes/origin/": "branch", "refs/tags/": "tag"}


def is_ref_name(name: str) -> bool:
    """Whether git accepts this unambiguously as the name of a branch or a tag."""
    return 0 < len(name) <= _LONGEST and not _NO_NAME.search(name)


def fits_branch(name: str, patterns: Sequence[str]) -> bool:
    """Whether a branch is kept, by name or by a pattern such as `release-*`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class RefTable:
    """Commits by the full names of refs, as a repository lists them."""

    commits: Mapping[str, str]

    def find(self, written: str, kind: RefKind | None = None) -> NamedRef | None:
        """Find the branch, tag or pull request that a name means; a branch comes before a tag of the same name."""
        name = written.strip()
        if kind == "pull request":
            number = _NUMBER.fullmatch(name)
            full_names = [form.format(int(number[1])) for form in _PULLS] if number else []
            known = next((each for each in full_names if each in self.commits), "")
            return make_pull_ref(int(number[1]), known, self.commits[known]) if number and known else None
        if not is_ref_name(name):
            return None
        for full_name in (f"refs/heads/{name}", f"refs/remotes/origin/{name}") if kind in {None, "branch"} else ():
            if full_name in self.commits:
                return NamedRef(kind="branch", name=name, commit=self.commits[full_name], full_name=full_name)
        return self._find_tag(name) or self._find_latest(name) if kind in {None, "tag"} else None

    def _find_tag(self, name: str) -> NamedRef | None:
        found = match_tag(name, self._list_tags())
        if found is None:
            return None
        return NamedRef(kind="tag", name=found.name, commit=found.sha, full_name=f"refs/tags/{found.name}")

    def _find_latest(self, name: str) -> NamedRef | None:
        """Find the newest finished version if that is wanted, else the newest tag."""
        newest = [*self._list_releases(), *self._list_tags()][:1] if name.casefold() in _LATEST else []
        return self._find_tag(newest[0].name) if newest else None

    def _list_releases(self) -> Sequence[Tag]:
        """List the finished versions, newest first."""
        releases = [tag for tag in self._list_tags() if is_release(tag.name)]
        return sorted(releases, key=lambda tag: read_version(tag.name) or (), reverse=True)

    def _list_tags(self) -> Sequence[Tag]:
        prefix = "refs/tags/"
        return [
            Tag(name=name.removeprefix(prefix), sha=sha, created_at=0)
            for name, sha in self.commits.items()
            if name.startswith(prefix)
        ]

    def suggest(self, written: str, *, most: int = 5) -> Sequence[str]:
        """Suggest the branches and tags with the nearest names; the newest versions for a version."""
        named = (name.removeprefix(prefix) for prefix in _KINDS for name in self.commits if name.startswith(prefix))
        names = [*dict.fromkeys(named)][:_MAX_COMPARED]
        wanted = written.strip()[:_LONGEST].casefold()
        folded = {name.casefold(): name for name in reversed(names)}
        near = difflib.get_close_matches(wanted, folded, n=most, cutoff=0.5)
        if not near and read_version(wanted) is not None:
            return [tag.name for tag in self._list_releases()][:most] or names[:most]
        return [folded[name] for name in near] or names[:most]

    def list_branches(self) -> Sequence[str]:
        """Name the branches, in the order of the table."""
        return [name.removeprefix("refs/heads/") for name in self.commits if name.startswith("refs/heads/")]


class RefList:
    """Lists the refs of a repository; only listed names are ever passed back to git."""

    def __init__(self, git: GitCommand) -> None:
        self._git = git

    def read(self) -> RefTable:
        """List the local branches, tags of commits, and pull requests."""
        return RefTable({ref.name: ref.sha for ref in list_refs(self._git, *_PLACES, most=MAX_REFS)})

    def find_commit(self, written: str) -> NamedRef | None:
        """Find a commit by at least seven characters of its id; None if there is none, or more than one."""
        sha = resolve_commit(self._git, written.strip()) if SHA.fullmatch(written.strip()) else ""
        return NamedRef(kind="commit", name=sha[:12], commit=sha) if sha else None

    def find_head(self, ref: str) -> str:
        """Return the full name of the branch behind a name such as HEAD; empty for a commit."""
        output = self._git.try_run("rev-parse", "--verify", "--quiet", "--symbolic-full-name", "--end-of-options", ref)
        return decode_output((output or b"").split(b"\n")[-2]) if output else ""

    def has_commit(self, sha: str) -> bool:
        """Whether a commit exists here."""
        return bool(SHA.fullmatch(sha)) and resolve_commit(self._git, sha) == sha

    def count_changes(self, old: str, new: str) -> int | None:
        """Count the files that differ between two commits; None if one of them is missing, or git takes too long."""
        options = ("-r", "--no-renames", "--name-only", "-z")
        output = self._git.try_run("diff-tree", *options, "--end-of-options", old, new, seconds=_TIMEOUT_SECONDS)
        return None if output is None else output.count(b"\0")

    def find_merged(self, written: str, ref: str) -> NamedRef | None:
        """Find the commit that merged a pull request into a ref, by the number in its message."""
        found = _NUMBER.fullmatch(written.strip())
        if found is None:
            return None
        number = int(found[1])
        patterns = [form.format(number) for form in _MERGED]
        asked = ("--extended-regexp", *(f"--grep={pattern}" for pattern in patterns))
        limits = (f"--max-count={_MAX_MERGED}", "--format=%H%x00%s%x00%b%x00")
        output = self._git.try_run("log", *asked, *limits, "--end-of-options", ref, "--", seconds=_TIMEOUT_SECONDS)
        fields = iter((output or b"").decode("utf-8", "replace").split("\0")[:-1])
        in_subject, in_body = compile_pattern("|".join(patterns[:-1])), compile_pattern(f"(?m){patterns[-1]}")
        for sha, subject, body in zip(*[fields] * 3, strict=False):
            if in_subject.search(subject) or in_body.search(body):
                sign = "!" if written.strip().startswith("!") else "#"
                return NamedRef(kind="pull request", name=f"{sign}{number}", commit=sha.strip())
        return None


def parse_full_name(name: str) -> tuple[str, RefKind]:
    """Return the displayed name of a full ref, and its kind; else a pull request has a sign before it."""
    for prefix, kind in _KINDS.items():
        if name.startswith(prefix):
            return name.removeprefix(prefix), kind
    return name, "pull request" if name.startswith(("#", "!")) else "commit"


def make_pull_ref(number: int, full_name: str, commit: str) -> NamedRef:
    """Describe a pull request; GitLab calls it a merge request, and writes `!12`."""
    sign = "!" if full_name.startswith("refs/merge-requests/") else "#"
    return NamedRef(kind="pull request", name=f"{sign}{number}", commit=commit, full_name=full_name)


_PULL = "refs/pull/{}/head"  # GitHub, Gitea, Forgejo
_MERGE_REQUEST = "refs/merge-requests/{}/head"  # GitLab
_FROM = "refs/pull-requests/{}/from"  # Bitbucket Server
_MERGE = "refs/pull/{}/merge"  # Azure DevOps has no other
# By the host's name, or a label of it as in `gitlab.example.org`.
_FORMS: dict[str, tuple[str, ...]] = {
    "bitbucket.org": (),
    "dev.azure.com": (_MERGE,),
    "visualstudio.com": (_MERGE,),
    "github": (_PULL,),
    "gitea": (_PULL,),
    "forgejo": (_PULL,),
    "codeberg": (_PULL,),
    "gitlab": (_MERGE_REQUEST,),
    "bitbucket": (_FROM,),
}


def list_pull_refs(address: Address, number: int) -> Sequence[str]:
    """List the possible refs of a pull request on a host, the likeliest first; none if it has none."""
    labels = address.host.split(".")
    for name, forms in _FORMS.items():
        if address.host == name or address.host.endswith(f".{name}") or name in labels[:-1]:
            return [form.format(number) for form in forms]
    return [form.format(number) for form in (_PULL, _MERGE_REQUEST, _FROM)]
