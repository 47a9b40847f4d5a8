"""History as a field of the ranking: commits speak of the files they touched, where there are enough of them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from indexer.git.repository import Repository
from indexer.index import CodeIndex
from indexer.search.commit_history import CommitHistory, HistoryIndex, make_empty_history
from indexer.search.ranking import RankingWeights
from indexer.search.snapshot import Snapshot
from indexer.types import CommitMessage
from tests.fakes.repositories import GitRepo
from tests.indexer.search.test_ranking import PROJECT, found, grown

PATHS = tuple(PROJECT)
WORDS = ("throttle", "gateway", "retry", "session", "waits")
messages = st.builds(
    CommitMessage,
    subject=st.lists(st.sampled_from(WORDS), min_size=1).map(" ".join),
    body=st.lists(st.sampled_from(WORDS)).map(" ".join),
    paths=st.lists(st.sampled_from((*PATHS, "gone.py")), min_size=1, unique=True).map(tuple),
)


def make_message(subject: str, *paths: str, body: str = "") -> CommitMessage:
    return CommitMessage(subject=subject, body=body, paths=paths)


def make_history(*newest: CommitMessage, others: int = 1_000) -> CommitHistory:
    """Some commits, and so many before them that speak of nothing in particular."""
    return make_empty_history().prepend([*newest, *[make_message("tidy up", "http/session.py")] * others])


def make_snapshot(history: CommitHistory) -> Snapshot:
    return replace(grown(None, PROJECT), history=history)


def list_facts(history: CommitHistory) -> list[object]:
    """What each commit says and touched, by words and paths."""
    words, paths = history.words.words(), history.paths.words()
    starts = history.touched.starts.tolist()
    touched = [
        sorted(paths[number] for number in history.touched.terms[start:end].tolist()) for start, end in pairwise(starts)
    ]
    entries = zip(history.terms.term_of_entries().tolist(), history.terms.docs, history.terms.counts, strict=True)
    return [touched, sorted((words[term], int(doc), int(count)) for term, doc, count in entries)]


def test_a_file_is_found_by_what_a_commit_said_of_it() -> None:
    history = make_history(make_message("Throttle requests to the gateway", "http/session.py"))

    by_words = RankingWeights(vector=0.0)  # vectors have an opinion on words that no file holds

    assert found(make_snapshot(history), "gateway throttle", by_words)[0] == "http/session.py"
    assert found(make_snapshot(make_history()), "gateway throttle", by_words) == []


def test_what_code_says_counts_more_than_what_a_commit_said() -> None:
    history = make_history(make_message("Add a retry policy", "http/session.py"))

    assert found(make_snapshot(history), "RetryPolicy")[0] == "http/retry.py"


def test_a_history_of_few_commits_changes_nothing() -> None:
    history = make_history(make_message("Throttle requests to the gateway", "http/session.py"), others=250)
    question = "which gateway does the retry policy throttle?"

    assert HistoryIndex(history, PATHS).trust == 0
    assert found(make_snapshot(history), question) == found(grown(None, PROJECT), question)


def test_the_subject_of_a_commit_counts_more_than_its_body() -> None:
    history = make_history(
        make_message("Something else", "http/session.py", body="the gateway"),
        make_message("The gateway", "http/retry.py"),
    )
    scores = HistoryIndex(history, PATHS).score_files(["gateway"])

    assert scores[PATHS.index("http/retry.py")] > scores[PATHS.index("http/session.py")] > 0


def test_files_that_are_gone_are_not_found() -> None:
    history = make_history(make_message("The gateway", "gone.py"))
    index = HistoryIndex(history, PATHS)

    assert not index.score_files(["gateway"]).any()
    assert not index.score_commits(["gateway"]).any()


def test_only_so_many_of_the_newest_commits_are_kept_with_their_words() -> None:
    history = make_history(make_message("oldest", "http/retry.py"), others=0)
    history = history.prepend([make_message("last", "http/session.py")] * 6_000)

    assert history.terms.documents == 6_000
    assert history.words.words() == ["last"]
    assert history.paths.words() == ["http/session.py"]


@given(st.lists(messages, max_size=12), st.integers(0, 12))
def test_a_history_read_bit_by_bit_is_the_same_as_one_read_at_once(newest: list[CommitMessage], cut: int) -> None:
    whole = make_empty_history().prepend(newest)
    grown_history = make_empty_history().prepend(newest[cut:]).prepend(newest[:cut])

    assert list_facts(grown_history) == list_facts(whole)
    for score in ("score_files", "score_commits"):
        one, other = (getattr(HistoryIndex(each, PATHS), score)(WORDS).tolist() for each in (whole, grown_history))
        assert [round(each, 9) for each in one] == [round(each, 9) for each in other]


def test_a_saved_history_is_read_back(tmp_path: Path) -> None:
    history = make_history(make_message("Throttle", "http/session.py", body="the gateway"))
    history.save(tmp_path)

    assert list_facts(CommitHistory.load(tmp_path)) == list_facts(history)


def import_commits(repo: GitRepo, count: int) -> None:
    """Commit so many changes of one file at once."""
    stream = "".join(
        f"commit refs/heads/main\ncommitter A <a@example.org> {1_700_001_000 + n} +0000\ndata 5\ntidy\n"
        f"{'from refs/heads/main^0' if not n else ''}\nM 644 inline tidy.py\ndata {len(str(n))}\n{n}\n"
        for n in range(count)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repo.root, input=stream.encode(), check=True)
    repo.git("reset", "--quiet", "--hard")


async def test_a_refresh_adds_what_was_committed_since(tmp_path: Path) -> None:
    repo = GitRepo(tmp_path / "shop")
    repo.write("pay.py", "def pay():\n    pass\n")
    repo.commit("Pay for orders")
    import_commits(repo, 700)  # fewer, and all would be read again
    index = await CodeIndex.open(repo.root, home=tmp_path / "home")
    try:
        await index.refresh()
        repo.write("ship.py", "def ship():\n    pass\n")
        repo.commit("Ship what was paid")
        await index.refresh()
        snapshot = (await index.pin()).snapshot
    finally:
        await index.aclose()

    with Repository.open(repo.root) as repository:
        whole = make_empty_history().prepend(repository.commit_messages(repo.sha()) or [])
    assert list_facts(snapshot.history) == list_facts(whole)
    assert snapshot.history.terms.documents == 702
