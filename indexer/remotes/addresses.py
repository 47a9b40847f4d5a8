"""Addresses of repositories: which ones can be fetched, when two are the same, and how to display them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from indexer.errors import BadAddress
from indexer.text.linear_patterns import compile_pattern

Scheme = Literal["https", "http", "ssh", "file"]

_SCHEMES: dict[str, Scheme] = {
    "https": "https",
    "http": "http",
    "ssh": "ssh",
    "git+ssh": "ssh",
    "ssh+git": "ssh",
    "file": "file",
}
_SCP_LIKE = re.compile(r"(?:(?P<user>[A-Za-z0-9._-]+)@)?(?P<host>[A-Za-z0-9.-]+):(?P<path>[^:].*)")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+")
_UNPRINTABLE = re.compile(r"[^\x21-\x7e\u00a1-\U0010fffd]")
# After a scheme, or before the host of `user:password@host`, which is not an address but is written nevertheless.
_CREDENTIALS = compile_pattern(r"(://)[^/?#\s]*@|[^\s/:'\"(]{1,64}:[^\s/]{1,100}@")
_USUAL_PORTS = {"https": 443, "http": 80}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Hosts that serve ssh on the port of https, under another name.
_SSH_HOSTS = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """A repository's address in its parts; `host` is in lower case, and empty for files."""

    scheme: Scheme
    user: str | None
    host: str
    port: int | None
    path: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse an address; `BadAddress` for one that cannot be fetched, without repeating a password."""
        if not url or url.startswith("-") or _UNPRINTABLE.search(url):
            raise BadAddress(
                f"{redact_address(url)!r} is not a repository address. Write it as https://host/team/project."
            )
        if url.startswith("/"):
            return _check_address(cls(scheme="file", user=None, host="", port=None, path=url), url)
        if "://" in url:
            return _parse_url(url)
        match = _SCP_LIKE.fullmatch(url)
        if match is None or "::" in url:
            raise BadAddress(
                f"{redact_address(url)!r} is not a repository address. Write it as https://host/team/project."
            )
        return _check_address(
            cls(scheme="ssh", user=match["user"], host=match["host"].lower(), port=None, path=match["path"]), url
        )

    @property
    def authority(self) -> str:
        """Host and port, to which credentials are tied."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def project(self) -> str:
        """The path without its optional parts, in lower case: `team/project`."""
        return self.path.strip("/").removesuffix(".git").rstrip("/").casefold()

    @property
    def key(self) -> str:
        """The common part of all addresses of one repository: the web server and the project, without the scheme."""
        host = _SSH_HOSTS.get(self.host, self.host.removeprefix("www."))
        is_usual = self.scheme == "ssh" or self.port in {None, _USUAL_PORTS.get(self.scheme)}
        return f"{host if is_usual else f'{host}:{self.port}'}/{self.project}"

    @property
    def is_confidential(self) -> bool:
        """Whether data sent to the host is encrypted, or never leaves this machine."""
        return self.scheme in {"https", "ssh"} or self.host in _LOOPBACK


def redact_address(text: str, *secrets: str) -> str:
    """Remove secrets, and credentials of addresses, from a text for display."""
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    return _CREDENTIALS.sub(lambda found: found[1] or "", text)


def format_address(url: str) -> str:
    """Format an outside address for display: no credentials, no query, only printable characters."""
    return _UNPRINTABLE.sub("", redact_address(url)).partition("?")[0].partition("#")[0][:300]


def is_same_repository(one: str, other: str) -> bool:
    """Whether two addresses lead to the same repository; invalid ones never do."""
    try:
        return Address.parse(one).key == Address.parse(other).key
    except BadAddress:
        return False


def _parse_url(url: str) -> Address:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadAddress(f"{redact_address(url)!r} is not a repository address: its host is invalid.") from error
    scheme = _SCHEMES.get(parts.scheme)
    if scheme is None:
        raise BadAddress(
            f"Repositories cannot be fetched over {parts.scheme!r} ({redact_address(url)}). Use an address that begins "
            "with https://, ssh:// or file://."
        )
    if parts.password is not None:
        raise BadAddress(
            f"The address {redact_address(url)} contains a password. Remove it, put the token into a variable, and "
            "name the variable instead."
        )
    if parts.query or parts.fragment:
        raise BadAddress(f"The address {format_address(url)} continues after its path. Write it without ? and #.")
    host = (parts.hostname or "").lower()
    return _check_address(Address(scheme=scheme, user=parts.username, host=host, port=port, path=parts.path), url)


def _check_address(address: Address, url: str) -> Address:
    is_local = address.scheme == "file" and not address.host
    if not address.path.strip("/") or not (is_local or _HOST.fullmatch(address.host)):
        raise BadAddress(
            f"{redact_address(url)!r} does not name a repository on a host. Write it as https://host/team/project."
        )
    return address
