"""Mentions of a branch, tag, commit or pull request in a question, and words that only look like one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.repositories.names import RepositoryProfile
from bot.repositories.ref_chooser import RefChooser, read_ref, write_ref
from bot.repositories.ref_mentions import find_ref_mentions, remove_mention
from indexer import NamedRef, UnknownRevision
from tests.fakes.refs import FakeRefs

PAGE = "https://github.com/team/shop"
NAMES = ("main", "develop", "master", "staging", "release-2.1", "feature/pay", "v2", "python-3")
TAGS = ("v5.0.2", "v5.1.0", "2.0")
REFS = (
    {f"refs/heads/{name}": f"{number:040x}" for number, name in enumerate(NAMES, 1)}
    | {f"refs/tags/{name}": f"{number:040x}" for number, name in enumerate(TAGS, 100)}
    | {"refs/pull/12/head": "d" * 40}
)


@pytest.fixture
def chooser() -> RefChooser:
    return RefChooser({"shop": FakeRefs(REFS, commits=["0123abc" + "0" * 33])}, {"shop": RepositoryProfile(page=PAGE)})


@pytest.mark.parametrize(
    ("question", "name", "rest"),
    [
        ("on release-2.1, where is the parser?", "release-2.1", "where is the parser?"),
        ("at v5.0.2, who calls charge()?", "v5.0.2", "who calls charge()?"),
        ("in #12, where is the card charged?", "#12", "where is the card charged?"),
        ("what does charge() do in PR 12?", "#12", "what does charge() do?"),
        ("On develop, where is the card charged?", "develop", "where is the card charged?"),
        ("where is the card charged on the develop branch?", "develop", "where is the card charged?"),
        ("where is the card charged on `develop`?", "develop", "where is the card charged?"),
        ("how does it retry at 0123abc?", "0123abc00000", "how does it retry?"),
        (f"where is it retried? {PAGE}/tree/feature/pay", "feature/pay", "where is it retried?"),
        (f"where is it retried in {PAGE}/pull/12/files?", "#12", "where is it retried in?"),
        (f"where is it retried, see [the change]({PAGE}/pull/12)?", "#12", "where is it retried, see?"),
        (f"where is it retried? <{PAGE}/commit/0123abc>", "0123abc00000", "where is it retried?"),
        (f"explain {PAGE}/blob/v5.0.2/pay.py#L3", "v5.0.2", f"explain {PAGE}/blob/v5.0.2/pay.py#L3"),
        (f"what is {PAGE}/releases/tag/v5.1.0 made of?", "v5.1.0", "what is made of?"),
        ("how do I install it in version 2.0?", "2.0", "how do I install it?"),
        ("in the latest version, how do I install it?", "v5.1.0", "how do I install it?"),
    ],
)
async def test_a_ref_that_is_there_is_found_and_left_out(
    chooser: RefChooser, question: str, name: str, rest: str
) -> None:
    choice = await chooser.choose(["shop"], question)

    assert choice.ref is not None
    assert (choice.ref.name, choice.question) == (name, rest)


@pytest.mark.parametrize(
    "question",
    [
        "where is main() defined in main?",
        "what happens on main thread start?",
        "what is logged at develop time?",
        "how does auth work in v2 of the API?",
        "which tests run on python-3.12?",
        "is there a limit of 5 retries at 5?",
        "what changed between v5.0.2 and v5.1.0?",
        "when was charge() added in v5.0.2?",
        "what did 0123abc change in pay.py?",
        "how does #12 relate to the parser?",
        "what is the error-handling branch in the if statement of charge()?",
        "where is it handled in the error-handling branch?",
        "compare release-2.1 and develop",
        "where is it at 10.30?",
        "what is in src/main/v2/api.py?",
        "```\ngit checkout at v5.0.2\n```\nwhat does this do?",
        f"explain {PAGE}/blob/{'c' * 40}/pay.py#L3",
        "on main, where is the parser?",
        "",
    ],
)
async def test_an_ordinary_question_is_about_the_newest_commit(chooser: RefChooser, question: str) -> None:
    choice = await chooser.choose(["shop"], question)

    assert choice.ref is None
    assert not choice.remark


@pytest.mark.parametrize(
    ("question", "nearest"),
    [
        ("where is the parser on release-2.2?", "release-2.1"),
        ("where is the parser at v5.0.9?", "v5.0.2"),
        ("where is the parser on branch feature/pax?", "feature/pay"),
        ("where is the parser in pull request 99?", "no pull request 99 that can be read"),
        (f"where is it? {PAGE}/tree/release-2.2", "release-2.1"),
        ("where is the parser at 9.9.9?", "v5.1.0, v5.0.2"),
        ("on feature/paging, where is the parser?", "feature/pay"),
    ],
)
async def test_a_ref_that_is_clearly_meant_and_not_there_is_said(
    chooser: RefChooser, question: str, nearest: str
) -> None:
    with pytest.raises(UnknownRevision, match=nearest):
        await chooser.choose(["shop"], question)


@pytest.mark.parametrize(
    ("question", "name", "asked"),
    [
        ("what changed between v5.0.2 and v5.1.0 in the parser?", "v5.1.0", None),
        ("compare charge on main and on develop", "develop", None),
        (f"what changed in {PAGE}/compare/v5.0.2...v5.1.0?", None, "what changed between v5.0.2 and v5.1.0?"),
        (
            f"what changed in the parser: [diff]({PAGE}/-/compare/main..feature/pay)",
            "feature/pay",
            "what changed in the parser between main and feature/pay?",
        ),
        (f"<{PAGE}/compare/v5.0.2...main>", None, "what changed between v5.0.2 and main?"),
        (f"explain {PAGE}/compare/v5.0.2...-x", None, "what changed between v5.0.2 and -x?"),
        ("what changed between v5.0.2 and v9.9.9 in the parser?", None, None),
        ("what changed between HEAD and v5.1.0 in the parser?", None, None),
        ("what changed in #12?", None, "what changed between HEAD and #12?"),
        ("What changes in the parser in pull request 12?", None, "what changed in the parser between HEAD and #12?"),
        ("what does PR #12 change in src/parser?", None, "what changed in src/parser between HEAD and #12?"),
        (f"what changed in [it]({PAGE}/pull/12)?", None, "what changed between HEAD and #12?"),
    ],
)
async def test_a_comparison_of_a_part_is_read_at_its_newer_side_and_nothing_stays_there(
    chooser: RefChooser, question: str, name: str | None, asked: str | None
) -> None:
    choice = await chooser.choose(["shop"], question)

    assert (choice.ref.name if choice.ref is not None else None) == name
    assert choice.question == (asked or question)
    assert not choice.is_lasting


async def test_a_comparison_with_one_commit_is_of_what_the_thread_is_about(chooser: RefChooser) -> None:
    before = (await chooser.choose(["shop"], "on release-2.1, where is the parser?")).ref

    choice = await chooser.choose(["shop"], "what changed since v5.0.2?", before=before)

    assert (choice.ref, choice.is_lasting) == (before, True)
    assert (await RefChooser().choose(["shop"], "what changed between v1 and v2?")).ref is None


async def test_a_number_that_is_no_pull_request_is_remarked_upon(chooser: RefChooser) -> None:
    choice = await chooser.choose(["shop"], "where is the bug in #99?")

    assert choice.ref is None
    assert choice.remark == "No pull request #99 can be read here, so this is about the newest commit."


@pytest.mark.parametrize(
    ("question", "absence"),
    [
        ("where is the parser on branch nope?", "shop has no branch 'nope'. The nearest names are "),
        ("on branch developp, where is the parser?", "shop has no branch 'developp'. The nearest names are develop"),
        ("where is the parser in v9.9.9?", "shop has no branch, tag or commit 'v9.9.9'. "),
        ("where is the parser in release-9?", "shop has no branch, tag or commit 'release-9'. The nearest names are "),
    ],
)
async def test_a_ref_that_may_be_meant_and_is_not_there_is_remarked_upon(
    chooser: RefChooser, question: str, absence: str
) -> None:
    choice = await chooser.choose(["shop"], question)

    assert choice.ref is None
    assert choice.question == question
    assert choice.remark.startswith(absence)
    assert choice.remark.endswith(" This is about the newest commit.")


async def test_a_thread_stays_at_its_ref_until_another_is_named(chooser: RefChooser) -> None:
    before = (await chooser.choose(["shop"], "on release-2.1, where is the parser?")).ref
    assert before is not None
    assert read_ref(write_ref(before)) == NamedRef(kind="branch", name="release-2.1", commit=before.commit)

    again = await chooser.choose(["shop"], "and who calls it?", before=read_ref(write_ref(before)))
    assert again.ref == before
    assert (await chooser.choose(["shop"], "on main, who calls it?", before=before)).ref is None
    gone = NamedRef(kind="branch", name="gone", commit="e" * 40)
    assert (await chooser.choose(["shop"], "and who calls it?", before=gone)).ref == gone


async def test_where_only_one_branch_can_be_read_that_is_said(chooser: RefChooser) -> None:
    elsewhere = await RefChooser().choose(["shop"], "where is the parser at v5.0.2?")
    assert elsewhere.remark == "Only the followed branch of shop can be read here, and not 'v5.0.2'."
    assert not (await RefChooser().choose(["shop"], "does it run on v8?")).remark
    several = await chooser.choose(["shop", "web"], "where is the parser at v5.0.2?")
    assert "Several repositories are read at their newest commits." in several.remark


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(["on", "at", "in", "the", "branch", "v5.0.2", "#12", PAGE, "/tree/", "`", "-x", "--", ".."])
        | st.text(max_size=8),
        max_size=12,
    ).map(" ".join)
)
def test_any_text_has_mentions_within_it(text: str) -> None:
    for mention in find_ref_mentions(text, PAGE):
        assert 0 <= mention.start < mention.end <= len(text)
        assert all(not name.startswith("-") for name in mention.names)
        assert isinstance(remove_mention(text, mention), str)
