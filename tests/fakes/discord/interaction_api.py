"""The endpoints that answer interactions: the callback, the first answer, and what follows it."""

from __future__ import annotations

from tests.fakes.discord.checks import EPHEMERAL, LOADING
from tests.fakes.discord.errors import DiscordError, invalid
from tests.fakes.discord.interactions import AUTOCOMPLETE, COMMAND, COMPONENT, Interaction, Interactions
from tests.fakes.discord.messages import COMMAND as COMMAND_MESSAGE
from tests.fakes.discord.messages import DEFAULT, REPLY, Message
from tests.fakes.discord.payloads import message_wire
from tests.fakes.discord.posts import Posts
from tests.fakes.discord.requests import Ask, Endpoint, Upload
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON

REPLYING, DEFERRED, DEFERRED_UPDATE, UPDATE, CHOICES = 4, 5, 6, 7, 8
# Which first answers fit which interactions.
FITTING = {
    COMMAND: {REPLYING, DEFERRED},
    COMPONENT: {REPLYING, DEFERRED, DEFERRED_UPDATE, UPDATE},
    AUTOCOMPLETE: {CHOICES},
}
USERS_ONLY = frozenset({"users"})
HOOK, ANSWER = "/webhooks/{application}/{token}", "/webhooks/{application}/{token}/messages/{message}"


class InteractionApi:
    """Answers what concerns interactions."""

    def __init__(self, world: World, posts: Posts, interactions: Interactions) -> None:
        self._world = world
        self._posts = posts
        self._interactions = interactions

    def endpoints(self) -> list[Endpoint]:
        """Everything that is answered here; `@original` is the first answer."""
        table = [
            ("create_interaction_response", "POST", "/interactions/{interaction}/{token}/callback", self.callback),
            ("get_original_interaction_response", "GET", HOOK + "/messages/@original", self.get),
            ("edit_original_interaction_response", "PATCH", HOOK + "/messages/@original", self.edit),
            ("create_followup_message", "POST", HOOK, self.follow),
            ("get_followup_message", "GET", ANSWER, self.get),
            ("edit_followup_message", "PATCH", ANSWER, self.edit),
        ]
        return [
            Endpoint(name=name, method=method, path=path, answer=answer, major=("token",), open=True)
            for name, method, path, answer in table
        ]

    def callback(self, ask: Ask) -> JSON | None:
        """Take the first answer."""
        interaction = self._interactions.to_acknowledge(ask.path["interaction"], ask.path["token"])
        kind, data = ask.fields.get("type"), ask.fields.get("data") or {}
        if kind not in FITTING[interaction.kind]:
            raise invalid("type", "INTERACTION_APPLICATION_COMMAND_INVALID_TYPE", "Invalid interaction response type")
        self._take(interaction, int(kind), data, ask.files)
        interaction.callback, interaction.answered_at = int(kind), self._world.clock.now()
        self._world.touch()
        return self._receipt(interaction) if ask.flag("with_response") else None

    def get(self, ask: Ask) -> JSON:
        """Give an answer."""
        return message_wire(self._world, self._answer(ask))

    def edit(self, ask: Ask) -> JSON:
        """Change an answer; a deferred one comes this way."""
        message = self._answer(ask)
        self._revise(message, ask.fields, ask.files)
        return message_wire(self._world, message)

    def follow(self, ask: Ask) -> JSON:
        """Answer once more; the first time after a deferral this is the deferred answer itself."""
        interaction = self._interactions.by_token(ask.path["token"])
        first = interaction.message
        if first is not None and first.flags & LOADING:
            self._revise(first, ask.fields, ask.files)
            return message_wire(self._world, first)
        message = self._composed(interaction, ask.fields, ask.files, kind=REPLY if first else DEFAULT)
        message.reply_to = first.id if first else None
        interaction.followups.append(message)
        self._show(interaction, message)
        return message_wire(self._world, message)

    def _take(self, interaction: Interaction, kind: int, data: JSON, files: tuple[Upload, ...]) -> None:
        if kind == REPLYING:
            interaction.message = self._composed(interaction, data, files, kind=_first_kind(interaction))
            self._show(interaction, interaction.message)
        elif kind == DEFERRED:
            interaction.message = self._deferred(interaction, data)
            self._show(interaction, interaction.message)
        elif kind == CHOICES:
            interaction.choices = _choices(data)
        else:
            interaction.message = interaction.source
            if kind == UPDATE and interaction.source is not None:
                self._revise(interaction.source, data, files)

    def _composed(self, interaction: Interaction, data: JSON, files: tuple[Upload, ...], *, kind: int) -> Message:
        message = self._posts.compose(
            interaction.channel, data, files, rings=USERS_ONLY, kind=kind, **self._marks(interaction)
        )
        self._hide(interaction, message, data)
        return message

    def _deferred(self, interaction: Interaction, data: JSON) -> Message:
        world = self._world
        message = Message(
            id=world.ids.next(),
            channel_id=interaction.channel.id,
            author=world.bot,
            sent_at=world.clock.now(),
            kind=_first_kind(interaction),
            **self._marks(interaction),
        )
        self._hide(interaction, message, data)  # of the flags only this one counts here
        message.flags |= LOADING
        return message

    def _marks(self, interaction: Interaction) -> JSON:
        bot = self._world.bot.id
        return {"webhook_id": bot, "application_id": bot, "interaction": interaction.metadata()}

    def _hide(self, interaction: Interaction, message: Message, data: JSON) -> None:
        if int(data.get("flags") or 0) & EPHEMERAL:
            message.flags |= EPHEMERAL
            message.for_user = interaction.user.id

    def _show(self, interaction: Interaction, message: Message) -> None:
        if message.for_user is None:
            self._world.add(message)
        else:
            self._world.whisper(message)

    def _revise(self, message: Message, data: JSON, files: tuple[Upload, ...]) -> None:
        was_loading = bool(message.flags & LOADING)
        self._posts.revise(message, data, files, rings=USERS_ONLY)
        message.flags &= ~LOADING
        if was_loading:  # what was thought of so far shows now, and rings
            message.versions.clear()
            message.edits, message.edited_at, message.rang = 0, None, message.mentioned.pings
        self._world.changed(message)

    def _answer(self, ask: Ask) -> Message:
        interaction = self._interactions.by_token(ask.path["token"])
        wanted = ask.path.get("message")
        answers = [interaction.message] if wanted is None else [interaction.message, *interaction.followups]
        found = next((each for each in answers if each and wanted in {None, each.id}), None)
        if found is None:
            raise DiscordError(10008)
        return found

    def _receipt(self, interaction: Interaction) -> JSON:
        message = interaction.message
        body: JSON = {"id": interaction.id, "type": interaction.kind}
        resource: JSON = {"type": interaction.callback}
        if message is not None:
            body |= {"response_message_id": message.id, "response_message_loading": bool(message.flags & LOADING)}
            body |= {"response_message_ephemeral": bool(message.flags & EPHEMERAL)}
            resource["message"] = message_wire(self._world, message)
        return {"interaction": body, "resource": resource}


def _first_kind(interaction: Interaction) -> int:
    return COMMAND_MESSAGE if interaction.kind == COMMAND else DEFAULT


def _choices(data: JSON) -> list[JSON]:
    choices = list(data.get("choices") or [])
    if len(choices) > 25 or any(not 1 <= len(str(each["name"])) <= 100 for each in choices):
        raise invalid(
            "data.choices", "BASE_TYPE_BAD_LENGTH", "Must be between 0 and 25 choices of 1 to 100 characters."
        )
    return choices
