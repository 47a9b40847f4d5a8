"""What the container is built from is pinned by checksum, listed in the SBOM, and what constraints.txt says."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parent.parent
CONTAINER, BUILD = ROOT / "requirements" / "container.txt", ROOT / "requirements" / "build.txt"
SBOM = ROOT / "docs" / "sbom.cdx.json"
MACHINES = ("x86_64", "aarch64")
PINNED = re.compile(r"([a-z0-9-]+)==(\S+)((?: --hash=sha256:[0-9a-f]{64})+)")


def pins(path: Path) -> dict[str, str]:
    """The version of each package; a line of any other form, such as one without a checksum, fails."""
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = re.sub(r" \\\n +", " ", text).splitlines()
    matches = [PINNED.fullmatch(line) for line in lines]
    assert None not in matches
    return {match[1]: match[2] for match in matches if match is not None}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def bom() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SBOM.read_text(encoding="utf-8"))
    return loaded


def environment(machine: str) -> dict[str, str]:
    """What markers are judged by in the container."""
    here = {name: str(value) for name, value in default_environment().items()}
    python = {"python_version": "3.12", "python_full_version": "3.12.0"}
    return here | python | {"platform_machine": machine, "platform_system": "Linux", "sys_platform": "linux"}


def needed(requirements: list[str], machine: str) -> set[str]:
    """The names of all packages that requirements lead to, by what the installed ones say."""
    found: set[str] = set()
    waiting = [(Requirement(each), "") for each in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        marker = requirement.marker
        if marker and not marker.evaluate(environment(machine) | {"extra": extra}):
            continue
        waiting += [
            (each, wanted)
            for wanted in ("", *sorted(requirement.extras))
            for each in map(Requirement, own_requirements(name))
            if name not in found or wanted
        ]
        found.add(name)
    return found


def own_requirements(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:  # one that only other machines need: what it needs cannot be told here
        return []


def test_every_package_of_the_container_has_the_version_of_the_constraints() -> None:
    pinned = pins(CONTAINER)

    assert {name: constraints().get(name) for name in pinned} == pinned


@pytest.mark.parametrize("machine", MACHINES)
def test_everything_that_citebot_needs_is_pinned_by_checksum(machine: str) -> None:
    told = project()["project"]
    wanted = needed([*told["dependencies"], *told["optional-dependencies"]["guard"]], machine)

    assert len(wanted) > 100
    assert wanted - set(pins(CONTAINER)) == set()


def test_nothing_is_pinned_that_citebot_does_not_need() -> None:
    told = project()["project"]
    wanted = set[str]().union(
        *(needed([*told["dependencies"], *told["optional-dependencies"]["guard"]], each) for each in MACHINES)
    )

    assert set(pins(CONTAINER)) - wanted == set()


def test_what_is_built_for_a_machine_has_a_checksum_for_each() -> None:
    text = CONTAINER.read_text(encoding="utf-8")

    for name in ("numpy", "onnxruntime", "chromadb", "tree-sitter-python", "aiohttp", "google-re2"):
        (hashes,) = re.findall(rf"^{name}==\S+((?: \\\n    --hash=\S+)+)", text, re.MULTILINE)
        assert hashes.count("--hash=") == len(MACHINES), name


def test_citebot_is_built_with_exactly_what_pyproject_names() -> None:
    assert [f"{name}=={version}" for name, version in pins(BUILD).items()] == project()["build-system"]["requires"]


def test_the_inventory_lists_what_the_container_installs() -> None:
    listed = {canonicalize_name(each["name"]): each["version"] for each in bom()["components"]}

    assert listed == pins(CONTAINER)


def test_the_inventory_knows_who_needs_whom() -> None:
    told = bom()
    refs = {each["bom-ref"] for each in (*told["components"], told["metadata"]["component"])}
    needs = {each["ref"]: set(each["dependsOn"]) for each in told["dependencies"]}
    own = project()["project"]

    assert set(needs) == refs
    assert set[str]().union(*needs.values()) <= refs
    assert {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in needs[f"pkg:pypi/citebot@{own['version']}"]} == {
        canonicalize_name(Requirement(each).name)
        for each in (*own["dependencies"], *own["optional-dependencies"]["guard"])
    }


def test_the_inventory_names_every_licence() -> None:
    assert [each["name"] for each in bom()["components"] if not each.get("licenses")] == []


def test_the_inventory_is_the_same_whenever_it_is_made() -> None:
    told = bom()

    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert "serialNumber" not in told
    assert "timestamp" not in told["metadata"]


@pytest.mark.parametrize("path", [CONTAINER, BUILD, SBOM], ids=lambda path: str(path.name))
def test_no_address_is_written_down(path: Path) -> None:
    assert re.findall(r"https?:|--index|--find-links|@ file", path.read_text(encoding="utf-8")) == []


def test_the_script_tells_what_is_not_pinned() -> None:
    program = "import sys; sys.path.insert(0, 'scripts'); import pin_container; pin_container.resolve(['six'], {})"

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
    )

    assert (done.returncode, done.stderr.strip()) == (1, "six is not pinned in constraints.txt.")


def test_the_script_ends_with_a_sentence_where_the_package_index_does_not_answer() -> None:
    program = (
        "import sys; sys.path.insert(0, 'scripts'); import pin_container; pin_container.DEADLINE = 3; "
        "pin_container.resolve(['six==1.17.0'], {})"
    )
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections wait here, and are never taken
        index = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=kept | {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": index},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS,
        )

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("pip has not got the wheels for x86_64 within ")
