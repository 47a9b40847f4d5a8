"""The fake Discord's commands, buttons and forms, answered by the real discord.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import discord
import pytest
from discord import app_commands

from tests.fakes.discord import FakeDiscord, Interaction, Permission
from tests.fakes.discord_clients import Bot, refusal, running

Used = discord.Interaction[Any]


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    async with FakeDiscord() as discord:
        discord.limits.pace = 100
        yield discord


def asking(fake: FakeDiscord, **options: Any) -> tuple[Bot, list[Used]]:
    """A client with `/ask`, which does nothing but keep the interaction."""
    bot, used = Bot(fake, **options), []

    @bot.tree.command(description="Ask about the code")
    async def ask(interaction: Used, question: str) -> None:
        interaction.extras["question"] = question
        used.append(interaction)
        fake.changes.tell()

    return bot, used


async def slashed(fake: FakeDiscord, used: list[Used], channel: str, user: str) -> tuple[Interaction, Used]:
    """A question by command, on both sides."""
    interaction = fake.slash(channel, user, "ask", question="where?")
    await fake.until(lambda: used)
    return interaction, used[-1]


async def test_a_command_is_deferred_and_answered_for_one_person(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot, used = asking(fake)
    async with running(fake, bot):
        interaction, heard = await slashed(fake, used, channel, ada)
        await heard.response.defer(ephemeral=True, thinking=True)
        thinking = interaction.response
        await heard.edit_original_response(content="here")
        await heard.followup.send("and there", ephemeral=True)

    assert heard.extras == {"question": "where?"}
    assert thinking is not None
    assert thinking.thinking
    assert [seen.text for seen in fake.ephemeral(ada)] == ["here", "and there"]
    assert fake.messages(channel) == []
    assert fake.ephemeral(ada)[0].edits == 0


async def test_the_first_follow_up_of_a_deferral_is_the_answer_itself(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot, used = asking(fake)
    async with running(fake, bot):
        _, heard = await slashed(fake, used, channel, ada)
        await heard.response.defer()
        await heard.followup.send("one")
        await heard.followup.send("two")

    assert [seen.text for seen in fake.messages(channel)] == ["one", "two"]


async def test_after_three_seconds_nobody_waits_any_more(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot, used = asking(fake)
    async with running(fake, bot):
        interaction, heard = await slashed(fake, used, channel, ada)
        fake.clock.advance(3.1)

        assert interaction.failed
        assert await refusal(heard.response.defer()) == 10062


async def test_an_interaction_is_acknowledged_once(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot, used = asking(fake)
    async with running(fake, bot):
        _, heard = await slashed(fake, used, channel, ada)
        await heard.response.defer()
        heard.response._response_type = None  # the second process knows nothing of the first

        assert await refusal(heard.response.defer()) == 40060


async def test_a_token_is_good_for_a_quarter_of_an_hour(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot, used = asking(fake)
    async with running(fake, bot):
        _, heard = await slashed(fake, used, channel, ada)
        await heard.response.defer()
        fake.clock.advance(901)

        assert await refusal(heard.edit_original_response(content="late")) == 50027
        await bot.place(channel).send("by another way")

    assert [seen.thinking for seen in fake.messages(channel)] == [True, False]


async def test_answers_to_interactions_ring_people_only(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot, used = asking(fake)
    async with running(fake, bot):
        _, heard = await slashed(fake, used, channel, ada)
        await heard.response.send_message(f"@everyone <@{ada}>")

    assert fake.messages(channel)[0].pings == (f"<@{ada}>",)


async def test_a_command_works_in_a_direct_conversation(fake: FakeDiscord) -> None:
    ada = fake.add_user("ada")
    bot, used = asking(fake)
    async with running(fake, bot):
        _, heard = await slashed(fake, used, fake.dm_channel(ada), ada)
        await heard.response.send_message("here")

    assert (heard.guild_id, str(heard.user.id)) == (None, ada)
    assert [seen.text for seen in fake.messages(fake.dm_channel(ada))] == ["here"]


async def test_a_button_is_acknowledged_and_changes_its_message(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")

    class Stop(discord.ui.View):
        @discord.ui.button(label="Stop", custom_id="stop")
        async def stop_it(self, interaction: Used, button: discord.ui.Button[Any]) -> None:
            await interaction.response.edit_message(content="stopped", view=None)

    bot = Bot(fake)
    async with running(fake, bot):
        message = await bot.place(channel).send("working", view=Stop(timeout=None))
        pressed = fake.press(str(message.id), ada, "Stop")
        await fake.until(lambda: pressed.acknowledged)
        with pytest.raises(LookupError):
            fake.press(str(message.id), ada, "Stop")

    seen = fake.seen(str(message.id))
    assert (seen.text, seen.buttons) == ("stopped", {})


async def test_an_ephemeral_message_shows_to_one_person_alone(fake: FakeDiscord) -> None:
    channel, ada, grace = fake.add_channel("general"), fake.add_user("ada"), fake.add_user("grace")
    bot, used = asking(fake)
    view = discord.ui.View()
    view.add_item(discord.ui.Button(label="Share", custom_id="share"))
    async with running(fake, bot):
        _, heard = await slashed(fake, used, channel, ada)
        await heard.response.send_message("private", ephemeral=True, view=view)
        identity = fake.ephemeral(ada)[0].id
        with pytest.raises(PermissionError):
            fake.press(identity, grace, "Share")
        assert await refusal(bot.place(channel).fetch_message(int(identity))) == 10008
        view.stop()


async def test_a_form_comes_back_filled_in(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    filled: list[str] = []

    class Why(discord.ui.Modal, title="What was wrong?"):
        reason: discord.ui.TextInput[Any] = discord.ui.TextInput(label="Reason", custom_id="reason")

        async def on_submit(self, interaction: Used) -> None:
            filled.append(self.reason.value)
            await interaction.response.send_message("thanks", ephemeral=True)

    bot, used = asking(fake)
    async with running(fake, bot):
        interaction, heard = await slashed(fake, used, channel, ada)
        await heard.response.send_modal(Why())
        sent = fake.submit(interaction, reason="it was old")
        await fake.until(lambda: sent.acknowledged)

    assert filled == ["it was old"]
    assert [seen.text for seen in fake.ephemeral(ada)] == ["thanks"]


async def test_options_complete_while_they_are_typed(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake)

    @bot.tree.command(description="Read a repository again")
    async def reindex(interaction: Used, repository: str) -> None:
        await interaction.response.send_message(repository)

    @reindex.autocomplete("repository")
    async def complete(interaction: Used, current: str) -> list[app_commands.Choice[str]]:
        return [app_commands.Choice(name=name, value=name) for name in ("api", "web") if name.startswith(current)]

    async with running(fake, bot):
        typed = fake.autocomplete(channel, ada, "reindex", "repository", "a")
        await fake.until(lambda: typed.acknowledged)

    assert [choice["value"] for choice in typed.choices] == ["api"]


async def test_subcommands_are_used_by_their_whole_name(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake)
    group = app_commands.Group(name="citebot", description="What the bot does")

    @group.command(name="status", description="How it is")
    async def status(interaction: Used, repository: str = "all") -> None:
        await interaction.response.send_message(repository)

    bot.tree.add_command(group)
    async with running(fake, bot):
        fake.slash(channel, ada, "citebot status", repository="api")
        await fake.until(lambda: fake.messages(channel))
        with pytest.raises(LookupError):
            fake.slash(channel, ada, "citebot")

    assert [seen.text for seen in fake.messages(channel)] == ["api"]


async def test_a_command_of_the_context_menu_gets_its_message(fake: FakeDiscord) -> None:
    channel, ada = fake.add_channel("general"), fake.add_user("ada")
    bot = Bot(fake)

    @bot.tree.context_menu(name="Ask about this")
    async def about(interaction: Used, message: discord.Message) -> None:
        await interaction.response.send_message(f"about {message.content}")

    async with running(fake, bot):
        identity = fake.message(channel, ada, "a traceback")
        fake.use_on(identity, ada, "Ask about this")
        await fake.until(lambda: len(fake.messages(channel)) == 2)

    assert fake.messages(channel)[1].text == "about a traceback"


async def test_a_command_is_hidden_from_those_who_lack_its_permission(fake: FakeDiscord) -> None:
    channel, ada, grace = fake.add_channel("general"), fake.add_user("ada"), fake.add_user("grace")
    fake.give_role(grace, fake.add_role("keepers", Permission.MANAGE_GUILD))
    bot = Bot(fake)

    @bot.tree.command(description="Read again")
    @app_commands.default_permissions(manage_guild=True)
    async def reindex(interaction: Used) -> None:
        await interaction.response.send_message("done")

    async with running(fake, bot):
        with pytest.raises(PermissionError):
            fake.slash(channel, ada, "reindex")
        used = fake.slash(channel, grace, "reindex")
        await fake.until(lambda: used.acknowledged)


async def test_commands_are_registered_and_can_be_compared(fake: FakeDiscord) -> None:
    bot, _ = asking(fake)
    async with running(fake, bot):
        [first] = await bot.tree.fetch_commands()
        [again] = await bot.tree.sync()

    assert (first.id, first.name) == (again.id, "ask")
    assert fake.commands.writes == 2


async def test_a_command_with_a_bad_name_is_refused(fake: FakeDiscord) -> None:
    bot = Bot(fake)
    async with running(fake, bot):
        assert bot.application_id is not None
        body: list[Any] = [{"name": "Ask me", "description": "x", "type": 1}]

        assert await refusal(bot.http.bulk_upsert_global_commands(bot.application_id, body)) == 50035
