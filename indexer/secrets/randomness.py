"""Tells text that was drawn by lot from names and words: by how usual its pairs of characters are in code."""

from __future__ import annotations

import re
import string
from functools import lru_cache
from itertools import pairwise

# What a pair of letters costs in half bits, counted over names, words and paths in public code (C, JavaScript, Perl,
# Python and their documentation). A row is the first letter, a column the second; the last ones stand for any digit.
_PAIRS = """
    fa88gf9ibie687i9i675cdfccic
    6dbd7eeg79h6ef8di99d7higai9
    7ece7eh7ai88cf5di9b7bfihdic
    8cd94dcf6ihbdf9diaabbffheib
    9e88cbciefi8a7ecd677gce9die
    8ecd98gi5ii8dd6di9aa9ihidi9
    afbf4eca7ii8c99ci88bagiihie
    5gfe5ehi8igdcf7diab68hfidic
    bb89ab9iiig9947aib76ibidibf
    7hbe5ffhaibfff7cfh3f8geiiif
    acbc4dce6iicdbdcid9dadcfgib
    7eea58fi6ih7gg7dig9a9bihcie
    5adb5fhi7iga9f77ifadbfiieie
    8g877a7h9iddfc7cif76abiggie
    cb87gccichd975a8i6aa9cbfiii
    6fcc5efb9id8eg79i7889fii9id
    dedceefgeif8ddgcfabd2gehihe
    6fab4dai7idcac7di988cdgibif
    agaf5efa8icbdeaafe85affibid
    7gbe5ei86igcdg8ai7a9bhgg9ie
    b8bb7bciaii786f8i776ifieiid
    5gcf4dfi7ibb7gbciebdibhdii7
    6fcd7ffa5igdc87dh79dghaiiie
    9e9d8afhaibe9fe8ieb5gficdi5
    bdbcbedgciia98c4id78efdhige
    8ggf2ffe9iibcf9difbeehhfcd9
    dddc9diiiiigiiiiiihigiiaii1
"""
_HIGHER = 4.5  # bits that a capital behind a small letter costs beside its pair: `dbPassword` has few, `dBpAsS` many
_LOWER = 2.0  # a small letter behind a capital
_CAPITAL = 0.5  # a capital behind a capital
_SWITCH = 3.0  # a digit beside a letter
_RUN = re.compile(r"[A-Za-z0-9]{2,}")


def measure_surprise(value: str) -> tuple[float, int]:
    """Return the mean bits that letters and digits cost beside each other in a value, and how many such pairs it has.

    Names and words take about four bits a pair, and one in a hundred takes more than 5.5; what was drawn by lot takes
    seven or eight.
    """
    costs = _read_costs()
    total, pairs = 0.0, 0
    for run in _RUN.findall(value):
        total += sum(costs[pair] for pair in pairwise(run))
        pairs += len(run) - 1
    return (total / pairs if pairs else 0.0), pairs


@lru_cache(maxsize=1)
def _read_costs() -> dict[tuple[str, str], float]:
    rows = [[int(cost, 36) / 2 for cost in row] for row in _PAIRS.split()]
    place = {char: string.ascii_lowercase.find(char.lower()) for char in string.ascii_letters + string.digits}
    return {(one, two): rows[place[one]][place[two]] + _measure_change(one, two) for one in place for two in place}


def _measure_change(one: str, two: str) -> float:
    """Return the cost of a pair that changes the kind of character."""
    if one.isdigit() or two.isdigit():
        return _SWITCH if one.isalpha() or two.isalpha() else 0.0
    if two.isupper():
        return _CAPITAL if one.isupper() else _HIGHER
    return _LOWER if one.isupper() else 0.0
