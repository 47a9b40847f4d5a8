"""People's actions in the workspace, as verbs for tests."""

from __future__ import annotations

from typing import Literal

from tests.fakes.loopback.wire import JSON
from tests.fakes.slack.deliveries import Deliveries, Delivery
from tests.fakes.slack.interactions import Responses, Tickets
from tests.fakes.slack.messages import Message
from tests.fakes.slack.payloads import interaction, of_message, pressed, slash_command
from tests.fakes.slack.typed import escaped, typed
from tests.fakes.slack.workspace import BOT_USER, OTHER_TEAM, TEAM, Channel, ChannelKind, Person, Workspace


class People:
    """Verbs; channels, users and messages go by their ids. Each returns before the app has heard of it."""

    def __init__(self, workspace: Workspace, deliveries: Deliveries, tickets: Tickets, responses: Responses) -> None:
        self.workspace = workspace
        self._deliveries = deliveries
        self._tickets = tickets
        self._responses = responses

    def add_user(self, name: str, *, outside: bool = False, is_bot: bool = False) -> str:
        """Make an account, in another organisation with `outside`; return the id."""
        identity = f"U{self.workspace.number():04d}"
        team = OTHER_TEAM if outside else TEAM
        person = Person(id=identity, name=name, team=team, is_bot=is_bot, email=f"{name}@example.test")
        self.workspace.people[identity] = person
        return identity

    def add_channel(
        self,
        name: str,
        *,
        kind: ChannelKind = "channel",
        members: tuple[str, ...] = (),
        external: bool = False,
        bot: bool = True,
    ) -> str:
        """Open a channel, with the bot in it unless told otherwise; return the id."""
        return self.workspace.add_channel(name, kind, {*members, *([BOT_USER] if bot else [])}, external=external).id

    async def message(
        self,
        channel: str,
        user: str,
        text: str,
        thread_ts: str | None = None,
        *,
        broadcast: bool = False,
        files: tuple[str | JSON, ...] = (),
        forwarded: str = "",
    ) -> str:
        """Write in a channel or thread, as typed: Slack escapes it and makes links. Return the timestamp.

        A file is a name, or what `host` of the files tells of one; `forwarded` is the text of another message.
        """
        self.workspace.channels[channel].members.add(user)
        author = self.workspace.people[user]
        message = Message(
            ts=self.workspace.next_ts(),
            channel=channel,
            user=user,
            team=author.team,
            text=typed(text),
            blocks=_rich(text),
            thread_ts=thread_ts,
            subtype="thread_broadcast" if broadcast else "file_share" if files else None,
            files=[_describe_file(file, user) for file in files],
            attachments=[_share(forwarded)] if forwarded else [],
        )
        self.workspace.post(message)
        return message.ts

    async def mention(self, channel: str, user: str, text: str, thread_ts: str | None = None) -> str:
        """Ask the bot in a channel or thread."""
        return await self.message(channel, user, f"<@{BOT_USER}> {text}", thread_ts)

    async def dm(self, user: str, text: str, thread_ts: str | None = None) -> str:
        """Write to the bot alone; the channel is `dm_channel(user)`."""
        return await self.message(self.dm_channel(user), user, text, thread_ts)

    def dm_channel(self, user: str) -> str:
        """The direct conversation of a person with the bot."""
        return self.workspace.im(user).id

    async def other_bot(self, channel: str, text: str, thread_ts: str | None = None) -> str:
        """Let another app's bot write, as webhooks do."""
        message = Message(
            ts=self.workspace.next_ts(),
            channel=channel,
            user="",
            team=TEAM,
            bot_id="B0OTHER",
            subtype="bot_message",
            text=text,
            thread_ts=thread_ts,
        )
        self.workspace.post(message)
        return message.ts

    async def edit(self, channel: str, ts: str, text: str) -> None:
        """Change what a person wrote."""
        message = self.workspace.message(channel, ts)
        before = self.workspace.wire(message)
        message.text, message.blocks, message.edited_by = typed(text), _rich(text), message.user
        message.edits += 1
        self.workspace.changed(message, before)

    async def unfurl(self, channel: str, ts: str) -> None:
        """Let Slack add a link preview: `message_changed` without a change of the text."""
        message = self.workspace.message(channel, ts)
        before = self.workspace.wire(message)
        message.attachments = [{"id": 1, "from_url": "https://example.test", "title": "Preview"}]
        self.workspace.changed(message, before)

    async def delete(self, channel: str, ts: str) -> None:
        """Delete a message."""
        self.workspace.remove(self.workspace.message(channel, ts))

    async def react(self, channel: str, ts: str, user: str, name: str) -> None:
        """React to a message with an emoji."""
        message = self.workspace.message(channel, ts)
        message.reactions.setdefault(name, []).append(user)
        self._tell_reaction("reaction_added", message, user, name)

    async def take_reaction(self, channel: str, ts: str, user: str, name: str) -> None:
        """Take a reaction away."""
        message = self.workspace.message(channel, ts)
        message.reactions[name].remove(user)
        self._tell_reaction("reaction_removed", message, user, name)

    async def pin(self, channel: str, ts: str, user: str, *, down: bool = False) -> None:
        """Pin a message to its channel, or take it down."""
        message = self.workspace.message(channel, ts)
        item = {"type": "message", "channel": channel, "message": {"ts": ts, "user": message.user}}
        kind = "pin_removed" if down else "pin_added"
        self._tell({"type": kind, "user": user, "channel_id": channel, "item": item}, channel)

    async def press(
        self,
        channel: str,
        ts: str,
        action_id: str,
        *,
        user: str,
        value: str | None = None,
        blocks: list[JSON] | None = None,
    ) -> Delivery:
        """Use a button of a message, also of an ephemeral one; `value` chooses where there is a choice.

        `blocks` are what the person's client shows where that is not what the message has by now.
        """
        message = self._pressable(channel, ts)
        action = pressed(message.blocks if blocks is None else blocks, action_id, value, self.workspace.next_ts())
        where = of_message(message, self.workspace.channels[channel], self.workspace.wire(message))
        answer_to = self._responses.open(channel, user, message)
        return self._interact("block_actions", user, where | {"actions": [action], "response_url": answer_to})

    async def shortcut(self, callback_id: str, channel: str, ts: str, *, user: str) -> Delivery:
        """Use a message shortcut."""
        message = self.workspace.message(channel, ts)
        where = of_message(message, self.workspace.channels[channel], self.workspace.wire(message))
        answer_to = self._responses.open(channel, user)
        details = {"callback_id": callback_id, "message_ts": ts, "response_url": answer_to}
        return self._interact("message_action", user, where | details)

    async def slash(self, command: str, text: str, *, channel: str, user: str) -> Delivery:
        """Use a slash command; they do not exist in threads. What the app acknowledges with is shown to the person."""
        payload = slash_command(
            command,
            escaped(text),
            self.workspace.people[user],
            self.workspace.channels[channel],
            trigger=self._tickets.give(),
            answer_to=self._responses.open(channel, user),
        )
        answered = lambda body: self._responses.answer(channel, user, body)  # noqa: E731
        return self._deliveries.send("slash_commands", payload, answered)

    async def open_home(self, user: str, tab: Literal["home", "messages"] = "home") -> None:
        """Open the app, on its Home or its messages tab."""
        view = self.workspace.homes.get(user)
        event = {"type": "app_home_opened", "user": user, "channel": self.dm_channel(user), "tab": tab}
        self._tell(event | ({"view": view} if view and tab == "home" else {}))

    async def look_at(self, user: str, channel: str) -> None:
        """Look at a channel beside the conversation with the app."""
        entity = {"type": "slack#/types/channel_id", "value": channel, "team_id": TEAM}
        event = {"type": "app_context_changed", "user": user, "channel": self.dm_channel(user)}
        self._tell(event | {"context": {"entities": [entity]}})

    async def start_assistant_thread(self, user: str) -> str:
        """Open a thread with the app where it is still an `assistant_view`; return its timestamp."""
        ts = self.workspace.next_ts()
        thread = {"user_id": user, "context": {}, "channel_id": self.dm_channel(user), "thread_ts": ts}
        self._tell({"type": "assistant_thread_started", "assistant_thread": thread})
        return ts

    async def stop_session(self, channel: str, thread_ts: str, user: str) -> None:
        """Press Slack's own stop button: open streams of the thread end, the app hears of it."""
        stopped = [each for each in self.workspace.replies(channel, thread_ts) if each.streaming_since is not None]
        for message in stopped:
            message.streaming_since, message.stopped_by_user = None, True
        event = {"type": "agent_session_stopped", "user": user, "channel": channel, "thread_ts": thread_ts}
        self._tell(event | {"streaming_message_ts": [message.ts for message in stopped]}, channel)

    async def join(self, channel: str, user: str = BOT_USER) -> None:
        """Join a channel; by default the bot is invited."""
        place = self.workspace.channels[channel]
        place.members.add(user)
        event = {"type": "member_joined_channel", "user": user, "channel": channel, "team": TEAM}
        self._tell(event | {"channel_type": _letter(place)}, channel)

    async def leave(self, channel: str, user: str = BOT_USER) -> None:
        """Leave a channel; by default the bot is removed, and no longer hears of it."""
        self.workspace.channels[channel].members.discard(user)
        self.workspace.touch()

    def _pressable(self, channel: str, ts: str) -> Message:
        whispered = [each for each in self.workspace.ephemerals if (each.channel, each.ts) == (channel, ts)]
        return whispered[0] if whispered else self.workspace.message(channel, ts)

    def _interact(self, kind: str, user: str, details: JSON) -> Delivery:
        common = interaction(kind, self.workspace.people[user], trigger=self._tickets.give())
        return self._deliveries.send("interactive", common | details)

    def _tell(self, event: JSON, channel: str | None = None) -> None:
        self.workspace.tell(event | {"event_ts": self.workspace.next_ts()}, channel)

    def _tell_reaction(self, kind: str, message: Message, user: str, name: str) -> None:
        item = {"type": "message", "channel": message.channel, "ts": message.ts}
        self._tell(
            {"type": kind, "user": user, "reaction": name, "item": item, "item_user": message.user}, message.channel
        )


def _rich(text: str) -> list[JSON]:
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return [{"type": "rich_text", "block_id": "typed", "elements": [section]}]


def _letter(channel: Channel) -> str:
    return "C" if channel.kind == "channel" else "G"


def _describe_file(file: str | JSON, user: str) -> JSON:
    return {"id": f"F{file}", "name": file, "title": file, "user": user} if isinstance(file, str) else file


def _share(text: str) -> JSON:
    """A message as one that forwards it carries it."""
    return {"id": 1, "is_share": True, "is_msg_unfurl": True, "text": typed(text), "fallback": typed(text)}
