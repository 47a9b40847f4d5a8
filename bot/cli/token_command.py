"""Makes a token for the programs of a person, and says where its checksum and the token itself belong."""

from __future__ import annotations

import re

from bot.errors import SettingsError
from bot.settings import PERSON
from bot.surfaces.principals import hash_token, make_token

_NOT_A_PERSON = "{person!r} is not a person. Write the platform and the id there, such as slack:U0123 or discord:123."


def write_token(person: str) -> str:
    """Make a token, which is shown once and stored nowhere."""
    if not re.fullmatch(PERSON, person):
        raise SettingsError(_NOT_A_PERSON.format(person=person[:80]))
    made = make_token()
    return (
        f"Put this into citebot.toml, and restart `citebot serve`:\n\n"
        f'[[mcp.tokens]]\nperson = "{person}"\nsha256 = "{hash_token(made)}"\n\n'
        f"Give this to {person}, who keeps it secret; it is not shown again:\n\n{made}"
    )
