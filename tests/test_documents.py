"""The documents and examples tell the truth about the commands, the settings and the project's files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from dotenv import dotenv_values
from prometheus_client import Metric

from bot.cli.diagram import format_mermaid
from bot.cli.main import cli
from bot.monitoring.metrics import ConversationMetrics, RunMetrics
from bot.settings import Settings, list_file_keys, list_variable_names
from tests.documents import DOCUMENTS, mentioned_commands, name_of, read, shown_commands

ROOT = Path(__file__).parent.parent
NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__", "node_modules"}
TEXTS = {".py", ".md", ".toml", ".txt", ".sh", ".yml", ".yaml", ".html", ".service", ".json", ".example", ""}


def project_files(folder: Path = ROOT) -> Iterator[Path]:
    """Every text file that belongs to the project."""
    for path in sorted(folder.iterdir()):
        if path.name in NOT_OURS or path.name.endswith(("_cache", ".egg-info", ".hypothesis")):
            continue
        if path.is_dir():
            yield from project_files(path)
        elif path.suffix in TEXTS:
            yield path


def makefile_targets() -> set[str]:
    """The targets that people may type."""
    (phony,) = re.findall(r"^\.PHONY: (.*)$", read(ROOT / "Makefile"), re.MULTILINE)
    return set(phony.split())


def options_of(command: click.Command) -> set[str]:
    """Every spelling of every option."""
    return {spelling for option in command.params for spelling in option.opts} | {"--help", "--version"}


def used_commands() -> list[tuple[str, ...]]:
    """Every `citebot ...` and `make ...` of the documents, in shell blocks and inline code, as words."""
    return [*(each.words for each in shown_commands()), *mentioned_commands()]


def test_every_documented_make_target_exists() -> None:
    named = {words[1] for words in used_commands() if words[0] == "make"}

    assert {"run", "ask", "serve", "help", "test", "lint"} <= named
    assert named <= makefile_targets()


def test_every_documented_command_and_option_exists() -> None:
    commands = [words[1:] for words in used_commands() if words[0] == "citebot" and words[1:]]

    for words in commands:
        found = cli.get_command(click.Context(cli), words[0])
        command = found or cli
        assert found is not None or words[0].startswith("--"), words
        if isinstance(command, click.Group) and command is not cli and words[1:]:
            assert words[1] in command.commands, words
            command = command.commands[words[1]]
        used = {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)}
        assert used <= options_of(command), " ".join(words)


def test_every_setting_is_documented() -> None:
    text = read(ROOT / "docs" / "configuration.md")

    assert [name for name in list_variable_names() if f"`{name}`" not in text] == []


def test_every_metric_is_documented() -> None:
    text = read(ROOT / "docs" / "operations.md")
    totals = {"counter": "_total"}
    names = {family.name + totals.get(family.type, "") for family in every_metric()}

    assert len(names) > 20
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def every_metric() -> Iterator[Metric]:
    """What `/metrics` tells, except the process's own figures."""
    metrics = ConversationMetrics()
    RunMetrics(metrics.registry, prices={})
    return (family for family in metrics.registry.collect() if not family.name.startswith("process_"))


def test_the_documented_diagram_is_the_graph() -> None:
    (drawn,) = re.findall(r"^```mermaid\n(.*?)^```", read(ROOT / "docs" / "internals.md"), re.MULTILINE | re.DOTALL)

    assert drawn.strip() == format_mermaid().strip()


def test_every_path_that_a_document_names_exists() -> None:
    form = re.compile(r"`((?:agent|benchmarks|bot|docs|indexer|requirements|scripts|tests)/[\w./-]*)`")
    named = sorted({(name_of(path), name) for path in DOCUMENTS for name in form.findall(read(path))})

    assert [(document, name) for document, name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("package", ["bot", "agent", "indexer"])
def test_the_documented_floors_have_every_room(package: str) -> None:
    (picture,) = re.findall(
        rf"^{package}/\n((?: [ \d]\d  .*\n)+)", read(ROOT / "docs" / "architecture.md"), re.MULTILINE
    )
    rooms = {room for line in picture.splitlines() for room in line.split()[1:]}
    modules = {path.stem for path in (ROOT / package).glob("*.py")} - {"__init__"}
    folders = {f"{path.parent.name}/" for path in (ROOT / package).glob("*/__init__.py")}

    assert rooms == modules | folders


def test_no_link_leads_nowhere() -> None:
    form = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
    lost = [
        f"{name_of(path)}: {name}#{anchor}"
        for path in [*DOCUMENTS, ROOT / "CHANGELOG.md"]
        for name, anchor in form.findall(read(path))
        if not leads_somewhere(path.parent / name if name else path, anchor)
    ]

    assert lost == []


def leads_somewhere(target: Path, anchor: str) -> bool:
    """Whether a file exists, and has the heading that a link names as GitHub does."""
    if not anchor or not target.is_file():
        return target.is_file()
    headings = re.findall(r"^#+ (.*)$", read(target), re.MULTILINE)
    return anchor in {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_the_environment_example_lists_every_variable_and_parses() -> None:
    example = dotenv_values(ROOT / ".env.example")

    assert set(example) == set(list_variable_names()) - {"CITEBOT_ENV_FILE"}
    Settings.load({name: value or "" for name, value in example.items()}, ROOT / "tests")


def test_the_environment_example_holds_the_defaults() -> None:
    example = {name: value or "" for name, value in dotenv_values(ROOT / ".env.example").items()}

    assert Settings.load(example, ROOT / "tests") == Settings.load({}, ROOT / "tests")


def test_the_configuration_example_lists_every_key_and_parses() -> None:
    path = ROOT / "citebot.example.toml"

    assert set(tomllib.loads(path.read_text(encoding="utf-8"))) == set(list_file_keys())
    Settings.load({"CITEBOT_CONFIG": str(path), "SITE_TOKEN": "a-token"}, ROOT)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pinned = {normal(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}

    assert {normal(requirement) for requirement in wanted} - pinned == set()


def normal(requirement: str) -> str:
    """The name of a requirement as package indexes compare it."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", match.group()).lower() if match else ""


def test_no_file_names_a_machine_or_a_package_index() -> None:
    # Assemble here, so that this file does not contain them.
    telltales = ["/work/" + "main", "/work/" + "shared", "/root/" + ".pyenv", "/opt/" + "pypi", "pypi" + ".org",
                 "python" + "hosted", "/simple" + "/"]  # fmt: skip
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in project_files()}

    assert [name_of(path) for path, text in texts.items() if any(each in text for each in telltales)] == []


def test_no_text_installs_by_a_name_that_anybody_may_register() -> None:
    texts = {path: path.read_text(encoding="utf-8", errors="replace") for path in project_files()}

    assert {name_of(path): found for path, text in texts.items() if (found := installs_by_name(text))} == {}


def installs_by_name(text: str) -> list[str]:
    """The commands that take our distribution from a package index, where the name is not ours."""
    name = rf"{re.escape(distribution_name())}(?![\w./-])"
    commands = (
        rf"\b(?:pip3?|pipx|uv(?: pip| tool)?|poetry|pdm|conda) (?:install|download|add)\b[^\n|&;`]*?[ \"']{name}",
        rf"\b(?:uvx|uv tool run|pipx run)(?: -\S+)* [\"']?{name}",
        rf"--(?:from|with|spec)[ =][\"']?{name}",
        rf"^{name}(?:\[[\w,]+\])? *[=<>~!]=",
    )
    return re.findall("|".join(commands), text.replace("\\\n", " "), re.MULTILINE)


def distribution_name() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["name"])


def test_every_promise_of_security_is_tested_by_files_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (promises,) = re.findall(r"^## Promises.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    paragraphs = re.findall(r"^\*\*.*?(?=\n\n)", promises, re.MULTILINE | re.DOTALL)

    assert len(paragraphs) >= 9
    for paragraph in paragraphs:
        assert re.search(r"^\*`tests/", paragraph, re.MULTILINE), paragraph
    for name in re.findall(r"`((?:tests|docs)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name
