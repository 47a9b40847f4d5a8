"""Workers on the queue that lose Postgres, a connection, or their place in its tables, and continue when it is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
import pytest_asyncio

from bot.errors import InboxError
from bot.jobs import queued_jobs
from bot.jobs.job_queue import JobQueue, QueueTimes, open_job_queue
from bot.jobs.queue_worker import MAX_WORKER_DEATHS, Janitor
from bot.jobs.queued_jobs import QueuedAnswerJobs, QueuedRefreshJobs
from indexer import IndexerError
from tests.bot.jobs.conftest import make_queue_database, open_refreshes
from tests.bot.jobs.test_answer_contract import Answers, ask
from tests.bot.jobs.test_refresh_contract import Hosted, follow
from tests.fakes.cut_proxy import CutProxy, Mode, open_cut_proxy
from tests.fakes.job_worker import TIMES, run_sql, until_rows
from tests.waiting import expect

pytestmark = [pytest.mark.exhaustive, pytest.mark.needs("postgres")]

# Workers of this test's own database: those of other tests listen on the same server.
LISTENING = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
SLOW_POLL = replace(TIMES, poll=3_600.0)  # so that only notifications begin a job


@dataclass(frozen=True, kw_only=True)
class Front:
    """Who asks, with Postgres always there, and the address of a worker that may lose it."""

    jobs: QueuedAnswerJobs
    refreshes: QueuedRefreshJobs
    queue: JobQueue
    url: str
    proxy: CutProxy
    proxied: str


@pytest_asyncio.fixture
async def front() -> AsyncIterator[Front]:
    async with (
        make_queue_database() as url,
        open_job_queue(url, times=TIMES) as queue,
        open_refreshes(url, queue) as refreshes,
        open_cut_proxy(url) as (proxy, proxied),
    ):
        yield Front(
            jobs=QueuedAnswerJobs(queue),
            refreshes=refreshes,
            queue=queue,
            url=url,
            proxy=proxy,
            proxied=proxied,
        )


@asynccontextmanager
async def work(front: Front, answers: Answers, *, at_once: int = 8, times: QueueTimes = TIMES) -> AsyncIterator[None]:
    """Work through the proxy."""
    async with (
        open_job_queue(front.proxied, times=times) as queue,
        QueuedAnswerJobs(queue).work_on_answers(answers.answer, at_once=at_once),
    ):
        yield


async def until_listening(front: Front) -> None:
    """Wait until a worker is told of jobs."""
    await until_rows(front.url, f"SELECT 1 {LISTENING}")


async def test_who_waits_behind_a_lock_is_notified(front: Front) -> None:
    answers = Answers()
    async with work(front, answers, times=SLOW_POLL):
        await until_listening(front)
        async with expect("the end of all answers, long before a poll"):
            await ask(front.jobs, 1, 2, 3, 4)
            await answers.until(lambda: answers.ended == [1, 2, 3, 4])


async def test_the_server_is_told_whose_its_connections_are(front: Front) -> None:
    async with work(front, Answers()):
        await until_listening(front)
        ours = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        assert await run_sql(front.url, f"SELECT DISTINCT application_name {ours}") == [("citebot",)]


@pytest.mark.parametrize("way", ["cut", "refuse", "hang"])
async def test_postgres_may_be_away_for_a_while(front: Front, way: str, caplog: pytest.LogCaptureFixture) -> None:
    answers = Answers(held=[1, 2])
    async with work(front, answers):
        for entry in (1, 2):
            await ask(front.jobs, entry, conversation=f"c{entry}")
        await answers.until(lambda: len(answers.begun) == 2)
        if way != "cut":
            front.proxy.set_mode("refuse" if way == "refuse" else "hang")
        if way != "hang":
            front.proxy.cut()
        answers.let_go(1)
        await asyncio.sleep(0 if way == "cut" else 2 * TIMES.stalled)
        front.proxy.set_mode("pass")
        await ask(front.jobs, 3, conversation="c1")
        await answers.until(lambda: 3 in answers.ended)
        answers.let_go(2)
        await until_done(front)

    assert {1, 2, 3} == set(answers.ended)
    assert not [record for record in caplog.records if record.name.startswith("bot") and record.exc_info]


async def until_done(front: Front) -> None:
    """Wait until no job is left."""
    is_open = "SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    await until_rows(front.url, f"SELECT 1 WHERE NOT EXISTS ({is_open})")


async def test_a_worker_that_lost_its_notifications_is_told_again(front: Front) -> None:
    answers = Answers()
    async with work(front, answers, times=SLOW_POLL):
        await until_listening(front)
        await run_sql(front.url, f"SELECT pg_terminate_backend(pid) {LISTENING}")
        await until_listening(front)
        await ask(front.jobs, 1, 2, 3)
        await answers.until(lambda: answers.ended == [1, 2, 3])


async def test_a_worker_that_was_taken_for_dead_takes_jobs_again(front: Front) -> None:
    answers = Answers(held=[1])
    async with work(front, answers):
        await ask(front.jobs, 1)
        await answers.until(lambda: answers.begun == [1])
        await run_sql(front.url, "DELETE FROM procrastinate_workers")
        await ask(front.jobs, 2, conversation="d")
        await answers.until(lambda: answers.ended == [2])
        answers.let_go()
        await until_done(front)

    assert answers.begun == [1, 2]  # what a worker is at, its own janitor leaves alone


async def test_a_job_that_was_given_out_as_the_connection_broke_is_found(front: Front) -> None:
    answers = Answers(held=[1])
    async with work(front, answers, at_once=1):
        await ask(front.jobs, 1)
        await answers.until(lambda: answers.begun == [1])
        await ask(front.jobs, 2, conversation="d")
        await run_sql(
            front.url,
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT worker_id FROM procrastinate_jobs "
            "WHERE status = 'doing') WHERE status = 'todo'",
        )
        answers.let_go()
        await answers.until(lambda: answers.ended == [1, 2])


async def test_a_job_whose_workers_die_again_and_again_is_given_up(
    front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    janitor = Janitor(front.queue)
    await ask(front.jobs, 1)
    course = await front.refreshes.ask_for_refresh("one")
    for _ in range(MAX_WORKER_DEATHS):
        await run_sql(front.url, "UPDATE procrastinate_jobs SET status = 'doing' WHERE status = 'todo'")
        await janitor.move_stalled(in_hand=(), worker_id=None)

    assert await run_sql(front.url, "SELECT 1 FROM procrastinate_jobs WHERE status IN ('todo', 'doing')") == []
    assert caplog.text.count("is given up: its workers died 5 times") == 2
    with pytest.raises(IndexerError, match="Indexing one was given up: citebot died each time"):
        await follow(course)


async def test_who_follows_a_refresh_is_told_that_there_is_no_indexer(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queued_jobs, "IDLE_SECONDS", 0.2)
    course = await front.refreshes.ask_for_refresh("one")

    with pytest.raises(IndexerError, match="No indexer is at work, so one waits to be indexed"):
        await follow(course)
    hosted = Hosted()
    async with front.refreshes.work_on_refreshes(hosted.refresh):
        await hosted.until(lambda: hosted.begun == [("one", False)])  # it is made all the same


async def test_an_indexer_that_was_overtaken_writes_no_end_down(front: Front) -> None:
    hosted = Hosted()
    hosted.gate.clear()
    async with front.refreshes.work_on_refreshes(hosted.refresh):
        await front.refreshes.ask_for_refresh("one")
        await hosted.until(lambda: len(hosted.begun) == 1)
        assert await run_sql(front.url, "UPDATE leases SET owner = 'other', token = token + 1 RETURNING name") == [
            ("refresh one",)
        ]
        hosted.gate.set()
        await until_rows(front.url, "SELECT 1 FROM procrastinate_jobs WHERE status = 'succeeded'")

    assert await run_sql(front.url, "SELECT report, failure FROM refreshes") == [(None, None)]


async def test_a_refresh_that_ends_while_postgres_is_away_is_told_when_it_is_back(front: Front) -> None:
    hosted = Hosted(pushed=3)
    hosted.gate.clear()
    async with (
        open_job_queue(front.proxied, times=TIMES) as queue,
        open_refreshes(front.proxied, queue) as refreshes,
        refreshes.work_on_refreshes(hosted.refresh),
    ):
        course = await front.refreshes.ask_for_refresh("one")
        await hosted.until(lambda: len(hosted.begun) == 1)
        front.proxy.set_mode("refuse")
        front.proxy.cut()
        hosted.gate.set()
        await hosted.until(lambda: hosted.indexed == 3)
        front.proxy.set_mode("pass")
        _, report = await follow(course)

    assert report.changed == 3


@pytest.mark.parametrize(("way", "seconds"), [("hang", 2.0), ("refuse", 20.0)])
async def test_a_worker_ends_in_bounded_time_while_postgres_is_away(front: Front, way: Mode, seconds: float) -> None:
    answers, next_answers = Answers(held=[1]), Answers()
    before = asyncio.all_tasks()
    async with expect("a worker ends in bounded time while postgres is away"):
        async with work(front, answers, times=replace(TIMES, shutdown=seconds)):
            await ask(front.jobs, 1)
            await answers.until(lambda: answers.begun == [1])
            front.proxy.set_mode(way)
            if way == "refuse":
                front.proxy.cut()
        front.proxy.set_mode("pass")
        if way == "refuse":
            assert {task for task in asyncio.all_tasks() - before if "job" in task.get_name()} == set()
        async with work(front, next_answers):
            await next_answers.until(lambda: next_answers.ended == [1])


async def test_what_ended_hours_ago_is_deleted(front: Front) -> None:
    answers, janitor = Answers(), Janitor(front.queue)
    async with work(front, answers):
        await ask(front.jobs, 1, 2)
        await until_done(front)
    await ask(front.jobs, 3)

    assert await janitor.delete_old() == 0
    await run_sql(front.url, "UPDATE procrastinate_events SET at = at - interval '2 hours'")
    assert await janitor.delete_old() == 2
    assert await run_sql(front.url, "SELECT count(*) FROM procrastinate_jobs") == [(1,)]


@pytest.mark.parametrize("address", ["postgresql://bot:hunter2@127.0.0.1:1/none", "not an address"])
async def test_a_queue_that_cannot_be_opened_is_a_sentence(address: str) -> None:
    with pytest.raises(InboxError) as raised:
        async with open_job_queue(address):
            pass
    assert "hunter2" not in str(raised.value)


async def test_asking_while_postgres_is_away_is_a_sentence(front: Front) -> None:
    async with open_job_queue(front.proxied) as queue:
        front.proxy.set_mode("refuse")
        front.proxy.cut()
        with pytest.raises(InboxError, match="Postgres"):
            await QueuedAnswerJobs(queue).ask_for_answer(1, "c")
