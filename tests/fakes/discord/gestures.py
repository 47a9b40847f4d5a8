"""Gestures beside writing, as verbs for tests: commands, buttons, autocompletion."""

from __future__ import annotations

import uuid
from typing import Any

from tests.fakes.discord.channels import Channel
from tests.fakes.discord.commands import GROUP, SUBCOMMAND, Commands
from tests.fakes.discord.components import BUTTON, pressable
from tests.fakes.discord.interactions import AUTOCOMPLETE, COMMAND, COMPONENT, Interaction, Interactions
from tests.fakes.discord.messages import Message
from tests.fakes.discord.payloads import message_wire
from tests.fakes.discord.permissions import Permission
from tests.fakes.discord.world import Event, World
from tests.fakes.loopback.wire import JSON

TYPES = {3: str, 5: bool}


class Gestures:
    """Verbs; each returns the interaction, on which the answers of the app turn up."""

    world: World
    commands: Commands
    interactions: Interactions

    def slash(self, channel: str, user: str, command: str, **options: Any) -> Interaction:
        """Use a registered command, of subcommands with its whole name: `slash(c, u, "citebot status", repo="x")`."""
        place = self.world.channels[channel]
        registered, path = self._command(place, user, command)
        option_list = _given(_leaf(registered, path)["options"], options)
        data: JSON = {"id": registered["id"], "name": registered["name"], "type": registered["type"]}
        data |= {"options": _nested(registered, path, option_list)}
        return self._send(COMMAND, place, user, data, name=command)

    def autocomplete(
        self, channel: str, user: str, command: str, option: str, typed: str, **others: Any
    ) -> Interaction:
        """Type into an option that completes; the answer is in `choices`."""
        place = self.world.channels[channel]
        registered, path = self._command(place, user, command)
        declared = {each["name"]: each for each in _leaf(registered, path)["options"]}
        if not declared[option].get("autocomplete"):
            raise LookupError(f"the option {option} of /{command} does not complete")
        given = [{"name": name, "type": declared[name]["type"], "value": value} for name, value in others.items()]
        given.append({"name": option, "type": declared[option]["type"], "value": typed, "focused": True})
        data: JSON = {"id": registered["id"], "name": registered["name"], "type": registered["type"]}
        data |= {"options": _nested(registered, path, given)}
        return self._send(AUTOCOMPLETE, place, user, data, name=command)

    def press(self, message: str, user: str, button: str, *, components: list[JSON] | None = None) -> Interaction:
        """Press a button, found by its label or custom id.

        `components` are what the person's client shows where that is not what the message has by now.
        """
        found = self._reachable(message, user)
        component = pressable(found.components if components is None else components, button)
        data: JSON = {"custom_id": component["custom_id"], "component_type": BUTTON, "id": component.get("id", 1)}
        return self._on_message(found, user, data)

    def _command(self, place: Channel, user: str, command: str) -> tuple[JSON, list[str]]:
        name, *path = command.split()
        registered = self.commands.named(name)
        needed = registered["default_member_permissions"]
        may = self.world.permissions(user, place)
        here = Permission.USE_APPLICATION_COMMANDS in may or place.guild_id is None
        if not here or (needed is not None and place.guild_id and not _has(may, int(needed))):
            raise PermissionError(f"{self.world.users[user].name} does not see /{name} here")
        return registered, path

    def _reachable(self, message: str, user: str) -> Message:
        found = self.world.find(message)
        if found.for_user not in {None, user}:
            raise PermissionError(f"{self.world.users[user].name} does not see this message")
        return found

    def _on_message(self, message: Message, user: str, data: JSON) -> Interaction:
        place = self.world.channels[message.channel_id]
        return self._send(COMPONENT, place, user, data, name=data["custom_id"], source=message)

    def _send(
        self, kind: int, place: Channel, user: str, data: JSON, *, name: str, source: Message | None = None
    ) -> Interaction:
        interaction = Interaction(
            id=self.world.ids.next(),
            token=uuid.uuid4().hex,
            kind=kind,
            user=self.world.users[user],
            channel=place,
            created=self.world.clock.now(),
            clock=self.world.clock,
            name=name,
            source=source,
        )
        self.interactions.open(interaction)
        self._publish_interaction(interaction, data)
        return interaction

    def _publish_interaction(self, interaction: Interaction, data: JSON) -> None:
        world, place, user = self.world, interaction.channel, interaction.user
        body: JSON = {"id": interaction.id, "application_id": world.bot.id, "type": interaction.kind, "version": 1}
        body |= {"token": interaction.token, "data": data, "channel_id": place.id, "entitlements": []}
        body |= {"channel": place.wire(bot=world.bot.id), "attachment_size_limit": world.rules.most_file}
        body |= {"app_permissions": str(int(world.permissions(world.bot.id, place))), "locale": "en-US"}
        body |= {"authorizing_integration_owners": {"0": place.guild_id or "0"}}
        if interaction.source is not None:
            body["message"] = message_wire(world, interaction.source)
        if place.guild_id is None:
            body |= {"user": user.wire(), "context": 1}
        else:
            guild, may = world.guilds[place.guild_id], str(int(world.permissions(user.id, place)))
            body |= {"guild_id": guild.id, "guild_locale": "en-US", "context": 0}
            body |= {"guild": {"id": guild.id, "locale": "en-US", "features": []}}
            body["member"] = guild.members[user.id].wire() | {"permissions": may}
        world.send(Event(name="INTERACTION_CREATE", data=body, guild_id=place.guild_id))


def _has(may: Permission, needed: int) -> bool:
    return Permission.ADMINISTRATOR in may or needed & int(may) == needed


def _leaf(command: JSON, path: list[str]) -> JSON:
    """The command or subcommand that has the options."""
    found = command
    for name in path:
        found = next(each for each in found.get("options") or [] if each["name"] == name)
    options = found.get("options") or []
    if any(each["type"] in {SUBCOMMAND, GROUP} for each in options):
        raise LookupError(f"/{command['name']} is only used with one of {[each['name'] for each in options]}")
    return {**found, "options": options}


def _given(declared: list[JSON], options: dict[str, Any]) -> list[JSON]:
    """The options as sent, after the checks that a client makes before it sends them."""
    by_name = {each["name"]: each for each in declared}
    if unknown := options.keys() - by_name.keys():
        raise LookupError(f"there are no options {sorted(unknown)}")
    if missing := [each["name"] for each in declared if each.get("required") and each["name"] not in options]:
        raise LookupError(f"the options {missing} are required")
    for name, value in options.items():
        _check_value(by_name[name], value)
    return [{"name": name, "type": by_name[name]["type"], "value": value} for name, value in options.items()]


def _check_value(option: JSON, value: Any) -> None:
    assert isinstance(value, TYPES[option["type"]]), f"{option['name']} does not take {value!r}"
    choices = [each["value"] for each in option.get("choices") or []]
    assert not choices or value in choices, f"{option['name']} offers only {choices}"
    most = option.get("max_length", 6000)
    assert not isinstance(value, str) or len(value) <= most, f"{option['name']} takes at most {most} characters"


def _nested(command: JSON, path: list[str], options: list[JSON]) -> list[JSON]:
    """Wrap the options into the subcommands that lead to them."""
    if not path:
        return options
    inner = next(each for each in command.get("options") or [] if each["name"] == path[0])
    return [{"name": path[0], "type": inner["type"], "options": _nested(inner, path[1:], options)}]
