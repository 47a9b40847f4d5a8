"""Discord messages are read as plain Markdown, and a question names its thread."""

from __future__ import annotations

import pytest

from bot.adapters.discord.parsing import (
    complete_repository,
    describe_commands,
    has_changed_commands,
    parse_used_command,
    read_typed_text,
)
from bot.adapters.discord.rendering import (
    make_thread_name,
    parse_button,
    render_buttons,
    render_text,
    to_plain_markdown,
)
from bot.messages import Button, MessageContent, MessageHandle

OWN = frozenset({1, 9})


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("<@1> where is `send`?", "where is `send`?"),
        ("<@&9> where is send?", "where is send?"),
        ("where, <@1>?", "where, ?"),
        ("<@2> asked in <#3> of <@&4>", "@Bob asked in #general of @devs"),
        ("well <:party:123456> <a:dance:99>", "well :party: :dance:"),
        ("a < b && c > d, List<int>", "a < b && c > d, List<int>"),
    ],
)
def test_marks_of_discord_are_read_as_people_see_them(written: str, read: str) -> None:
    assert to_plain_markdown(written, own=OWN, users={2: "Bob", 4: "devs"}, places={3: "general"}) == read


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("where is `send`?", "where is send?"),
        ("where\nis\tsend?", "where is send?"),
        ("", "Question"),
        ("???", "Question"),
        ("x" * 200, "x" * 89 + "…"),
    ],
)
def test_a_thread_is_named_after_its_question(question: str, name: str) -> None:
    assert make_thread_name(question) == name


def test_what_is_logged_of_a_message_does_not_tell_how_to_reach_a_person() -> None:
    handle = MessageHandle(platform="discord", workspace="1", channel="2", id="3", thread="@4.5.token-of-a-command")

    assert "token-of-a-command" not in repr(handle)


def test_small_print_stands_below_the_text() -> None:
    assert (
        render_text(MessageContent(text="Here.\n", status="Reading …", footer="demo"))
        == "Here.\n-# *Reading …*\n-# demo"
    )
    assert render_text(MessageContent(status="Reading …")) == "-# *Reading …*"


async def test_a_button_bears_what_its_press_means() -> None:
    view = render_buttons(
        MessageContent(buttons=(Button(action="stop", label="Stop", value="0" * 32),)), f"{'0' * 20}.0"
    )

    assert view is not None
    (button,) = view.to_components()[0]["components"]
    assert len(button["custom_id"]) <= 100
    assert parse_button(button["custom_id"]) == ("stop", "0" * 32)


@pytest.mark.parametrize("custom_id", ["", "stop:1", "other:stop:1", "citebot:explode:1", "citebot"])
def test_buttons_of_others_mean_nothing(custom_id: str) -> None:
    assert parse_button(custom_id) is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"name": "ask", "options": [{"name": "question", "value": "where?"}]}, "where?"),
        ({"name": "reindex"}, "reindex"),
        ({"name": "reindex", "options": [{"name": "full", "value": True}]}, "reindex full"),
        ({"name": "reindex", "options": [{"name": "repository", "value": "shop"}]}, "reindex shop"),
        ({"name": "citebot", "options": [{"name": "why", "options": []}]}, "why"),
        (
            {"name": "citebot", "options": [{"name": "use", "options": [{"name": "repository", "value": "shop"}]}]},
            "use shop",
        ),
    ],
)
def test_a_command_stands_for_words(data: dict[str, object], words: str) -> None:
    read = parse_used_command(data)

    assert read is not None
    assert read.words == words


def test_commands_of_others_are_left_alone() -> None:
    assert parse_used_command({"name": "play"}) is None


def test_repositories_that_begin_so_are_offered_first() -> None:
    names = ["my-shop", "shop", "billing"]

    assert complete_repository(names, "SHOP") == ["shop", "my-shop"]
    assert len(complete_repository([f"r{number}" for number in range(99)], "")) == 25
    assert read_typed_text({"options": [{"name": "status", "options": [{"focused": True, "value": "sh"}]}]}) == "sh"


def test_commands_are_the_same_whatever_discord_adds_to_them() -> None:
    present = [{**each, "id": "1", "version": "2", "nsfw": False} for each in reversed(describe_commands())]
    for each in present:
        each["options"] = [{name: value for name, value in option.items() if value is not False}
                           for option in each["options"]]  # fmt: skip

    assert not has_changed_commands(describe_commands(), present)
    assert has_changed_commands(describe_commands(), present[:-1])
    assert has_changed_commands(describe_commands(), [present[0] | {"description": "other"}, *present[1:]])
