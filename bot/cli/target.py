"""The repository of a command: a path, a name in citebot.toml, or the one around the current folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bot.app import make_path_table, name_remote
from bot.errors import SettingsError
from bot.markdown import to_one_line
from bot.settings import FILE_NAME, RepositoryTable, Settings, lies_in_repository
from indexer import IndexerError, locate_repository


def choose_table(settings: Settings, named: str | None) -> RepositoryTable:
    """Choose the one repository; `SettingsError` lists the choices."""
    if named is None:
        return _choose_unnamed(settings)
    is_path = named.startswith((".", "~")) or "/" in named
    if not is_path and (table := _find_by_name(settings, named)) is not None:
        return table
    path = _expand(named)
    if settings.repositories and not path.exists():
        known = ", ".join(list_repository_names(settings))
        raise SettingsError(
            f"There is no repository {to_one_line(named)[:80]!r}: no name in {FILE_NAME}, and no folder. "
            f"There are: {known}."
        )
    return _find_by_path(settings, path)


def choose_tables(settings: Settings, named: str | None) -> Sequence[RepositoryTable]:
    """Choose the repositories: all of the settings by default."""
    if named is None and settings.repo is None and settings.repositories and not _is_within_a_repository():
        return settings.repositories
    return (choose_table(settings, named),)


def narrow_settings(settings: Settings, named: str | None) -> Settings:
    """Limit the settings to the named repository; without a name they stay unchanged."""
    if named is None:
        return settings
    return settings.model_copy(update={"repositories": (choose_table(settings, named),)})


def list_repository_names(settings: Settings) -> list[str]:
    """Name the repositories of the settings, in their order."""
    return [_read_name(settings, table) for table in settings.repositories]


def complete_names(beginning: str) -> list[str]:
    """Complete the names of repositories; none if the settings cannot be read, because a completion reports
    no errors.
    """
    try:
        names = list_repository_names(Settings.load())
    except (SettingsError, IndexerError):
        return []
    return [name for name in names if name.casefold().startswith(beginning.casefold())]


def _choose_unnamed(settings: Settings) -> RepositoryTable:
    if settings.repo is not None:
        return _find_by_path(settings, settings.repo)
    if not settings.repositories or _is_within_a_repository():
        return _find_by_path(settings, Path.cwd())
    if len(settings.repositories) > 1:
        known = ", ".join(list_repository_names(settings))
        raise SettingsError(f"Which repository is meant? Name it: --repo NAME. There are: {known}.")
    return settings.repositories[0]


def _is_within_a_repository() -> bool:
    return lies_in_repository(Path.cwd().resolve())


def _find_by_name(settings: Settings, named: str) -> RepositoryTable | None:
    wanted = named.casefold()
    by_name = ((name, table) for name, table in _iter_names(settings) if name.casefold() == wanted)
    return next((table for _, table in by_name), None)


def _iter_names(settings: Settings) -> Iterator[tuple[str, RepositoryTable]]:
    """Yield names and tables; those that need git come last."""
    for table in sorted(settings.repositories, key=lambda each: each.name is None and each.url is None):
        yield _read_name(settings, table), table


def _read_name(settings: Settings, table: RepositoryTable) -> str:
    if table.path is None:
        return name_remote(settings, table)
    if table.name is not None:
        return table.name
    try:
        return locate_repository(table.path).name
    except IndexerError:  # it is called so until it can be read
        return table.path.name


def _find_by_path(settings: Settings, path: Path) -> RepositoryTable:
    """Describe the repository around a path, as configured if the settings have it."""
    place = path.resolve()
    for table in settings.repositories:
        if table.path is not None and _is_near(place, table.path.resolve()) and _is_same(place, table.path):
            return table
    return make_path_table(settings, path)


def _is_near(place: Path, other: Path) -> bool:
    return place.is_relative_to(other) or other.is_relative_to(place)


def _is_same(place: Path, other: Path) -> bool:
    """Whether two paths are in one repository; one could be a submodule within the other."""
    try:
        return locate_repository(place).root == locate_repository(other).root
    except IndexerError:
        return False


def _expand(named: str) -> Path:
    try:
        return Path(named).expanduser()
    except RuntimeError as error:
        raise SettingsError(f"There is no home folder for {to_one_line(named)[:80]}.") from error
