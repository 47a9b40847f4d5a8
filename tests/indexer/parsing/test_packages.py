"""What manifests declare, with the package that declares it: each format by its own way of writing."""

from __future__ import annotations

import pytest

from indexer.parsing.packages import is_package_file, read_own_name, read_packages

SETUP_PY = """setup(
    name="shop",
    classifiers=["Framework :: Django"],
    packages=["shop"],
    install_requires=["requests[security]>=2", 'click',
        "jinja2 ~= 3.1; python_version > '3.8'",
    ],
)
"""
SETUP_CFG = """[metadata]
name = shop
[options]
install_requires =
    requests>=2
    click
packages = find:
"""
POM = """<project><properties><java.version>17</java.version></properties>
<dependencies>
  <dependency>
    <groupId>org.slf4j</groupId>
    <artifactId>slf4j-api</artifactId>
    <version>2.0.9</version>
  </dependency>
</dependencies></project>
"""


@pytest.mark.parametrize(
    ("path", "text", "own", "found"),
    [
        ("setup.py", SETUP_PY, "shop", [("requests", ">=2", 5), ("click", "", 5), ("jinja2", "~= 3.1", 6)]),
        ("setup.cfg", SETUP_CFG, "shop", [("requests", ">=2", 5), ("click", "", 6)]),
        ("a/pom.xml", POM, "", [("java", "17", 1), ("org.slf4j:slf4j-api", "2.0.9", 5)]),
        ("go.mod", "module x.org/shop\n\ngo 1.21\n", "x.org/shop", [("go", "1.21", 3)]),
        ("Gemfile", 'ruby "3.2.1"\ngem "rack", "~> 2"\n', "", [("ruby", "3.2.1", 1), ("rack", "~> 2", 2)]),
        (
            "build.gradle.kts",
            'plugins {\n  id("org.springframework.boot") version "3.1"\n}\n  implementation("a.b:c:1.0")\n',
            "",
            [("org.springframework.boot", "3.1", 2), ("a.b:c", "1.0", 4)],
        ),
        (
            "pyproject.toml",
            '[project]\nname = "shop"\nrequires-python = ">=3.11"\n',
            "shop",
            [("requires-python", ">=3.11", 3)],
        ),
        ("package.json", '{\n "name": "shop",\n "engines": {"node": ">=18"}\n}\n', "shop", [("node", ">=18", 3)]),
    ],
)
def test_a_manifest_declares_packages_and_versions_of_languages(
    path: str, text: str, own: str, found: list[tuple[str, str, int]]
) -> None:
    declared = read_packages(path, text)

    assert is_package_file(path)
    assert read_own_name(path, text) == own
    assert [(one.name, one.detail, one.line) for one in declared] == found
    assert {(one.kind, one.handler) for one in declared} == {("dependency", own)}
