"""Weighs what was found in which repository: is one of them clearly meant, and which are likely? Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bot.routing.clues import RepositoryHint

CLEARLY = 2  # times as much must speak for one repository as for another, what both have left aside

Found = Mapping[str, Collection[RepositoryHint]]


def pick_winner(found: Found) -> str | None:
    """Return the one repository that is clearly meant, by what each of them has of the clues."""
    winners = [
        name for name in found if all(_is_clearly_better(found, name, other) for other in found if other != name)
    ]
    return winners[0] if len(winners) == 1 and found[winners[0]] else None


def sort_by_likelihood(found: Found, order: Sequence[str]) -> tuple[str, ...]:
    """Sort repositories by how much speaks for them; where that is equal, as in the order given."""
    rarity = {clue: sum(clue in each for each in found.values()) for each in found.values() for clue in each}
    weights = {name: sum(clue.weight / rarity[clue] for clue in found.get(name, ())) for name in order}
    return tuple(sorted(order, key=lambda name: -weights[name]))


def _is_clearly_better(found: Found, name: str, other: str) -> bool:
    mine, theirs = set(found[name]) - set(found[other]), set(found[other]) - set(found[name])
    weight = sum(clue.weight for clue in mine)
    return weight > 0 and weight >= CLEARLY * sum(clue.weight for clue in theirs)
