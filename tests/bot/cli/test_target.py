"""Commands find their repository by a path, a name of citebot.toml, or the current folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from bot.cli.main import cli
from tests.fakes.citebot import Citebot
from tests.fakes.repositories import GitRepo


@pytest.fixture
def site(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepo:
    """Another repository beside the shop, both in citebot.toml; the current folder is neither."""
    monkeypatch.delenv("CITEBOT_REPO")
    made = GitRepo(tmp_path / "site")
    made.write("pages.py", "def render_page():\n    return draw()\n\n\ndef draw():\n    return 1\n")
    made.write("old/pages.py", "def render_old_page():\n    return 1\n")
    made.commit()
    tables = f'[[repositories]]\npath = "{shop}"\nname = "the-shop"\n'
    tables += f'[[repositories]]\npath = "{made.root}"\nexclude = ["old/**"]\n'
    (tmp_path / "citebot.toml").write_text(tables, encoding="utf-8")
    return made


@pytest.mark.parametrize(
    "command",
    [
        ["ask", "who calls draw?"],
        ["callers", "draw"],
        ["index"],
        ["status"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.usefixtures("site")
@pytest.mark.exhaustive
def test_every_command_takes_a_repository_by_its_name(citebot: Citebot, command: list[str]) -> None:
    done = citebot(*command, "--json", "--repo", "site")

    assert done.code == 0, done
    assert "the-shop" not in done.out
    if command[0] not in {"status", "sweep", "index"}:
        assert "pages.py" in done.out


@pytest.mark.usefixtures("site")
def test_a_question_about_two_repositories_gets_one_answer_from_both(citebot: Citebot) -> None:
    asked = citebot("ask", "what does this project do?", "--repo", "site", "--repo", "the-shop", "--json")
    found = citebot("--repo", "site", "ask", "where is draw defined?", "--repo", "the-shop", "--json")
    shown = citebot("ask", "where is draw defined?", "--repo", "site", "--repo", "the-shop")

    assert list(json.loads(asked.out)["commits"]) == ["site", "the-shop"]
    answer = json.loads(found.out)
    assert answer["answer"].startswith("`draw` is defined in `site/pages.py` [1]")
    assert (answer["citations"][0]["repository"], answer["citations"][0]["path"]) == ("site", "pages.py")
    assert answer["citations"][0]["commit"] == answer["commits"]["site"]
    assert (found.code, shown.code) == (0, 0)
    assert "[1] site/pages.py:5-6" in shown.out


@pytest.mark.parametrize(
    ("question", "repositories"),
    [
        ("in all repositories, who calls draw?", ["site", "the-shop"]),
        ("across site and the-shop, who calls draw?", ["site", "the-shop"]),
        ("in site, who calls draw?", ["site"]),
    ],
)
@pytest.mark.usefixtures("site")
@pytest.mark.exhaustive
def test_words_that_only_name_the_repositories_are_no_part_of_the_question(
    citebot: Citebot, question: str, repositories: list[str]
) -> None:
    named = [word for name in repositories for word in ("--repo", name)]

    done = citebot("ask", question, *named)

    assert done.out.startswith("1 call of `draw` [1]:"), done


@pytest.mark.usefixtures("site")
@pytest.mark.exhaustive
def test_one_name_twice_is_one_repository(citebot: Citebot) -> None:
    twice = citebot("ask", "where is draw defined?", "--repo", "site", "--repo", "site", "--json")
    alike = citebot("ask", "where is draw defined?", "--repo", "site", "--repo", "SITE")

    assert json.loads(twice.out)["repository"] == "site"
    assert "Two of these repositories have the same name" in alike.err


@pytest.mark.usefixtures("site")
@pytest.mark.exhaustive
def test_the_doctor_looks_at_the_named_repository_alone(citebot: Citebot) -> None:
    told = citebot("doctor", "--repo", "site").out

    assert "site is not indexed yet" in told
    assert "the-shop" not in told


@pytest.mark.usefixtures("site")
@pytest.mark.exhaustive
def test_a_conversation_is_about_the_named_repository(
    citebot: Citebot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lines").write_text("where is draw defined?\n", encoding="utf-8")
    with (tmp_path / "lines").open(encoding="utf-8") as lines:
        monkeypatch.setattr("sys.stdin", lines)
        done = citebot("--repo", "SITE", "chat")

    assert done.code == 0, done
    assert "pages.py" in done.out


@pytest.mark.parametrize("command", ["ask", "callers", "status"])
@pytest.mark.usefixtures("site")
def test_an_unknown_name_lists_the_known_ones(citebot: Citebot, command: str) -> None:
    done = citebot(command, *(() if command in {"index", "status"} else ("x",)), "--repo", "sight")

    assert done.code == 1
    assert done.complaint == (
        "There is no repository 'sight': no name in citebot.toml, and no folder. There are: the-shop, site."
    )


@pytest.mark.exhaustive
def test_a_folder_is_meant_by_a_path_even_where_it_is_called_as_a_repository(
    citebot: Citebot, site: GitRepo, tmp_path: Path
) -> None:
    other = GitRepo(tmp_path / "the-shop")
    other.write("a.py", "x = 1\n")
    other.commit()

    assert citebot("status", "--json", "--repo", "./the-shop").answer["path"] == str(other.root)
    assert citebot("status", "--json", "--repo", "the-shop").answer["path"] != str(other.root)
    assert citebot("status", "--json", "--repo", str(site.root)).answer["repository"] == "site"


def test_a_path_of_a_configured_repository_is_indexed_as_configured(
    citebot: Citebot, site: GitRepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert citebot("symbols", "render_old_page", "--repo", str(site.root / "old")).code == 1
    monkeypatch.setenv("CITEBOT_CONFIG", str(site.root.parent))
    monkeypatch.chdir(site.root)
    assert citebot("symbols", "render_old_page").code == 1  # `exclude` of its table counts here as well
    assert citebot("symbols", "render_page").code == 0


@pytest.mark.usefixtures("site")
def test_outside_of_a_repository_a_question_has_to_say_which(citebot: Citebot) -> None:
    assert citebot("ask", "who calls draw?").complaint == (
        "Which repository is meant? Name it: --repo NAME. There are: the-shop, site."
    )


@pytest.mark.exhaustive
def test_the_only_repository_of_the_settings_is_meant(
    citebot: Citebot, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CITEBOT_REPO")
    (tmp_path / "citebot.toml").write_text(f'[[repositories]]\npath = "{shop}"\n', encoding="utf-8")

    assert "shop/dates.py" in citebot("symbols", "parse_date").out


@pytest.mark.exhaustive
def test_indexing_without_a_name_indexes_all_and_reports_those_that_fail(
    citebot: Citebot, site: GitRepo, tmp_path: Path
) -> None:
    with (tmp_path / "citebot.toml").open("a", encoding="utf-8") as file:
        file.write(f'[[repositories]]\nname = "lost"\npath = "{tmp_path / "lost"}"\n')

    done = citebot("index", "--json")

    assert done.code == 1
    assert [each["repository"] for each in json.loads(done.out)["repositories"]] == ["the-shop", "site"]
    assert str(tmp_path / "lost") in done.err


@pytest.mark.exhaustive
def test_a_repository_of_another_machine_is_fetched_when_it_is_asked_about(
    citebot: Citebot, site: GitRepo, tmp_path: Path
) -> None:
    table = f'[[repositories]]\nurl = "file://{site.root}"\nname = "far"\n'
    (tmp_path / "citebot.toml").write_text(table, encoding="utf-8")
    first = citebot("callers", "draw", "--repo", "far")
    assert "pages.py:2" in first.out
    assert first.err == "Fetching far ...\nIndexing the repository ...\n"

    site.write("pages.py", "def render_page():\n    return paint()\n\n\ndef paint():\n    return 1\n")
    site.commit()
    assert citebot("callers", "paint", "--repo", "far").code == 0

    site.root.rename(site.root.with_name("gone"))  # the host is down: what was fetched has to do
    done = citebot("callers", "paint", "--repo", "far")
    assert done.code == 0
    assert "Using the index at " in done.err


@pytest.mark.usefixtures("site")
@pytest.mark.exhaustive
def test_a_shell_completes_the_names_of_repositories() -> None:
    completion = BashComplete(cli, {}, "citebot", "_CITEBOT_COMPLETE")

    offered = completion.get_completions(["callers", "--repo"], "si")

    assert [(each.type, each.value) for each in offered] == [("dir", "si"), ("plain", "site")]
