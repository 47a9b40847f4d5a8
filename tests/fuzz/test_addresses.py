"""Addresses of repositories and of lines in them, as operators, hosts and payloads write them."""

from __future__ import annotations

from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from indexer.errors import BadAddress
from indexer.git.permalinks import find_web_base, make_permalink
from indexer.git.safe_paths import is_safe_path
from indexer.remotes.addresses import Address, is_same_repository
from indexer.types import Location
from tests.fuzz.texts import among, halves

written = (
    among(
        (
            "https://", "http://", "ssh://", "git+ssh://", "file://", "ext::", "git@", "ann:pw@",
            "git.example.com", "github.com", "www.github.com", "[::1]", ":8443", ":99999", ":", "/",
            "team", "shop", ".git", "..", "%2e%2e", "?q=1", "#f", "-", "--upload-pack=x", " ", "\\",
            "~",
        ),
        most=9,
    )
    | halves
)  # fmt: skip


@given(written)
def test_an_address_is_understood_or_refused_without_its_password(url: str) -> None:
    try:
        address = Address.parse(url)
    except BadAddress as error:
        assert "ann:pw@" not in str(error)
        return
    assert address.scheme in {"https", "http", "ssh", "file"}
    assert not url.startswith("-")
    assert not (address.host or "x").startswith("-")
    assert address.host or address.scheme == "file"
    assert address.path.strip("/")
    assert Address.parse(url).key == address.key


@given(written, written)
def test_two_addresses_lead_to_one_repository_or_they_do_not(one: str, other: str) -> None:
    assert is_same_repository(one, other) == is_same_repository(other, one)


@given(written)
def test_a_page_on_the_web_is_on_the_host_that_was_named(url: str) -> None:
    base = find_web_base(url)

    if base is not None:
        parts = urlsplit(base)
        assert parts.scheme in {"http", "https"}
        assert parts.username is None
        assert parts.hostname is not None
        assert ".." not in parts.path.split("/")


@given(
    st.sampled_from(
        [
            "https://github.com/team/shop",
            "https://gitlab.example.org/a/b/c",
            "https://bitbucket.org/a/b",
            "https://x.example/y",
        ]
    ),
    among(("src/", "a.py", "README.md", " ", "?", "#", "%", "&", "\\", '"', "<", ")", "](", "é", "//"), most=6),
    st.integers(1, 10**6),
    st.integers(0, 100),
)
def test_a_permalink_is_one_word_below_its_project(web_url: str, path: str, start: int, more: int) -> None:
    location = Location(path=f"x{path}", start_line=start, end_line=start + more)
    link = make_permalink(web_url, "a" * 40, location)

    if link is None:
        assert not is_safe_path(location.path)
        return
    assert link.startswith(f"{web_url}/")
    assert not set(link) & set(' \\"<>)(\n`')
    assert link.count("#") == 1
