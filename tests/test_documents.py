"""The documents and examples tell the truth about the commands, the settings and the project's files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from dotenv import dotenv_values

from agent.diagrams.text import mermaid
from bot.cli import cli
from bot.settings import Settings, file_keys, variable_names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__", "node_modules"}
TEXTS = {".py", ".md", ".toml", ".txt", ".sh", ".yml", ".json", ".example", ""}


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
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def options_of(command: click.Command) -> set[str]:
    """Every spelling of every option."""
    return {spelling for option in command.params for spelling in option.opts} | {"--help", "--version"}


def readme_commands() -> list[list[str]]:
    """Every `citebot ...` in the README's shell blocks and inline code, as words."""
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
    lines = re.findall(r"^citebot ([^#\n]*)", blocks, re.MULTILINE)
    return [line.split() for line in lines + re.findall(r"`citebot ([a-z][^`\n]*)`", README)]


def test_every_make_target_of_the_readme_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z]+)", README))

    assert {"run", "ask", "test", "lint"} <= named
    assert named <= makefile_targets()


def test_every_command_and_option_of_the_readme_exists() -> None:
    commands = readme_commands()

    assert {words[0] for words in commands} >= {"ask", "chat", "index", "search", "status"}
    for words in commands:
        assert words[0] in cli.commands
        used = {word for word in words[1:] if re.fullmatch(r"--?[a-z]+", word)}
        assert used <= options_of(cli.commands[words[0]]), " ".join(words)


def test_the_readme_shows_every_command() -> None:
    assert {words[0] for words in readme_commands()} == set(cli.commands)


def test_the_readme_names_every_setting() -> None:
    assert [name for name in variable_names() if f"`{name}`" not in README] == []


def test_the_diagram_of_the_readme_is_the_graph() -> None:
    (drawn,) = re.findall(r"^```mermaid\n(.*?)^```", README, re.MULTILINE | re.DOTALL)

    assert drawn.strip() == mermaid().strip()


def test_the_environment_example_lists_every_variable_and_parses() -> None:
    example = dotenv_values(ROOT / ".env.example")

    assert set(example) == set(variable_names()) - {"CITEBOT_ENV_FILE"}
    Settings.load({name: value or "" for name, value in example.items()}, ROOT / "tests")


def test_the_environment_example_holds_the_defaults() -> None:
    example = {name: value or "" for name, value in dotenv_values(ROOT / ".env.example").items()}

    assert Settings.load(example, ROOT / "tests") == Settings.load({}, ROOT / "tests")


def test_the_configuration_example_lists_every_key_and_parses() -> None:
    path = ROOT / "citebot.example.toml"

    assert set(tomllib.loads(path.read_text(encoding="utf-8"))) == set(file_keys())
    Settings.load({"CITEBOT_CONFIG": str(path), "SITE_TOKEN": "a-token"}, ROOT)


def test_the_procfile_starts_commands_that_exist() -> None:
    for line in (ROOT / "Procfile").read_text(encoding="utf-8").splitlines():
        program, command = (word for word in line.split()[1:] if "=" not in word)
        assert program == "citebot"
        assert command in cli.commands


def test_the_constraints_are_exact_versions_without_addresses() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]

    assert pins
    assert [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", pin)] == []


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pinned = {normal(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}

    assert {normal(requirement) for requirement in wanted} - pinned == set()


def normal(requirement: str) -> str:
    """The name of a requirement as package indexes compare it."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", match.group()).lower() if match else ""


# Put together here, so that this file does not contain them.
@pytest.mark.parametrize(
    "telltale",
    [
        "/work/" + "main",
        "/work/" + "shared",
        "/root/" + ".pyenv",
        "/opt/" + "pypi",
        "pypi" + ".org",
        "python" + "hosted",
        "/simple" + "/",
    ],
)
def test_no_file_names_a_machine_or_a_package_index(telltale: str) -> None:
    naming = [path for path in project_files() if telltale in path.read_text(encoding="utf-8", errors="replace")]

    assert [str(path.relative_to(ROOT)) for path in naming] == []


def test_every_promise_of_security_is_tested_by_files_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    (promises,) = re.findall(r"^## What is promised.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    paragraphs = re.findall(r"^\*\*.*?(?=\n\n)", promises, re.MULTILINE | re.DOTALL)

    assert len(paragraphs) >= 9
    for paragraph in paragraphs:
        assert re.search(r"^\*`tests/", paragraph, re.MULTILINE), paragraph
    for name in re.findall(r"`((?:tests|docs)/[\w./-]+)`", text):
        assert (ROOT / name).exists(), name


def test_security_says_how_to_report_and_names_nobody() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")

    assert "security advisories of the repository that citebot was installed from" in text
    assert re.findall(r"[\w.]+@[\w.]+|https?://", text) == []
    assert len(text.splitlines()) <= 150


def test_every_fuzz_target_is_bounded_in_time() -> None:
    for path in (ROOT / "tests" / "fuzz").glob("test_*.py"):
        assert "in_time(" in path.read_text(encoding="utf-8"), path.name
