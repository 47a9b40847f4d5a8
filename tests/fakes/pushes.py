"""Push deliveries as the hosts send them: their headers, their bodies, and their own way of signing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlencode

SECRET = "correct horse battery staple"
KEY = "whsec_" + base64.b64encode(b"k" * 32).decode()
OLD, NEW, NONE = "a" * 40, "b" * 40, "0" * 40
_NUMBERS = count(1)


@dataclass
class Delivery:
    """One request as it goes over the wire."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def digest(body: bytes, secret: str = SECRET) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def github(
    *,
    ref: str = "refs/heads/main",
    after: str = NEW,
    event: str = "push",
    secret: str = SECRET,
    form: bool = False,
    default: str = "main",
) -> Delivery:
    payload = {
        "ref": ref,
        "before": OLD,
        "after": after,
        "created": False,
        "deleted": after == NONE,
        "forced": False,
        "repository": {
            "id": 1,
            "name": "Shop",
            "full_name": "Team/Shop",
            "html_url": "https://github.com/Team/Shop",
            "clone_url": "https://github.com/Team/Shop.git",
            "git_url": "git://github.com/Team/Shop.git",
            "ssh_url": "git@github.com:Team/Shop.git",
            "default_branch": default,
            "pushed_at": next(_NUMBERS),
        },
        "pusher": {"name": "ada", "email": "ada@example.org"},
        "commits": [],
    }
    if event == "ping":
        payload = {"zen": "Keep it logically awesome.", "hook_id": 7, "repository": payload["repository"]}
    text = json.dumps(payload)
    body = urlencode({"payload": text}).encode() if form else text.encode()
    return Delivery(
        body,
        {
            "User-Agent": "GitHub-Hookshot/044aadd",
            "Content-Type": "application/x-www-form-urlencoded" if form else "application/json",
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": f"72d3162e-cc78-11e3-81ab-{next(_NUMBERS):012}",
            "X-GitHub-Hook-ID": "7",
            "X-Hub-Signature": "sha1=" + hmac.new(secret.encode(), body, hashlib.sha1).hexdigest(),
            "X-Hub-Signature-256": "sha256=" + digest(body, secret),
        },
    )


def _gitlab_payload(event: str) -> dict[str, Any]:
    return {
        "object_kind": event,
        "event_name": event,
        "before": OLD,
        "after": NEW,
        "ref": "refs/heads/main",
        "ref_protected": True,
        "checkout_sha": NEW,
        "project_id": 15,
        "project": {
            "id": 15,
            "name": "Shop",
            "web_url": "https://gitlab.example/team/shop",
            "git_ssh_url": "git@gitlab.example:team/shop.git",
            "git_http_url": "https://gitlab.example/team/shop.git",
            "path_with_namespace": "team/shop",
            "default_branch": "main",
        },
        "commits": [{"id": NEW, "message": f"push {next(_NUMBERS)}"}],
        "total_commits_count": 1,
    }


def gitlab(*, token: str = SECRET, event: str = "push", header: str = "Push Hook") -> Delivery:
    return Delivery(
        json.dumps(_gitlab_payload(event)).encode(),
        {
            "User-Agent": "GitLab/18.0.0",
            "Content-Type": "application/json",
            "X-Gitlab-Event": header,
            "X-Gitlab-Token": token,
            "X-Gitlab-Event-UUID": f"{next(_NUMBERS):032x}",
            "Idempotency-Key": f"idem-{next(_NUMBERS)}",
        },
    )


def gitlab_signed(*, at: float, key: str = KEY) -> Delivery:
    """With a signing token, as GitLab does it after Standard Webhooks."""
    delivery = gitlab(token="")
    del delivery.headers["X-Gitlab-Token"]
    identity, timestamp = delivery.headers["Idempotency-Key"], str(int(at))
    signed = f"{identity}.{timestamp}.".encode() + delivery.body
    code = base64.b64encode(hmac.new(base64.b64decode(key.removeprefix("whsec_")), signed, hashlib.sha256).digest())
    delivery.headers |= {
        "webhook-id": identity,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{code.decode()}",
    }
    return delivery


def gitea(*, name: str = "Gitea", secret: str = SECRET) -> Delivery:
    """Gitea, or Forgejo, which sends the headers of both; either sends those of GitHub too."""
    payload = {
        "ref": "refs/heads/main",
        "before": OLD,
        "after": NEW,
        "compare_url": "",
        "commits": [{"id": NEW, "message": f"push {next(_NUMBERS)}"}],
        "repository": {
            "id": 140,
            "name": "shop",
            "full_name": "team/shop",
            "html_url": "http://git.example:3000/team/shop",
            "ssh_url": "ssh://git@git.example:2222/team/shop.git",
            "clone_url": "http://git.example:3000/team/shop.git",
            "default_branch": "main",
        },
    }
    body = json.dumps(payload, indent=2).encode()
    number = f"f6266f16-1bf3-46a5-9ea4-{next(_NUMBERS):012}"
    headers = {"Content-Type": "application/json", "X-Hub-Signature-256": "sha256=" + digest(body, secret)}
    for product in ("GitHub", "Gogs", "Gitea", *([name] if name != "Gitea" else [])):
        headers |= {f"X-{product}-Event": "push", f"X-{product}-Delivery": number}
        if product != "GitHub":
            headers[f"X-{product}-Signature"] = digest(body, secret)
    return Delivery(body, headers)


def bitbucket(*, branches: tuple[str, ...] = ("main",), deleted: bool = False, secret: str = SECRET) -> Delivery:
    def change(name: str) -> dict[str, Any]:
        new = {"type": "branch", "name": name, "target": {"type": "commit", "hash": NEW}}
        old = {"type": "branch", "name": name, "target": {"type": "commit", "hash": OLD}}
        return {"new": None if deleted else new, "old": old, "closed": deleted, "created": False, "forced": False}

    payload = {
        "push": {"changes": [change(name) for name in branches]},
        "actor": {"display_name": f"push {next(_NUMBERS)}"},
        "repository": {
            "type": "repository",
            "full_name": "team/shop",
            "name": "shop",
            "links": {
                "self": {"href": "https://api.bitbucket.org/2.0/repositories/team/shop"},
                "html": {"href": "https://bitbucket.org/team/shop"},
            },
        },
    }
    return _bitbucket(payload, "repo:push", "X-Request-UUID", secret)


def bitbucket_server(*, event: str = "repo:refs_changed", secret: str = SECRET) -> Delivery:
    """A team's own Bitbucket, whose deliveries name no address of the repository."""
    payload = {
        "eventKey": event,
        "date": f"2026-01-01T00:00:{next(_NUMBERS):02}+0000",
        "repository": {"slug": "shop", "id": 84, "name": "shop", "project": {"key": "TEAM", "name": "team"}},
        "changes": [
            {
                "ref": {"id": "refs/heads/main", "displayId": "main", "type": "BRANCH"},
                "refId": "refs/heads/main",
                "fromHash": OLD,
                "toHash": NEW,
                "type": "UPDATE",
            }
        ],
    }
    return _bitbucket({"test": True} if "ping" in event else payload, event, "X-Request-Id", secret)


def _bitbucket(payload: dict[str, Any], event: str, identity: str, secret: str) -> Delivery:
    body = json.dumps(payload).encode()
    return Delivery(
        body,
        {
            "Content-Type": "application/json; charset=utf-8",
            "X-Event-Key": event,
            "X-Hub-Signature": "sha256=" + digest(body, secret),
            identity: f"3f6d2b9e-{next(_NUMBERS)}",
        },
    )
