"""Puts before the routes of a module the path that another file includes that module at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from indexer.types import RegistrationSite

_MOST_PREFIXES = 4  # of one file
_DEEPEST = 4


def mount_routes(sites: Sequence[RegistrationSite]) -> list[RegistrationSite]:
    """Return registrations without mounts, each route below the paths that its file is mounted at."""
    mounts = [site for site in sites if site.registration.kind == "mount"]
    by_file: dict[str, list[RegistrationSite]] = defaultdict(list)
    for path in {site.path for site in sites} if mounts else ():
        by_file[path] = [mount for mount in mounts if _is_module(path, mount.registration.handler)]
    routes: list[RegistrationSite] = []
    for site in sites:
        if site.registration.kind == "route":
            prefixes = _find_prefixes(site.path, by_file, depth=_DEEPEST)
            routes += [_put_before(prefix, site) for prefix in prefixes]
        elif site.registration.kind != "mount":
            routes.append(site)
    return routes


def _is_module(path: str, module: str) -> bool:
    """Whether a file is the module of a dotted name, or of the end of one."""
    stem = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f".{stem}".endswith(f".{module}") if module else False


def _find_prefixes(path: str, mounts: dict[str, list[RegistrationSite]], *, depth: int) -> list[str]:
    """Return the paths that a file is mounted at, those of the files around it included."""
    found = [
        f"{outer}{mount.registration.name.rstrip('/')}"
        for mount in mounts.get(path, ())
        if depth and mount.path != path
        for outer in _find_prefixes(mount.path, mounts, depth=depth - 1)
    ]
    return list(dict.fromkeys(found))[:_MOST_PREFIXES] or [""]


def _put_before(prefix: str, site: RegistrationSite) -> RegistrationSite:
    method, space, path = site.registration.name.rpartition(" ")
    name = f"{method}{space}{prefix}{path}" if prefix else site.registration.name
    return replace(site, registration=replace(site.registration, name=name))
