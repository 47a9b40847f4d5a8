"""Groups the commands of `citebot --help` by what they are for, and gives each an example."""

from __future__ import annotations

from collections.abc import Mapping

import click

# By heading, the commands and an example of each, without `citebot` before it.
_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Ask": {
        "ask": 'ask "where are retries handled?"',
        "chat": "chat --repo website",
        "web": "web --port 0",
        "search": 'search "parse a date" --type code',
        "symbols": "symbols Session.send",
        "callers": "callers parse_date --graph calls.svg",
        "callees": "callees parse_date --json",
        "map": "map indexer/search",
        "graph": "graph --ascii",
        "goal": 'goal pytest "fix the parser" --select tests/parser',
    },
    "Set up": {
        "index": "index --full",
        "status": "status --files",
        "doctor": "doctor --call-model",
        "mcp": "mcp --print-config claude",
        "token": "token slack:U0123",
    },
    "Operate": {
        "serve": "serve --role all",
        "feedback": "feedback --since 30 --json",
        "questions": "questions --export asked",
        "backup": "backup citebot.backup",
        "restore": "restore citebot.backup --force",
        "migrate": "migrate --to-postgres",
        "sweep": "sweep --unused-indexes",
    },
}
_EXAMPLES = {name: example for group in _GROUPS.values() for name, example in group.items()}


class GroupedCommands(click.Group):
    """Lists its commands by group; each ends its own help with an example."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Take a command of a group."""
        super().add_command(cmd, name)
        cmd.epilog = f"Example: citebot {_EXAMPLES[name or cmd.name or '']}"

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of the table, or that of a lookup, which have to be loaded first."""
        return super().get_command(ctx, cmd_name) or _load_lookups().get(cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List those of the table and, where they have no other form there, those of lookups."""
        return list(dict.fromkeys([*super().list_commands(ctx), *_load_lookups()]))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the commands of each group, the lookups first, then in the order of the table."""
        lookups = {name: command for name, command in _load_lookups().items() if name not in self.commands}
        for heading, group in {"Look up": lookups, **_GROUPS}.items():
            with formatter.section(heading):
                rows = {name: self.commands.get(name) or lookups[name] for name in group}
                formatter.write_dl([(name, command.get_short_help_str(100)) for name, command in rows.items()])


def _load_lookups() -> Mapping[str, click.Command]:
    from bot.cli.lookups import make_lookup_commands

    return make_lookup_commands()
