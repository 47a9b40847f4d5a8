"""Fronts, answerers and indexers as real processes: what comes in at one is answered by another, whatever dies."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bot.cli.doctor import check_cluster
from bot.errors import SettingsError
from bot.serving.cluster import assign_duties
from bot.settings import Settings
from tests.bot.clusters import Cluster, Member, share, wait_until
from tests.fakes.postgres import make_database
from tests.fakes.repositories import GitRepo
from tests.fakes.slack import FakeSlack
from tests.forks import ForkServer
from tests.waiting import LIMIT_SECONDS

pytestmark = pytest.mark.needs("postgres")


@pytest.fixture
def repository(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    made.write("shop/dates.py", 'def parse_date(text):\n    """Read a date."""\n    return text.split("-")\n')
    made.commit("Sell things")
    return made


@pytest_asyncio.fixture
async def cluster(forks: ForkServer, repository: GitRepo, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with make_database() as url, FakeSlack() as fake:
        made = Cluster(fake, forks, share(url, repository, tmp_path), tmp_path)
        try:
            yield made
        finally:
            await made.close()


@pytest.mark.parametrize("role", ["front", "answer", "index"])
def test_a_part_needs_what_is_shared(role: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"needs DATABASE_URL.*SEGMENTS_URL"):
        assign_duties(role, Settings.load({"CITEBOT_HOME": str(tmp_path)}, tmp_path))  # type: ignore[arg-type]


def test_an_object_store_that_nobody_could_share_is_refused(tmp_path: Path) -> None:
    variables = {"CITEBOT_HOME": str(tmp_path), "SEGMENTS_URL": f"file://{tmp_path}"}
    with pytest.raises(SettingsError, match="needs DATABASE_URL"):
        assign_duties("all", Settings.load(variables, tmp_path))


async def test_a_question_is_taken_in_by_one_process_and_answered_by_another(
    cluster: Cluster, repository: GitRepo
) -> None:
    indexer = await cluster.start("index")
    await cluster.start("front")
    answerer = await cluster.start("answer")
    question = await cluster.ask("where is parse_date defined?")
    answer = await cluster.wait_for_answer(question, "shop/dates.py")
    assert len(cluster.read(question)) == 1
    await check_figures(answerer, indexer)

    repository.write("shop/money.py", "def round_price(cents):\n    return cents // 100\n")
    repository.commit("Count money")
    pushed = await cluster.ask("where is round_price defined?")
    await cluster.fake.until(lambda: cluster.read(pushed))
    await cluster.fake.press(cluster.channel, answer.ts, "citebot_rate", user=cluster.ann, value=_value(answer.blocks))
    await cluster.fake.until(lambda: cluster.fake.ephemeral(cluster.channel, cluster.ann), within=LIMIT_SECONDS)


async def check_figures(answerer: Member, indexer: Member) -> None:
    """Fetch the metrics of processes after the first answer."""
    figures = await answerer.read_figures()
    assert figures['citebot_index_versions_behind{repository="shop"}'] == 0
    assert figures['citebot_index_lag_seconds{repository="shop"}'] == 0
    assert figures["citebot_segments_cache_misses_total"] >= 1
    assert figures["citebot_segments_cache_fetched_bytes_total"] > 0
    assert figures["citebot_segments_cache_bytes"] > 0
    assert figures['citebot_postgres_pool_connections{pool="messages"}'] >= 1
    assert figures['citebot_postgres_pool_in_use{pool="jobs"}'] >= 0
    assert figures['citebot_postgres_pool_waiting{pool="jobs"}'] == 0
    assert 'citebot_queue_depth{role="answer"}' in figures

    theirs = await indexer.read_figures()
    assert theirs['citebot_lease_held{name="watcher"}'] == 1
    assert "citebot_segments_cache_bytes" not in theirs  # it answers nobody
    _, record = await answerer.get("/readyz")
    assert record["cluster"]["lags"] == [{"repository": "shop", "versions": 0, "seconds": 0.0}]
    assert set(record["cluster"]["pools"]) == {"jobs", "messages"}


@pytest.mark.exhaustive
async def test_a_question_is_answered_whose_front_was_killed_before_it_asked_for_a_job(cluster: Cluster) -> None:
    """The message is stored, and acknowledged; no job tells of it, so the answerers look for it themselves."""
    for role in ("index", "answer"):
        await cluster.start(role)
    front = await cluster.start("front", point="job<")
    await cluster.fake.connected()
    question = await cluster.ask("where is parse_date defined?")

    assert await cluster.end(front, 0) == -signal.SIGKILL
    await cluster.wait_for_answer(question, "shop/dates.py")
    assert len(cluster.read(question)) == 1


@pytest.mark.exhaustive
async def test_what_people_do_at_a_front_reaches_the_answerer(cluster: Cluster) -> None:
    for role in ("index", "front", "answer"):
        await cluster.start(role)
    fake, channel, ann = cluster.fake, cluster.channel, cluster.ann
    await fake.slash("/citebot", "where is parse_date defined?", channel=channel, user=ann)
    await fake.until(
        lambda: any("shop/dates.py" in seen.text for seen in fake.ephemeral(channel, ann)), within=LIMIT_SECONDS
    )
    assert fake.calls_of("chat.postEphemeral") == []

    question = await cluster.ask("where is the parser of prices?")
    await cluster.wait_for_answer(question)
    await fake.edit(channel, question, f"<@{fake.bot_user}> where is parse_date defined?")
    await cluster.wait_for_answer(question, "shop/dates.py")
    assert len(cluster.read(question)) == 1

    await fake.delete(channel, question)
    await fake.until(lambda: not cluster.read(question), within=LIMIT_SECONDS)


@pytest.mark.exhaustive
async def test_a_question_about_a_branch_is_answered_where_only_its_indexer_has_the_repository(
    cluster: Cluster, repository: GitRepo
) -> None:
    repository.branch("release-2")
    repository.write("shop/money.py", "def round_price(cents):\n    return cents // 100\n")
    repository.commit("Count money")
    repository.checkout("main")
    for role in ("index", "front", "answer"):
        await cluster.start(role)
    await cluster.wait_for_answer(await cluster.ask("where is parse_date defined?"), "shop/dates.py")

    question = await cluster.ask("on branch release-2, where is round_price defined?")
    answer = await cluster.wait_for_answer(question, "shop/money.py")
    assert "release-2" in answer.text  # which the line about freshness names
    await cluster.ask("show me its source", question)
    await cluster.fake.until(lambda: len(cluster.read(question)) == 2, within=LIMIT_SECONDS)
    await cluster.wait_for_answer(question, "cents // 100")

    unknown = await cluster.ask("on branch release-3, where is round_price defined?")
    await cluster.fake.until(
        lambda: any("no branch 'release-3'" in seen.text for seen in cluster.read(unknown)), within=LIMIT_SECONDS
    )


async def test_the_probes_of_a_process_tell_its_role_the_line_and_the_leases(cluster: Cluster) -> None:
    front = await cluster.start("front")
    await cluster.fake.connected()
    question = await cluster.ask("where is parse_date defined?")
    await cluster.fake.until(lambda: cluster.read(question), within=LIMIT_SECONDS)

    async def waits() -> bool:
        return bool((await front.get("/readyz"))[1]["cluster"]["waiting"])

    await wait_until(waits)
    _, record = await front.get("/readyz")
    assert record["cluster"]["role"] == "front"
    assert record["cluster"]["held"] == ["platform slack"]
    assert list(record["cluster"]["leases"]) == ["platform slack"]
    _, figures = await front.get("/metrics")
    assert 'citebot_queue_depth{role="front"} 1.0' in figures
    assert 'citebot_lease_held{name="platform slack"} 1.0' in figures


async def test_doctor_checks_what_processes_share(repository: GitRepo, tmp_path: Path) -> None:
    async with make_database() as url:
        settings = Settings.load({**share(url, repository, tmp_path), "CITEBOT_HOME": str(tmp_path / "home")}, tmp_path)
        found = [finding.what for finding in await check_cluster(settings)]

    assert [what.split(" works")[0] for what in found] == [
        "The job queue in Postgres",
        "Messages that wait for a process: 0. Leases: none is held.",
        "The object store of SEGMENTS_URL",
    ]


async def test_a_question_that_waits_for_an_answerer_is_stopped_by_its_front(cluster: Cluster) -> None:
    await cluster.start("front")
    question = await cluster.ask("where is parse_date defined?")
    await cluster.fake.until(lambda: cluster.read(question), within=LIMIT_SECONDS)
    await cluster.ask("stop", question)
    await cluster.fake.until(
        lambda: [seen.text for seen in cluster.read(question)] == ["Stopped, as you asked."],
        within=LIMIT_SECONDS,
    )


@pytest.mark.exhaustive
async def test_another_front_takes_over_when_one_is_killed(cluster: Cluster) -> None:
    await cluster.start("index")
    first = await cluster.start("front")
    await cluster.fake.connected()
    await cluster.start("front")
    await cluster.start("answer")
    await cluster.end(first, signal.SIGKILL)
    await cluster.fake.until(lambda: len(cluster.fake.socket.connections) > 0, within=LIMIT_SECONDS)

    await cluster.wait_for_answer(await cluster.ask("where is parse_date defined?"), "shop/dates.py")


def _value(blocks: list[dict[str, object]]) -> str:
    """What the button for a good answer carries."""
    elements = [element for block in blocks for element in block.get("elements", [])]  # type: ignore[attr-defined]
    rating = next(element for element in elements if element.get("action_id") == "citebot_rate")
    return str(rating["positive_button"]["value"])
