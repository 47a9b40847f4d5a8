"""Groups the commands of `citebot --help` by purpose, and gives each an example."""

from __future__ import annotations

from collections.abc import Mapping

import click

# The lookups whose commands are made of the registry, and their titles there: that takes longer to load than all else.
LOOKUP_TITLES: Mapping[str, str] = {
    "read-file": "Read a file",
    "list-files": "List files",
    "find-files": "Find files",
    "grep": "Find lines",
    "file-history": "History of a file",
    "repository-log": "List commits",
    "compare-refs": "Compare two commits",
}
# By heading, the commands and an example of each, without `citebot` before it.
_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Ask": {
        "ask": 'ask "where are retries handled?"',
        "chat": "chat --repo website",
        "web": "web --port 0",
        "demo": "demo --repo ../website",
        "search": 'search "parse a date" --type code',
        "symbols": "symbols Session.send",
        "callers": "callers parse_date --graph calls.svg",
        "callees": "callees parse_date --json",
        "map": "map indexer/search",
        "languages": "languages sql",
        "graph": "graph --ascii",
        "goal": 'goal pytest "fix the parser" --select tests/parser',
    },
    "Look up": {
        "read-file": "read-file src/app.py --first-line 10 --end 40",
        "list-files": "list-files src",
        "find-files": "find-files '*.sql'",
        "grep": "grep 'def .*retry' --context 3",
        "file-history": "file-history README.md --line 12",
        "repository-log": "repository-log --since 2026-01-01",
        "compare-refs": "compare-refs v1.0 --to-ref v1.1",
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
        "gaps": "gaps --days 7",
        "replay": "replay 0f3c",
        "eval": "eval questions.toml --threshold 90",
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
        """Add a command to its group."""
        super().add_command(cmd, name)
        _add_example(cmd, name or cmd.name or "")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command of the table, or that of a lookup, made on demand."""
        if cmd_name not in LOOKUP_TITLES:
            return super().get_command(ctx, cmd_name)
        from bot.cli.lookups import make_lookup_commands

        return _add_example(make_lookup_commands()[cmd_name], cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands of the table and the lookups."""
        return [*super().list_commands(ctx), *LOOKUP_TITLES]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the commands of each group, in the order of the table."""
        for heading, group in _GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self._summarize(name)) for name in group])

    def _summarize(self, name: str) -> str:
        return f"{LOOKUP_TITLES[name]}." if name in LOOKUP_TITLES else self.commands[name].get_short_help_str(100)


def _add_example(command: click.Command, name: str) -> click.Command:
    command.epilog = f"Example: citebot {_EXAMPLES[name]}"
    return command
