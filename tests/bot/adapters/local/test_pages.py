"""The page of the demo workspace: what each person sees and may do there, and what strangers cannot."""

from __future__ import annotations

import base64
import re

from tests.bot.adapters.local.conftest import ServedWorkspace
from tests.bot.contract import settled, until

QUESTION = "@citebot where are events sent?"
PART = {"HX-Request": "true"}


async def write(workspace: ServedWorkspace, text: str, *, channel: str = "general", **fields: str) -> None:
    """Write as Ann."""
    visit = await workspace.sign_in()
    status, told = await visit.post("/messages", {"channel": channel, "text": text, **fields}, headers=PART)
    assert (status, told) == (200, "")


async def test_a_question_is_answered_in_its_thread_where_a_mark_opens_the_cited_lines(
    workspace: ServedWorkspace,
) -> None:
    visit = await workspace.sign_in()
    status, page = await visit.post("/messages", {"channel": "general", "text": QUESTION})
    await settled(workspace, "Events are sent by")

    assert status == 200
    assert QUESTION in page
    _, channel = await visit.get("/c/general")
    assert 'href="/c/general/1"' in channel
    assert "1 reply" in channel
    _, thread = await visit.get("/c/general/1")
    assert '<a class="cite" href="/messages/2/code/1"' in thread
    assert re.findall(r'reactions">(.)</button>', thread) == ["✓", "✕", "👀"]
    _, code = await visit.get("/messages/2/code/1", headers=PART)
    assert code.count('<tr class="cited">') == 15
    assert "def line_10" in code
    assert (await visit.get("/messages/2/code/2"))[0] == 404


async def test_who_follows_gets_each_change_once_and_goes_on_where_the_connection_was_lost(
    workspace: ServedWorkspace,
) -> None:
    visit = await workspace.sign_in()
    await write(workspace, QUESTION)
    await settled(workspace, "Events are sent by")
    address = f"{workspace.address}/c/general/0/events"
    async with visit.session.get(f"{address}?after=0") as stream:
        first = (await stream.content.readuntil(b"\n\n")).decode()
    (seen,) = re.findall(r"^id: (\d+)", first, re.MULTILINE)
    async with visit.session.get(f"{address}?after=0", headers={"Last-Event-ID": seen}) as stream:
        second = (await stream.content.readuntil(b"\n\n")).decode()

    assert 'data-message="' in first
    assert int(re.findall(r"^id: (\d+)", second, re.MULTILINE)[0]) > int(seen)


async def test_each_person_sees_the_channels_and_what_is_theirs_alone(workspace: ServedWorkspace) -> None:
    visit = await workspace.sign_in()
    file = {"name0": "app.log", "data0": base64.b64encode(b"KeyError: 'cart'").decode()}
    await visit.post("/messages", {"channel": "dm-ann", "text": "why?", **file})
    await visit.post("/messages", {"channel": "general", "text": "/citebot status"}, headers=PART)
    await until(workspace, lambda said: len(said) == 2 and bool(workspace.agent.attached))
    assert workspace.agent.attached[0].texts[0].text == "KeyError: 'cart'"
    assert "Only you can see this" in (await visit.get("/c/general"))[1]
    assert (await visit.get("/files/1"))[1] == "KeyError: 'cart'"

    _, page = await visit.post("/person", {"person": "bob", "channel": "general"})

    assert 'value="bob" title="Developer: may ask, but not reindex" aria-label="Bob" aria-pressed="true"' in page
    assert "Only you can see this" not in page
    for path in ("/c/dm-ann", "/files/1", "/c/nowhere"):
        status, page = await visit.get(path)
        assert (status, "Sign out" in page) == (404, False)
    for number in (1, 2, 3, 4):
        assert (await visit.post(f"/messages/{number}/press", {"button": "0"}))[0] == 404
    assert (await visit.post("/person", {"person": "mallory"}))[0] == 400


async def test_people_have_their_rights_as_elsewhere(workspace: ServedWorkspace) -> None:
    visit = await workspace.sign_in()
    await visit.post("/person", {"person": "bob"})
    await visit.post("/messages", {"channel": "general", "text": "/reindex"})
    await until(workspace, lambda said: any("aren't allowed" in each for each in said))
    await visit.post("/person", {"person": "eve"})
    await visit.post("/messages", {"channel": "dm-eve", "text": "where are events sent?"})
    await until(workspace, lambda said: any("only answer people in this organization" in each for each in said))

    assert workspace.agent.asked == []


async def test_one_changes_ones_own_messages_alone_and_secrets_are_not_kept(workspace: ServedWorkspace) -> None:
    visit = await workspace.sign_in()
    await visit.post("/messages", {"channel": "general", "text": QUESTION})
    await settled(workspace, "Events are sent by")
    await visit.post("/person", {"person": "bob"})
    refused = await visit.post("/messages/1/edit", {"text": "nothing"}, headers=PART)
    kept = await visit.post("/messages/1/delete", {}, headers=PART)
    await visit.post("/person", {"person": "ann"})
    await visit.post("/messages/1/edit", {"text": "@citebot is hunter2 used?"}, headers=PART)
    await until(workspace, lambda _: len(workspace.agent.asked) == 2)

    assert {refused[1], kept[1]} == {"Only the person who wrote a message can change it."}
    _, page = await visit.get("/c/general")
    assert "is [REDACTED] used?" in page
    assert "(edited)" in page
    await visit.post("/messages/1/delete", {})
    await settled(workspace)
    assert "This message was deleted" not in (await visit.get("/c/general"))[1]


async def test_a_reaction_and_a_button_stop_an_answer(workspace: ServedWorkspace) -> None:
    visit = await workspace.sign_in()
    for path, fields in (("press", {"button": "0"}), ("react", {"sign": "❌"})):
        assert workspace.citing.gate is not None
        workspace.citing.gate.clear()
        await visit.post("/messages", {"channel": "general", "text": QUESTION})
        await workspace.agent.begun.acquire()
        await until(workspace, lambda said: bool(said) and "Searching" in said[-1])
        newest = (await workspace.workspace.list_newest("general", "citebot", "ann"))[0].id
        await visit.post(f"/messages/{newest}/{path}", fields)
        await until(workspace, lambda said: bool(said) and "Stopped" in said[-1])


async def test_what_was_said_is_there_after_a_restart(workspace: ServedWorkspace) -> None:
    await write(workspace, QUESTION)
    await settled(workspace, "Events are sent by")
    await workspace.end()
    await workspace.begin()

    visit = await workspace.sign_in()
    assert "Events are sent by" in (await visit.get("/c/general/1"))[1]


async def test_a_push_is_about_what_the_newest_answer_cites(workspace: ServedWorkspace) -> None:
    visit = await workspace.sign_in()
    await visit.post("/push", {"channel": "general"})
    await write(workspace, QUESTION)
    await settled(workspace, "Events are sent by")
    await visit.post("/push", {"channel": "general"})

    (first, nothing), (second, place) = workspace.pushed
    assert (first, nothing, second) == ("ann", None, "ann")
    assert place is not None
    assert (place.path, place.first_line, place.last_line) == ("src/session.py", 10, 24)


async def test_strangers_and_other_pages_can_do_nothing(workspace: ServedWorkspace) -> None:
    visit = await workspace.sign_in()
    form = {"channel": "general", "text": "hello"}
    elsewhere = await visit.post("/messages", form, headers={"Origin": "https://evil.example"})
    forged = await visit.post("/person", {"person": "bob", "csrf": "wrong"})
    rebound = await visit.get("/c/general", headers={"Host": "evil.example"})
    visit.session.cookie_jar.clear()
    status, page = await visit.get("/c/general")

    assert (elsewhere[0], forged[0], rebound[0]) == (403, 403, 421)
    assert (status, "Open the newest link" in page) == (200, True)
    assert "citebot demo" in page
    assert await workspace.workspace.list_all() == []
