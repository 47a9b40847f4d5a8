"""Safety: whatever is in the text, nobody is pinged and nothing leads elsewhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.markdown.formatting import is_allowed_link, neutralize
from bot.markdown.splitting import read_lines
from tests.work import find_steepness

HOSTS = frozenset({"git.example.com", "code.example.com:8443"})
GOOD = "https://git.example.com/shop/blob/abc/src/a.py#L1-L2"
PINGS = ["@everyone", "@here", "@channel", "<!channel>", "<!here|here>", "<@U123>", "<@&1>", "<@!1>", "<#C1>",
         "<!subteam^S1>", "</ask:12>"]  # fmt: skip
LINKS = ["[x](https://evil.example/a)", "https://evil.example/?q=1", "<https://evil.example>", "www.evil.example",
         "![i](https://evil.example/i.png)", "<https://evil.example|click>", "[x](javascript:alert(1))",
         "[https://git.example.com](https://evil.example)", f"[a.py:1]({GOOD})", GOOD, f"<{GOOD}>"]  # fmt: skip
FRAGMENTS = st.one_of(
    st.sampled_from(
        [*PINGS, *LINKS, "`", "``", "```", "~~~", "\n", "\n```\n", " ", "[", "](", ")", "<", ">", "\x00", "0"]
    ),
    st.text(max_size=12),
)
MARKDOWN = st.lists(FRAGMENTS, max_size=30).map("".join)
CODE = re.compile(r"(?<!`)(`+)(?!`)(?:.*?)(?<!`)\1(?!`)")
LINK = re.compile(r"\[[^\[\]\n]*\]\(([^()\n]*)\)")
PING = re.compile(r"@(everyone|here|channel)\b|<[!@#/]", re.IGNORECASE)
URL = re.compile(r"(?:https?://|www\.)[^\s<>`]+", re.IGNORECASE)


def outside_code(text: str) -> str:
    """What a platform does not show as code: all but closed blocks, and spans that end on their line."""
    kept: list[str] = []
    block: list[str] = []
    for line in read_lines(text):
        if line.in_code:
            block = [] if line.fence is None else [*block, line.text]
        else:
            kept.append(CODE.sub(" ", line.text))
    return "".join(kept + block)


@given(MARKDOWN)
@example("[`@here`](https://evil.example)@here")
def test_no_ping_is_left_outside_code(text: str) -> None:
    assert not PING.search(outside_code(neutralize(text, HOSTS)))


@given(MARKDOWN)
def test_every_address_outside_code_leads_to_an_allowed_host(text: str) -> None:
    found = URL.findall(LINK.sub(" ", outside_code(neutralize(text, HOSTS))))

    assert [url for url in found if not is_allowed_link(url.rstrip(".,;:!?'\")]}*_"), HOSTS)] == []


@given(MARKDOWN)
@example("[https://git.example.com](https://evil.example)``[x](https://evil.example)``")
def test_no_target_of_a_link_leads_elsewhere(text: str) -> None:
    targets = LINK.findall(outside_code(neutralize(text, HOSTS)))

    assert [target for target in targets if not is_allowed_link(target, HOSTS)] == []


@pytest.mark.parametrize(
    "text",
    [
        "[https](x)://evil.example",
        "https://git.example.com[.evil.example](x)",
        "[www](x).evil.example",
        "[[x](y)](https://evil.example)",
        "<https://evil.example|https://evil.example/a>",
    ],
)
def test_what_is_left_of_links_makes_up_no_address(text: str) -> None:
    found = URL.findall(outside_code(neutralize(text, HOSTS)))

    assert [url for url in found if not is_allowed_link(url, HOSTS)] == []


@pytest.mark.parametrize("target", ["x", "https://evil.example", GOOD])
def test_links_nested_without_end_are_taken_apart(target: str) -> None:
    def nest(depth: int) -> str:
        return neutralize("[" * depth + "a" + f"]({target})" * depth, HOSTS)

    text = nest(5_000)

    assert find_steepness(lambda length: nest(length // 10)) == ""
    assert LINK.findall(text) in ([], [GOOD])
    assert "https://evil.example" not in outside_code(text)


def test_angles_nested_without_end_are_taken_apart() -> None:
    text = neutralize("<https://evil.example|" * 50 + "a" + ">" * 50, HOSTS)

    assert not re.search(r"<https", text)
    assert "https://evil.example" not in outside_code(text)


def test_what_is_left_of_links_makes_up_no_ping() -> None:
    assert not PING.search(neutralize("@[everyone](x) <[@U1](y)> [<](z)!channel>", HOSTS))


@given(st.text("abc .,\n*_#-|üé🎉", max_size=300))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert neutralize(text, HOSTS) == text


@pytest.mark.parametrize("ping", PINGS)
def test_a_ping_is_broken_apart_but_still_to_be_read(ping: str) -> None:
    assert neutralize(f"hi {ping}!", HOSTS).replace("\u200b", "") == f"hi {ping}!"
    assert neutralize(f"hi {ping}!", HOSTS) != f"hi {ping}!"


@pytest.mark.parametrize(
    "code", ["`@everyone`", "``<!channel> ` ``", "```\n<@U1> https://evil.example\n```\n", "`www.evil.example`"]
)
def test_code_stays_as_it_is(code: str) -> None:
    assert neutralize(code, HOSTS) == code


def test_a_code_block_that_is_left_open_is_closed() -> None:
    assert neutralize("```\n@everyone", HOSTS) == "```\n@everyone\n```"
    assert neutralize("```\nmore to co", HOSTS, growing=True) == "```\nmore to co"


def test_a_span_that_is_never_closed_is_not_trusted_to_be_code() -> None:
    assert "@here" not in neutralize("`@here", HOSTS)
    assert "`" not in neutralize("`@here", HOSTS)


@pytest.mark.parametrize("link", [f"[a.py:1]({GOOD})", GOOD, f"<{GOOD}>", f"See {GOOD}."])
def test_links_to_allowed_hosts_stay(link: str) -> None:
    assert neutralize(link, HOSTS) == link


@pytest.mark.parametrize(
    ("link", "left"),
    [
        ("[the docs](https://evil.example/?q=secret)", "the docs"),
        ("![pixel](https://git.example.com/x.png)", "pixel"),
        ("<https://evil.example|click>", "click"),
        ("see https://evil.example/a.", "see `https://evil.example/a`."),
        ("www.evil.example", "`www.evil.example`"),
        ("[run](javascript:x)", "run"),
    ],
)
def test_links_elsewhere_become_text(link: str, left: str) -> None:
    assert neutralize(link, HOSTS) == left


@pytest.mark.parametrize(
    "address",
    [
        "https://git.example.com@evil.example/",
        "https://git.example.com.evil.example/",
        "https://git.example.com:8080/",
        "https://git.example.com\\@evil.example",
        "ftp://git.example.com/",
        "//git.example.com/",
        "https://gıt.example.com/",
        "https://[git.example.com",
        "https://git.example.com:x/",
    ],
)
def test_an_address_that_only_looks_allowed_is_not(address: str) -> None:
    assert not is_allowed_link(address, HOSTS)


def test_a_named_port_is_allowed() -> None:
    assert is_allowed_link("https://code.example.com:8443/a", HOSTS)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("````py\na ``` b\n````", "```py\na ``\u200b` b\n```"),
        ("```\n```", "```\n\u200b\n```"),
        ("      ```\na\n      ```", "```\na\n```"),
        ("```python title=x.py\na", "```python\na\n```"),
        ("```` a ``` b ````", "``` a ``\u200b` b ```"),
        ("~~~\na\n~~~", "~~\u200b~\na\n~~\u200b~"),
    ],
)
def test_code_is_written_as_every_platform_reads_it(text: str, written: str) -> None:
    assert neutralize(text, HOSTS) == written
