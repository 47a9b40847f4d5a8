"""Parses the pushed branches and tags out of a webhook delivery, in each host's format."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from indexer import Address, BadAddress, RemoteRepository, fits_branch

FORM = "application/x-www-form-urlencoded"
_EVENT_HEADERS = ("X-Forgejo-Event", "X-Gitea-Event", "X-GitHub-Event", "X-Gitlab-Event", "X-Event-Key")
_PINGS = frozenset({"ping", "diagnostics:ping"})
_PUSHES = frozenset({"push", "Push Hook", "repo:push", "repo:refs_changed"})
_SYSTEM = "System Hook"  # all that happens on a GitLab; the payload says what
_BRANCH = "refs/heads/"
_MAX_CHANGES = 100  # branches that one delivery may tell of
_MAX_VALUES = 200_000  # in a payload, as far as its signs tell; those of 2,000 commits are a third of that
# Where payloads name the repository's addresses and its full name.
_ADDRESSES = (
    ("repository", "clone_url"), ("repository", "ssh_url"), ("repository", "html_url"), ("repository", "git_http_url"),
    ("repository", "git_ssh_url"), ("repository", "links", "html", "href"), ("project", "git_http_url"),
    ("project", "git_ssh_url"), ("project", "web_url"),
)  # fmt: skip
_NAMES = (("repository", "full_name"), ("project", "path_with_namespace"))

Payload = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Push:
    """A branch that was pushed to; `commit` is None if it was deleted.

    `keys` are what `Address.key` is of the repository, `project` its name on the host, in small letters.
    """

    keys: frozenset[str]
    project: str
    ref: str
    commit: str | None
    default_branch: str | None

    @property
    def branch(self) -> str | None:
        """The branch; None for a tag."""
        return self.ref.removeprefix(_BRANCH) if self.ref.startswith(_BRANCH) else None


def read_payload(body: bytes, content_type: str) -> Payload | None:
    """Read the object in a body that is JSON, or a form with JSON in it; None if there is none."""
    try:
        text = body.decode("utf-8")
        if content_type == FORM:
            text = parse_qs(text, max_num_fields=10).get("payload", [""])[0]
        if sum(map(text.count, "[{,")) > _MAX_VALUES:  # it is small values that take long to read
            return None
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def read_event(headers: Mapping[str, str]) -> str:
    """Return the name that a host gives to the event; empty if it names none."""
    return next((headers[name] for name in _EVENT_HEADERS if name in headers), "")


def is_ping(event: str) -> bool:
    """Whether a host only checks that the webhook is there."""
    return event in _PINGS


def read_pushes(event: str, payload: Payload) -> tuple[Push, ...]:
    """Read the branches and tags that were pushed; none if a delivery is about something else."""
    is_push = event in _PUSHES or (event == _SYSTEM and payload.get("object_kind") == "push")
    if not is_push:
        return ()
    # Bitbucket's own servers list addresses, and name the project and the repository apart.
    links = _list(payload, "repository", "links", "clone")[:10]
    addresses = [*(_get_text(payload, *path) for path in _ADDRESSES), *(_get_text(link, "href") for link in links)]
    key, slug = _get_text(payload, "repository", "project", "key"), _get_text(payload, "repository", "slug")
    names = [*(_get_text(payload, *path) for path in _NAMES), f"{key}/{slug}" if key and slug else ""]
    keys, project = frozenset(_parse_keys(filter(None, addresses))), next(filter(None, names), "")
    default = _get_text(payload, "repository", "default_branch") or _get_text(payload, "project", "default_branch")
    return tuple(
        Push(keys=keys, project=project.casefold(), ref=ref, commit=commit, default_branch=default or None)
        for ref, commit in _read_changes(payload)
    )


def find_repositories(push: Push, remotes: Sequence[RemoteRepository]) -> list[RemoteRepository]:
    """Find the configured repositories whose branch, or one of whose branches, was pushed to.

    A host may know itself by another name than we do, so where no address fits, the project's name does.
    """
    if push.branch is None:
        return []
    found = [remote for remote in remotes if remote.address.key in push.keys]
    if not found and push.project:  # Bitbucket's own servers put scm/ before the name
        found = [remote for remote in remotes if remote.address.project.removeprefix("scm/") == push.project]
    return [
        remote
        for remote in found
        if (remote.branch or push.default_branch or push.branch) == push.branch
        or fits_branch(push.branch, remote.branches)
    ]


def _parse_keys(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        try:
            yield Address.parse(url).key
        except BadAddress:
            continue


def _read_changes(payload: Payload) -> Iterator[tuple[str, str | None]]:
    """Refs and their new commits."""
    if _get_text(payload, "ref"):
        yield _get_text(payload, "ref"), _normalize_commit(_get_text(payload, "after"))
        return
    for change in _list(payload, "push", "changes")[:_MAX_CHANGES]:
        after = change.get("new") if isinstance(change.get("new"), dict) else change.get("old")
        if isinstance(after, dict) and after.get("type") == "branch":
            yield _BRANCH + _get_text(after, "name"), _normalize_commit(_get_text(change, "new", "target", "hash"))
    for change in _list(payload, "changes")[:_MAX_CHANGES]:
        yield _get_text(change, "ref", "id"), _normalize_commit(_get_text(change, "toHash"))


def _normalize_commit(sha: str) -> str | None:
    return sha if sha.strip("0") else None


def _get_at(payload: object, path: Sequence[str]) -> object:
    for step in path:
        payload = payload.get(step) if isinstance(payload, dict) else None
    return payload


def _get_text(payload: object, *path: str) -> str:
    found = _get_at(payload, path)
    return found if isinstance(found, str) else ""


def _list(payload: object, *path: str) -> list[dict[str, Any]]:
    found = _get_at(payload, path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
