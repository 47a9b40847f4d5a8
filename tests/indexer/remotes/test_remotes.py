"""Configured remotes and their addresses: what is fetched from, what is the same, what git's complaints mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from indexer.errors import BadAddress
from indexer.remotes.addresses import Address, format_address, is_same_repository, redact_address
from indexer.remotes.fetch_errors import describe_redirect, make_branch_gone_error, make_fetch_error
from indexer.remotes.remote_repository import RemoteRepository

SHOP = RemoteRepository(name="shop", url="https://git.example/team/shop.git", token=SecretStr("5ecret"))


@pytest.mark.parametrize(
    "other",
    [
        "https://git.example/team/shop.git",
        "https://git.example:443/Team/Shop/",
        "http://git.example/team/shop",
        "ssh://git@git.example:7999/team/shop.git",
        "git@git.example:team/shop.git",
        "https://somebody@git.example/team/shop",
    ],
)
def test_addresses_of_one_repository_have_one_key(other: str) -> None:
    assert Address.parse(other).key == "git.example/team/shop"
    assert is_same_repository(other, SHOP.url)


@pytest.mark.parametrize(
    "other", ["https://git.example:8443/team/shop", "https://other.example/team/shop", "https://git.example/team/shops"]
)
def test_addresses_of_other_repositories_have_other_keys(other: str) -> None:
    assert not is_same_repository(other, SHOP.url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "-oProxyCommand=touch x",
        "ext::sh -c touch% x",
        "git://git.example/team/shop",
        "https://git.example",
        "https://-oProxyCommand=x/team",
        "ssh://-oProxyCommand=x/team",
        "-x@git.example:team",
        "https://git.example:port/team",
        "https://[::1/team",
        "https://git.example/team/shop?x=1",
        "https://git.example/team\nshop",
        "team/shop",
    ],
)
def test_what_nothing_is_fetched_from_is_refused(url: str) -> None:
    with pytest.raises(BadAddress):
        RemoteRepository(name="shop", url=url)


def test_a_password_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadAddress, match="contains a password") as caught:
        RemoteRepository(name="shop", url="https://ada:hunter2@git.example/team/shop")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"token": SecretStr("two\nlines")}, "not a single word"),
        ({"token": SecretStr("x" * 5_000)}, "not a single word"),
        ({"token": SecretStr("x"), "url": "git@git.example:team/shop"}, "not fetched over HTTPS"),
        ({"token": SecretStr("x"), "url": "http://git.example/team/shop"}, "sent unencrypted"),
        ({"token": SecretStr("x"), "user": "a\nb"}, "contains unprintable characters"),
        ({"branch": "--upload-pack=x"}, "not a valid branch name"),
        ({"branch": "a:b"}, "not a valid branch name"),
        ({"branch": ""}, "not a valid branch name"),
        ({"name": "../up"}, "not a valid name for a repository"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(options: dict[str, object], words: str) -> None:
    with pytest.raises(BadAddress, match=words):
        RemoteRepository(**({"name": "shop", "url": "https://git.example/team/shop"} | options))  # type: ignore[arg-type]


def test_a_token_signs_in_under_the_name_that_the_host_wants() -> None:
    def user(url: str, **options: object) -> str:
        remote = RemoteRepository(name="shop", url=url, token=SecretStr("t"), **options)  # type: ignore[arg-type]
        return (remote.sign_in or ("", ""))[0]

    assert user("https://github.com/team/shop") == "x-access-token"
    assert user("https://bitbucket.org/team/shop") == "x-token-auth"
    assert user("https://deployer@git.example/team/shop") == "deployer"
    assert user("https://git.example/team/shop", user="ci") == "ci"


def test_links_lead_to_the_page_of_a_known_host_or_to_the_configured_one() -> None:
    assert RemoteRepository(name="shop", url="git@github.com:team/shop.git").page == "https://github.com/team/shop"
    assert RemoteRepository(name="shop", url=SHOP.url).page is None
    assert (
        RemoteRepository(name="shop", url=SHOP.url, web_url="https://w.example/shop").page == "https://w.example/shop"
    )


def test_a_clone_belongs_to_its_name_and_address() -> None:
    names = {
        RemoteRepository(name=name, url=url).folder_name
        for name in ("shop", "shop/2", "shop-2")
        for url in (SHOP.url, "https://git.example/team/Other")
    }

    assert len(names) == 6
    assert not any("/" in name for name in names)
    assert RemoteRepository(name="shop", url=SHOP.url, branch="main").folder_name == SHOP.folder_name


@given(user=st.text("abcXYZ09-_.%:", min_size=1), rest=st.text())
def test_credentials_before_a_host_are_never_shown(user: str, rest: str) -> None:
    assert "5ecret" not in format_address(f"https://{user}5ecret@git.example/{rest}")
    assert "5ecret" not in redact_address(f"fatal: 'https://{user}:5ecret@git.example/' {rest.replace('5ecret', '')}")


@pytest.mark.parametrize(
    ("complaint", "state"),
    [
        ("fatal: could not read Username for 'https://git.example': terminal prompts disabled", "auth refused"),
        ("remote: HTTP Basic: Access denied\nfatal: Authentication failed for 'https://git.example/'", "auth refused"),
        ("git@git.example: Permission denied (publickey).\nfatal: Could not read from remote", "auth refused"),
        ("ERROR: Repository not found.\nfatal: Could not read from remote repository.", "not found"),
        ("remote: Repository not found.\nfatal: repository 'https://git.example/' not found", "not found"),
        ("ERROR: The project you were looking for could not be found.", "not found"),
        ("fatal: '/srv/shop' does not appear to be a git repository", "not found"),
        ("Host key verification failed.\nfatal: Could not read from remote repository.", "host not trusted"),
        ("fatal: unable to access 'https://x/': SSL certificate problem: self-signed certificate", "host not trusted"),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", "host down"),
        ("fatal: unable to access 'https://x/': Failed to connect to x port 443: Connection refused", "host down"),
        ("ssh: connect to host x port 22: No route to host\nfatal: Could not read", "host down"),
        ("error: RPC failed; curl 18 transfer closed\nfatal: early EOF", "host down"),
        ("fatal: unable to access 'https://x/': Operation too slow. Less than 100 bytes/sec", "host down"),
        ("fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output", "disk full"),
        ("fatal: couldn't find remote ref refs/heads/main", "branch gone"),
        ("fatal: unable to update url base from redirection:\n  asked for: x\n   redirect: y", "moved"),
        ("fatal: protocol error: bad line length character", "failed"),
        ("", "failed"),
    ],
)
def test_what_git_complains_of_is_a_state(complaint: str, state: str) -> None:
    error = make_fetch_error(SHOP, complaint)

    assert error.state == state
    assert str(error).startswith(("shop (https://git.example/team/shop.git) ", "There is no"))


@given(st.text())
def test_no_complaint_shows_the_token_or_more_than_a_line(noise: str) -> None:
    text = str(make_fetch_error(SHOP, f"{noise}5ecret{noise} https://u:p@x/\nfatal: {noise}5ecret"))

    assert "5ecret" not in text
    assert "u:p@" not in text
    assert "\n" not in text
    assert len(text) < 500


def test_what_a_host_itself_says_is_not_repeated() -> None:
    assert "click" not in str(make_fetch_error(SHOP, "remote: click here\nwarning: click\nfatal: odd"))


def test_a_long_list_of_branches_is_cut() -> None:
    text = str(make_branch_gone_error(SHOP, "main", [f"b{number}" for number in range(30)]))

    assert "Existing branches: b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 and 20 more." in text


def test_an_address_redirected_to_is_shown_without_its_secrets() -> None:
    remark = describe_redirect(SHOP, "warning: redirecting to https://u:p@new.example/shop.git/?token=t\n")

    assert "has moved to https://new.example/shop.git/. " in remark
    assert describe_redirect(SHOP, "warning: redirecting to https://git.example/team/shop/") == ""
    assert describe_redirect(SHOP, "warning: something else") == ""
