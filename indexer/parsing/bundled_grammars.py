"""Loads grammars from the wheel that bundles many in an archive: into memory, checked by hashes."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.resources
import importlib.util
import json
import mmap
import os
import platform
import sys
import tarfile
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any

PACKAGE = "semble_grammars"
_LARGEST = 32 << 20  # bytes of a library


def is_bundled(name: str) -> bool:
    """Whether there is such a grammar for this machine."""
    return name in _read_manifest().get("languages", {})


def load_bundled(name: str) -> object:
    """Return the capsule of a grammar. Its library exists only in memory, where nobody can replace it."""
    manifest = _read_manifest()
    entry = manifest["languages"][name]
    with (
        (_find_folder() / manifest["archive"]).open("rb") as packed,
        tarfile.open(fileobj=packed, mode="r:gz") as archive,
    ):
        member = next(each for each in archive if each.name == entry["file"])
        file = archive.extractfile(member)
        library = file.read() if file is not None else b""
    if hashlib.sha256(library).hexdigest() != entry["sha256"]:
        raise ImportError(f"The grammar of {name} is not the one that its package lists. Install citebot again.")
    descriptor = reserve_memory(name)  # stays open, as the library does
    with mmap.mmap(descriptor, len(library)) as memory:
        memory[:] = library
    get_language = getattr(ctypes.CDLL(f"/proc/self/fd/{descriptor}"), entry["symbol"])
    get_language.restype = ctypes.c_void_p
    make_capsule = ctypes.pythonapi.PyCapsule_New
    make_capsule.restype, make_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make_capsule(get_language(), _CAPSULE, None)


@cache
def reserve_memory(name: str) -> int:
    """Reserve a file in memory for a grammar, before this process is confined and may write no files."""
    descriptor = os.memfd_create(name)
    os.ftruncate(descriptor, _LARGEST)  # takes no memory until something is written
    return descriptor


_CAPSULE = b"tree_sitter.Language"  # a capsule keeps a pointer to its name


def _find_folder() -> Traversable:
    machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    return importlib.resources.files(PACKAGE) / "grammars" / f"{sys.platform}-{machine}"


@cache
def _read_manifest() -> dict[str, Any]:
    """Return the wheel's list; empty if it is not installed, or libraries cannot be loaded from memory."""
    if importlib.util.find_spec(PACKAGE) is None or not hasattr(os, "memfd_create"):
        return {}
    listed = _find_folder() / "manifest.json"
    manifest: dict[str, Any] = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else {}
    return manifest
