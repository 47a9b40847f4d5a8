"""Push webhooks as the hosts send them, over HTTP: who is believed, what is passed on, and what strangers learn."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.routing import Route

from bot.errors import SettingsError
from bot.http.server import make_application, run_http_server
from bot.webhooks.push_endpoint import LARGEST, SeenDeliveries, find_repositories, make_push_handler, read_pushes
from indexer.remotes.remote_repository import RemoteRepository
from tests.fakes import pushes
from tests.fakes.clock import FakeClock
from tests.fakes.pushes import KEY, NEW, NONE, OLD, SECRET, Delivery
from tests.fakes.raw_http import exchange, write_request
from tests.waiting import expect

REMOTES = (
    RemoteRepository(name="hub", url="git@github.com:team/shop.git"),
    RemoteRepository(name="lab", url="https://gitlab.example/team/shop", branch="main"),
    RemoteRepository(name="tea", url="ssh://git@git.example:2222/team/shop.git"),
    RemoteRepository(name="bucket", url="https://bitbucket.org/team/shop.git"),
    RemoteRepository(name="bucket-release", url="https://bitbucket.org/team/shop.git", branch="release"),
)


PLAUSIBLE = {"X-Hub-Signature-256": "sha256=" + "0" * 64}


@dataclass
class Hook:
    """A running endpoint, and what it passed on."""

    session: aiohttp.ClientSession
    url: str
    clock: FakeClock
    told: list[tuple[str, str, str | None]] = field(default_factory=list)

    def notify(self, repository: str, ref: str, commit: str | None = None) -> None:
        self.told.append((repository, ref, commit))

    async def post(self, delivery: Delivery) -> int:
        async with self.session.post(self.url, data=io.BytesIO(delivery.body), headers=delivery.headers) as response:
            assert await response.text() == ""
            return response.status


@pytest.fixture
async def hook(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hook]:
    monkeypatch.setattr("bot.http.server._UNREAD_SECONDS", 0.02)  # so that a test can refuse many bodies
    async with aiohttp.ClientSession() as session:
        hook = Hook(session, "", FakeClock(1_700_000_000))
        secrets = (SecretStr("a retired one"), SecretStr(SECRET), SecretStr(KEY))
        app = make_application()
        app.router.routes.append(
            Route("/push", make_push_handler(REMOTES, secrets, hook.notify, hook.clock), methods=["POST"])
        )
        async with run_http_server(app, host="127.0.0.1", port=0) as address:
            hook.url = f"{address}/push"
            yield hook


@pytest.mark.parametrize(
    ("delivery", "name"),
    [
        (pushes.github(), "hub"),
        (pushes.github(form=True), "hub"),
        (pushes.gitlab(), "lab"),
        (pushes.gitlab(header="System Hook"), "lab"),
        (pushes.gitlab_signed(at=1_700_000_100), "lab"),
        (pushes.gitea(), "tea"),
        (pushes.gitea(name="Forgejo"), "tea"),
        (pushes.bitbucket(), "bucket"),
    ],
    ids=["github", "github form", "gitlab", "gitlab system", "gitlab signed", "gitea", "forgejo", "bitbucket"],
)
async def test_a_push_of_every_host_is_passed_on(hook: Hook, delivery: Delivery, name: str) -> None:
    assert await hook.post(delivery) == 202
    assert hook.told == [(name, "refs/heads/main", NEW)]


async def test_a_host_that_names_no_address_is_known_by_the_project() -> None:
    remotes = [
        RemoteRepository(name="server", url="https://bitbucket.example/scm/team/shop.git"),
        RemoteRepository(name="other", url="https://bitbucket.example/scm/team/shops.git"),
    ]
    payload = json.loads(pushes.bitbucket_server().body)

    (push,) = read_pushes("repo:refs_changed", payload)

    assert [remote.name for remote in find_repositories(push, remotes)] == ["server"]
    assert (push.branch, push.commit) == ("main", NEW)


async def test_several_branches_in_one_delivery_reach_who_follows_them(hook: Hook) -> None:
    assert await hook.post(pushes.bitbucket(branches=("main", "release"))) == 202
    assert hook.told == [
        ("bucket", "refs/heads/main", NEW),
        ("bucket", "refs/heads/release", NEW),
        ("bucket-release", "refs/heads/release", NEW),
    ]


@pytest.mark.parametrize("delivery", [pushes.github(after=NONE), pushes.bitbucket(deleted=True)])
async def test_a_deleted_branch_is_passed_on_without_a_commit(hook: Hook, delivery: Delivery) -> None:
    assert await hook.post(delivery) == 202
    assert [(ref, commit) for _, ref, commit in hook.told] == [("refs/heads/main", None)]


@pytest.mark.parametrize(
    "delivery",
    [
        pushes.github(ref="refs/heads/feature"),
        pushes.github(ref="refs/tags/v1"),
        pushes.github(event="issues"),
        pushes.gitlab(event="merge_request", header="Merge Request Hook"),
        pushes.gitlab(event="project_create", header="System Hook"),
    ],
)
async def test_what_concerns_nobody_is_answered_quietly(hook: Hook, delivery: Delivery) -> None:
    assert await hook.post(delivery) == 204
    assert hook.told == []


async def test_a_repository_that_nobody_configured_is_answered_quietly(hook: Hook) -> None:
    delivery = pushes.github()
    delivery.body = delivery.body.replace(b"Shop", b"Shed")
    delivery.headers["X-Hub-Signature-256"] = "sha256=" + pushes.digest(delivery.body)

    assert await hook.post(delivery) == 204
    assert hook.told == []


@pytest.mark.parametrize("delivery", [pushes.github(event="ping"), pushes.bitbucket_server(event="diagnostics:ping")])
async def test_a_ping_is_answered(hook: Hook, delivery: Delivery) -> None:
    assert await hook.post(delivery) == 200
    assert hook.told == []


def _changed(delivery: Delivery, **headers: str | None) -> Delivery:
    for name, value in headers.items():
        delivery.headers.pop(name.replace("_", "-"), None)
        if value is not None:
            delivery.headers[name.replace("_", "-")] = value
    return delivery


@pytest.mark.parametrize(
    "delivery",
    [
        pushes.github(secret="guessed"),
        _changed(pushes.github(), X_Hub_Signature_256=None),  # SHA-1 alone
        _changed(pushes.github(), X_Hub_Signature_256=pushes.digest(pushes.github().body)),
        _changed(pushes.github(), X_Hub_Signature_256="sha256=\xe9"),
        pushes.gitlab(token="guessed"),
        pushes.gitlab(token=KEY),  # a key is never sent
        _changed(pushes.gitlab(), webhook_signature="v1,AAAA"),  # a good token does not rescue it
        pushes.gitlab_signed(at=1_700_000_000 - 301),
        pushes.gitlab_signed(at=1_700_000_000 + 301),
        pushes.gitlab_signed(at=1_700_000_000, key="whsec_AAAA"),
        _changed(pushes.gitlab_signed(at=1_700_000_000), webhook_timestamp="1700000001"),
        _changed(pushes.gitlab_signed(at=1_700_000_000), webhook_id="another"),
        pushes.gitea(secret="guessed"),
        Delivery(b"{}", {"Content-Type": "application/json"}),
    ],
)
async def test_who_does_not_know_the_secret_learns_nothing(
    hook: Hook, delivery: Delivery, caplog: pytest.LogCaptureFixture
) -> None:
    assert await hook.post(delivery) == 401
    assert hook.told == []
    assert SECRET not in caplog.text


@pytest.mark.parametrize("make", [pushes.github, pushes.gitea, pushes.bitbucket])
async def test_one_changed_byte_is_noticed(hook: Hook, make: type[Delivery]) -> None:
    delivery = make()  # type: ignore[call-arg]
    delivery.body = delivery.body.replace(NEW.encode(), b"c" * 40)

    assert await hook.post(delivery) == 401


async def test_a_delivery_that_comes_again_is_not_passed_on_again(hook: Hook) -> None:
    delivery = pushes.github()

    assert [await hook.post(delivery) for _ in range(3)] == [202, 202, 202]
    assert len(hook.told) == 1
    assert await hook.post(pushes.github()) == 202
    assert len(hook.told) == 2


async def test_a_push_back_and_forth_is_passed_on_each_time(hook: Hook) -> None:
    there, back = pushes.github(after=NEW), pushes.github(after=OLD)
    for number, delivery in enumerate([there, back, there, back]):
        delivery.headers["X-GitHub-Delivery"] = f"delivery {number}"
        assert await hook.post(delivery) == 202

    assert [commit for _, _, commit in hook.told] == [NEW, OLD, NEW, OLD]


async def test_a_signed_delivery_cannot_be_sent_again_under_another_id(hook: Hook) -> None:
    delivery = pushes.gitlab_signed(at=1_700_000_000)
    assert await hook.post(delivery) == 202

    assert await hook.post(delivery) == 202
    assert await hook.post(_changed(delivery, webhook_id="another")) == 401
    assert len(hook.told) == 1


def test_only_so_many_deliveries_are_remembered() -> None:
    deliveries = SeenDeliveries(most=10)
    fresh = [deliveries.is_new({"X-GitHub-Delivery": str(number)}, b"") for number in range(100)]

    assert all(fresh)
    assert not deliveries.is_new({"X-GitHub-Delivery": "99"}, b"")
    assert deliveries.is_new({"X-GitHub-Delivery": "1"}, b"")


def test_one_id_with_another_body_is_another_delivery() -> None:
    deliveries = SeenDeliveries()

    assert deliveries.is_new({"X-GitHub-Delivery": "1"}, b"a")
    assert deliveries.is_new({"X-GitHub-Delivery": "1"}, b"b")
    assert all(deliveries.is_new({}, b"a") for _ in range(2))


async def test_too_much_is_not_read(hook: Hook) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(LARGEST // 100_000 + 2):
            yield b"x" * 100_000

    assert await hook.post(Delivery(b"x" * (LARGEST + 1), PLAUSIBLE)) == 413
    async with hook.session.post(hook.url, data=endless(), headers=PLAUSIBLE) as response:
        assert response.status == 413


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Hub-Signature-256": "0" * 64},
        {"X-Gitea-Signature": "0" * 63},
        {"X-Gitlab-Token": "guessed"},
        {"webhook-signature": "v1,AAAA", "webhook-id": "1", "webhook-timestamp": "1600000000"},
    ],
)
async def test_who_proves_nothing_is_refused_before_anything_is_read(hook: Hook, headers: dict[str, str]) -> None:
    more = asyncio.Event()

    async def held_back() -> AsyncIterator[bytes]:
        yield b"{"
        await more.wait()

    async with hook.session.post(hook.url, data=held_back(), headers=headers) as response:
        assert response.status == 401
    more.set()


@pytest.mark.parametrize("kind", ["gzip", "GZIP"])
async def test_a_packed_body_is_refused_unread(hook: Hook, kind: str) -> None:
    signed = pushes.github()

    assert await hook.post(Delivery(gzip.compress(signed.body), signed.headers | {"Content-Encoding": kind})) == 415


async def test_what_nobody_reads_is_not_taken_in_for_long() -> None:
    handler = make_push_handler(REMOTES, [SecretStr(SECRET)], Hook.notify, FakeClock())  # type: ignore[arg-type]
    server = make_application()
    server.router.routes.append(Route("/push", handler, methods=["POST"]))

    async with run_http_server(server, host="127.0.0.1", port=0) as address:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        writer.write(b"POST /push HTTP/1.1\r\nHost: citebot\r\nContent-Length: 999999999999\r\n\r\n")
        assert b" 401 " in await reader.readline()
        with pytest.raises(ConnectionError):
            async with expect("what nobody reads is not taken in for long"):
                while True:
                    writer.write(b"x" * 100_000)
                    await writer.drain()
        writer.close()


def _signed(body: bytes, kind: str = "application/json") -> Delivery:
    return Delivery(
        body,
        {"Content-Type": kind, "X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + pushes.digest(body)},
    )


@pytest.mark.parametrize(
    ("delivery", "status"),
    [
        (_signed(b"[1]"), 400),
        (_signed(b"\xff"), 400),
        (_signed(b"[" * 100_000), 400),
        (_signed(b"a=b", pushes.github(form=True).headers["Content-Type"]), 400),
        (_signed(b"&".join([b"a=b"] * 50), pushes.github(form=True).headers["Content-Type"]), 400),
        (_signed(b"{}", "text/plain"), 415),
        (_signed(b"{}"), 204),
    ],
)
async def test_what_cannot_be_read_is_said_by_the_status(hook: Hook, delivery: Delivery, status: int) -> None:
    assert await hook.post(delivery) == status
    assert hook.told == []


async def test_only_posts_are_answered(hook: Hook) -> None:
    async with hook.session.get(hook.url) as response:
        assert response.status == 405


@pytest.mark.parametrize("secrets", [(), (SecretStr(""),), (SecretStr("x"), SecretStr(""))])
def test_without_a_secret_there_is_no_endpoint(secrets: tuple[SecretStr, ...]) -> None:
    with pytest.raises(SettingsError, match="need a secret"):
        make_push_handler(REMOTES, secrets, Hook.notify, FakeClock())  # type: ignore[arg-type]


RAW_NAMES = st.sampled_from([
    "X-Hub-Signature-256", "X-Hub-Signature", "X-Gitea-Signature", "X-Gitlab-Token", "webhook-signature", "webhook-id",
    "webhook-timestamp", "X-GitHub-Event", "X-Gitlab-Event", "Content-Type", "Content-Encoding", "Upgrade",
    "X-GitHub-Delivery", "Expect",
])  # fmt: skip
RAW_VALUES = st.sampled_from([
    "sha256=" + "0" * 64, "0" * 64, "v1,AAAA", "1700000000", "push", "Push Hook", "application/json", "gzip", "chunked",
    "9" * 400, "١٧٠٠٠٠٠٠٠٠", "application/json; charset=no-such", SECRET,
]) | st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=30)  # fmt: skip


async def test_no_bytes_from_anybody_break_the_endpoint(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    address, path = hook.url.removesuffix("/push"), "/push"

    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(headers=st.lists(st.tuples(RAW_NAMES, RAW_VALUES), max_size=6), body=st.binary(max_size=100))
    def post(headers: list[tuple[str, str]], body: bytes) -> None:
        seen = exchange(address, write_request("POST", path, headers, body))
        assert seen.status == 0 or seen.status < 500 or seen.status == 503

    await asyncio.to_thread(post)

    assert not [each for each in caplog.records if each.exc_info or each.levelno > logging.WARNING]


async def test_strangers_do_not_fill_the_log(hook: Hook, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        await hook.post(Delivery(b"{}", {}))

    assert len([each for each in caplog.records if "was refused" in each.getMessage()]) == 1
