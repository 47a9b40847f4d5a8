"""Reads manifests and lock files: declared packages, locked versions, and their dependents."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import PurePosixPath

from indexer.parsing.registrations.nested_values import LONGEST_TEXT, Value, read_indented, read_json, read_sections
from indexer.text.linear_patterns import Pattern, compile_pattern
from indexer.types import Registration

MAX_PACKAGES = 50_000  # of one file, with what needs them
_MAX_TOKENS = 1_500_000
_MAX_NEEDS = 500
_MAX_WAY = 5  # packages between one and what the project declares


@dataclass(frozen=True, kw_only=True, slots=True)
class _Entries:
    """The place of packages in a file: keys on the path, `*` for any.

    The name is the key, or the member `name`; the version the member `version`, or the text.
    `needs` are members that list the package's requirements; the member `kind` says `direct` for
    the project's own requirements.
    """

    at: tuple[str, ...]
    version: str = "version"
    needs: tuple[str, ...] = ()
    kind: str = ""
    is_locked: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class _Format:
    files: str  # globs of names
    own: Pattern | None = None  # the line with the name of the package itself
    read: Callable[[str], Value] | None = None
    entries: tuple[_Entries, ...] = ()
    line: Pattern | None = None  # of formats with a package in a line: `name`, `version`, and `indirect`
    span: Pattern | None = None  # of formats with `items` somewhere, or with the elements of a package
    is_locked: bool = False


def _read_all_json(text: str) -> Value:
    return read_json(text, most=_MAX_TOKENS)


def _declare(*paths: str) -> tuple[_Entries, ...]:
    return tuple(_Entries(at=tuple(path.split("/")), is_locked=False) for path in paths)


_NEEDS = ("dependencies", "optionalDependencies", "requires", "optional-dependencies")
_PACKAGE_JSON = "dependencies/* devDependencies/* peerDependencies/* optionalDependencies/* engines/*".split()
_CARGO = (
    "dependencies/* dev-dependencies/* build-dependencies/* workspace.dependencies/* target.*dependencies/*"
    " package/rust-version"
).split()
_PYTHON = (
    "project/dependencies/* project/requires-python project.optional-dependencies/*/* dependency-groups/*/*"
    " tool.poetry.dependencies/* tool.poetry.group.*.dependencies/* tool.poetry.dev-dependencies/*"
    " build-system/requires/*"
).split()
_JSON_NAME = compile_pattern(r"(?m)^[ \t{]*\"name\"\s*:\s*\"([^\"]+)\"")
_TOML_NAME = compile_pattern(r"(?m)^name\s*=\s*[\"']([^\"']+)[\"']")
_REQUIREMENT = compile_pattern(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]\n]*\])?\s*(?P<version>(?:===?|~=|>=?|<=?|!=|@)[^;#\\]*)?(?:[;#\\]|\s*$)"
)
_FORMATS = (
    _Format(files="package.json", own=_JSON_NAME, read=_read_all_json, entries=_declare(*_PACKAGE_JSON)),
    _Format(
        files="package-lock.json npm-shrinkwrap.json",
        read=_read_all_json,
        entries=(
            _Entries(at=("packages", "*"), needs=_NEEDS),
            _Entries(at=("dependencies", "*"), needs=_NEEDS),
            _Entries(at=("dependencies", "*", "dependencies", "*"), needs=_NEEDS),
        ),
    ),
    _Format(files="composer.json", own=_JSON_NAME, read=_read_all_json, entries=_declare("require/*", "require-dev/*")),
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
    _Format(files="pyproject.toml", own=_TOML_NAME, read=read_sections, entries=_declare(*_PYTHON)),
    _Format(
        files="setup.py",
        own=compile_pattern(r"\bname\s*=\s*[\"']([^\"']+)[\"']"),
        span=compile_pattern(r"\w_requires?\s*=\s*\[(?P<items>(?:[^\[\]]|\[[^\[\]]*\])*)\]"),
    ),
    _Format(
        files="setup.cfg",
        own=compile_pattern(r"(?m)^name\s*=\s*(\S+)"),
        span=compile_pattern(r"(?m)^\w+_requires?[ \t]*=(?P<items>[^\n]*(?:\n[ \t]+[^\n]*)*)"),
    ),
    _Format(files="Pipfile", read=read_sections, entries=_declare("packages/*", "dev-packages/*")),
    _Format(files="Cargo.toml", own=_TOML_NAME, read=read_sections, entries=_declare(*_CARGO)),
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
    _Format(
        files="pubspec.yaml",
        own=compile_pattern(r"(?m)^name:\s*(\S+)"),
        read=read_indented,
        entries=_declare("dependencies/*", "dev_dependencies/*", "environment/*"),
    ),
    _Format(files="pubspec.lock", read=read_indented, entries=(_Entries(at=("packages", "*"), kind="dependency"),)),
    _Format(files="requirements*.txt requirements*.in *requirements.txt constraints*.txt", line=_REQUIREMENT),
    _Format(
        files="go.mod",
        own=compile_pattern(r"(?m)^module\s+(\S+)"),
        line=compile_pattern(
            r"^(?:require\s+)?(?P<name>[\w-]+\.[\w.-]+/[^\s()]+|[\w-]+\.\w+|go)\s+(?P<version>v?\d\S*)"
            r"(?P<indirect>\s*// indirect)?"
        ),
    ),
    _Format(files="go.sum", line=compile_pattern(r"^(?P<name>\S+) (?P<version>v[^\s/]+) h1:"), is_locked=True),
    _Format(
        files="Gemfile *.gemspec",
        own=compile_pattern(r"\w\.name\s*=\s*[\"']([^\"']+)[\"']"),
        line=compile_pattern(
            r"^(?:(?:gem|\w{1,20}\.add_\w*dependency)\b[ (]*[\"'](?P<name>[\w./-]+)[\"']|(?P<language>ruby)\b)"
            r"(?:[\s,]*[\"'](?P<version>[^\"']*)[\"'])?"
        ),
    ),
    _Format(
        files="build.gradle build.gradle.kts",
        line=compile_pattern(
            r"^\w+[ (]+(?:\w+\()?[\"'](?P<name>[\w.-]+(?::[\w.-]+)?)(?::|[\"')]+\s*version[ (]+[\"'])"
            r"(?P<version>[\w.$\{}-]+)"
        ),
    ),
    _Format(files="*.versions.toml", read=read_sections, entries=_declare("versions/*")),
    _Format(
        files="pom.xml",
        span=compile_pattern(
            r"<dependency>\s*<groupId>(?P<group>[^<]{1,200})</groupId>\s*<artifactId>(?P<name>[^<]{1,200})</artifactId>"
            r"(?:\s*<version>(?P<version>[^<]{1,100})</version>)?|<(?P<property>[\w.-]+)[.-]version>(?P<value>[^<]{1,100})<"
        ),
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
_VIA = compile_pattern(r"^#\s*(?:via\s+)?(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\(|$)")
# `"@babel/core@npm:^7.1.0", ...` of Yarn, `/lodash@4.17.21(peer)` of pnpm, `rack (2.2.8)` of Bundler.
_IN_KEY = compile_pattern(
    r"^[\"'/]{0,2}(?P<name>@?[^@\s\"'(]+)(?:@(?:npm:)?(?P<wanted>[^\s\"'(,]*)|\s+\(?(?P<version>[^)]+)\)?)?"
)
_QUOTED = compile_pattern(r"[\"']([^\"']+)[\"']")
_SPECIFIED = compile_pattern(r"^(?P<name>[A-Za-z0-9@][\w./@-]*)(?:\[[^\]]*\])?\s*(?P<version>.*)$")
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
    """Whether a file declares or locks packages."""
    return _find_format(path) is not None


def read_own_name(path: str, text: str) -> str:
    """Return the name of the package that a manifest is of."""
    form = _find_format(path)
    found = form.own.search(text) if form is not None and form.own is not None else None
    return found[1] if found is not None else ""


def _find_format(path: str) -> _Format | None:
    name = PurePosixPath(path).name
    if PurePosixPath(path).parent.name == "requirements" and name.endswith((".txt", ".in")):
        name = "requirements.txt"
    return next((one for one in _FORMATS if any(_fits(name, glob) for glob in one.files.split())), None)


def _fits(text: str, glob: str) -> bool:
    """Whether a text matches one with a star, which stands for anything."""
    first, star, last = glob.partition("*")
    return text == glob or bool(star and text[: len(first)] == first and text[len(first) :].endswith(last))


def read_packages(path: str, text: str) -> list[Registration]:
    """Return the packages of a manifest or lock file, each with its version and its dependents.

    The detail of a registration is the version. The handler of a `dependency` is the package that declares it; the help
    of a `package` is `locked` or `needed`, and its handler the path from a declared package, or the dependent.
    """
    form = _find_format(path)
    if form is None:
        return []
    read = _read_lines if form.line is not None else _read_spans if form.span is not None else _read_entries
    packages = [one for one in islice(read(form, text), MAX_PACKAGES) if one.name]
    return list(islice(_register(packages, read_own_name(path, text)), MAX_PACKAGES))


def _register(packages: Sequence[_Package], own: str) -> Iterator[Registration]:
    ways = _find_ways(packages)
    declared = partial(Registration, kind="dependency", help="", handler=_cut(own))
    for one in packages:
        way, dependent = " > ".join(ways.get(one.name, ())), f"{one.name} {one.version}".strip()
        locked = partial(Registration, kind="package", help="locked", handler=_cut(way))
        needed = partial(Registration, kind="package", help="needed", handler=_cut(dependent))
        yield (locked if one.is_locked else declared)(name=_cut(one.name), detail=_cut(one.version), line=one.line)
        for name, (version, line) in one.needs.items():
            yield needed(name=_cut(name), detail=_cut(version), line=line)


def _cut(text: str) -> str:
    return text.strip()[:LONGEST_TEXT]


def _find_ways(packages: Sequence[_Package]) -> Mapping[str, tuple[str, ...]]:
    """Find the shortest dependency path to each package from one that nothing else needs."""
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
            if other not in ways and len(ways[name]) < _MAX_WAY:
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
            last, version = groups["name"] or groups.get("language", ""), groups["version"] or ""
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


def _read_spans(form: _Format, text: str) -> Iterator[_Package]:
    line, counted = 1, 0
    for found in form.span.finditer(text) if form.span is not None else ():
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        groups = found.groupdict("")
        for number, items in enumerate(groups.get("items", "").split("\n"), line):
            for item in _QUOTED.findall(items) or [items.strip()]:
                if (said := _REQUIREMENT.match(item)) is not None:
                    yield _Package(said["name"], said["version"] or "", number, False, False, {})
        if groups.get("name"):
            at = line + text.count("\n", counted, found.start(2))
            name = f"{groups['group'].strip()}:{groups['name'].strip()}"
            yield _Package(name, groups["version"].strip(), at, False, False, {})
        elif groups.get("property"):
            yield _Package(groups["property"], groups["value"].strip(), line, False, False, {})


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
