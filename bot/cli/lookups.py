"""Makes a command of every lookup, with arguments, options and help from its declaration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from agent import LOOKUPS, CodeLookup, Look, LookupResult, explain_arguments
from bot.adapters.terminal.output import CommandOutcome
from bot.cli.context import CliContext, add_at_option, add_json_option, add_repo_option
from bot.cli.query import pin_named

if TYPE_CHECKING:
    from bot.adapters.terminal.display import Terminal
    from bot.app import App

Lookup = CodeLookup[Any, LookupResult]


def make_lookup_commands() -> Mapping[str, click.Command]:
    """Return a command for each lookup, under its HTTP API name."""
    return {
        name: _make_command(name, each)
        for each in LOOKUPS
        for name in [each.known_as.get("api", each.name.replace("_", "-"))]
    }


def _make_command(name: str, lookup: Lookup) -> click.Command:
    @add_at_option
    @add_json_option
    @add_repo_option
    @click.pass_obj
    def look_up(invocation: CliContext, /, *, at: str, as_json: bool, repo: str | None, **written: Any) -> int:
        given = {key: value for key, value in written.items() if value not in {None, ()}}
        try:
            args = lookup.arguments.model_validate(given, strict=False)
        except ValidationError as error:
            raise click.UsageError(explain_arguments(error, lookup.arguments)) from error

        async def task(app: App, terminal: Terminal) -> CommandOutcome:
            from bot.app import make_redactor

            look = Look(await pin_named(app, terminal, at), make_redactor(app.settings), is_wide=True)
            result = await lookup.look_up(args, look)
            text = result.model_dump_json(ensure_ascii=True) if as_json else look.evidence().text
            return CommandOutcome(output=text, ok=result.coverage is None)

        return invocation.run_command(repo, task)

    fields = lookup.arguments.model_fields
    return click.command(
        name,
        params=[_make_parameter(field, info, is_main=field == lookup.argument_shown) for field, info in fields.items()],
        help=lookup.description,
    )(look_up)


def _make_parameter(name: str, field: FieldInfo, *, is_main: bool) -> click.Parameter:
    if is_main or field.is_required():
        return click.Argument([name], required=field.is_required())
    flag = f"--{name.replace('_', '-')}"
    if field.annotation is bool:
        return click.Option([flag], is_flag=True, help=field.description or f"{name.replace('_', ' ').capitalize()}.")
    is_list = isinstance(field.default, tuple)
    return click.Option([flag], multiple=is_list, help=field.description or f"[default: {field.default}]")
