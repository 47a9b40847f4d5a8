"""The tags of a repository, and the meaning of a tag, version, branch or commit in a question."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from indexer.errors import UnknownRevision
from indexer.git.git_command import GitCommand, decode_output
from indexer.git.history import read_time
from indexer.types import Deployment, Tag

MAX_TAGS = 5_000
_TIMEOUT_SECONDS = 10.0
_LONGEST = 200  # characters of a name that anybody would write
_FORMAT = "%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)%00%(creatordate:unix)%00%(refname)%00"
SHA = re.compile(r"[0-9a-f]{7,64}", re.IGNORECASE)
_NUMBERS = re.compile(r"\d{1,9}")
# `v1.2`, `jq-1.7.1`, `2.0rc1`: a prefix, the numbers of the version, and the suffix of a pre-release.
_VERSION = re.compile(
    r"(?P<prefix>[A-Za-z_. -]{0,60})(?P<numbers>\d{1,9}(?:[._-]\d{1,9}){0,4})(?P<rest>[-.+_]?[A-Za-z][\w.+-]{0,40})?"
)
_GENERAL = frozenset({"", "version", "release"})  # before a version, as people write it
_FINAL = re.compile(r"[-._+]?(?:final|ga|release|stable|post\d{0,4}|p\d{1,4})", re.IGNORECASE)


class TagList:
    """Finds tags, branches and commits; passes only existing names to git."""

    def __init__(self, git: GitCommand) -> None:
        self._git = git

    def list_tags(self, *, reachable_from: str = "") -> list[Tag]:
        """List the tags of commits, newest first, or only those in the history of a commit."""
        within = (f"--merged={reachable_from}",) if reachable_from else ()
        return self.list_in("refs/tags", *within)

    def list_releases(self, sha: str) -> list[Tag]:
        """List the tags of finished versions, newest first; those in the history, if there are any."""
        reachable = [tag for tag in self.list_tags(reachable_from=sha) if is_release(tag.name)]
        return reachable or [tag for tag in self.list_tags() if is_release(tag.name)]

    def find(self, written: str) -> Tag:
        """Find the meaning of a name: a tag, a version as in a tag, a branch or a commit; else `UnknownRevision`."""
        name = written.strip()[:_LONGEST]
        tags = self.list_tags()
        found = match_tag(name, tags) or next((one for one in self.list_in("refs/heads") if one.name == name), None)
        if found is None and SHA.fullmatch(name) and (sha := resolve_commit(self._git, name)):
            found = Tag(name=sha[:12], sha=sha, created_at=0)
        if found is None:
            newest = ", ".join(tag.name for tag in tags[:5])
            known = f"The newest tags are {newest}." if newest else "No tags are known here."
            raise UnknownRevision(f"There is no tag, branch or commit {name!r}. {known}")
        return found

    def find_previous(self, tag: Tag) -> Tag | None:
        """Find the release before a tag, by its version."""
        version = read_version(tag.name)
        if version is None:
            return None
        alike = [(read_version(one.name), one) for one in self.list_tags() if is_release(one.name)]
        older = [(known, one) for known, one in alike if known is not None and known < version]
        same_line = [each for each in older if _read_line(each[1].name) == _read_line(tag.name)]
        return max(same_line or older, key=lambda each: each[0])[1] if older else None

    def list_in(self, place: str, *options: str) -> list[Tag]:
        """List the refs to commits below a prefix, newest first."""
        found = list_refs(self._git, place, *options, most=MAX_TAGS)
        return [replace(one, name=one.name.removeprefix(f"{place}/")) for one in found]


def list_refs(git: GitCommand, *places: str, most: int) -> list[Tag]:
    """List the refs in some places that name commits, by their full names, newest first; or add options."""
    arguments = ("--sort=-creatordate", f"--count={most}", f"--format={_FORMAT}")
    output = git.try_run("for-each-ref", *arguments, *places, seconds=_TIMEOUT_SECONDS)
    fields = iter((output or b"").split(b"\0")[:-1])
    found: list[Tag] = []
    for kind, own, peeled_kind, peeled, created_at, name in zip(*[fields] * 6, strict=False):
        is_commit = kind.strip(b"\n") == b"commit"
        if is_commit or peeled_kind == b"commit":
            sha = (own if is_commit else peeled).decode("ascii", "replace")
            found.append(Tag(name=decode_output(name), sha=sha, created_at=read_time(created_at)))
    return found


def resolve_commit(git: GitCommand, name: str) -> str:
    """Return the full id of the commit behind a name or an abbreviated id; empty if there is none."""
    output = git.try_run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return (output or b"").strip().decode("ascii", "replace")


def is_release(name: str) -> bool:
    """Whether a tag names a finished version: `v1.2`, but not `v1.2-rc1` and not `nightly`."""
    found = _match_version(name)
    return found is not None and (not found["rest"] or _FINAL.fullmatch(found["rest"]) is not None)


def is_release_branch(name: str) -> bool:
    """Whether a branch collects commits for a release: `release/2.x`, `stable-3`, `2.1.x`."""
    return _BRANCH_WORDS.search(name) is not None or is_release(name.removesuffix(".x"))


def read_version(name: str) -> tuple[int, ...] | None:
    """Read the numbers of a version, without zeros at the end: (1, 2) of `v1.2.0`; None if there are none."""
    found = _match_version(name)
    if found is None:
        return None
    numbers = [int(number) for number in _NUMBERS.findall(found["numbers"])]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def match_tag(name: str, tags: Sequence[Tag]) -> Tag | None:
    """Find a tag as written, else the one of that version: `v1.7.0`, `1.7` and `version 1.7` for `jq-1.7`."""
    exact = next((tag for tag in tags if tag.name == name), None) or next(
        (tag for tag in tags if tag.name.casefold() == name.casefold()), None
    )
    version = read_version(name)
    if exact is not None or version is None:
        return exact
    same = [tag for tag in tags if read_version(tag.name) == version]
    if _read_line(name).strip() not in _GENERAL:
        same = [tag for tag in same if _read_line(tag.name) == _read_line(name)]
    found = _match_version(name)
    unfinished = found["rest"] if found is not None and not is_release(name) else ""
    if unfinished:
        return next((tag for tag in same if tag.name.casefold().endswith(unfinished.casefold())), None)
    return next((tag for tag in same if is_release(tag.name)), None)


def _match_version(name: str) -> re.Match[str] | None:
    """Split a tag into prefix and version; of `release/1.2` and `@scope/package@1.2`, use the part after the
    last `/` or `@`.
    """
    return _VERSION.fullmatch(name.rpartition("/")[2].rpartition("@")[2])


def _read_line(name: str) -> str:
    """Read the text before the version, identical for all releases of one package, except a later `v`."""
    found = _match_version(name)
    return name[: -len(found[0].removeprefix(found["prefix"]))].casefold().removesuffix("v") if found else ""


_STEPS = re.compile(r"[~^].*")  # in `tags/v1.2~3^2`
_MAX_LACKING = 50_000  # commits
_MAX_BRANCHES = 50  # the newest ones
_BRANCH_WORDS = re.compile(r"(?i)(?:^|[/_.-])(?:rel|releases?|stable|maint|maintenance|hotfix|lts)(?:$|[/_.-])")


class ReleaseQueries:
    """Asks git for releases."""

    def __init__(self, git: GitCommand, tags: TagList) -> None:
        self._git = git
        self._tags = tags

    def find_first(self, shas: Sequence[str], marks: Collection[str] = ()) -> Mapping[str, str] | None:
        """Find the oldest release of each commit; none for an unreleased one. None without any release.

        Tags that are or match one of the `marks` are deployments, not releases.
        """
        tags = self._tags.list_tags()
        versions = {tag.name for tag in tags if is_release(tag.name)}
        releases = {name for name in versions if not any(fnmatchcase(name, mark) for mark in marks)}
        if not releases or len(tags) >= MAX_TAGS:
            return None
        left_out = [f"--exclude=refs/tags/{tag.name}" for tag in tags if tag.name not in releases]
        found = self._name_commits(shas, "--tags", *left_out)
        return {sha: name for sha, name in found.items() if name in releases}

    def find_branches(self, shas: Sequence[str], marks: Collection[str], *, held: str) -> Mapping[str, str]:
        """Find a release branch of each commit, such as `release/2.x`; one that ends in `held` does not count."""
        places = ("refs/heads", "refs/remotes/origin")
        branches = {
            f"{place}/{one.name}": one.name
            for place in places
            for one in self._tags.list_in(place)
            if one.sha != held and is_release_branch(one.name)
            if not any(fnmatchcase(one.name, mark) for mark in marks)
        }
        newest = list(branches)[:_MAX_BRANCHES]
        found = self._name_commits(shas, *(f"--refs={name}" for name in newest)) if newest else {}
        names = {name.removeprefix("refs/").removeprefix("heads/"): short for name, short in branches.items()}
        return {sha: names[name] for sha, name in found.items() if name in names}

    def _name_commits(self, shas: Sequence[str], *options: str) -> Mapping[str, str]:
        """Name each commit by the nearest ref that contains it."""
        output = self._git.try_run("name-rev", "--name-only", *options, *shas, seconds=_TIMEOUT_SECONDS)
        names = [_STEPS.sub("", name.removeprefix("tags/")) for name in decode_output(output or b"").splitlines()]
        return dict(zip(shas, names, strict=False))

    def find_newest(self, pattern: str) -> Tag | None:
        """Find the newest tag that matches a pattern such as `deployed-*`."""
        return next((tag for tag in self._tags.list_tags() if fnmatchcase(tag.name, pattern)), None)

    def compare(
        self, tag: Tag, shas: Sequence[str], held: str, *, name: str, written: str, marks: Collection[str]
    ) -> Deployment:
        """Describe a deployment, and its missing commits."""
        output = self._git.try_run(
            "rev-list", f"--max-count={_MAX_LACKING}", *shas, held, f"^{tag.sha}", "--", seconds=_TIMEOUT_SECONDS
        )
        lacking = None if output is None else frozenset(output.decode("ascii").split())
        count = self._git.try_run("rev-list", "--count", held, f"^{tag.sha}", "--", seconds=_TIMEOUT_SECONDS)
        return Deployment(
            environment=name,
            written=written,
            sha=tag.sha,
            release=(self.find_first([tag.sha], marks) or {}).get(tag.sha, ""),
            lacking=None if lacking is None else lacking.intersection(shas),
            behind=None if count is None else int(count),
        )
