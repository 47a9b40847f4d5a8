from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.git.permalinks import find_web_base, make_permalink
from indexer.types import Location

SHA = "0123456789abcdef0123456789abcdef01234567"


def lines(path: str = "src/a.py", start: int = 3, end: int = 9) -> Location:
    return Location(path=path, start_line=start, end_line=end)


@pytest.mark.parametrize(
    ("remote", "base"),
    [
        ("https://github.com/o/r.git", "https://github.com/o/r"),
        ("https://www.github.com/o/r", "https://github.com/o/r"),
        ("http://github.com/o/r", "https://github.com/o/r"),
        ("git@github.com:o/r.git", "https://github.com/o/r"),
        ("GitHub.com:o/r", "https://github.com/o/r"),
        ("ssh://git@github.com/o/r.git", "https://github.com/o/r"),
        ("ssh://git@ssh.github.com:443/o/r.git", "https://github.com/o/r"),
        ("git://github.com/o/r.git", "https://github.com/o/r"),
        ("https://name:ghp_secret@github.com/o/r.git", "https://github.com/o/r"),
        ("https://token@gitlab.com/group/sub/r.git", "https://gitlab.com/group/sub/r"),
        ("ssh://git@gitlab.example.org:2222/g/r.git", "https://gitlab.example.org/g/r"),
        ("https://gitlab.example.org:8443/g/r.git", "https://gitlab.example.org:8443/g/r"),
        ("http://gitea.lan:3000/o/r.git", "http://gitea.lan:3000/o/r"),
        ("https://github.com/o/r.js.git", "https://github.com/o/r.js"),
    ],
)
def test_remotes_become_project_pages_without_credentials(remote: str, base: str) -> None:
    assert find_web_base(remote) == base


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/r.git",
        "file:///srv/git/r.git",
        "C:\\code\\r",
        "https://git.example.org/o/r.git",
        "https://notgithub.com/o/r",
        "https://dev.azure.com/o/p/_git/r",
        "https://github.com/only-owner",
        "https://github.com/o/r> <!channel>",
        "https://github.com/o/../r",
        "git@github.com:o/.",
        "https://[::1/o/r",
        "javascript://github.com/o/r",
        "https://github.com\\@evil.example/o/r",
    ],
)
def test_other_remotes_have_no_project_page(remote: str) -> None:
    assert find_web_base(remote) is None


@pytest.mark.parametrize(
    ("base", "link"),
    [
        ("https://github.com/o/r", f"https://github.com/o/r/blob/{SHA}/src/a.py#L3-L9"),
        ("https://github.example.com/o/r", f"https://github.example.com/o/r/blob/{SHA}/src/a.py#L3-L9"),
        ("https://gitlab.com/g/s/r", f"https://gitlab.com/g/s/r/-/blob/{SHA}/src/a.py#L3-9"),
        ("https://gitlab.lan:8443/g/r", f"https://gitlab.lan:8443/g/r/-/blob/{SHA}/src/a.py#L3-9"),
        ("https://bitbucket.org/o/r", f"https://bitbucket.org/o/r/src/{SHA}/src/a.py#lines-3:9"),
        ("https://codeberg.org/o/r", f"https://codeberg.org/o/r/src/commit/{SHA}/src/a.py#L3-L9"),
        ("https://git.example.org/o/r/", f"https://git.example.org/o/r/blob/{SHA}/src/a.py#L3-L9"),
    ],
)
def test_each_host_has_its_form_of_link(base: str, link: str) -> None:
    assert make_permalink(base, SHA, lines()) == link


@pytest.mark.parametrize(
    ("base", "tail"),
    [
        ("https://github.com/o/r", "#L3"),
        ("https://gitlab.com/o/r", "#L3"),
        ("https://bitbucket.org/o/r", "#lines-3"),
        ("https://codeberg.org/o/r", "#L3"),
    ],
)
def test_one_line_is_addressed_without_a_range(base: str, tail: str) -> None:
    link = make_permalink(base, SHA, lines(end=3))
    assert link is not None
    assert link.endswith("a.py" + tail)


@pytest.mark.parametrize("web_url", [None, ""])
def test_there_is_no_link_without_a_web_address(web_url: str | None) -> None:
    assert make_permalink(web_url, SHA, lines()) is None


@pytest.mark.parametrize(
    ("base", "query"),
    [
        ("https://github.com/o/r", "plain=1"),
        ("https://gitlab.com/o/r", "plain=1"),
        ("https://codeberg.org/o/r", "display=source"),
    ],
)
def test_rendered_files_are_linked_as_source(base: str, query: str) -> None:
    assert urlsplit(make_permalink(base, SHA, lines("docs/READ ME.md")) or "").query == query


def test_special_characters_of_paths_are_escaped() -> None:
    link = make_permalink("https://github.com/o/r", SHA, lines("a b/#1?(x)/ü%.py"))
    assert link == f"https://github.com/o/r/blob/{SHA}/a%20b/%231%3F%28x%29/%C3%BC%25.py#L3-L9"


BASES = ("https://github.com/o/r", "https://gitlab.com/g/s/r", "https://bitbucket.org/o/r", "https://codeberg.org/o/r")
# Bits of paths that have led out of places.
PARTS = ("..", ".", "/", "//", "\\", "%2e%2e", "%2E", "%", "%2f", "?", "#", "@", ":", "//evil.example", "a", " ", "\t",
         "\n", "\u3002", "\uff0e\uff0e", "\u2025", "\u202e", ";", "\0", ".git", "..%00", "&lt;", "ä")  # fmt: skip
hostile_paths = st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map("".join)
any_paths = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | hostile_paths


def browse(url: str) -> str:
    """Where a browser goes: it drops tabs and line breaks, takes backslashes for slashes, and follows dot segments."""
    parts = urlsplit("".join(char for char in url if char not in "\t\r\n"))
    climbed: list[str] = []
    for segment in parts.path.replace("\\", "/").split("/")[1:]:
        dots = segment.lower().replace("%2e", ".")
        if dots == "..":
            del climbed[-1:]
        elif dots != ".":
            climbed.append(segment)
    return f"{parts.scheme}://{parts.netloc}/{'/'.join(climbed)}"


@given(path=any_paths, base=st.sampled_from(BASES))
def test_a_link_never_leaves_its_project(path: str, base: str) -> None:
    link = make_permalink(base, SHA, lines(path))
    if link is None:
        return
    assert link.isascii()
    assert browse(link).startswith(f"{base}/")
    assert f"/{SHA}/" in browse(link)
    # A server may decode the path, and send the browser on to that.
    below = unquote(urlsplit(link).path).partition(f"/{SHA}/")[2].partition("?")[0].partition("#")[0]
    assert browse(f"{base}/{below}").startswith(f"{base}/")


@pytest.mark.parametrize(
    "path", ["..", "../../../evil/repo/x", "a/../../../../b", "..\\..\\x", "/x", "a//b", "a\nb", ""]
)
def test_what_would_lead_elsewhere_has_no_link(path: str) -> None:
    assert make_permalink("https://github.com/o/r", SHA, lines(path)) is None
