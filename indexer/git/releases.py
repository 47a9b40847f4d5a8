"""Finds the first release of commits, and the commit that each environment runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase

from indexer.git.git_command import GitCommand
from indexer.git.git_errors import decode_output
from indexer.git.tags import MAX_TAGS, TagList, is_release
from indexer.types import Deployment, Tag

_SECONDS = 10.0
_STEPS = re.compile(r"[~^].*")  # in `tags/v1.2~3^2`
_MAX_LACKING = 50_000  # commits


class ReleaseQueries:
    """Asks git for releases."""

    def __init__(self, git: GitCommand, tags: TagList) -> None:
        self._git = git
        self._tags = tags

    def find_first(self, shas: Sequence[str], marks: Collection[str] = ()) -> Mapping[str, str] | None:
        """Name the oldest release that has each commit; none for one that is not released. None without any release.

        Tags that are called as one of the `marks`, or fit one, are none: they tell what is deployed.
        """
        tags = self._tags.list_tags()
        versions = {tag.name for tag in tags if is_release(tag.name)}
        releases = {name for name in versions if not any(fnmatchcase(name, mark) for mark in marks)}
        if not releases or len(tags) >= MAX_TAGS:
            return None
        left_out = [f"--exclude=refs/tags/{tag.name}" for tag in tags if tag.name not in releases]
        output = self._git.try_run("name-rev", "--tags", "--name-only", *left_out, *shas, seconds=_SECONDS)
        names = [_STEPS.sub("", name.removeprefix("tags/")) for name in decode_output(output or b"").splitlines()]
        return {sha: name for sha, name in zip(shas, names, strict=False) if name in releases}

    def find_newest(self, pattern: str) -> Tag | None:
        """Find the newest tag that fits a pattern such as `deployed-*`."""
        return next((tag for tag in self._tags.list_tags() if fnmatchcase(tag.name, pattern)), None)

    def compare(
        self, tag: Tag, shas: Sequence[str], held: str, *, name: str, written: str, marks: Collection[str]
    ) -> Deployment:
        """Describe a deployment, and the commits that it lacks."""
        output = self._git.try_run(
            "rev-list", f"--max-count={_MAX_LACKING}", *shas, held, f"^{tag.sha}", "--", seconds=_SECONDS
        )
        lacking = None if output is None else frozenset(output.decode("ascii").split())
        count = self._git.try_run("rev-list", "--count", held, f"^{tag.sha}", "--", seconds=_SECONDS)
        return Deployment(
            environment=name,
            written=written,
            sha=tag.sha,
            release=(self.find_first([tag.sha], marks) or {}).get(tag.sha, ""),
            lacking=None if lacking is None else lacking.intersection(shas),
            behind=None if count is None else int(count),
        )
