"""Labels of repositories: the first part of each path when several are read as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

from agent.evidence.best_places import is_beside_code
from agent.evidence.refs import is_test_or_docs
from agent.evidence.requests import Retrieved
from agent.state import EvidenceRef
from indexer.types import CallSite, Definition, FileImport, Hit, Location, Match, Passage, RegistrationSite, Subclass

_BESIDE = "-repository"  # added to a name that, as a folder, would stand for tests, documents or data
_UNPLAIN = re.compile(r"[^\w.-]+")
_WITHIN = ("location", "definition", "caller", "callee")  # fields of places that hold another place

LabelledPlace = TypeVar(
    "LabelledPlace", Location, Definition, RegistrationSite, Subclass, CallSite, FileImport, Hit, Passage, Match
)


@dataclass(frozen=True, slots=True)
class RepositoryLabels:
    """The label of each repository by name: one folder, different from all others."""

    by_name: Mapping[str, str]

    def split(self, path: str) -> tuple[str, str] | None:
        """Return the name of the repository and the path in it; None for a path without a label."""
        label, _, rest = path.partition("/")
        name = next((name for name, own in self.by_name.items() if own == label), None)
        return (name, rest) if name is not None else None

    def find_repository(self, ref: EvidenceRef) -> str:
        """Name the repository of evidence; empty if unknown."""
        found = self.split(ref["path"])
        return found[0] if found is not None else ref.get("repository", "")

    def select(self, refs: Iterable[EvidenceRef], name: str) -> list[EvidenceRef]:
        """Return the evidence of one repository."""
        return [ref for ref in refs if self.find_repository(ref) == name]


def make_labels(names: Sequence[str]) -> RepositoryLabels:
    """Make a label for each name; the same names in the same order get the same labels."""
    labels: dict[str, str] = {}
    taken: dict[str, int] = {}  # how often each was wanted
    for name in names:
        plain = _UNPLAIN.sub("-", name).strip("-.") or "repository"
        label = plain = (
            f"{plain}{_BESIDE}" if is_test_or_docs(f"{plain}/code.py") or is_beside_code(f"{plain}/code.py") else plain
        )
        while label.lower() in taken:
            taken[plain.lower()] += 1
            label = f"{plain}-{taken[plain.lower()]}"
        taken[label.lower()] = 1
        labels[name] = label
    return RepositoryLabels(labels)


def add_label(label: str, place: LabelledPlace) -> LabelledPlace:
    """Prefix a place's path, and those of the places in it, with a label."""
    changes: dict[str, Any] = {}
    for field in fields(place):
        value = getattr(place, field.name)
        if field.name == "path":
            changes["path"] = f"{label}/{value}"
        elif field.name == "targets":
            changes["targets"] = tuple(f"{label}/{target}" for target in value)
        elif field.name in _WITHIN and value is not None:
            changes[field.name] = add_label(label, value)
    return replace(place, **changes)


def label_ref(ref: EvidenceRef, name: str, label: str) -> EvidenceRef:
    """Label evidence with its repository: a file's path begins with the label."""
    if ref["path"]:
        return {**ref, "path": f"{label}/{ref['path']}"}
    return {**ref, "repository": name}


def label_retrieved(found: Retrieved, name: str, label: str) -> Retrieved:
    """Label all evidence of a request with its repository."""
    refs, around = ([label_ref(ref, name, label) for ref in refs] for refs in (found.refs, found.around))
    return replace(found, refs=refs, around=around)


def unlabel_ref(ref: EvidenceRef, label: str) -> EvidenceRef:
    """Return evidence without its repository's label."""
    plain = {**ref, "path": ref["path"].removeprefix(f"{label}/")}
    plain.pop("repository", None)
    return cast("EvidenceRef", plain)
