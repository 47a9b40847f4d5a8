"""Fuzzes incoming and outgoing messages of Slack and Discord."""

from __future__ import annotations

import re
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from bot.adapters.discord import rendering as discord_rendering
from bot.adapters.discord import rendering as discord_text
from bot.adapters.discord.parsing import complete_repository, parse_used_command, read_typed_text
from bot.adapters.slack import rendering as slack_rendering
from bot.adapters.slack import rendering as slack_text
from bot.adapters.slack.client import BotIdentity
from bot.adapters.slack.parsing import ButtonPressed, MessageDeleted, MessageEdited, MessageReceived, parse_delivery
from bot.conversations.commands import ParsedCommand, UnknownCommand, parse_command
from bot.messages import ButtonAction
from bot.repositories.choice_store import parse_choice_button
from tests.fuzz.texts import among, json_values, noise, objects

OWN = BotIdentity(team="T1", user="U1", bot="B1")
words = among(
    (
        "<@U1>", "<@U2|ann>", "<!here>", "<!channel>", "<!subteam^S1|@team>", "<#C1|general>",
        "<https://a.example|a>", "<mailto:a@b>", "&lt;", "&amp;", "<", ">", "|", "@everyone", "<@&7>",
        "<@!7>", "<#7>", "<a:smile:1>", "[a](b)", "[a](https://x.example)", "`", "```\n", "where is ",
        "parse_date", "reindex", "/status ", "stop", "why", "shop ",
    )
)  # fmt: skip
ids = st.sampled_from(["U1", "U2", "C1", "D1", "T1", "1700000000.000100", "", "7"]) | noise
odd = json_values(("id", "ts", "type", "text", "channel", "user"), noise)
events = objects(
    {
        "type": st.sampled_from(["message", "app_mention", "reaction_added", "agent_session_stopped", "x"]),
        "subtype": st.sampled_from([None, "message_changed", "message_deleted", "file_share", "bot_message"]),
        "text": words,
        "ts": ids,
        "thread_ts": ids,
        "user": ids,
        "channel": ids,
        "channel_type": st.sampled_from(["im", "channel", None]),
        "bot_id": st.none() | ids,
        "message": objects({"text": words, "ts": ids, "user": ids, "subtype": st.sampled_from([None, "tombstone"])}),
        "previous_message": objects({"text": words}),
        "deleted_ts": ids,
        "item": objects({"type": st.just("message"), "channel": ids, "ts": ids}),
        "item_user": ids,
        "reaction": st.sampled_from(["x", "+1"]),
        "streaming_message_ts": st.lists(ids, max_size=2),
        "user_team": ids,
    }
)
actions = objects({"action_id": among(("citebot_", "choose", ".0", "rate", "stop"), most=4), "value": noise})
bodies = objects(
    {"event": events, "is_ext_shared_channel": st.booleans(), "type": st.just("event_callback")}
) | objects(
    {
        "type": st.just("block_actions"),
        "container": objects(
            {"type": st.just("message"), "channel_id": ids, "message_ts": ids, "is_ephemeral": st.booleans()}
        ),
        "user": objects({"id": ids, "team_id": ids}),
        "actions": st.lists(actions, max_size=3),
        "response_url": noise,
    }
)
forms = st.fixed_dictionaries(
    {"command": st.sampled_from(["/citebot", "/reindex", "/x"]), "user_id": ids},
    optional={"text": words, "channel_id": ids, "trigger_id": ids, "team_id": ids, "user_name": noise},
)


@given(bodies | forms)
def test_deliveries_of_slack_become_what_people_did(body: dict[str, Any]) -> None:
    for heard in parse_delivery(body, OWN):
        assert isinstance(heard, MessageReceived | MessageEdited | MessageDeleted | ButtonPressed)
        if isinstance(heard, MessageReceived | MessageEdited):
            assert heard.message.author not in {"", OWN.user} or "command" in body
            assert "<@U1>" not in heard.message.text or "&lt;" in str(body)


@given(odd | objects({"event": odd, "type": odd, "container": odd, "user": odd, "actions": odd}))
def test_a_delivery_of_another_form_is_no_message(body: Any) -> None:
    assert all(isinstance(each, ButtonPressed | MessageDeleted) for each in parse_delivery(body, OWN))


@given(words)
def test_what_is_escaped_for_slack_rings_at_nobody_and_can_be_read_back(text: str) -> None:
    escaped = slack_text.escape_mrkdwn(text)

    assert not set("<>") & set(escaped)
    assert slack_text.unescape_slack(escaped) == text


@given(words)
def test_lines_for_slack_hold_links_and_no_mention(text: str) -> None:
    for written in (slack_text.to_mrkdwn(text), slack_text.make_fallback_text(text)):
        assert re.search(r"<(?!https?://)", written) is None
    assert 0 < len(slack_text.make_fallback_text(text)) < 5 * 2_910


@given(words)
def test_words_from_slack_are_read(text: str) -> None:
    read_text = slack_text.to_plain_markdown(text, own="U1")

    assert read_text == read_text.strip()
    assert isinstance(slack_text.has_mention(text, "U1"), bool)
    assert isinstance(slack_text.has_other_mentions(text, "U1"), bool)


@given(among(("citebot", "citebot_", ":", ".", "stop", "good", "choose", "rate", "approve", "abc"), most=6), noise)
def test_only_buttons_of_replies_mean_something(written: str, value: str) -> None:
    for meaning in (slack_rendering.parse_button(written, value), discord_rendering.parse_button(written)):
        assert meaning is None or meaning[0] in get_args(ButtonAction)
    assert "." not in parse_choice_button(written)


options = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["question", "repository", "share", "full", "status"]) | noise},
        optional={"value": words | st.booleans() | st.integers(), "focused": st.booleans()},
    ),
    max_size=3,
)


@given(
    objects(
        {
            "name": st.sampled_from(["ask", "reindex", "citebot"]) | noise,
            "options": options
            | st.lists(objects({"options": options}).map(lambda each: {**each, "name": "x"}), max_size=2),
        }
    )
)
def test_commands_of_discord_are_read(data: dict[str, Any]) -> None:
    meant = parse_used_command(data)

    assert meant is None or data["name"] in {"ask", "reindex", "citebot"}
    assert len(complete_repository(["shop", "website"], read_typed_text(data))) <= 2


@given(words)
def test_words_from_discord_lose_the_mention_of_the_bot_alone(text: str) -> None:
    plain = discord_text.to_plain_markdown(text, own=frozenset({7}), users={8: "ann"}, places={7: "general"})

    assert plain == plain.strip()


@given(words)
def test_a_thread_has_a_name_that_discord_takes(question: str) -> None:
    name = discord_text.make_thread_name(question)

    assert name.strip()
    assert len(name.encode("utf-16-le")) <= 2 * 100
    assert "\n" not in name


@given(words, st.booleans())
def test_a_message_is_a_command_a_slip_or_a_question(text: str, slash: bool) -> None:
    read_as = parse_command(text, slash=slash, repositories=["shop", "website"])

    assert isinstance(read_as, ParsedCommand | UnknownCommand | None)
    if isinstance(read_as, ParsedCommand):
        assert read_as.repository in {"", "shop", "website"}
    if isinstance(read_as, UnknownCommand):
        assert len(read_as.sentence) < 300
