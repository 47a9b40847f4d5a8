"""Application commands: what is registered, everywhere or in one server, and how often that was changed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.fakes.discord.errors import DiscordError, invalid, too_long
from tests.fakes.discord.requests import Ask, Endpoint
from tests.fakes.discord.world import World
from tests.fakes.loopback.wire import JSON

CHAT, USER, MESSAGE = 1, 2, 3
SUBCOMMAND, GROUP = 1, 2
MAX_COMMANDS, MAX_OPTIONS, MAX_CREATES = 100, 25, 200
ANYWHERE = ""
_NAME = re.compile(r"[-_'\w]{1,32}")


@dataclass
class Commands:
    """The registered commands; `writes` counts the calls that registered something."""

    world: World
    scopes: dict[str, dict[str, JSON]] = field(default_factory=dict)
    writes: int = 0
    _creates: dict[str, int] = field(default_factory=dict)

    def endpoints(self) -> list[Endpoint]:
        """Everything that is answered here."""
        path, name = "/applications/{application}/commands", "global_application_commands"
        return [
            Endpoint(name=f"get_{name}", method="GET", path=path, answer=self.listed),
            Endpoint(name=f"bulk_overwrite_{name}", method="PUT", path=path, answer=self.overwrite),
        ]

    def named(self, name: str) -> JSON:
        """The command of this name."""
        for command in self.scopes.get(ANYWHERE, {}).values():
            if command["name"] == name:
                return command
        raise LookupError(f"no command /{name} is registered here")

    def listed(self, ask: Ask) -> list[JSON]:
        """List commands."""
        return list(self._scope(ask).values())

    def overwrite(self, ask: Ask) -> list[JSON]:
        """Replace all commands; those that keep their name and type keep their id."""
        before = {(each["name"], each["type"]): each["id"] for each in self._scope(ask).values()}
        if len(ask.body) > MAX_COMMANDS:
            raise DiscordError(30032)
        made = [self._made(ask, body, before) for body in ask.body]
        self.writes += 1
        self.scopes[ask.path.get("guild", ANYWHERE)] = {each["id"]: each for each in made}
        self.world.touch()
        return made

    def _scope(self, ask: Ask) -> dict[str, JSON]:
        if ask.path["application"] != self.world.bot.id:
            raise DiscordError(50001)
        if "guild" in ask.path:
            self.world.guild(ask.path["guild"])
        return self.scopes.setdefault(ask.path.get("guild", ANYWHERE), {})

    def _made(self, ask: Ask, body: JSON, before: dict[tuple[str, int], str]) -> JSON:
        _check(body)
        scope, kind = ask.path.get("guild", ANYWHERE), body.get("type") or CHAT
        identity = before.get((body["name"], kind))
        if identity is None:
            self._creates[scope] = self._creates.get(scope, 0) + 1
            if self._creates[scope] > MAX_CREATES:
                raise DiscordError(30034)
        place: JSON = {"guild_id": scope} if scope else {"dm_permission": True}
        fixed = {"application_id": self.world.bot.id, "version": self.world.ids.next(), "type": kind}
        defaults: JSON = {"description": "", "nsfw": False, "default_member_permissions": None, "options": []}
        return defaults | place | body | fixed | {"id": identity or self.world.ids.next()}


def _check(body: JSON) -> None:
    kind = body.get("type") or CHAT
    name = str(body.get("name", ""))
    if kind == CHAT and (not _NAME.fullmatch(name) or name != name.lower()):
        raise invalid("name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    if kind == CHAT and not 1 <= len(body.get("description") or "") <= 100:
        raise too_long("description", 100, 1)
    _check_options(body.get("options") or [])


def _check_options(options: list[JSON]) -> None:
    if len(options) > MAX_OPTIONS:
        raise too_long("options", MAX_OPTIONS)
    needed = [bool(each.get("required")) for each in options if each["type"] not in {SUBCOMMAND, GROUP}]
    if needed != sorted(needed, reverse=True):
        message = "Required options must be placed before non-required options"
        raise invalid("options", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message)
    for number, option in enumerate(options):
        if not 1 <= len(option.get("description") or "") <= 100:
            raise too_long(f"options.{number}.description", 100, 1)
        _check_options(option.get("options") or [])
