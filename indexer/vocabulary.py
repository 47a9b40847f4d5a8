"""Numbers words: terms of the text, and names of definitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice


class Vocabulary:
    """Words and their numbers. It only grows, and a word keeps its number, so that generations can share one.

    A generation may meet words that came after it; they have numbers beyond its own.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self._numbers = _Numbers((word, number) for number, word in enumerate(words))

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, word: str) -> int | None:
        """The number of a word, None if it has never been seen."""
        return self._numbers.get(word)

    def add(self, words: Iterable[str]) -> Iterable[int]:
        """The numbers of words, given now to those that had none."""
        return map(self._numbers.__getitem__, words)

    def words(self) -> Sequence[str]:
        """All words, by number."""
        return list(self._numbers)  # a dictionary keeps the order in which numbers were given

    def since(self, number: int) -> tuple[str, ...]:
        """The words from a number on, without a look at those before."""
        return tuple(islice(reversed(self._numbers), len(self) - number))[::-1]


class _Numbers(dict[str, int]):
    """Numbers by word that counts on for a word it does not know; millions are looked up, so it must not call back."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number
