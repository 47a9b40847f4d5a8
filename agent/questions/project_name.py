"""Reads the repository's own name in a question as "this project"."""

from __future__ import annotations

_ENDS = "?!.,:;"
_POSSESSIVE = ("'s", "’s")


def refer_to_project(question: str, repository: str) -> str:
    """Write "this project" for the repository's name; in backticks, a path or a longer name it means something else."""
    name = repository.rpartition("/")[2].lower()
    return " ".join(_replace_name(word, name) for word in question.split())


def _replace_name(word: str, name: str) -> str:
    bare = word.rstrip(_ENDS)
    owned = next((end for end in _POSSESSIVE if bare.endswith(end)), "")
    if not name or bare.removesuffix(owned).lower() != name:
        return word
    return f"this project{owned}{word[len(bare) :]}"
