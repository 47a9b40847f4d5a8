"""Finds the citebot.toml to read and decides whether to trust it: a repository's own sets nothing for its readers."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.errors import SettingsError

FILE_NAME = "citebot.toml"
CONFIG_VARIABLE = "CITEBOT_CONFIG"

# Keys that a merely found file may not set: places of data, destinations, access, tokens and
# taken, and what is loaded of a classifier and shown in the sandbox.
CHOSEN_ALONE = (
    "home", "embedder", "model", "small_model", "check_model", "fallback_model", "link_hosts", "web_host", "access",
    "guard", "keep_question_days", "mcp", "sandbox", "web",
)  # fmt: skip
_OF_REPOSITORIES = ("token_variable", "user", "environments")


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigChoice:
    """The citebot.toml to read, if any. A chosen one may set everything; `remark` tells of one that is not read."""

    path: Path | None = None
    is_chosen: bool = False
    remark: str = ""

    def find_refused(self, content: Mapping[str, Any]) -> Collection[str]:
        """Name the keys that a file which nobody chose may not set."""
        if self.is_chosen:
            return ()
        tables = content.get("repositories")
        inner = (
            {key for table in tables if isinstance(table, dict) for key in table} if isinstance(tables, list) else ()
        )
        return [*(key for key in CHOSEN_ALONE if key in content), *(key for key in _OF_REPOSITORIES if key in inner)]

    def explain_refusal(self, keys: Collection[str]) -> str:
        """Explain how to choose a file that sets such keys."""
        what = ", ".join(keys)
        advice = _describe_choosing(self.path or Path(FILE_NAME))
        return f"{FILE_NAME}: {what} may not be set by a file that you did not name. {advice}"


def choose_config(named: str | None, directory: Path, config_home: Path) -> ConfigChoice:
    """Choose the named file, or the one in the named folder; else that of a directory, else that of the user.

    A directory's file counts only if nobody else can have put it there.
    """
    if named:
        return ConfigChoice(path=_find_named(directory / named), is_chosen=True)
    own, found = config_home / FILE_NAME, directory / FILE_NAME
    remark = ""
    if found.is_file():
        reason = _explain_distrust(found)
        if not reason:
            return ConfigChoice(path=found)
        remark = f"{found.absolute()} is not read: {reason}. {_describe_choosing(found)}"
    return ConfigChoice(path=own if own.is_file() else None, is_chosen=True, remark=remark)


def _find_named(path: Path) -> Path | None:
    if path.is_dir():
        inside = path / FILE_NAME
        return inside if inside.is_file() else None
    if not path.is_file():
        raise SettingsError(f"{CONFIG_VARIABLE} names {path}, which does not exist. Create it or unset the variable.")
    return path


def _explain_distrust(file: Path) -> str:
    """Return why a file that was found may be somebody else's; empty if it cannot."""
    place = file.parent.resolve()
    if lies_in_repository(place):
        return "it is in a repository, so anybody who can write there could change any setting"
    for found, open_to_all, of_another in (
        (place.stat(), "everybody may write in this directory", "the directory belongs to another user"),
        (file.stat(), "everybody may write to it", "it belongs to another user"),
    ):
        if found.st_mode & stat.S_IWOTH:
            return open_to_all
        if found.st_uid not in {os.geteuid(), 0}:
            return of_another
    return ""


def lies_in_repository(place: Path) -> bool:
    """Whether git would find a repository at or above a resolved path."""
    return any(_is_repository(folder) for folder in (place, *place.parents))


def _is_repository(folder: Path) -> bool:
    """Whether git would find a repository here: a working tree, or a bare one."""
    if os.path.lexists(folder / ".git"):
        return True
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _describe_choosing(path: Path) -> str:
    return f"If it is yours, name it: {CONFIG_VARIABLE}={shlex.quote(str(path.absolute()))}"
