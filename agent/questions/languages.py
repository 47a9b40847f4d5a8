"""Distinguishes English questions from others by their commonest words and letters."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W\d_]{1,30}")
_FOREIGN_LETTERS = 0.3  # the share of letters beyond Latin ones from which a question is no English one
_LATIN = 0x250  # the first letter after the Latin ones
_MIN_WORDS = 2  # words of other languages that it takes
_ENGLISH = frozenset(
    """a an and are as at be by can did do does for from has have how if in into is it its not of on or should that the
    their there these they this to was we were what when where which who why will with you""".split()
)
# Words that are no English ones as well, of German, French, Spanish, Portuguese, Italian, Dutch, Polish and Swedish.
OTHER_WORDS = frozenset(
    """der den dem des ein eine einen einer und oder ist sind wird werden wurde wie wo warum welche welcher wer nicht
    mit von für auf bei aus nach zu zum zur gibt wenn beim macht le les une du et est où comment pourquoi quel
    quelle quels qui que dans pour avec sur quand fait el los las una dónde donde cómo como por qué cuál quién
    para del cuando hace os um uma são onde quem quando da na pelo pela il gli che è sono dove perché quale
    chi nel nella della het een zijn waar hoe waarom welke wordt voor jest są gdzie jak dlaczego który nie się
    ett är hur varför vilken och från till""".split()
)


def is_english(question: str) -> bool:
    """Whether a question is in English; without any telling words, it is."""
    words = [word.lower() for word in _WORD.findall(question)]
    letters = [letter for word in words for letter in word]
    foreign = sum(ord(letter) >= _LATIN for letter in letters)
    if foreign > _FOREIGN_LETTERS * len(letters):
        return False
    others = sum(word in OTHER_WORDS for word in words)
    return others < _MIN_WORDS or others <= sum(word in _ENGLISH for word in words)
