"""Principals: the people for whom a surface asks, found by a request's token."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from bot.messages import IncomingMessage, Place
from bot.settings import TokenTable

TOKEN_BYTES = 32
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)
LONGEST_TOKEN = 400  # characters that are looked at


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    """A person in the rules of access and the limits of questions: `platform` with their id there.

    `name` is their name in the log and on the page. Through a surface they see the same as in a direct message on their
    platform.
    """

    name: str
    platform: str
    person: str
    roles: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The person's unique name, as `slack:U123`."""
        return f"{self.platform}:{self.person}"

    def write(self, text: str = "", *, about: tuple[str, ...] = ()) -> IncomingMessage:
        """Return a message as if the person had written it to citebot directly."""
        return IncomingMessage(
            place=Place(platform=self.platform, workspace="", channel=""),
            id=uuid.uuid4().hex,
            author=self.person,
            text=text,
            kind="direct",
            sent_at=time.time(),
            author_name=self.name,
            roles=self.roles,
            private=True,
            about=about,
        )


def make_local_principal() -> Principal:
    """Return the person at this machine, with the same view as their terminal."""
    return Principal(name="you", platform="terminal", person="local")


class Tokens:
    """The accepted tokens, known only by their checksums."""

    def __init__(self, entries: Sequence[TokenTable]) -> None:
        self._known = [(entry.sha256.encode(), _make_principal(entry.person)) for entry in entries]

    def __bool__(self) -> bool:
        """Whether anybody has a token."""
        return bool(self._known)

    def find(self, token: str) -> Principal | None:
        """Return a token's owner; the time this takes reveals nothing about known tokens."""
        digest = hash_token(token[:LONGEST_TOKEN]).encode()
        found = None
        for known, principal in self._known:
            if hmac.compare_digest(known, digest):
                found = principal
        return found if len(token) <= LONGEST_TOKEN else None


def find_bearer(given: Sequence[str], tokens: Tokens) -> Principal | None:
    """Return the owner of the one token in a request's `Authorization` headers."""
    match = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
    return tokens.find(match[1]) if match is not None else None


def make_token() -> str:
    """Make an unpredictable token."""
    return f"citebot_{secrets.token_urlsafe(TOKEN_BYTES)}"


def hash_token(token: str) -> str:
    """Return the checksum of a token, which is long and random and needs no salt or slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _make_principal(person: str) -> Principal:
    platform, _, own = person.partition(":")
    return Principal(name=person, platform=platform, person=own)
