"""What repositories are known by beside their names: pages on the web, channels, and what else they may be called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

# Names that are said of code so often that, alone, they do not even hint at a repository.
EVERYDAY = frozenset(
    "admin agent android api app apps auth backend base bot build cache ci cli client clients cloud code common config "
    "console contrib core dashboard data database db demo deploy design dev doc docs email engine event events example "
    "examples extension framework front frontend gateway go helper helpers home image images index indexer infra "
    "integration internal ios java job jobs js kernel lib libs library library log logging logs main manager master "
    "message messages metrics mobile model models module modules monitor monorepo network node notifications package "
    "packages page pages parser patch platform plugin plugins portal private proxy public python queue release report "
    "reports rest router runtime rust schema script scripts sdk search security server service services settings setup "
    "shared site source src stack static storage store stream style system task tasks template templates test testing "
    "tests theme tool tooling tools type types ui user users util utils view views web webapp website worker workers"
    .split()
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RepositoryProfile:
    """What stands for a repository beside its name: its page on the web, and the channels that it belongs to."""

    page: str = ""
    channels: tuple[str, ...] = ()


def map_aliases(signs: Mapping[str, RepositoryProfile]) -> Mapping[str, str]:
    """Map what repositories may be called, lower case, to their names; what several may be called is none's."""
    meant: defaultdict[str, set[str]] = defaultdict(set)
    for name, sign in signs.items():
        path = unquote(urlsplit(sign.page).path).strip("/")
        for alias in (name.rpartition("/")[2], path, path.rpartition("/")[2]):
            meant[alias.casefold()].add(name)
    single = {alias: next(iter(names)) for alias, names in meant.items() if alias and len(names) == 1}
    exact: defaultdict[str, list[str]] = defaultdict(list)
    for name in signs:
        exact[name.casefold()].append(name)
    return single | {alias: names[0] for alias, names in exact.items() if len(names) == 1}
