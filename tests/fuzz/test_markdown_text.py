"""Markdown on its way to people: made safe, cut into messages, quoted."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agent.answers.answer_parts import strip_doc_markup
from agent.text.escaping import (
    format_code_block,
    format_code_span,
    format_quote,
    replace_control_characters,
    to_one_line,
)
from bot.markdown.formatting import break_pings, is_allowed_link, neutralize
from bot.markdown.formatting import replace_control_characters as visible_markdown
from bot.markdown.formatting import to_one_line as shown_on_one_line
from bot.markdown.splitting import count_units, read_lines, split_markdown
from tests.fuzz.texts import among

HOSTS = ("git.example.com", "docs.example.com:8443")
markdown = among(
    (
        "@everyone", "@here", "<@123>", "<!channel>", "<@&9>", "<#4>", "</cmd:1>", "`", "``", "```",
        "~~~\n", "```python\n", "\n```\n", "[", "](", ")", "!", "[a](https://git.example.com/x)",
        "[a](https://evil.example/x)", "<https://evil.example>", "https://git.example.com/x",
        "http://evil.example/?q=", "www.evil.example", "javascript:alert(1)", "\\", "|", "| a | b |\n",
        "- ", "> ", "# ", "**", "_", "*", "[1]", "[1]: https://evil.example\n", "def f():\n    pass\n",
        "word ", "\n\n",
    )
)  # fmt: skip
PING = re.compile(r"@(?:everyone|here|channel)\b|<[!@#/]", re.IGNORECASE)
# How Discord finds code: a block begins and ends at three backticks, wherever they stand.
DISCORD_BLOCK = re.compile(r"```(?:[a-z0-9_+\-.#]+?\n)?\n*[^\n][\s\S]*?\n*```", re.IGNORECASE)
DISCORD_SPAN = re.compile(r"(?<!`)(`+)(?!`)[\s\S]*?[^`]\1(?!`)")
LINK = re.compile(r"\[[^\[\]\n]+\]\(<?((?:[a-z][a-z0-9+.-]*:|//|www\.)[^()\s>]*)>?\)", re.IGNORECASE)
URL = re.compile(r"(?:https?://|www\.)[^\s<>()\[\]`]+", re.IGNORECASE)


def seen_in_discord(text: str) -> str:
    """What Discord does not show as code."""
    return DISCORD_SPAN.sub(" ", DISCORD_BLOCK.sub(" ", text))


def seen_in_slack(text: str) -> tuple[str, list[str]]:
    """What a reader of CommonMark does not show as code, and where links and images lead."""
    words: list[str] = []
    addresses: list[str] = []
    for block in MarkdownIt("commonmark").parse(text):
        for token in block.children or ():
            words += [token.content] if token.type in {"text", "html_inline"} else []
            addresses += [str(token.attrs[name]) for name in ("href", "src") if name in token.attrs]
        words += [block.content] if block.type == "html_block" else []
    return "\n".join(words), addresses


def lead_elsewhere(addresses: list[str]) -> list[str]:
    return [each for each in addresses if not is_allowed_link(each.rstrip(".,;:!?'\")]}*_"), HOSTS)]


@given(markdown)
@example("````\nabc ``` [x](https://evil.example) @everyone\n````")
@example("```\n```\nprose\n```\n[x](https://evil.example) @everyone\n```")
@example("```` a ``` [x](https://evil.example) @everyone ````")
@example("~~~\n[x](https://evil.example) @everyone\n~~~")
def test_in_discord_safe_text_pings_nobody_and_leads_to_no_other_host(text: str) -> None:
    seen = seen_in_discord(neutralize(text, HOSTS))

    assert PING.search(seen) is None
    assert lead_elsewhere([*LINK.findall(seen), *URL.findall(LINK.sub(" ", seen))]) == []


@given(markdown)
@example("~~~ `\n~~~\n[x](https://evil.example) @everyone\n")
@example("```\nx\n" + "`" * 41 + "\n[x](https://evil.example) @everyone\n")
@example("[1]: //evil.example/x\n\n[1]")
@example("word\n      ```\n[x](https://evil.example) @everyone\n")
def test_in_slack_safe_text_pings_nobody_and_leads_to_no_other_host(text: str) -> None:
    seen, addresses = seen_in_slack(neutralize(text, HOSTS))

    assert PING.search(seen) is None
    assert (
        lead_elsewhere([each for each in addresses if re.match(r"(?:[a-z][a-z0-9+.-]*:|//)", each, re.IGNORECASE)])
        == []
    )


@given(markdown)
def test_text_that_is_made_safe_again_stays_safe(text: str) -> None:
    assert PING.search(seen_in_discord(neutralize(neutralize(text, HOSTS), HOSTS))) is None
    assert PING.search(break_pings(text)) is None


@given(
    among(
        (
            "https://", "http:", "//", "git.example.com", "@", ":8443", ":", "/x", "docs.example.com",
            "\\", "[::1]", "%40",
        )
    )
)  # fmt: skip
def test_an_address_leads_to_a_host_or_it_does_not(address: str) -> None:
    assert not is_allowed_link(address, HOSTS) or re.match(r"https?://(git|docs)\.example\.com", address, re.IGNORECASE)


@given(markdown, st.integers(100, 400), st.booleans())
def test_messages_fit_and_are_the_whole_text(text: str, limit: int, utf16: bool) -> None:
    pieces = split_markdown(text, limit, utf16=utf16)

    assert [each.text for each in pieces if count_units(each.text, utf16=utf16) > limit] == []
    assert [one.end for one in pieces[:-1]] == [other.start for other in pieces[1:]]
    if pieces:
        assert not text[: pieces[0].start].strip()
        assert not text[pieces[-1].end :].strip()


@given(markdown, st.integers(100, 400))
def test_no_message_leaves_a_code_block_open(text: str, limit: int) -> None:
    for piece in split_markdown(neutralize(text, HOSTS), limit):
        lines = list(read_lines(piece.text))
        assert not lines or lines[-1].fence is None


@given(markdown, st.integers(2, 300))
def test_a_code_span_holds_one_line_and_ends_where_it_should(text: str, longest: int) -> None:
    span = format_code_span(text, longest=longest)
    opening = re.match("`+", span)

    assert "\n" not in span
    assert opening is not None
    assert span.endswith(opening[0])
    assert opening[0] not in re.findall("`+", span[len(opening[0]) : -len(opening[0])])


@given(st.lists(markdown.map(lambda text: text.replace("\n", " ")), max_size=6), markdown)
def test_a_code_block_cannot_be_left(lines: list[str], language: str) -> None:
    block = format_code_block(lines, language)
    fence = re.match("`+", block)

    assert fence is not None
    assert len(re.findall(f"(?<!`){fence[0]}(?!`)", block)) == 2
    assert max(map(len, re.findall("`+", block))) > 40 or all(line.in_code for line in read_lines(block))


@given(markdown)
def test_quoted_words_are_on_one_line_and_hide_nothing(text: str) -> None:
    for line in (format_quote(text), to_one_line(text, longest=240), shown_on_one_line(text)):
        assert "\n" not in line
        assert not re.search("[\0-\x08\x0e-\x1f\u202a-\u202e\u2066-\u2069]", line)
    assert replace_control_characters(replace_control_characters(text)) == replace_control_characters(text)
    assert visible_markdown(visible_markdown(text)) == visible_markdown(text)


@given(
    among(
        (
            ":class:`~a.B`", ":ref:`a <b>`", "`a <b>`_", "{@link A|b}", "{@code x}",
            '<see cref="T:A"/>', "``x``", "*a*", "[a][b]", "<p>", "`", "{", "<", ":",
        )
    )
)  # fmt: skip
def test_documentation_becomes_a_sentence(text: str) -> None:
    sentence = strip_doc_markup(text)

    assert "\n" not in sentence
    assert len(sentence) <= len(text)
