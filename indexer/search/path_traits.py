"""Classifies a file by its path: its source type, and the folders that ranking trusts less."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath

from indexer.types import SourceType

FLAGS = ("test", "example", "secondary", "doc", "config")

_TEST = re.compile(
    r"(^|/)(tests?|testing|specs?|__tests__|testdata|fixtures?|e2e|mocks?|__mocks__|unittests?)/"
    r"|(^|/)(test_[^/]*|[^/]*_test|[^/]*_spec|[^/]*Tests?|[^/]*\.(test|spec|test-d|bench))\.[A-Za-z]+$"
    r"|(^|/)conftest\.py$"
)
_EXAMPLE = re.compile(
    r"(^|/)(examples?|samples?|demos?|tutorials?|benchmarks?|bench|playground|_examples?|docs_src)/", re.IGNORECASE
)
_PACKAGES = "src/main/"  # folders below it are parts of names, such as `org.shop.samples`
_SECONDARY = re.compile(
    r"(^|/)(vendor|vendored|_vendor|third_party|thirdparty|external|extern|node_modules|compat|legacy|deprecated"
    r"|_?generated|gen)/|[_.](pb|generated|g)\.[a-z]+$|_pb2\.py$|compat\.\w+$",
    re.IGNORECASE,
)
_DOC_SUFFIXES = frozenset({".md", ".rst", ".txt", ".adoc", ".mdx", ".markdown"})
_DOC_NAMES = frozenset({"README", "CHANGELOG", "CHANGES", "HISTORY", "NEWS", "AUTHORS", "CONTRIBUTING", "LICENSE"})
_CONFIG_SUFFIXES = frozenset(
    """.toml .cfg .ini .yml .yaml .json .json5 .html .htm .sql .css .scss .less .xml .jinja .j2 .proto .graphql .gradle
    .cmake .in .conf .properties .env .example .sample .template .tf .hcl .csv .svg .lock .plist""".split()
)
_GENERIC_STEMS = frozenset({"__init__", "mod", "index", "main", "lib", "init"})


@dataclass(frozen=True, kw_only=True, slots=True)
class PathTraits:
    """The traits that ranking reads from a path; the flags are independent of each other."""

    source_type: SourceType
    is_test: bool
    is_example: bool
    is_secondary: bool

    def pack_flags(self) -> int:
        """Return the traits as a number; bit n represents the n-th of `FLAGS`."""
        flags = (
            self.is_test,
            self.is_example,
            self.is_secondary,
            self.source_type == "doc",
            self.source_type == "config",
        )
        return sum(flag << bit for bit, flag in enumerate(flags))


def read_source_type(packed: int) -> SourceType:
    """Return the source type in packed traits."""
    is_test, _, _, is_doc, is_config = (bool(packed >> bit & 1) for bit in range(len(FLAGS)))
    if is_doc:
        return "doc"
    if is_config:
        return "config"
    return "test" if is_test else "code"


def list_packed_traits(types: Collection[SourceType]) -> list[int]:
    """Return the packed traits possible for files of these source types."""
    return [packed for packed in range(1 << len(FLAGS)) if read_source_type(packed) in types]


def read_path_traits(path: str) -> PathTraits:
    """Classify a path; a test in documentation format is documentation that is also a test."""
    is_test = bool(_TEST.search(path))
    kind = _read_format(path)
    return PathTraits(
        source_type="test" if is_test and kind == "code" else kind,
        is_test=is_test,
        is_example=bool(_EXAMPLE.search(path.partition(_PACKAGES)[0])),
        is_secondary=bool(_SECONDARY.search(path)),
    )


def _read_format(path: str) -> SourceType:
    name = PurePosixPath(path)
    suffix = name.suffix.lower()
    if suffix in _DOC_SUFFIXES or (not suffix and name.name.upper() in _DOC_NAMES):
        return "doc"
    if suffix in _CONFIG_SUFFIXES or (not suffix and name.name.startswith(".")):
        return "config"
    return "code"


def get_topic(path: str) -> str:
    """Return the topic of a file: its stem, or its folder's name for `__init__`, `index` and similar."""
    pure = PurePosixPath(path)
    if pure.stem.lower() in _GENERIC_STEMS and pure.parent.name:
        return pure.parent.name
    return pure.stem


def get_folder(path: str) -> str:
    """Return the folder of a path, empty at the top."""
    parent = str(PurePosixPath(path).parent)
    return "" if parent == "." else parent
