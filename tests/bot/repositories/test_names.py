"""Repositories that a text names, and words that only look like their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.repositories.names import RepositoryProfile, find_hinted, find_named, find_only_named

HOST = "https://git.example.com"
SIGNS = {
    "shop": RepositoryProfile(page=f"{HOST}/team/shop"),
    "website": RepositoryProfile(page=f"{HOST}/team/site"),
    "api": RepositoryProfile(page=f"{HOST}/team/api"),
    "web": RepositoryProfile(),
    "docs": RepositoryProfile(),
    "shop-api": RepositoryProfile(),
    "billing2": RepositoryProfile(),
}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("in shop, where is send?", ("shop",)),
        ("shop: where is send?", ("shop",)),
        ("[shop] where is send?", ("shop",)),
        ("shop - where is send?", ("shop",)),
        ("where is send in the website repo?", ("website",)),
        ("in api where is send?", ("api",)),
        ("where is it described in the docs?", ("docs",)),
        ("what does shop-api do?", ("shop-api",)),
        ("who wrote team/site tests?", ("website",)),
        (f"why? {HOST}/team/shop/blob/abc/orders.py#L3", ("shop",)),
        ("how do I clone git@git.example.com:team/shop.git?", ("shop",)),
        ("in the repository web, where is send?", ("web",)),
        # What is said at the beginning is what the question is about.
        ("in shop, who calls the website repo?", ("shop",)),
        ("who calls `website` in shop?", ("shop",)),
        # Several that are named alike are asked about together.
        ("across shop and website, where is send?", ("shop", "website")),
        ("for web, api and docs: who calls send?", ("web", "api", "docs")),
        ("how does the website repo call the shop repo?", ("website", "shop")),
    ],
)
def test_a_repository_that_is_named_is_found(text: str, names: tuple[str, ...]) -> None:
    assert find_named(text, SIGNS).repositories == names


@pytest.mark.parametrize(
    "text",
    [
        "where is the api key read?",
        "where are requests counted in web requests?",
        "where is shop.py?",
        "what does shop/orders.py do?",
        "what is in src/shop?",
        "who calls shop_total?",
        "is there an api-key?",
        f"what is {HOST}/team/shopper/x?",
        "mail me at ann@shop",
        "",
    ],
)
def test_a_word_that_looks_like_a_name_is_none(text: str) -> None:
    assert find_named(text, SIGNS).repositories == ()


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("shop: where is send?", "where is send?"),
        ("in the shop repo, where is send?", "where is send?"),
        ("in all repositories where is send?", "where is send?"),
        ("where is send in all repos?", "where is send?"),
        ("where is send across shop and website?", "where is send?"),
        # Without these words there would be no question.
        ("what is in shop?", "what is in shop?"),
        ("shop: send?", "shop: send?"),
        (f"{HOST}/team/shop/blob/a/b.py what is this?", f"{HOST}/team/shop/blob/a/b.py what is this?"),
    ],
)
def test_the_question_is_what_remains(text: str, question: str) -> None:
    assert find_named(text, SIGNS).question == question


@pytest.mark.parametrize(
    "text", ["in all repositories, where is it?", "where is it across our repos?", "in both repos?"]
)
def test_everywhere_means_all_that_are_visible(text: str) -> None:
    read = find_named(text, SIGNS)

    assert read.everywhere
    assert read.repositories == tuple(SIGNS)


def test_what_several_repositories_are_called_names_none() -> None:
    signs = {"red/shop": RepositoryProfile(), "blue/shop": RepositoryProfile(page=f"{HOST}/blue/store")}

    assert find_named("shop: where is send?", signs).repositories == ()
    assert find_named("red/shop: where is send?", signs).repositories == ("red/shop",)
    assert find_named("in store, where is send?", signs).repositories == ("blue/shop",)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("shop", ("shop",)),
        ("the website one, please", ("website",)),
        ("I mean shop and website.", ("shop", "website")),
        ("where is shop?", ()),
        ("yes please", ()),
    ],
)
def test_an_answer_to_which_one_is_nothing_but_names(text: str, names: tuple[str, ...]) -> None:
    assert find_only_named(text, SIGNS) == names


def test_everyday_words_hint_at_nothing() -> None:
    assert find_hinted("how does the shop send its api requests to the web?", SIGNS) == ["shop"]


NAMES = st.sampled_from(sorted(SIGNS))
LETTERS = st.text(alphabet="abcdefgh .,:?!`'\"()[]/-@\n", max_size=60)


@given(LETTERS, NAMES, LETTERS)
def test_a_label_names_its_repository_whatever_follows(before: str, name: str, text: str) -> None:
    read = find_named(f"{name}: where is {text}", SIGNS)

    assert read.repositories[:1] == (name,) or "/" in text


@given(st.text(alphabet="abcdefghijklmnop ", max_size=80))
def test_words_without_a_name_name_nothing(text: str) -> None:
    assert find_named(text, {"xyz": RepositoryProfile(), "xyz-2": RepositoryProfile()}).repositories == ()
