"""A repository on another machine, as the operator configures it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from indexer.errors import BadAddress
from indexer.git.permalinks import find_web_base
from indexer.remotes.addresses import Address

if TYPE_CHECKING:
    from pydantic import SecretStr

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
# Names that git does not allow for a branch, or would take for something else.
_NO_BRANCH = re.compile(r"^[-/.]|[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)|[/.]$|^@$")
_MAX_TOKEN = 4_000  # characters; more would not fit the pipe that hands it to git
# The user that a token signs in as, where the host requires one; other hosts accept any.
_USERS = {"bitbucket.org": "x-token-auth"}
_ANY_USER = "x-access-token"


@dataclass(frozen=True, kw_only=True)
class RemoteRepository:
    """The repository to fetch, and the files of it to index; `BadAddress` for invalid values.

    Without a `branch` the host's default one is followed. The token signs in over HTTPS as `user`;
    over ssh the ssh agent signs in, without a token. `web_url` is derived for known hosts. The
    newest `depth` commits of the branch are fetched, or all of them. `branches` are names or
    patterns of others that are kept as well.
    """

    name: str
    url: str
    branch: str | None = None
    token: SecretStr | None = field(default=None, repr=False)
    user: str | None = None
    web_url: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    depth: int | None = None
    branches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for problem in self._find_problems():
            raise BadAddress(problem)

    @property
    def address(self) -> Address:
        """The address in its parts."""
        return Address.parse(self.url)

    @property
    def page(self) -> str | None:
        """The project's page on the web, which links to lines begin with."""
        return self.web_url or find_web_base(self.url)

    @property
    def sign_in(self) -> tuple[str, str] | None:
        """User and token, in this order; None without a token."""
        if self.token is None:
            return None
        address = self.address
        return self.user or address.user or _USERS.get(address.host, _ANY_USER), self.token.get_secret_value()

    @property
    def folder_name(self) -> str:
        """A readable folder name, unique to this name and address."""
        address = self.address
        place = hashlib.blake2b(f"{self.name}\0{address.key}\0{address.path}".encode(), digest_size=6).hexdigest()
        return f"{re.sub(r'[^A-Za-z0-9_-]', '-', self.name)[:60]}-{place}.git"

    def _find_problems(self) -> Iterator[str]:
        if not _NAME.fullmatch(self.name):
            yield f"{self.name!r} is not a valid name for a repository. Use letters, digits, dots, hyphens and slashes."
        if self.branch is not None and (not self.branch or _NO_BRANCH.search(self.branch)):
            yield f"{self.branch!r} is not a valid branch name. Use a name that git branch shows."
        if self.depth is not None and self.depth < 1:
            yield f"{self.depth} is not a number of commits. Set the depth of {self.name} to at least 1 or omit it."
        address = self.address  # raises `BadAddress` with or without a token
        if self.token is not None:
            yield from self._find_token_problems(address)

    def _find_token_problems(self, address: Address) -> Iterator[str]:
        _, token = self.sign_in or ("", "")
        if not token or len(token) > _MAX_TOKEN or not token.isascii() or not token.isprintable():
            yield f"The token of {self.name} is empty or not a single word. Set its variable to the token alone."
        if self.user is not None and (not self.user or not self.user.isprintable()):
            yield f"The user that signs in to {self.name} contains unprintable characters. Correct it."
        if address.scheme in {"ssh", "file"}:
            yield f"{self.name} is not fetched over HTTPS, so its token is never used. Remove it, or use https://."
        if not address.is_confidential:
            yield f"The token of {self.name} would be sent unencrypted. Use an address that begins with https://."
