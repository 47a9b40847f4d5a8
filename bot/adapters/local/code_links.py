"""The addresses of cited lines in the workspace: written as links to a host, read back as places in the code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

HOST = "code.localhost"  # a name that can lead nowhere but to this machine; the page opens such links itself
_PATH = re.compile(
    r"/(?P<name>[^/]+)/(?:blob/(?P<commit>[0-9a-f]{7,64})/(?P<path>.+)|commit/(?P<whole>[0-9a-f]{7,64}))"
)
_LINES = re.compile(r"L(?P<first>\d{1,9})(?:-L(?P<last>\d{1,9}))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkedPlace:
    """Lines of a file at a commit, as a link names them; `path` is empty if the commit itself is linked."""

    repository: str
    commit: str
    path: str = ""
    first_line: int = 0
    last_line: int = 0
    url: str | None = None

    @property
    def label(self) -> str:
        """Name the place to anyone who cannot see the link."""
        lines = f":{self.first_line}-{self.last_line}" if self.last_line > self.first_line else f":{self.first_line}"
        return f"{self.path}{lines if self.first_line else ''}" if self.path else f"commit {self.commit[:12]}"


def make_web_url(repository: str) -> str:
    """Return the address that links to the code of a repository begin with."""
    return f"http://{HOST}/{repository}"


def read_link(address: str) -> LinkedPlace | None:
    """Read a link to lines of code; None for any other link."""
    parts = urlsplit(address)
    found = _PATH.fullmatch(parts.path) if parts.netloc == HOST else None
    if found is None:
        return None
    lines = _LINES.fullmatch(parts.fragment)
    first = int(lines["first"]) if lines else 0
    return LinkedPlace(
        repository=unquote(found["name"]),
        commit=found["commit"] or found["whole"],
        path=unquote(found["path"] or ""),
        first_line=first,
        last_line=int(lines["last"] or first) if lines else first,
    )
