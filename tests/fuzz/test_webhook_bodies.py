"""Deliveries of hosts of repositories, as anybody on the network can send them."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from bot.webhooks.push_endpoint import (
    FORM,
    Push,
    find_repositories,
    has_signature,
    read_payload,
    read_pushes,
    verify_signature,
)
from indexer.remotes.remote_repository import RemoteRepository
from tests.fuzz.texts import among, halves, json_values, noise, objects

EVENTS = ("push", "Push Hook", "repo:push", "repo:refs_changed", "System Hook", "ping", "issues", "")
SECRET = "a-secret"
NOW = 1_800_000_000.0
SHOP = RemoteRepository(name="shop", url="https://git.example.com/team/shop.git")

texts = (
    among(
        (
            "refs/heads/main",
            "refs/tags/v1",
            "https://git.example.com/team/shop.git",
            "git@git.example.com:team/shop",
            "main",
            "0" * 40,
            "a" * 40,
            "team/shop",
            "branch",
            "/",
            ":",
            "@",
            "[::1]",
            ":99999",
            "%00",
            "?",
            "#",
        ),
        most=4,
    )
    | halves
)
NAMES = (
    "repository", "clone_url", "ssh_url", "html_url", "git_http_url", "links", "html", "href", "clone",
    "project", "path_with_namespace", "full_name", "default_branch", "ref", "after", "push", "changes",
    "new", "old", "type", "name", "target", "hash", "id", "toHash", "object_kind", "key", "slug",
    "web_url",
)  # fmt: skip
anything = json_values(NAMES, texts)
payloads = st.dictionaries(st.sampled_from(NAMES), anything, max_size=8) | objects(
    {
        "ref": texts,
        "after": texts,
        "object_kind": st.just("push"),
        "repository": objects(
            {
                "clone_url": texts,
                "full_name": texts,
                "default_branch": texts,
                "links": objects(
                    {"clone": st.lists(objects({"href": texts}) | anything, max_size=4), "html": anything}
                ),
            }
        ),
        "push": objects({"changes": st.lists(objects({"new": anything, "old": anything}) | anything, max_size=4)}),
        "changes": st.lists(objects({"ref": anything, "toHash": texts}) | anything, max_size=4),
    }
)
HEADERS = (
    "X-Hub-Signature-256", "X-Hub-Signature", "X-Gitea-Signature", "X-Forgejo-Signature",
    "X-Gitlab-Token", "webhook-signature", "webhook-id", "webhook-timestamp",
)  # fmt: skip
proofs = among(("sha256=", "sha1=", "v1,", "0" * 64, "=", " ", "1800000000", "whsec_", SECRET, "é"), most=5) | noise


@given(st.binary(max_size=200) | payloads.map(json.dumps).map(str.encode), st.sampled_from([FORM, "application/json"]))
def test_a_body_is_an_object_or_nothing(body: bytes, content_type: str) -> None:
    assert isinstance(read_payload(body, content_type), dict | None)


@given(st.sampled_from(EVENTS), payloads)
def test_pushes_are_read_whatever_a_payload_holds(event: str, payload: dict[str, Any]) -> None:
    pushes = read_pushes(event, json.loads(json.dumps(payload)))

    assert len(pushes) <= 201
    for push in pushes:
        assert isinstance(push, Push)
        assert find_repositories(push, [SHOP]) in ([], [SHOP])


@given(st.dictionaries(st.sampled_from(HEADERS), proofs, max_size=5), st.binary(max_size=50))
def test_no_delivery_is_authentic_without_the_secret(headers: dict[str, str], body: bytes) -> None:
    given_headers = CIMultiDict(headers)
    token = headers.get("X-Gitlab-Token") == SECRET

    is_believed = verify_signature(given_headers, body, [SECRET], now=NOW)

    assert not is_believed or token
    assert not is_believed or has_signature(given_headers, [SECRET], now=NOW)
    assert not verify_signature(given_headers, body, [], now=NOW)


@given(st.binary(max_size=200), st.sampled_from(["X-Hub-Signature-256", "X-Gitea-Signature"]), st.binary(min_size=1))
def test_what_is_signed_is_authentic_and_no_other_body(body: bytes, header: str, more: bytes) -> None:
    digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    headers = CIMultiDict({header: ("sha256=" if header.startswith("X-Hub") else "") + digest})

    assert has_signature(headers, [SECRET], now=NOW)
    assert verify_signature(headers, body, ["older", SECRET], now=NOW)
    assert not verify_signature(headers, body + more, [SECRET], now=NOW)
