"""The container's packages are pinned by checksum, and those of constraints.txt."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Set as AbstractSet
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
CONTAINER, BUILD, CLUSTER = (ROOT / "requirements" / f"{name}.txt" for name in ("container", "build", "cluster"))
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


def environment(machine: str) -> dict[str, str]:
    """What markers are judged by in the container."""
    here = {name: str(value) for name, value in default_environment().items()}
    python = {"python_version": "3.12", "python_full_version": "3.12.0"}
    return here | python | {"platform_machine": machine, "platform_system": "Linux", "sys_platform": "linux"}


def needed(requirements: list[str], machine: str, *, without: AbstractSet[str] = frozenset()) -> set[str]:
    """The names of all packages that requirements lead to, by what the installed ones say; not by way of some."""
    found: set[str] = set()
    waiting = [(Requirement(each), "") for each in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        name = canonicalize_name(requirement.name)
        marker = requirement.marker
        if name in without or (marker and not marker.evaluate(environment(machine) | {"extra": extra})):
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
    pinned = pins(CONTAINER) | pins(CLUSTER)

    assert {name: constraints().get(name) for name in pinned} == pinned


@pytest.mark.parametrize("machine", MACHINES)
def test_everything_that_citebot_needs_is_pinned_by_checksum(machine: str) -> None:
    told = project()["project"]
    asked = [*told["dependencies"], *told["optional-dependencies"]["guard"]]
    unasked = read_unused() - {canonicalize_name(Requirement(each).name) for each in asked}
    wanted = needed(asked, machine, without=unasked)

    assert len(wanted) > 100
    assert wanted - set(pins(CONTAINER)) == set()
    assert unasked & set(pins(CONTAINER)) == set()
    assert needed(told["optional-dependencies"]["cluster"], machine) - set(pins(CLUSTER)) == set()


def test_the_lock_of_an_installation_has_the_versions_of_the_constraints_and_no_address() -> None:
    locked = read_lock()

    assert len(locked) > 100
    assert {name: constraints().get(name) for name in locked} == locked


@pytest.mark.parametrize("machine", MACHINES)
def test_the_lock_leaves_out_what_is_never_imported_and_nothing_else(machine: str) -> None:
    unused = read_unused()

    assert unused & set(read_lock()) == set()
    assert needed(project()["project"]["dependencies"], machine, without=unused) - set(read_lock()) == set()


def read_unused() -> set[str]:
    """The names of what others ask for, and citebot's use of them never imports."""
    lines = (ROOT / "requirements" / "unused.txt").read_text(encoding="utf-8").splitlines()
    return {line.split()[0] for line in lines if not line.startswith("#")}


def read_lock() -> dict[str, str]:
    """The version of each package that `make install` installs; a line of any other form fails."""
    lines = (ROOT / "requirements" / "install.txt").read_text(encoding="utf-8").splitlines()[1:]
    matches = [re.fullmatch(r"([a-z0-9-]+)==([^ ]+)(?: ; .+)?", line) for line in lines]
    assert None not in matches
    return {match[1]: match[2] for match in matches if match is not None}


def test_citebot_is_built_with_exactly_what_pyproject_names() -> None:
    assert [f"{name}=={version}" for name, version in pins(BUILD).items()] == project()["build-system"]["requires"]
