"""Takes pushes from hosts: proves their origin, and parses the branches and tags in the format of each host."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response

from bot.clock import Clock, RareWarnings
from bot.errors import SettingsError
from bot.http.requests import BodyReader, read_media_type
from bot.http.server import Respond
from indexer import Address, BadAddress, RemoteRepository, fits_branch

if TYPE_CHECKING:
    from pydantic import SecretStr

log = logging.getLogger(__name__)
STALE_SECONDS = 300.0  # between a signed time and ours
# Headers that hold the HMAC-SHA256 of the body in hexadecimal; the first that is there decides.
_HEXADECIMAL = (
    ("X-Forgejo-Signature", ""),
    ("X-Gitea-Signature", ""),
    ("X-Hub-Signature-256", "sha256="),  # GitHub
    ("X-Hub-Signature", "sha256="),  # Bitbucket; the `sha1=` that GitHub puts there is not believed
)
_DIGEST = re.compile("[0-9a-f]{64}")
_SIGNED, _SIGNED_ID, _SIGNED_AT = "webhook-signature", "webhook-id", "webhook-timestamp"  # GitLab
_TOKEN = "X-Gitlab-Token"  # noqa: S105 - the name of a header
_ENCODED = "whsec_"  # begins a secret that is a key in base64, and never sent itself
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


def has_signature(headers: Mapping[str, str], secrets: Sequence[str], *, now: float) -> bool:
    """Whether the headers allow an authentic body: no other is worth reading."""
    if _SIGNED in headers:
        return _is_of_now(headers, now)
    for header, prefix in _HEXADECIMAL:
        if header in headers:
            given = headers[header]
            return given.startswith(prefix) and _DIGEST.fullmatch(given.removeprefix(prefix)) is not None
    return _has_token(headers, secrets)


def verify_signature(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], *, now: float) -> bool:
    """Whether one of the secrets authenticates a body; the strongest given proof has to hold.

    `headers` ignore case. Without a secret nothing is authentic.
    """
    secrets = [secret for secret in secrets if secret]
    if _SIGNED in headers:
        return _is_signed(headers, body, secrets, now)
    for header, prefix in _HEXADECIMAL:
        if header in headers:
            digests = (hmac.new(_to_bytes(secret), body, hashlib.sha256).hexdigest() for secret in secrets)
            return _is_one_of(headers[header], [prefix + digest for digest in digests])
    return _has_token(headers, secrets)


def _has_token(headers: Mapping[str, str], secrets: Sequence[str]) -> bool:
    sent = [secret for secret in secrets if secret and not secret.startswith(_ENCODED)]
    return _TOKEN in headers and _is_one_of(headers[_TOKEN], sent)


def _is_of_now(headers: Mapping[str, str], now: float) -> bool:
    at = headers.get(_SIGNED_AT, "")
    return at.isascii() and at.isdecimal() and len(at) < 16 and abs(now - int(at)) <= STALE_SECONDS


def _is_signed(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: float) -> bool:
    """Whether the delivery's id and time are signed too; several signatures may be given while secrets are
    exchanged.
    """
    identity, at = headers.get(_SIGNED_ID, ""), headers.get(_SIGNED_AT, "")
    if not identity or not _is_of_now(headers, now):
        return False
    signed = b".".join((_read_header(identity), at.encode(), body))
    digests = (hmac.new(_decode_key(secret), signed, hashlib.sha256).digest() for secret in secrets)
    expected = ["v1," + base64.b64encode(digest).decode() for digest in digests]
    return any([_is_one_of(given, expected) for given in headers[_SIGNED].split()[:8]])  # noqa: C419 - in constant time


def _is_one_of(given: str, expected: Sequence[str]) -> bool:
    """Compare with every one of them, so that the duration reveals nothing."""
    return any([hmac.compare_digest(_read_header(given), _to_bytes(each)) for each in expected])  # noqa: C419


def _decode_key(secret: str) -> bytes:
    if not secret.startswith(_ENCODED):
        return _to_bytes(secret)
    try:
        return base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
    except binascii.Error:
        return _to_bytes(secret)


def _read_header(value: str) -> bytes:
    """Return a header's raw text, which the server decodes as Latin-1."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return _to_bytes(value)


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


LARGEST = 5_000_000  # bytes; what a host tells of a push of many commits


TOTAL = 20_000_000


SECONDS = 10.0


_TYPES = frozenset({"application/json", FORM})


_MAX_DELIVERIES = 4_096


# A delivery keeps its id when a host sends it again.
_IDENTITIES = (
    "webhook-id", "X-Forgejo-Delivery", "X-Gitea-Delivery", "X-GitHub-Delivery", "Idempotency-Key",
    "X-Gitlab-Event-UUID", "X-Request-UUID", "X-Request-Id",
)  # fmt: skip


def make_push_handler(
    remotes: Sequence[RemoteRepository],
    secrets: Sequence[SecretStr],
    notify: Callable[[str, str, str | None], None],
    clock: Clock,
) -> Respond:
    """Make the handler of `POST` requests from hosts that share one of the secrets.

    It answers 200 to pings, 202 to pushes that were passed on or came before, 204 to irrelevant events, 401 without
    proof of the secret, 4xx to malformed requests, and 503 if it gave way to others. A body whose headers prove nothing
    is not read at all. `SettingsError` if there is no secret.
    """
    texts = [secret.get_secret_value() for secret in secrets]
    if not texts or not all(texts):
        raise SettingsError("Webhooks need a secret that is not empty. Set one here and the same at the host.")
    bodies, deliveries = BodyReader(largest=LARGEST, seconds=SECONDS, total=TOTAL), SeenDeliveries()
    warnings = RareWarnings(log)

    async def answer(request: Request) -> Response:
        if not has_signature(request.headers, texts, now=clock.now()):
            return _refuse(warnings)
        body = await bodies.read(request)
        if not verify_signature(request.headers, body, texts, now=clock.now()):
            return _refuse(warnings)
        return Response(status_code=_handle_delivery(request, body, remotes, notify, deliveries))

    return answer


def _refuse(warnings: RareWarnings) -> Response:
    warnings.warn("A webhook was refused: its signature is missing, wrong or too old.")
    return Response(status_code=401)


def _handle_delivery(
    request: Request,
    body: bytes,
    remotes: Sequence[RemoteRepository],
    notify: Callable[[str, str, str | None], None],
    deliveries: SeenDeliveries,
) -> int:
    """Report the pushes in an authentic delivery; return the response status."""
    event = read_event(request.headers)
    if is_ping(event):
        return 200
    kind = read_media_type(request.headers)
    if kind not in _TYPES:
        return 415
    payload = read_payload(body, kind)
    if payload is None:
        return 400
    found = [(remote, push) for push in read_pushes(event, payload) for remote in find_repositories(push, remotes)]
    if not found:
        return 204
    if deliveries.is_new(request.headers, body):
        for remote, push in found:
            notify(remote.name, push.ref, push.commit)
    return 202


class SeenDeliveries:
    """The last deliveries, by their ids and bodies together.

    A body alone is not enough: for a branch that is pushed back and forth, hosts send the same body again for a new
    push. Most ids are not signed, so anybody who obtained a delivery can send it under another one. That does no harm:
    the host's own state is indexed, never a delivery's claim, and however many arrive during a check, there is only one
    more check.
    """

    def __init__(self, most: int = _MAX_DELIVERIES) -> None:
        self._known: LRUCache[bytes, None] = LRUCache(most)

    def is_new(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Return whether a delivery is new, and remember it; one without an id always is."""
        identity = next((f"{name} {headers[name]}" for name in _IDENTITIES if name in headers), None)
        if identity is None:
            return True
        key = hashlib.sha256(hashlib.sha256(body).digest() + identity.encode("utf-8", "surrogateescape")).digest()
        known = key in self._known
        self._known[key] = None
        return not known


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
    """Read the object in a JSON body, or in a form with JSON; None if there is none."""
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
    """Find the configured repositories with a pushed branch.

    A host may know itself by another name than we do, so if no address matches, the project's name
    does.
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
