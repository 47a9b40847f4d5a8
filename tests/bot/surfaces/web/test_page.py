"""The page over HTTP: what people see, what is theirs alone, and that nothing of what they are shown is markup."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bot.access import AccessRule
from bot.storage.turn_records import TurnRecord
from bot.surfaces.web.live_turns import MAX_UNDER_WAY
from bot.surfaces.web.web_surface import read_target
from tests.bot.surfaces.web.conftest import ANN, BOB, Site, open_site

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>{{ 7*7 }}'


def said_of(told: str) -> str:
    return str(re.findall(r'<p class="problem" data-announce>(.*?)</p>', told)[-1])


async def test_an_answer_grows_in_events_each_of_which_is_the_whole_of_a_part(site: Site) -> None:
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")

    told = await visit.follow(turn)

    events = re.findall(r"^event: (\w+)$", told, re.MULTILINE)
    assert events[0] == "turn"
    assert events[-2:] == ["turn", "done"] or events[-3:] == ["turn", "course", "done"]
    last = told.rpartition("event: turn")[2]
    assert "Events are sent by <code>Session.send</code>" in last
    assert f'href="{turn}/code/1"' in last


async def test_the_cited_lines_are_shown_at_their_numbers_with_the_commit_and_the_permalink(site: Site) -> None:
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    await visit.follow(turn)

    _, text = await visit.get(f"{turn}/code/1", headers={"HX-Request": "true"})

    cited = re.findall(r'<tr class="cited"><td class="number" data-number="(\d+)">', text)
    assert [int(number) for number in cited] == list(range(10, 25))
    assert re.findall(r'data-number="(\d+)"', text)[0] == "2"
    assert '<span class="k">def</span>' in text
    assert "0123456789ab" in text
    assert 'href="https://git.example/demo/src/session.py#L10-L24"' in text


async def test_fenced_code_of_an_answer_is_highlighted_and_lines_within_a_docstring_are_not(site: Site) -> None:
    site.answerer.text = "It is `f` [1].\n\n```python\ndef f():\n    return '<b>'\n```\n\n```\ndef g()\n```"
    site.code.source = "\n".join(['"""For', *["what def is for"] * 28, '"""', *["def f(): ..."] * 9])
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")

    answer = (await visit.follow(turn)).rpartition("event: turn")[2]
    _, code = await visit.get(f"{turn}/code/1", headers={"HX-Request": "true"})

    assert '<span class="k">def</span> <span class="nf">f</span>' in answer
    assert "&lt;b&gt;" in answer
    assert "def g()" in answer
    assert code.count('<span class="k">def</span>') == 2  # lines 31 and 32 alone are no text


async def test_the_course_of_a_run_is_drawn_with_its_way_lit(site: Site) -> None:
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    await visit.follow(turn)

    _, text = await visit.get(f"{turn}/course", headers={"HX-Request": "true"})

    assert text.count('class="node taken"') == 1
    assert "retrieval" in text
    assert "100" in text
    assert "src/session.py:1-9" in text


async def test_a_conversation_is_there_again_after_a_reload_in_the_middle_of_an_answer(site: Site) -> None:
    assert site.answerer.gate is not None
    site.answerer.gate.clear()
    site.answerer.begins_with = "So far so good."
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    await site.answerer.begun.acquire()

    _, text = await visit.get("/")
    (address,) = re.findall(r'<li><a href="(/c/[^"]+)">', text)
    _, before = await visit.get(address)
    site.answerer.gate.set()
    await visit.follow(turn)
    _, after = await visit.get(address)

    assert f'data-stream="{turn}/events"' in before
    assert "Session.send" not in before
    assert "data-stream" not in after
    assert "Session.send" in after


async def test_a_turn_is_stopped_and_says_so(site: Site) -> None:
    assert site.answerer.gate is not None
    site.answerer.gate.clear()
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    await site.answerer.begun.acquire()

    status, _ = await visit.post(f"{turn}/stop", {}, headers={"HX-Request": "true"})

    assert status == 204
    assert "Stopped" in await visit.follow(turn)


async def test_a_follow_up_goes_on_with_the_conversation(site: Site) -> None:
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    await visit.follow(turn)
    _, start = await visit.get("/")
    (conversation,) = re.findall(r'href="/c/([^"]+)"', start)

    await visit.follow(await visit.ask("and who calls it?", conversation=conversation))

    threads = {thread for _, thread, _ in site.answerer.asked}
    assert len(site.answerer.asked) == 2
    assert len(threads) == 1


async def test_without_scripts_a_question_leads_to_the_page_of_its_conversation(site: Site) -> None:
    visit = await site.sign_in()
    await visit.get("/")

    status, text = await visit.post("/ask", {"question": "where are events sent?"})

    assert status == 200
    assert '<h2 class="question"' in text


async def test_a_shared_answer_is_read_by_who_may_ask_about_its_repositories_at_that_time(team_site: Site) -> None:
    ann, bob = await team_site.sign_in(ANN), await team_site.sign_in(BOB)
    turn = await ann.ask("where are events sent?")
    await ann.follow(turn)
    link = turn.replace("/turns/", "/shared/")
    await bob.get("/")
    assert (await bob.get(link))[0] == 404

    _, shared = await ann.post(f"{turn}/share", {}, headers={"HX-Request": "true"})
    status, text = await bob.get(link)

    assert f'href="{link}"' in shared
    assert (status, "Events are sent" in text, "/rate" in text) == (200, True, False)
    assert (await bob.get(f"{turn}/code/1"))[0] == 200
    assert (await bob.post(f"{turn}/rate", {"opinion": "good"}))[0] == 404
    rule = AccessRule(repositories=("demo",), people=("slack:ANN",))
    object.__setattr__(team_site.core.access, "rules", (*team_site.core.access.rules, rule))
    assert (await bob.get(link))[0] == 404
    assert (await bob.get(f"{turn}/code/1"))[0] == 404
    assert (await ann.get(link))[0] == 200


async def test_a_shared_answer_is_there_after_a_restart_until_its_owner_stops_sharing_it(tmp_path: Path) -> None:
    async with open_site(tmp_path, by_link=False) as before:
        ann = await before.sign_in(ANN)
        turn = await ann.ask("where are events sent?")
        await ann.follow(turn)
        await ann.post(f"{turn}/share", {})
    link = turn.replace("/turns/", "/shared/")

    async with open_site(tmp_path, by_link=False) as after:
        bob = after.visit()
        _, asked_to_sign_in = await bob.get(link)
        _, shared = await bob.post("/login", {"token": BOB, "next": link})
        _, code = await bob.get(f"{turn}/code/1")
        refused, _ = await bob.post(f"{turn}/withdraw", {})
        ann = await after.sign_in(ANN)
        _, own = await ann.get(link)
        withdrawn, _ = await ann.post(f"{turn}/withdraw", {})

        assert f'name="next" value="{link}"' in asked_to_sign_in
        assert "where are events sent?" in shared
        assert "Events are sent" in shared
        assert "Stop sharing" not in shared
        assert "line_10" in code
        assert (refused, withdrawn) == (403, 200)
        assert "Stop sharing" in own
        assert (await bob.get(link))[0] == 404


async def test_an_outdated_answer_says_so_to_who_may_ask_and_is_given_again(team_site: Site) -> None:
    site, ann, bob = team_site, await team_site.sign_in(ANN), await team_site.sign_in(BOB)
    turn = await ann.ask("where are events sent?")
    await ann.follow(turn)
    await ann.post(f"{turn}/share", {})
    conversation, link = re.findall(r'href="(/c/[^"]+)"', (await ann.get("/"))[1])[0], f"/shared/{turn[7:]}"
    found = site.core.turns.find_shared(turn[7:])
    assert found is not None
    assert found.answer is not None
    assert "Outdated" not in (await ann.get(conversation))[1]

    diff = "[`src/session.py:10-24`](https://git.example/demo/compare/a...b)"
    await site.living.note_changes(found.answer.run_id[:20], "b" * 40, ("1 of 1 cited places changed", diff))
    pages = [(await ann.get(conversation))[1], (await bob.get(link))[1]]

    for page in pages:
        assert "Outdated since <code>bbbbbbb</code>: 1 of 1 cited places changed" in page
        assert 'href="https://git.example/demo/compare/a...b"' in page
    fields = dict(re.findall(r'name="(conversation|repository|again)" value="([^"]*)"', pages[0].split("outdated")[1]))
    again = await ann.ask("where are events sent?", **fields)
    assert "Answered again. Since the earlier answer, 1 of 1 cited places changed:" in await ann.follow(again)


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/shared/../runs", "/shared/x\ny", "/runs"]
)
async def test_signing_in_leads_to_nothing_but_a_shared_answer(team_site: Site, target: str) -> None:
    visit = team_site.visit()

    status, page = await visit.post("/login", {"token": ANN, "next": target}, allow_redirects=False)

    assert (status, page) == (303, "")
    assert read_target(target) == "/"


async def test_charts_of_an_answer_are_drawn_above_their_source_and_unknown_ones_stay_source(site: Site) -> None:
    flowchart = "flowchart TD\n  A[Ask] --> B[Answer]"
    charts = (flowchart, "sequenceDiagram\n  A->>B: hi", "pie\n  a: 1", flowchart)
    site.answerer.text = "\n\n".join(f"```mermaid\n{chart}\n```" for chart in charts)
    visit = await site.sign_in()

    told = (await visit.follow(await visit.ask("how?"))).rpartition("event: turn")[2].partition("<footer")[0]

    assert 'role="img"' in told
    assert 'aria-label="Diagram: - Ask leads to Answer"' in told
    assert 'aria-label="Sequence: A to B: hi"' in told
    assert told.count("<summary>Source of the diagram</summary>") == told.count("<svg") == 2
    assert told.count("A[Ask] --&gt; B[Answer]") == 2
    assert "sequenceDiagram" in told


async def test_nothing_from_outside_becomes_markup(site: Site) -> None:
    site.answerer.text = f"{HOSTILE} [1] [x](javascript:alert(1)) ![y](https://evil.example/a.png)"
    site.answerer.path = f"a/{HOSTILE}.py"
    site.code.source = "\n".join([HOSTILE] * 30)
    visit = await site.sign_in()
    turn = await visit.ask(f"where {HOSTILE} hunter2")
    pages = [await visit.follow(turn)]
    pages += [(await visit.get(f"{turn}/{part}"))[1] for part in ("code/1", "course")]
    pages.append((await visit.get("/"))[1])

    for page in pages:
        assert "<script>alert" not in page
        assert "<img" not in page
        assert 'href="javascript' not in page
        assert "evil.example/a.png" not in "".join(re.findall(r'(?:src|href)="[^"]*"', page))
        assert "hunter2" not in page
    assert "&lt;script&gt;" in pages[0]
    assert "{{ 7*7 }}" in pages[0]


async def test_code_is_shown_in_the_order_in_which_it_stands(site: Site) -> None:
    site.code.source = "\n".join(["if level != 'user\u202e \u2066# admins only\u2069 \u2066': grant()"] * 30)
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    await visit.follow(turn)

    _, text = await visit.get(f"{turn}/code/1", headers={"HX-Request": "true"})

    assert not set(text) & set("\u202e\u2066\u2069")
    assert "\ufffd# admins only\ufffd" in re.sub("<[^>]+>", "", text)


async def test_what_one_person_asked_is_not_there_for_another(team_site: Site) -> None:
    ann, bob = await team_site.sign_in(ANN), await team_site.sign_in(BOB)
    turn = await ann.ask("where are events sent?")
    await ann.follow(turn)
    _, start = await ann.get("/")
    (conversation,) = re.findall(r'href="(/c/[^"]+)"', start)
    await bob.get("/")

    tried = [await bob.get(path) for path in (conversation, turn + "/code/1", turn + "/course", turn + "/events")]
    tried.append(await bob.post(f"{turn}/stop", {}))
    tried.append(await bob.post(f"{turn}/rate", {"opinion": "good"}))
    tried.append(await bob.post("/ask", {"question": "and?", "conversation": conversation.rpartition("/")[2]}))
    nothing = await bob.get("/turns/nothing/course")

    assert {status for status, _ in tried} == {404}
    assert all("events sent" not in text for _, text in tried)
    assert nothing[0] == 404
    assert "events sent" not in (await bob.get("/"))[1]


async def test_a_repository_that_one_may_not_see_is_nowhere_on_the_page(team_site: Site) -> None:
    visit = await team_site.sign_in(ANN)
    pages = [(await visit.get(path))[1] for path in ("/", "/repositories", "/repositories/list", "/runs")]
    asked = await visit.follow(await visit.ask("where?", repository="secret"))
    invented = await visit.follow(await visit.ask("where?", repository="no-such"))
    refused = await visit.post("/repositories/reindex", {"repository": "secret"})
    unknown = await visit.post("/repositories/reindex", {"repository": "no-such"})

    assert not [page for page in pages if "secret" in page]
    assert said_of(asked).replace("secret", "NAME") == said_of(invented).replace("no-such", "NAME")
    assert "There are: demo." in said_of(asked)
    assert refused[0] == unknown[0] == 422
    assert refused[1] == unknown[1]
    assert team_site.library.indexes["secret"].refreshes == []


async def test_an_index_that_was_asked_for_is_made_and_what_came_of_it_is_said(site: Site) -> None:
    visit = await site.sign_in()
    await visit.get("/repositories")

    await visit.post("/repositories/reindex", {"repository": "demo"}, headers={"HX-Request": "true"})
    text = ""
    while "is indexed at" not in text and "up to date" not in text:
        _, text = await visit.get("/repositories/list")

    assert site.library.indexes["demo"].refreshes == [False]
    assert "every 1s" not in text


async def test_who_may_not_index_is_told_and_offered_nothing(team_site: Site) -> None:
    visit = await team_site.sign_in(BOB)
    _, page = await visit.get("/repositories")

    status, text = await visit.post("/repositories/reindex", {"repository": "demo"})

    assert "Index now" not in page
    assert status == 422
    assert "allowed to do that" in text
    assert team_site.library.indexes["demo"].refreshes == []


async def test_runs_are_ones_own_unless_one_is_an_admin(tmp_path: Path) -> None:
    def record(person: str, repository: str = "demo", *, found: bool = True) -> TurnRecord:
        return TurnRecord(
            repository=repository, commit="c" * 40, route="fast_path", model=f"model-of-{person}", seconds=1.0,
            person=person, found=found,
        )  # fmt: skip

    async with open_site(tmp_path, by_link=False, admins=["slack:BOB"]) as site:
        await site.core.records.keep("1", "slack:T:C:1", record("ANN", found=False))
        await site.core.records.keep("2", "discord:T:C:1", record("ANN", "elsewhere"))
        await site.core.records.keep("3", "api:slack:BOB:x", record("BOB"))
        await site.core.records.keep("4", "slack:T:C:2", record("BOB", "secret"))
        await site.core.records.rate("1", "ANN", "bad")
        _, of_ann = await (await site.sign_in(ANN)).get("/runs")
        _, of_bob = await (await site.sign_in(BOB)).get("/runs")

    assert of_ann.count("model-of-ANN") == 1
    assert "model-of-BOB" not in of_ann
    assert "100 %" in of_ann
    assert "not helpful" in of_ann
    assert of_bob.count("model-of-ANN") == 1
    assert of_bob.count("model-of-BOB") == 1
    assert "secret" not in of_bob
    assert "50 %" in of_bob


async def test_the_rate_of_errors_is_ones_own_unless_one_is_an_admin(tmp_path: Path) -> None:
    def rate_in(page: str) -> str:
        return str(re.findall(r"<dt>Errors[^<]*</dt><dd>([^<]*)</dd>", page)[0])

    async with open_site(tmp_path, by_link=False) as site:
        ann, bob = await site.sign_in(ANN), await site.sign_in(BOB)
        await ann.follow(await ann.ask("where are events sent?"))
        site.answerer.error = RuntimeError("broken on purpose")
        await ann.follow(await ann.ask("and now?"))
        _, of_ann = await ann.get("/runs")
        _, of_bob = await bob.get("/runs")

    assert (rate_in(of_ann), rate_in(of_bob)) == ("50 %", "–")


async def test_a_rating_is_kept_for_the_run(site: Site) -> None:
    visit = await site.sign_in()
    turn = await visit.ask("where are events sent?")
    await visit.follow(turn)

    _, text = await visit.post(f"{turn}/rate", {"opinion": "good"}, headers={"HX-Request": "true"})
    (entry,) = await site.core.records.feedback()

    assert (entry.person, entry.opinion) == ("local", "good")
    assert entry.record is not None
    assert entry.record.found
    assert text.count('aria-pressed="true"') == 1


async def test_too_many_questions_at_once_and_empty_ones_are_refused_with_a_sentence(site: Site) -> None:
    assert site.answerer.gate is not None
    site.answerer.gate.clear()
    visit = await site.sign_in()
    for number in range(MAX_UNDER_WAY):
        await visit.ask(f"question {number}")

    _, crowded = await visit.post("/ask", {"question": "one more"}, headers={"HX-Request": "true"})
    status, empty = await visit.post("/ask", {"question": "  "})

    assert "Wait for one to finish" in crowded
    assert status == 422
    assert "The question is empty" in empty


async def test_what_is_under_way_when_citebot_ends_says_so(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        assert site.answerer.gate is not None
        site.answerer.gate.clear()
        visit = await site.sign_in()
        turn = await visit.ask("where are events sent?")
        await site.answerer.begun.acquire()
        principal = next(iter(site.surface._sessions._open.values())).principal
        live = site.core.turns.find_turn(principal, turn.rpartition("/")[2])
    assert live is not None
    assert live.failure is not None
    assert "is shutting down" in live.failure.text
