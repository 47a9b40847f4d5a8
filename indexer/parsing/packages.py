"""Reads manifests and lock files: which packages a project declares, which versions are locked, and what needs them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePosixPath

from indexer.parsing.registrations.invocations import LONGEST_TEXT
from indexer.parsing.registrations.nested_values import Value, read_indented, read_json, read_sections
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import Registration

MOST_PACKAGES = 50_000  # of one file, with what needs them
_MAX_TOKENS = 1_500_000
_MAX_NEEDS = 500
_LONGEST_WAY = 5  # packages between one and what the project declares


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entries:
    """The place of packages in a file: keys on the path, `*` for any.

    The name is the key, or the member `name`; the version the member `version`, or the text. `needs` are members that
    list the package's requirements; the member `kind` says `direct` for the project's own requirements.
    """

    at: tuple[str, ...]
    version: str = "version"
    needs: tuple[str, ...] = ()
    kind: str = ""
    is_locked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class _Format:
    files: str  # globs of names
    read: Callable[[str], Value] | None = None
    entries: tuple[_Entries, ...] = ()
    line: Pattern | None = None  # of formats with a package in a line: `name`, `version`, and `indirect`
    is_locked: bool = False


def _read_all_json(text: str) -> Value:
    return read_json(text, most=_MAX_TOKENS)


def _declare(*paths: str) -> tuple[_Entries, ...]:
    return tuple(_Entries(at=tuple(path.split("/")), is_locked=False) for path in paths)


_NEEDS = ("dependencies", "optionalDependencies", "requires", "optional-dependencies")
_PACKAGE_JSON = "dependencies/* devDependencies/* peerDependencies/* optionalDependencies/*".split()
_CARGO = (
    "dependencies/* dev-dependencies/* build-dependencies/* workspace.dependencies/* target.*dependencies/*".split()
)
_PYTHON = (
    "project/dependencies/* project.optional-dependencies/*/* dependency-groups/*/* build-system/requires/*"
    " tool.poetry.dependencies/* tool.poetry.group.*.dependencies/* tool.poetry.dev-dependencies/*"
).split()
_REQUIREMENT = compile_pattern(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]\n]*\])?\s*(?P<version>(?:===?|~=|>=?|<=?|!=|@)[^;#\\]*)?(?:[;#\\]|\s*$)"
)
_FORMATS = (
    _Format(files="package.json", read=_read_all_json, entries=_declare(*_PACKAGE_JSON)),
    _Format(
        files="package-lock.json npm-shrinkwrap.json",
        read=_read_all_json,
        entries=(
            _Entries(at=("packages", "*"), needs=_NEEDS),
            _Entries(at=("dependencies", "*"), needs=_NEEDS),
            _Entries(at=("dependencies", "*", "dependencies", "*"), needs=_NEEDS),
        ),
    ),
    _Format(files="composer.json", read=_read_all_json, entries=_declare("require/*", "require-dev/*")),
    _Format(
        files="composer.lock",
        read=_read_all_json,
        entries=tuple(_Entries(at=(key, ""), needs=("require",)) for key in ("packages", "packages-dev")),
    ),
    _Format(
        files="Pipfile.lock",
        read=_read_all_json,
        entries=tuple(_Entries(at=(key, "*")) for key in ("default", "develop")),
    ),
    _Format(
        files="packages.lock.json",
        read=_read_all_json,
        entries=(_Entries(at=("dependencies", "*", "*"), version="resolved", needs=_NEEDS, kind="type"),),
    ),
    _Format(files="pyproject.toml", read=read_sections, entries=_declare(*_PYTHON)),
    _Format(files="Pipfile", read=read_sections, entries=_declare("packages/*", "dev-packages/*")),
    _Format(files="Cargo.toml", read=read_sections, entries=_declare(*_CARGO)),
    _Format(
        files="Cargo.lock poetry.lock uv.lock pdm.lock",
        read=read_sections,
        entries=(_Entries(at=("package",), needs=_NEEDS),),
    ),
    _Format(files="yarn.lock", read=read_indented, entries=(_Entries(at=("*",), needs=_NEEDS),)),
    _Format(
        files="pnpm-lock.yaml",
        read=read_indented,
        entries=(_Entries(at=("packages", "*"), needs=_NEEDS), _Entries(at=("snapshots", "*"), needs=_NEEDS)),
    ),
    _Format(files="Gemfile.lock", read=read_indented, entries=(_Entries(at=("GEM", "specs", "*"), needs=("*",)),)),
    _Format(files="pubspec.yaml", read=read_indented, entries=_declare("dependencies/*", "dev_dependencies/*")),
    _Format(files="pubspec.lock", read=read_indented, entries=(_Entries(at=("packages", "*"), kind="dependency"),)),
    _Format(files="requirements*.txt requirements*.in *requirements.txt constraints*.txt", line=_REQUIREMENT),
    _Format(
        files="go.mod",
        line=compile_pattern(
            r"^(?:require\s+)?(?P<name>[\w-]+\.[\w.-]+/[^\s()]+|[\w-]+\.\w+)\s+(?P<version>v\d\S*)"
            r"(?P<indirect>\s*// indirect)?"
        ),
    ),
    _Format(files="go.sum", line=compile_pattern(r"^(?P<name>\S+) (?P<version>v[^\s/]+) h1:"), is_locked=True),
    _Format(
        files="Gemfile *.gemspec",
        line=compile_pattern(
            r"^(?:gem|\w{1,20}\.add_\w*dependency)\b[ (]*[\"'](?P<name>[\w./-]+)[\"']"
            r"(?:\s*,\s*[\"'](?P<version>[^\"']*)[\"'])?"
        ),
    ),
    _Format(
        files="build.gradle build.gradle.kts",
        line=compile_pattern(r"^\w+[ (]+(?:\w+\()?[\"'](?P<name>[\w.-]+:[\w.-]+):(?P<version>[\w.$\{}-]+)"),
    ),
    _Format(
        files="gradle.lockfile",
        line=compile_pattern(r"^(?P<name>[\w.-]+:[\w.-]+):(?P<version>[\w.-]+)="),
        is_locked=True,
    ),
    _Format(
        files="*.csproj *.fsproj *.vbproj Directory.Packages.props",
        line=compile_pattern(
            r"^<Package(?:Reference|Version)\s+(?:Include|Update)=\"(?P<name>[\w.-]+)\"(?:\s+Version=\"(?P<version>[^\"]*)\")?"
        ),
    ),
    _Format(
        files="mix.exs", line=compile_pattern(r"^(?:defp?\s[^\[]*)?\[?\{:(?P<name>\w+),\s*(?:\"(?P<version>[^\"]*)\")?")
    ),
    _Format(
        files="mix.lock",
        line=compile_pattern(r"^\"(?P<name>\w+)\":\s*\{:hex,\s*:\w+,\s*\"(?P<version>[^\"]+)\""),
        is_locked=True,
    ),
)
_POM = compile_pattern(
    r"<dependency>\s*<groupId>(?P<group>[^<]{1,200})</groupId>\s*<artifactId>(?P<name>[^<]{1,200})</artifactId>"
    r"(?:\s*<version>(?P<version>[^<]{1,100})</version>)?"
)
_VIA = compile_pattern(r"^#\s*(?:via\s+)?(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\(|$)")
# `"@babel/core@npm:^7.1.0", ...` of Yarn, `/lodash@4.17.21(peer)` of pnpm, `rack (2.2.8)` of Bundler.
_IN_KEY = compile_pattern(
    r"^[\"'/]{0,2}(?P<name>@?[^@\s\"'(]+)(?:@(?:npm:)?(?P<wanted>[^\s\"'(,]*)|\s+\(?(?P<version>[^)]+)\)?)?"
)
_SPECIFIED = compile_pattern(r"^(?P<name>[A-Za-z0-9@][\w./@-]*)(?:\[[^\]]*\])?\s*(?P<version>.*)$")
_LEFT_OUT = frozenset({"python", "php", "flutter", "sdk"})


_Needs = dict[str, tuple[str, int]]  # by name: which version, and where it says so


@dataclass(slots=True)
class _Package:
    name: str
    version: str
    line: int
    is_locked: bool
    is_direct: bool
    needs: _Needs


def is_package_file(path: str) -> bool:
    """Tell whether a file declares or locks packages."""
    return _find_format(path) is not None or PurePosixPath(path).name == "pom.xml"


def _find_format(path: str) -> _Format | None:
    name = PurePosixPath(path).name
    if PurePosixPath(path).parent.name == "requirements" and name.endswith((".txt", ".in")):
        name = "requirements.txt"
    return next((one for one in _FORMATS if any(_fits(name, glob) for glob in one.files.split())), None)


def _fits(text: str, glob: str) -> bool:
    """Tell whether a text is one with a star in it, which stands for anything."""
    first, star, last = glob.partition("*")
    return text == glob or bool(star and text[: len(first)] == first and text[len(first) :].endswith(last))


def read_packages(path: str, text: str) -> list[Registration]:
    """Return the packages of a manifest or lock file, each with its version and its dependents.

    The detail of a registration is the version, its `help` is `declared`, `locked` or `needed`; its handler is the
    dependent, or the path from a declared package.
    """
    form = _find_format(path)
    if form is None:
        found = _read_pom(text) if PurePosixPath(path).name == "pom.xml" else ()
    else:
        found = _read_lines(form, text) if form.line is not None else _read_entries(form, text)
    packages = [one for one in islice(found, MOST_PACKAGES) if one.name and one.name.lower() not in _LEFT_OUT]
    return list(islice(_register(packages), MOST_PACKAGES))


def _register(packages: Sequence[_Package]) -> Iterator[Registration]:
    ways = _find_ways(packages)
    for one in packages:
        way = ways.get(one.name, ()) if one.is_locked else ()
        said = "locked" if one.is_locked else "declared"
        yield _make(one.name, one.version, one.line, said, " > ".join(way))
        for name, (version, line) in one.needs.items():
            yield _make(name, version, line, "needed", f"{one.name} {one.version}".strip())


def _make(name: str, version: str, line: int, said: str, handler: str) -> Registration:
    cut = (name[:LONGEST_TEXT], version.strip()[:LONGEST_TEXT], handler[:LONGEST_TEXT])
    return Registration(kind="package", name=cut[0], detail=cut[1], help=said, handler=cut[2], line=line)


def _find_ways(packages: Sequence[_Package]) -> Mapping[str, tuple[str, ...]]:
    """Find through which packages each gets into the project, the shortest way from one that nothing else needs."""
    needed = {name for one in packages for name in one.needs}
    needs: dict[str, list[str]] = {}
    for one in packages:
        needs.setdefault(one.name, []).extend(one.needs)
    is_told = any(one.is_direct for one in packages)
    starts = {one.name for one in packages if (one.is_direct if is_told else one.name not in needed)}
    ways: dict[str, tuple[str, ...]] = dict.fromkeys(starts, ())
    waiting = deque(sorted(starts, key=lambda name: (-len(needs[name]), name)))  # the project itself needs the most
    while waiting:
        name = waiting.popleft()
        for other in needs.get(name, ()):
            if other not in ways and len(ways[name]) < _LONGEST_WAY:
                ways[other] = (*ways[name], name)
                waiting.append(other)
    return ways


def _read_lines(form: _Format, text: str) -> Iterator[_Package]:
    found: dict[str, _Package] = {}
    vias: list[tuple[str, str, int]] = []
    last = ""
    for number, line in enumerate(text.split("\n"), 1):
        said = line[: 4 * LONGEST_TEXT].strip()
        if form.line is not None and (entry := form.line.match(said)) is not None:
            groups = entry.groupdict()
            last, version = groups["name"], groups["version"] or ""
            is_locked = form.is_locked or bool(groups.get("indirect"))
            found[f"{last} {version} {number}"] = _Package(last, version, number, is_locked, False, {})
        elif said.startswith("#") and last and (via := _VIA.match(said)) is not None:  # of pip-compile
            vias.append((via["name"], last, number))
        elif not said.startswith(("#", "--hash")):
            last = ""
    by_name = {one.name: one for one in found.values()}
    for needing, name, number in vias:
        if needing in by_name and name in by_name:
            by_name[needing].needs[name] = ("", number)
            by_name[name].is_locked = True
    yield from found.values()


def _read_pom(text: str) -> Iterator[_Package]:
    line, counted = 1, 0
    for found in _POM.finditer(text):
        at = found.start(2)
        line, counted = line + text.count("\n", counted, at), at
        name = f"{found['group'].strip()}:{found['name'].strip()}"
        yield _Package(name, (found["version"] or "").strip(), line, False, False, {})


def _read_entries(form: _Format, text: str) -> Iterator[_Package]:
    whole = form.read(text) if form.read is not None else Value()
    asked = {name for root in whole.get("packages").members if not root.key for name in _list_needs(root, _ROOT)}
    asked |= {_name_entry(one)[0] for one in _walk(whole, ("DEPENDENCIES", "*"))}
    asked |= {
        _name_entry(one)[0]
        for key in ("dependencies", "devDependencies", "optionalDependencies")
        for at in (("importers", "*", key, "*"), (key, "*"))
        for one in _walk(whole, at)
        if whole.get("importers").members or whole.get("lockfileVersion").text
    }
    known: dict[tuple[str, str, int], _Package] = {}
    for entries in form.entries:
        for entry in _walk(whole, entries.at):
            name, version = _name_entry(entry)
            own = entry.get(entries.version).text if entry.members else entry.text
            version = own.strip("{} ") or version
            if not entry.members and not entry.key and (said := _SPECIFIED.match(entry.text)) is not None:
                name, version = said["name"], said["version"]
            is_direct = name in asked or entry.get(entries.kind).text.lower().startswith("direct")
            needs = _list_needs(entry, entries.needs)
            place = 0 if entries.is_locked else entry.line
            if (held := known.get((name, version, place))) is not None:
                held.needs = needs | held.needs if len(held.needs) < _MAX_NEEDS else held.needs
                continue
            made = _Package(name, version.removeprefix("=="), entry.line, entries.is_locked, is_direct, needs)
            known[name, version, place] = made
    yield from known.values()


_ROOT = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")


def _walk(value: Value, at: Sequence[str]) -> Iterable[Value]:
    found = [value]
    for key in at:
        found = [one for each in found for one in each.members if _fits(one.key, key)]
    return found


def _name_entry(entry: Value) -> tuple[str, str]:
    if own := entry.get("name").text:
        return own, ""
    key = entry.key.rpartition("node_modules/")[2]
    found = _IN_KEY.match(key)
    return (found["name"], found["version"] or found["wanted"] or "") if found is not None else (key, "")


def _list_needs(entry: Value, keys: Sequence[str]) -> _Needs:
    found: _Needs = {}
    for one in (member for key in keys for member in (entry.members if key == "*" else entry.get(key).members)):
        said = _SPECIFIED.match(one.text)
        if one.key:
            name, version = _name_entry(replace(one, members=()))
            found.setdefault(name, (version or one.get("version").text or one.text, one.line))
        elif said is not None:
            found.setdefault(said["name"], (said["version"], one.line))
    return found
