"""Compares package names, and finds a project's declarations in its manifests."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent.ports import SymbolIndex
from indexer.types import RegistrationKind, RegistrationSite

MANIFESTS: tuple[RegistrationKind] = ("dependency",)
_SEPARATORS = re.compile(r"[-_.]+")
_MAJOR = re.compile(r"/v\d+$")
_PARTS = re.compile(r"[-@/:]")
# Libraries of Python whose distributions are called otherwise than what is imported.
_DISTRIBUTIONS: Mapping[str, str] = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "crypto": "pycryptodome",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "jwt": "pyjwt",
    "mysqldb": "mysqlclient",
    "openssl": "pyopenssl",
    "pil": "pillow",
    "psycopg2": "psycopg2-binary",
    "rest-framework": "djangorestframework",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


async def find_declarations(code: SymbolIndex, library: str) -> list[RegistrationSite]:
    """Find the declarations of a library or a language in the manifests; if there are none, those of a part of one."""
    wanted = normalize_library(library)
    sites = await code.registrations(MANIFESTS)
    return [site for site in sites if match_packages(site.registration.name, wanted)] or [
        site for site in sites if wanted in _PARTS.split(normalize_library(site.registration.name))
    ]


def match_packages(name: str, wanted: str) -> bool:
    """Tell whether a package is meant, however its words are joined, and without the place that it comes from."""
    folded, wanted = normalize_library(name), normalize_library(wanted)
    is_placed = ":" in folded or "." in folded.partition("/")[0]  # org.slf4j:slf4j-api, github.com/gorilla/mux/v2
    parts = re.split(r"[:/]", _MAJOR.sub("", folded)) if is_placed else []
    return folded == wanted or (len(parts) > 1 and parts[-1] == wanted)


def normalize_library(name: str) -> str:
    """Normalise a library's name as in manifests: lower case, one hyphen between its parts."""
    plain = _SEPARATORS.sub("-", name.strip().lower())
    return _DISTRIBUTIONS.get(plain, plain)
