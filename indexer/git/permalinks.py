"""Web addresses of lines at a commit, derived from a repository's fetch address."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from urllib.parse import quote, urlsplit

from indexer.git.safe_paths import is_safe_path
from indexer.types import Location

_SCHEMES = frozenset({"http", "https", "ssh", "git", "git+ssh", "ssh+git", "git+https", "git+http"})
_SCP_LIKE = re.compile(r"(?:[^@/:\s]+@)?(?P<host>[A-Za-z0-9.-]{2,}):(?!//)(?P<path>[^\s]+)")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_PROJECT = re.compile(r"(?:[A-Za-z0-9_~.+-]+/)+[A-Za-z0-9_~.+-]+")

# Hosts that serve ssh on the port of https, under another name.
_SSH_HOSTS = {
    "ssh.github.com": "github.com",
    "altssh.gitlab.com": "gitlab.com",
    "altssh.bitbucket.org": "bitbucket.org",
}
# Files that the hosts show rendered, where lines have no anchors unless the link asks for the source.
_RENDERED = frozenset(
    ".md .markdown .mdx .mdown .rst .adoc .asciidoc .org .textile .rdoc .pod .ipynb .svg .csv .tsv .geojson".split()
)

_Form = Callable[[str, Location], str]


def find_web_base(remote: str) -> str | None:
    """Turn a remote's URL into the address of its project page, without credentials.

    None for files, for hosts whose software is unknown, and for anything that is not a plain project path.
    """
    parts = _split_remote(remote.strip())
    if parts is None:
        return None
    authority, path = parts
    project = path.strip("/").removesuffix(".git").rstrip("/")
    if _find_form(authority) is None or not _PROJECT.fullmatch(project) or not is_safe_path(project):
        return None
    scheme = "http" if remote.startswith("http:") and authority not in _SOFTWARE else "https"
    return f"{scheme}://{authority}/{project}"


def make_permalink(web_url: str | None, commit: str, location: Location) -> str | None:
    """Link to lines of a file at a commit, or to the commit if there is no path.

    None without a web address, and for a path that would lead elsewhere.
    `web_url` is a project page, from `find_web_base` or configured; links to unknown hosts have the form of GitHub's.
    """
    is_commit = not location.path and not location.start_line
    if not web_url or not (is_commit or is_safe_path(location.path)):
        return None
    base = web_url.rstrip("/").removesuffix(".git")
    form = _find_form(urlsplit(base).netloc) or _format_github
    return f"{base}/{form(commit, location) if not is_commit else _COMMIT_PAGES.get(form, 'commit/{}').format(commit)}"


def make_compare_link(web_url: str | None, older: str, newer: str) -> str | None:
    """Link to the difference between two commits; None without a web address."""
    if not web_url:
        return None
    base = web_url.rstrip("/").removesuffix(".git")
    form = _find_form(urlsplit(base).netloc) or _format_github
    pages: Mapping[_Form, str] = {
        _format_gitlab: f"-/compare/{older}...{newer}",
        _format_bitbucket: f"branches/compare/{newer}..{older}",
    }
    return f"{base}/{pages.get(form, f'compare/{older}...{newer}')}"


def _split_remote(remote: str) -> tuple[str, str] | None:
    """Split a URL into the authority of its web server and its path; ports are kept for web addresses only."""
    if "://" not in remote:
        match = _SCP_LIKE.fullmatch(remote)
        return (_normalize_host(match["host"]), match["path"]) if match else None
    try:
        parts = urlsplit(remote)
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is not a number, a malformed IPv6 address
        return None
    if parts.scheme not in _SCHEMES or not host or not _HOST.fullmatch(host):
        return None
    is_web = parts.scheme.removeprefix("git+").startswith("http")
    return _normalize_host(host) + (f":{port}" if is_web and port not in {None, 80, 443} else ""), parts.path


def _normalize_host(host: str) -> str:
    host = host.lower().removeprefix("www.")
    return _SSH_HOSTS.get(host, host)


def _find_form(authority: str) -> _Form | None:
    """Recognize a host's software by its name: a known one, or a label as in `gitlab.example.org`."""
    host = authority.rpartition("@")[2].partition(":")[0].lower().removeprefix("www.")
    if host in _SOFTWARE:
        return _SOFTWARE[host]
    labels = set(host.split(".")[:-1])
    return next((form for label, form in _LABELS.items() if label in labels), None)


def _format_github(commit: str, location: Location) -> str:
    return f"blob/{commit}/{_format_path(location, plain='plain=1')}#{_format_lines(location, 'L', '-L')}"


def _format_gitlab(commit: str, location: Location) -> str:
    return f"-/blob/{commit}/{_format_path(location, plain='plain=1')}#{_format_lines(location, 'L', '-')}"


def _format_bitbucket(commit: str, location: Location) -> str:
    return f"src/{commit}/{_format_path(location)}#{_format_lines(location, 'lines-', ':')}"


def _format_gitea(commit: str, location: Location) -> str:
    return f"src/commit/{commit}/{_format_path(location, plain='display=source')}#{_format_lines(location, 'L', '-L')}"


def _format_path(location: Location, *, plain: str = "") -> str:
    rendered = plain and PurePosixPath(location.path).suffix.lower() in _RENDERED
    return quote(location.path) + (f"?{plain}" if rendered else "")


def _format_lines(location: Location, prefix: str, separator: str) -> str:
    if location.end_line <= location.start_line:
        return f"{prefix}{location.start_line}"
    return f"{prefix}{location.start_line}{separator}{location.end_line}"


_SOFTWARE: dict[str, _Form] = {
    "github.com": _format_github,
    "gitlab.com": _format_gitlab,
    "bitbucket.org": _format_bitbucket,
    "codeberg.org": _format_gitea,
    "gitea.com": _format_gitea,
}
# The pages of commits that are not below `commit/`.
_COMMIT_PAGES: dict[_Form, str] = {_format_gitlab: "-/commit/{}", _format_bitbucket: "commits/{}"}
_LABELS: dict[str, _Form] = {
    "github": _format_github,
    "gitlab": _format_gitlab,
    "gitea": _format_gitea,
    "forgejo": _format_gitea,
    "codeberg": _format_gitea,
}
