"""Writes what the container is built from: requirements/ with the checksums of all wheels, and the SBOM in docs/.

Versions are those of constraints.txt; everything else is asked of the package index that pip is configured for, and no
address of it is written down. Run `make pins` after constraints.txt or pyproject.toml changed; `make sbom` writes the
SBOM alone. Both give the same files again as long as nothing has changed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
REQUIREMENTS = ROOT / "requirements" / "container.txt"
BUILD_REQUIREMENTS = ROOT / "requirements" / "build.txt"
CLUSTER_REQUIREMENTS = ROOT / "requirements" / "cluster.txt"
UNUSED = ROOT / "requirements" / "unused.txt"  # what is never imported, unless citebot asks for it itself
SBOM = ROOT / "docs" / "sbom.cdx.json"

PYTHON = "3.12"  # that of the image in the Dockerfile
MACHINES = ("x86_64", "aarch64")
# The image has glibc 2.36 or newer; pip wants each of the older ones by name, since wheels are called after theirs.
GLIBC = (36, 35, 34, 31, 28, 27, 26, 24, 17)
EXTRAS = ("guard",)  # what the container has beside the bare citebot

# pip waits for an index that does not answer, again and again for each package, and whole wheels are fetched.
PATIENCE = ("--timeout=30", "--retries=2")
DEADLINE = 1200.0  # seconds for one call of pip

HEADER = """\
# {what}, for Linux on {machines} and Python {python}: `make pins` writes this file.
"""


@dataclass(kw_only=True)
class Package:
    """One package of the set. `hashes` are those of its wheels, `needs` the names of those that it needs."""

    name: str
    version: str
    license: str
    hashes: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)

    @property
    def purl(self) -> str:
        """How inventories call it."""
        return f"pkg:pypi/{canonicalize_name(self.name)}@{self.version}"


Packages = dict[str, Package]


def main() -> None:
    """Write the files that were asked for."""
    parser = argparse.ArgumentParser(description="Pins what the container is built from.")
    parser.add_argument("what", choices=["pins", "sbom"])
    asked = parser.parse_args().what
    project = read_project()
    wanted = [*project["project"]["dependencies"], *extras_of(project)]
    packages = resolve(wanted, read_constraints(), read_unused())
    if asked == "pins":
        build = resolve(project["build-system"]["requires"], {})
        REQUIREMENTS.parent.mkdir(exist_ok=True)
        REQUIREMENTS.write_text(render("What citebot runs on", packages), encoding="utf-8")
        BUILD_REQUIREMENTS.write_text(render("What citebot is built with", build), encoding="utf-8")
        cluster = resolve(project["project"]["optional-dependencies"]["cluster"], read_constraints())
        what = "What processes that share their work need as well"
        CLUSTER_REQUIREMENTS.write_text(render(what, cluster), encoding="utf-8")
    SBOM.write_text(describe(packages, roots_of(wanted), project["project"]), encoding="utf-8")


def read_project() -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def extras_of(project: Mapping[str, Any]) -> list[str]:
    """Return what the extras of the container ask for."""
    return [line for extra in EXTRAS for line in project["project"]["optional-dependencies"][extra]]


def read_constraints() -> dict[str, str]:
    """Read the version of each package."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pins}


def roots_of(requirements: Iterable[str]) -> set[str]:
    """Return the names of the packages that citebot asks for itself."""
    return {canonicalize_name(Requirement(each).name) for each in requirements}


def read_unused() -> set[str]:
    """Return the names of the packages that others ask for in vain."""
    lines = UNUSED.read_text(encoding="utf-8").splitlines()
    return roots_of(line for line in lines if not line.startswith("#"))


def resolve(requirements: Sequence[str], pins: Mapping[str, str], unused: Collection[str] = ()) -> Packages:
    """Find everything that the requirements need but what is unused, and the wheels of each machine."""
    found: Packages = {}
    for machine in MACHINES:
        environment = environment_of(machine)
        extras: dict[str, set[str]] = {}
        waiting = [Requirement(each) for each in requirements]
        while waiting:
            # A package is looked at again where another one wants more extras of it.
            fresh = {name for each in waiting if (name := note(each, extras)) is not None}
            told = report(sorted(pin(each, waiting, pins) for each in fresh), machine)
            needed = [each for item in told for each in take(item, found, extras, environment)]
            waiting = [each for each in needed if canonicalize_name(each.name) not in unused]
    return found


def environment_of(machine: str) -> dict[str, str]:
    """Return what markers are judged by: pip itself would take the machine that this runs on."""
    here = {name: str(value) for name, value in default_environment().items()}
    python = dict.fromkeys(("python_full_version", "implementation_version"), f"{PYTHON}.0")
    linux = {"platform_machine": machine, "platform_system": "Linux", "sys_platform": "linux", "os_name": "posix"}
    return here | python | linux | {"python_version": PYTHON}


def note(requirement: Requirement, extras: dict[str, set[str]]) -> str | None:
    """Remember a requirement, and return its name unless it is known with all of its extras."""
    name = canonicalize_name(requirement.name)
    if name in extras and requirement.extras <= extras[name]:
        return None
    extras.setdefault(name, set()).update(requirement.extras)
    return name


def pin(name: str, waiting: Iterable[Requirement], pins: Mapping[str, str]) -> str:
    """Write a package with its exact version."""
    if name in pins:
        return f"{name}=={pins[name]}"
    exact = next((each for each in waiting if canonicalize_name(each.name) == name), None)
    if exact is None or not str(exact.specifier).startswith("=="):
        sys.exit(f"{name} is not pinned in constraints.txt.")
    return f"{name}{exact.specifier}"


def report(pinned: Sequence[str], machine: str) -> list[dict[str, Any]]:
    """Ask pip for the wheels of a machine, and for what they say of themselves; nothing is installed."""
    if not pinned:
        return []
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in GLIBC]
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "report.json"
        command = ["install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:", *PATIENCE]
        target = [f"--python-version={PYTHON}", "--implementation=cp", f"--target={folder}", f"--report={told}"]
        run_pip([*command, *target, *platforms, f"--platform=manylinux2014_{machine}", *pinned], machine)
        items: list[dict[str, Any]] = json.loads(told.read_text(encoding="utf-8"))["install"]
    return items


def run_pip(arguments: Sequence[str], machine: str) -> None:
    """Run pip, which says on standard error what it is at; end with a sentence where it fails or takes too long."""
    try:
        subprocess.run([sys.executable, "-m", "pip", *arguments], check=True, stdout=sys.stderr, timeout=DEADLINE)
    except subprocess.TimeoutExpired:
        sys.exit(
            f"pip has not got the wheels for {machine} within {DEADLINE:.0f} seconds: the package index that it is "
            "configured for is slow or does not answer. Nothing was written."
        )
    except subprocess.CalledProcessError:
        sys.exit(f"pip could not get all wheels for {machine}; what it says is above. Nothing was written.")


def take(
    item: Mapping[str, Any], found: Packages, extras: Mapping[str, set[str]], environment: Mapping[str, str]
) -> list[Requirement]:
    """Remember a wheel, and return what it needs on this machine."""
    metadata = item["metadata"]
    if not item["download_info"]["url"].startswith("https://"):
        sys.exit(f"{metadata['name']} comes from a folder of this machine, whose wheels may be its own.")
    name = canonicalize_name(metadata["name"])
    package = found.setdefault(
        name, Package(name=metadata["name"], version=metadata["version"], license=license_of(metadata))
    )
    package.hashes.add(item["download_info"]["archive_info"]["hashes"]["sha256"])
    needed = [
        requirement
        for requirement in map(Requirement, metadata.get("requires_dist", ()))
        if applies(requirement, extras[name], environment)
    ]
    package.needs |= {canonicalize_name(each.name) for each in needed}
    return needed


def applies(requirement: Requirement, extras: Iterable[str], environment: Mapping[str, str]) -> bool:
    """Whether a requirement is one in the environment, with any of the extras or without."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**environment, "extra": extra}) for extra in ("", *extras))


def license_of(metadata: Mapping[str, Any]) -> str:
    """Return the licence that a package names: as an expression, by a classifier, or in a line of its own."""
    if expression := metadata.get("license_expression"):
        return str(expression)
    named = [each.rpartition(" :: ")[2] for each in metadata.get("classifier", ()) if each.startswith("License :: ")]
    told = str(metadata.get("license") or "")
    return " or ".join(named) or (told if len(told) < 60 and "\n" not in told else "")


def render(what: str, packages: Packages) -> str:
    """Write the lines of a requirements file, in order."""
    lines = [HEADER.format(what=what, machines=" and ".join(MACHINES), python=PYTHON)]
    for name, package in sorted(packages.items()):
        hashes = "".join(f" \\\n    --hash=sha256:{each}" for each in sorted(package.hashes))
        lines.append(f"{name}=={package.version}{hashes}\n")
    return "".join(lines)


def describe(packages: Packages, roots: Iterable[str], project: Mapping[str, Any]) -> str:
    """Write the packages as an inventory in CycloneDX' form, without a time or a number that differ each time."""
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    needs = [(own, roots), *((each.purl, each.needs) for each in packages.values())]
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(own, project["name"], project["version"], project["license"])},
        "components": [
            component(each.purl, each.name, each.version, each.license) for _, each in sorted(packages.items())
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(packages[name].purl for name in names if name in packages)}
            for ref, names in sorted(needs)
        ],
    }
    return json.dumps(bom, indent=1, ensure_ascii=False) + "\n"


def component(ref: str, name: str, version: str, licence: str) -> dict[str, Any]:
    """Describe one package."""
    told: dict[str, Any] = {"type": "library", "bom-ref": ref, "name": name, "version": version, "purl": ref}
    if licence:
        told["licenses"] = [{"license": {"name": licence}}]
    return told


if __name__ == "__main__":
    main()
