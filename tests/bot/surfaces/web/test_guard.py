"""The page keeps strangers out: hosts, sessions, forms of other sites, and requests that never end."""

from __future__ import annotations

import asyncio
import re
from http.cookies import SimpleCookie
from pathlib import Path

import aiohttp
import pytest

from bot.http.requests import BodyReader
from bot.surfaces.web.request_guard import HEADERS, LONGEST_FORM, MAX_EACH, RequestGuard
from tests.bot.surfaces.web.conftest import ANN, BOB, Site, open_site
from tests.fakes.raw_http import exchange, write_request


def cookie_of(response: aiohttp.ClientResponse) -> SimpleCookie:
    return SimpleCookie(response.headers["Set-Cookie"])


async def test_the_printed_address_signs_in_once(site: Site) -> None:
    assert site.link is not None
    token = site.link.token
    first, second = site.visit(), site.visit()

    wrong = await second.get(f"/login?t={token[:-1]}x")
    right = await first.get(f"/login?t={token}")
    again = await second.get(f"/login?t={token}")
    reopened = await first.get(f"/login?t={token}")

    assert (wrong[0], right[0], again[0], reopened[0]) == (403, 200, 403, 200)
    assert "Ask about the code" in right[1]
    assert "Ask about the code" in reopened[1]  # who is signed in stays so
    assert "already used" in again[1]
    assert (await second.get(f"/login?t={site.link.token}"))[0] == 200  # the next one, which was printed then


async def test_a_link_from_elsewhere_is_opened_once_more_by_our_own_page_which_has_the_cookie(site: Site) -> None:
    visit = site.visit()
    sites = ("cross-site", "same-origin")
    answers = []
    for each in sites:
        async with visit.session.get(site.address, headers={"Sec-Fetch-Site": each}, allow_redirects=False) as answer:
            answers.append((answer.status, answer.headers.get("Refresh"), answer.headers.get("Location")))

    assert answers == [(200, "0", None), (303, None, "/login")]


async def test_a_session_is_a_cookie_that_no_script_and_no_other_site_can_use(site: Site) -> None:
    assert site.link is not None
    visit = site.visit()
    address = f"{site.address}/login?t={site.link.token}"
    async with visit.session.get(address, allow_redirects=False) as answer:
        (cookie,) = cookie_of(answer).values()

    assert cookie.key == f"citebot-{site.address.rpartition(':')[2]}"
    assert (cookie["httponly"], cookie["samesite"].lower(), cookie["path"]) == (True, "strict", "/")
    assert int(cookie["max-age"]) == 12 * 3600
    assert len(cookie.value) > 40
    assert not cookie["secure"]


async def test_behind_tls_the_cookie_goes_over_tls_alone(tmp_path: Path) -> None:
    async with open_site(tmp_path, by_link=False, hosts=["citebot.example"], secure=True) as site:
        headers = {"Host": "citebot.example", "Origin": "https://citebot.example"}
        visit = site.visit()
        async with visit.session.post(
            f"{site.address}/login", data={"token": ANN}, headers=headers, allow_redirects=False
        ) as answer:
            (cookie,) = cookie_of(answer).values()

    assert answer.status == 303
    assert cookie.key.startswith("__Host-")
    assert cookie["secure"]


async def test_without_a_session_there_is_nothing_to_see(site: Site) -> None:
    visit = site.visit()
    for path in ("/", "/c/x", "/turns/x/events", "/turns/x/code/1", "/repositories", "/repositories/list", "/runs"):
        async with visit.session.get(site.address + path, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/login")
    for path in ("/ask", "/logout", "/turns/x/stop", "/repositories/reindex"):
        assert (await visit.post(path, {}, allow_redirects=False))[0] == 303
    status, _ = await visit.get("/turns/x/events", headers={"Accept": "text/event-stream"})
    assert status == 401


async def test_who_signs_in_again_and_again_signs_nobody_else_out(team_site: Site) -> None:
    ann, first = await team_site.sign_in(ANN), await team_site.sign_in(BOB)
    many, form = team_site.visit(), {"token": BOB}
    for _ in range(MAX_EACH):
        assert (await many.post("/login", form, allow_redirects=False))[0] == 303

    seen = [await visit.get("/runs", allow_redirects=False) for visit in (ann, many, first)]

    assert [status for status, _ in seen] == [200, 200, 303]


async def test_a_wrong_token_a_wrong_cookie_and_a_session_that_was_ended_are_refused(team_site: Site) -> None:
    visit = await team_site.sign_in(ANN)
    stranger = team_site.visit()
    name = f"citebot-{team_site.address.rpartition(':')[2]}"
    await visit.get("/")
    (kept,) = (each.value for each in visit.session.cookie_jar if each.key == name)

    wrong = await stranger.post("/login", {"token": "citebot_wrong"})
    out = await visit.post("/logout", {})
    forged = [await stranger.get("/", headers={"Cookie": f"{name}={value}"}) for value in ("x", "ü", kept)]

    assert wrong[0] == 403
    assert "Unknown token" in wrong[1]
    assert "Sign in" in out[1]
    assert all("Sign in" in text for _, text in forged)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1"])
async def test_a_host_that_is_not_ours_gets_nothing(site: Site, host: str) -> None:
    visit = await site.sign_in()

    status, text = await visit.get("/", headers={"Host": host})

    assert status in {400, 421}
    assert "Ask about" not in text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
async def test_a_form_of_another_site_does_nothing(site: Site, headers: dict[str, str]) -> None:
    visit = await site.sign_in()
    await visit.get("/")

    status, _ = await visit.post("/ask", {"question": "where?"}, headers=headers)

    assert status == 403
    assert site.answerer.asked == []


async def test_a_form_without_its_token_or_that_says_not_where_it_comes_from_does_nothing(site: Site) -> None:
    visit = await site.sign_in()
    await visit.get("/")
    missing = await visit.post("/ask", {"question": "where?", "csrf": ""})
    wrong = await visit.post("/ask", {"question": "where?", "csrf": visit.csrf[:-1] + "ü"})
    async with visit.session.post(f"{site.address}/ask", data={"question": "where?", "csrf": visit.csrf}) as silent:
        pass
    async with visit.session.post(
        f"{site.address}/ask", json={"question": "where?"}, headers={"Origin": site.address}
    ) as other:
        pass

    assert (missing[0], wrong[0], silent.status, other.status) == (403, 403, 403, 415)
    assert site.answerer.asked == []


async def test_every_answer_forbids_what_the_page_does_not_need(site: Site) -> None:
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    for path in ("/", "/c/nothing", "/nothing", f"{turn}/events", f"{turn}/course", "/login"):
        async with visit.session.get(site.address + path) as answer:
            told = {name: answer.headers.get(name) for name in HEADERS}
            assert told == dict(HEADERS), path
            text = await answer.text()
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert not re.search(r"<[^>]+\s(?:style|on\w+)=", text)
        assert not re.search(r"<script(?![^>]+src=)", text)


@pytest.mark.parametrize("path", ["/static/../web_surface.py", "/static/%2e%2e/page_files.py", "/static/x/page.css"])
async def test_no_path_leads_to_a_file_that_is_not_a_part_of_the_page(site: Site, path: str) -> None:
    answer = await asyncio.to_thread(exchange, site.address, write_request("GET", path))

    assert answer.status == 404
    assert b"import" not in answer.body


@pytest.mark.parametrize("mark", ["0", "-1", "1/../../..", "١"])
async def test_what_an_answer_does_not_cite_is_not_shown(site: Site, mark: str) -> None:
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    await visit.follow(turn)

    status, _ = await visit.get(f"{turn}/code/{mark}")

    assert status == 404


async def test_a_form_that_is_too_large_is_refused(site: Site) -> None:
    visit = await site.sign_in()
    await visit.get("/")

    status, text = await visit.post("/ask", {"question": "x" * LONGEST_FORM})

    assert status == 413
    assert "too long" in text


async def test_a_form_that_never_comes_to_its_end_is_given_up(site: Site) -> None:
    visit = await site.sign_in()
    await visit.get("/")
    guard: RequestGuard = site.surface._guard
    guard._bodies = BodyReader(largest=LONGEST_FORM, seconds=0.05, total=LONGEST_FORM)
    (cookie,) = (each.value for each in visit.session.cookie_jar)
    headers = [
        ("Cookie", f"citebot-web={cookie}"),  # the raw request names no port
        ("Sec-Fetch-Site", "same-origin"),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ]

    request = write_request("POST", "/ask", headers, b"question=w", length=1000)
    answer = await asyncio.to_thread(exchange, site.address, request)

    assert answer.status == 408
    assert site.answerer.asked == []


async def test_before_and_after_the_core_is_open_the_page_says_so(site: Site) -> None:
    visit = await site.sign_in()
    site.surface._core.close()

    async with visit.session.get(site.address) as answer:
        text = await answer.text()

    assert answer.status == 503
    assert answer.headers["Retry-After"] == "5"
    assert "starting or shutting down" in text
