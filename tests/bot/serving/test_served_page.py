"""The page of `citebot serve`: at `/` of its first address, for those who have a token, and nothing to anybody else."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from bot.surfaces.principals import hash_token
from tests.bot.serving.test_without_platform import address, serve_alone
from tests.fakes.repositories import GitRepo
from tests.waiting import LIMIT_SECONDS

ANN, EVE = "citebot_of-ann", "citebot_of-eve"
PUBLIC = "citebot.example.com"
NAMES = ("shopfront", "strongroom")  # Ann may ask about the first alone, Eve about neither
PARTS = ("/repositories/list", "/goals/x/part", "/c/x", "/turns/x/events", "/turns/x/code/1")
PATHS = ("/", "/repositories", "/runs", "/goals", *PARTS, "/nothing")
PAGE = f'[web]\nenabled = true\nurl = "https://{PUBLIC}"\n'
TOKENS = "".join(
    f'[[mcp.tokens]]\nperson = "slack:{name}"\nsha256 = "{hash_token(token)}"\n'
    for name, token in (("ANN", ANN), ("EVE", EVE))
)
ACCESS = (
    "[access]\nopen = false\n"
    '[[access.rules]]\nrepositories = ["shopfront"]\npeople = ["slack:ANN"]\n'
    '[[access.rules]]\nrepositories = ["strongroom"]\npeople = ["slack:ZOE"]\n'
)


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    for name in NAMES:
        made = GitRepo(tmp_path / name)
        made.write(f"{name}.py", f"def open_{name}(key):\n    return key\n")
        made.commit()
    return GitRepo(tmp_path / NAMES[0])


Serve = Callable[[str], AbstractAsyncContextManager[str]]


@pytest.fixture
def serving(repository: GitRepo, tmp_path: Path) -> Serve:
    """Serve both repositories with tables of citebot.toml, and yield the address."""

    @asynccontextmanager
    async def serve(config: str) -> AsyncIterator[str]:
        tables = "".join(f'[[repositories]]\npath = "{tmp_path / name}"\n' for name in NAMES)
        (tmp_path / "citebot.toml").write_text(config + tables, encoding="utf-8")
        named = {"CITEBOT_CONFIG": str(tmp_path / "citebot.toml"), "CITEBOT_MODEL": "none"}
        async with serve_alone(repository, tmp_path / "home", named) as said:
            yield address(said, "Listening")

    return serve


def open_browser() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        cookie_jar=aiohttp.CookieJar(unsafe=True), timeout=aiohttp.ClientTimeout(total=LIMIT_SECONDS)
    )


async def sign_in(browser: aiohttp.ClientSession, base: str, token: str) -> tuple[int, str]:
    form = {"token": token}
    async with browser.post(f"{base}/login", data=form, headers={"Origin": base}) as answer:
        return answer.status, await answer.text()


async def read(browser: aiohttp.ClientSession, url: str, **headers: str) -> tuple[int, str]:
    async with browser.get(url, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_who_has_a_token_asks_on_the_page_about_what_they_may(serving: Serve) -> None:
    async with serving(PAGE + TOKENS + ACCESS) as base, open_browser() as browser:
        status, start = await sign_in(browser, base, ANN)
        (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', start))
        form = {"csrf": csrf, "question": "where is open_shopfront defined?"}
        async with browser.post(f"{base}/ask", data=form, headers={"Origin": base, "HX-Request": "true"}) as answer:
            (turn,) = re.findall(r'id="turn-([^"]+)"', await answer.text())
        _, told = await read(browser, f"{base}/turns/{turn}/events")
        _, code = await read(browser, f"{base}/turns/{turn}/code/1")
        _, runs = await read(browser, f"{base}/runs")
        _, repositories = await read(browser, f"{base}/repositories")
        async with browser.post(f"{base}/logout", data={"csrf": csrf}, headers={"Origin": base}) as answer:
            left = await answer.text()
        _, again = await read(browser, f"{base}/runs")

    assert status == 200
    assert 'action="/ask"' in start
    assert told.rstrip().endswith("data: done")
    assert '<tr class="cited">' in code
    assert "open_shopfront" in code
    assert "shopfront" in runs
    assert ">current<" in repositories
    for text in (start, told, code, runs, repositories):
        assert "strongroom" not in text
        assert "slack:EVE" not in text
    assert "API token" in left
    assert again == left


async def test_without_a_token_nothing_tells_of_a_repository(serving: Serve) -> None:
    async with serving(PAGE + TOKENS + ACCESS) as base, open_browser() as browser:
        seen = [await read(browser, base + path) for path in PATHS]
        seen += [await read(browser, base + path, **{"HX-Request": "true"}) for path in PATHS]
        seen.append(await sign_in(browser, base, "citebot_of-nobody"))
        seen += [await read(browser, f"{base}{path}") for path in ("/repositories", "/login?t=x")]
        async with browser.post(f"{base}/ask", data={"question": "x"}, headers={"Origin": base}) as answer:
            seen.append((answer.status, await answer.text()))

    # Who asks for a page is sent to where one signs in; for what is no page, nothing is there.
    assert [status for status, _ in seen] == [200] * 9 + [404] + [401] * 9 + [404] + [403, 200, 403, 200]
    for _, text in seen:
        assert not any(name in text for name in (*NAMES, "ANN", "EVE"))


async def test_who_may_ask_about_nothing_sees_that_and_no_name(serving: Serve) -> None:
    async with serving(PAGE + TOKENS + ACCESS) as base, open_browser() as browser:
        status, start = await sign_in(browser, base, EVE)
        seen = [start, *[(await read(browser, base + path))[1] for path in ("/repositories", "/runs", "/c/x")]]

    assert status == 200
    assert "You have no access to any repository here." in start
    for text in seen:
        assert not any(name in text for name in NAMES)


async def test_only_names_of_the_page_are_answered_and_cookies_go_over_tls_there(serving: Serve) -> None:
    async with serving(f'[mcp]\nhosts = ["other.example.com"]\n{PAGE}{TOKENS}') as base, open_browser() as browser:
        statuses = {
            host: (await read(browser, f"{base}/login", Host=host))[0]
            for host in (PUBLIC, "other.example.com", "localhost:1", "evil.example.com", f"{PUBLIC}.evil.example.com")
        }
        sent = {"Host": PUBLIC, "Origin": f"https://{PUBLIC}"}
        async with browser.post(f"{base}/login", data={"token": ANN}, headers=sent, allow_redirects=False) as answer:
            (cookie,) = answer.headers.getall("Set-Cookie")

    assert [*statuses.values()] == [200, 200, 200, 421, 421]
    assert cookie.startswith("__Host-citebot-web=")
    assert {"secure", "httponly", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}


@pytest.mark.parametrize("config", [TOKENS, PAGE])
async def test_there_is_no_page_unless_it_is_allowed_and_somebody_has_a_token(serving: Serve, config: str) -> None:
    async with serving(config) as base, open_browser() as browser:
        for path in (*PATHS, "/login"):
            assert (await read(browser, base + path))[0] == 404
