"""Proves in the sandbox that the test of a claim depends on the repository's code, and writes that as JSON.

`claim_proof.py DESCRIPTOR FILE CLAIM` runs as a separate program, with a Python that may be older
than citebot's, and imports none of our modules. The form of the test has been checked by then. It
runs the test in separate processes: unchanged, when the call must return a result of the
repository's code or a part of one, and with stand-ins for such results, when it must return a
stand-in. The test has neither its descriptor nor its memory, so it cannot forge the output.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import io
import json
import os
import re
import sys
import tempfile
import time
import types
from typing import Any

HOLDS, FAILS, CALL = "test_claim_holds", "test_claim_does_not_hold", "call"
NO_RESULT = f"`{CALL}` returns something else than a result of the repository's code, or a part of one."
LONGEST_REPLY = 200_000  # bytes
MAX_REACHED = 3_000  # values that are looked at below a result
NUMBER, TEXT = 918_273_645, "918273645"  # a stand-in as a number, and as text that JSON can be read of too
MUTATORS = frozenset(
    "update setdefault append extend insert pop popitem remove clear add discard sort reverse appendleft".split()
)
PRODUCERS = frozenset("get pop setdefault replace ljust rjust center zfill format join translate".split())
WRITERS = frozenset(
    "write_text write_bytes open touch mkdir rename replace symlink_to hardlink_to unlink rmdir chmod move copy copy2 "
    "copyfile copytree rmtree".split()
)
_WORD = re.compile(r"`?[A-Za-z_][\w.]*[`(]?")
_VALUE = re.compile(r"True|False|None|[A-Z]\w{0,60}(?:Error|Exception|Warning)")


def list_named(claim: str) -> list[str]:
    """List the names of code in a claim: in backticks, before a bracket, or in the spelling of code."""
    names = [word.strip("`(.") for word in _WORD.findall(claim) if _is_code(word)]
    return [name for name in dict.fromkeys(names) if len(name) > 2 and not _VALUE.fullmatch(name)]


def _is_code(word: str) -> bool:
    name = word.strip("`(.")
    is_marked = word.endswith("(") or (word.startswith("`") and word.endswith("`"))
    is_dotted = "." in name and all(len(part) > 1 for part in name.split(".")) and not name.endswith(".py")
    is_mixed = not name.islower() and not name.istitle() and len(name) > 2
    return is_marked or "_" in name or is_dotted or is_mixed


class Named:
    """The names of code in a claim and, for names that occur more than once, the places meant.

    The words of the claim select them: a class, a file or a folder. Places in tests count only if the claim names them.
    """

    def __init__(self, claim: str, own: str) -> None:
        self.names = list_named(claim)
        self._words = set(re.findall(r"\w+", claim.lower()))
        self._places = {last: self._choose(homes) for last, homes in self._find_homes(own).items() if len(homes) > 1}

    def is_among(self, executed: list[str]) -> bool:
        """Whether the claim names an executed function; of a dotted name its last part counts."""
        if not self.names:
            return True
        parts = {part for one in executed for part in _split_place(one)}
        entered = [f"{one.lower()}." for one in executed]
        for last in (name.split(".")[-1].lower() for name in self.names):
            if last in self._places:
                if any(one.startswith(f"{place}.") for one in entered for place in self._places[last]):
                    return True
            elif last in parts:
                return True
        return False

    def _choose(self, homes: list[str]) -> list[str]:
        """Choose the place that the words of the claim name; none if they are ambiguous."""
        scores = {one: len(self._words.intersection(_split_place(one))) for one in homes}
        best = [one for one, score in scores.items() if score == max(scores.values())]
        if len(best) > 1:
            best = [one for one in best if not _TESTS.search(one)]
        return best if len(best) == 1 else []

    def _find_homes(self, own: str) -> dict[str, list[str]]:
        """Find where the repository defines each name."""
        found: dict[str, list[str]] = {name.split(".")[-1].lower(): [] for name in self.names}
        for folder, _, files in os.walk("."):
            for path in (os.path.join(folder, one)[2:] for one in files if one.endswith(".py")):  # noqa: PTH118
                try:
                    with open(path, encoding="utf-8") as file:  # noqa: PTH123
                        text = file.read()
                    lowered = text.lower()
                    tree = (
                        ast.parse(text) if path != own and any(one in lowered for one in found) else ast.Module([], [])
                    )
                except (OSError, ValueError, SyntaxError, RecursionError):
                    continue
                for name in _list_defined(tree, ""):
                    last = name.split(".")[-1].lower()
                    if last in found:
                        found[last].append(f"{path}:{name}".lower())
        return {last: sorted(set(homes)) for last, homes in found.items()}


_TESTS = re.compile(r"(?:^|[/_.])(?:tests?|testing|conftest|fixtures?|mocks?|fakes?|examples?|docs)(?:[/_.])")


def _split_place(place: str) -> list[str]:
    return place.lower().replace("/", ".").replace(":", ".").split(".")


def _list_defined(node: Any, within: str) -> list[str]:
    """List the functions, classes and values that a module or a class defines."""
    names: list[str] = []
    for one in ast.iter_child_nodes(node):
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.append(f"{within}{one.name}")
            names += _list_defined(one, f"{within}{one.name}.") if isinstance(one, ast.ClassDef) else []
        elif isinstance(one, (ast.Assign, ast.AnnAssign)):
            targets = one.targets if isinstance(one, ast.Assign) else [one.target]
            names += [f"{within}{target.id}" for target in targets if isinstance(target, ast.Name)]
        elif isinstance(one, (ast.If, ast.Try)):
            names += _list_defined(one, within)
    return names


# The runs


def prove(path: str, claim: str) -> dict[str, Any]:
    """Return which code was executed and whether the claim holds, or the reason why nothing is shown."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 - Pythons of any age
        tree = ast.parse(file.read(), path)
    return Proof(tree, path, Named(claim, path)).find()


class Proof:
    """The runs of one test, each in a fresh process."""

    def __init__(self, tree: ast.Module, path: str, named: Named) -> None:
        self._tree, self._path, self._named = tree, path, named
        self._started = time.time()

    def find(self) -> dict[str, Any]:
        """Run the test unchanged, and again with stand-ins: for all results that the claim names, then for each."""
        first = self._run()
        outcomes = (first["holds"], first["fails"])
        sites = {one["site"]: one["executed"] for one in first["sites"] if one["executed"]}
        named = [site for site, executed in sites.items() if self._named.is_among(executed)]
        if outcomes not in {("passed", "failed"), ("failed", "passed")}:
            reason = f"The test of the claim {outcomes[0]}, and the test of its opposite {outcomes[1]}."
        elif not sites:
            reason = f"`{CALL}` executes none of the repository's lines."
        elif not first["is_result"]:
            reason = NO_RESULT
        elif not named:
            names = ", ".join(self._named.names[:4])
            reason = f"`{CALL}` executes none of what the claim names, or another of that name: {names}."
        else:
            return self._judge({site: sites[site] for site in named}, outcomes)
        return {"reason": reason}

    def _judge(self, sites: dict[int, list[str]], outcomes: tuple[str, str]) -> dict[str, Any]:
        attempts = [list(sites), *([site] for site in reversed(list(sites)))]
        shown = next((one for one in attempts if self._fork(HOLDS, one)["is_result"]), None)
        if shown is None:
            return {"reason": NO_RESULT}
        again = self._run()
        if (again["holds"], again["fails"]) != outcomes:
            return {"reason": "The test does not come to the same verdict each time."}
        executed = sorted({name for site in shown for name in sites[site]})
        return {"reason": "", "holds": outcomes[0] == "passed", "executed": executed[:20]}

    def _run(self) -> dict[str, Any]:
        holds, fails = self._fork(HOLDS), self._fork(FAILS)
        return dict(holds, holds=holds["outcome"], fails=fails["outcome"])

    def _fork(self, name: str, replaced: Any = ()) -> dict[str, Any]:
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.closerange(3, writes)
                os.closerange(writes + 1, 256)
                data = json.dumps(
                    Trial(self._tree, self._path, self._started, replaced, self._named).run(name)
                ).encode()
                while data:
                    data = data[os.write(writes, data) :]
            finally:
                os._exit(0)
        os.close(writes)
        with os.fdopen(reads, "rb") as pipe:
            reply = pipe.read(LONGEST_REPLY)
        os.waitpid(child, 0)
        try:
            return dict(json.loads(reply))
        except ValueError:
            return {"outcome": "did not end", "sites": [], "is_result": False}


# One run


class Tracer:
    """Records which functions of the repository are entered."""

    def __init__(self, root: str, own: str, started: float) -> None:
        self.entered: list[str] = []
        self._root, self._own, self._started = root + os.sep, own, started
        self._known: dict[Any, str] = {}

    def start(self) -> None:
        """Start recording."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            sys.settrace(self._trace)
            return
        monitoring.use_tool_id(3, "citebot")
        monitoring.register_callback(3, monitoring.events.PY_START, self._enter)
        monitoring.set_events(3, monitoring.events.PY_START)

    def find_place(self, file: str) -> str:
        """Return the path of a repository file as it was before the test; empty for any other."""
        path = os.path.realpath(file)
        if not path.startswith(self._root) or path == os.path.realpath(self._own) or not os.path.isfile(path):  # noqa: PTH113
            return ""
        return "" if os.stat(path).st_ctime > self._started else path[len(self._root) :]  # noqa: PTH116

    def _trace(self, frame: Any, event: str, argument: object) -> None:  # noqa: ARG002
        self._enter(frame.f_code, 0)

    def _enter(self, code: Any, offset: int) -> None:  # noqa: ARG002
        if code not in self._known:
            place = self.find_place(code.co_filename)
            name = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
            self._known[code] = f"{place}:{name}" if place else ""
        if self._known[code]:
            self.entered.append(self._known[code])


class Trial:
    """One test in one run, with stand-ins for the results of the repository's code at the places in `replaced`."""

    def __init__(self, tree: ast.Module, path: str, started: float, replaced: Any, named: Named) -> None:
        self._named = named
        self._root = os.path.realpath(os.getcwd())  # noqa: PTH109
        self._tracer = Tracer(self._root, path, started)
        self._path, self._replaced = path, replaced
        self._executed: dict[int, list[str]] = {}
        self._results: list[Any] = []
        self._signatures: list[str] = []
        self._tree = _instrument(tree)
        self._names: dict[str, Any] = {
            "__name__": "test_citebot_claim", "__file__": path, "_site_call": self._take_call,
            "_site_read": self._take_read, "_site_name": self._take_name, "_site_end": self._take_end,
        }  # fmt: skip
        self._is_result = False

    def run(self, name: str) -> dict[str, Any]:
        """Run a test; return its outcome and the executed lines."""
        sys.path[0] = self._root
        if os.path.isdir("src"):  # noqa: PTH112
            sys.path.insert(1, os.path.join(self._root, "src"))  # noqa: PTH118
        sys.argv = ["pytest"]
        outcome = "passed"
        self._tracer.start()
        try:
            exec(compile(self._tree, self._path, "exec"), self._names)  # noqa: S102
            self._names[name]()
        except AssertionError as error:
            outcome = "failed" if _is_own(error, name) else "raised AssertionError elsewhere"
        except BaseException as error:  # noqa: BLE001 - whatever the code does is an outcome
            outcome = f"raised {type(error).__name__}: {str(error)[:200]}"
        sites = [{"site": number, "executed": sorted(set(names))} for number, names in self._executed.items()]
        return {"outcome": outcome, "sites": sites, "is_result": self._is_result}

    def _take_call(self, site: int, function: Any, *args: Any, **options: Any) -> Any:
        """Call something for the test; a stand-in may replace a result of the repository's code."""
        before = len(self._tracer.entered)
        trace = ""
        if getattr(function, "__module__", "") == "subprocess":
            options, trace = self._prepare_command(args, options)
        if (function is io.StringIO and args) or self._writes_files(function, args):
            raise PermissionError("a test may not prepare what it reads")
        raised = value = None
        try:
            value = function(*args, **options)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - passed on below
            raised = error
        executed = self._tracer.entered[before:] + self._find_observed(function) + _read_trace(trace)
        if not executed and isinstance(function, type):  # a class may be made without a line of its own
            executed = self._find_owner(function, "__init__")
        if function is inspect.signature:
            executed = self._signatures = self._find_owner(args[0], getattr(args[0], "__name__", ""))
        if executed and not isinstance(value, types.CoroutineType):
            value, raised = self._note(site, executed, value, raised)
        if raised is not None:
            raise raised
        return value

    def _take_read(self, site: int, owner: Any, name: str, value: Any) -> Any:
        """Read an attribute for the test: the code has set those of modules, classes and instances."""
        code = getattr(value, "__code__", None)
        is_foreign = not isinstance(value, StandIn) and not (code and self._tracer.find_place(code.co_filename))
        if name in MUTATORS and callable(value) and is_foreign:
            raise PermissionError("a test changes nothing but by the repository's code: it writes its values down")
        executed = self._find_owner(owner, name)
        if isinstance(owner, inspect.Parameter) and name == "default":
            executed = self._signatures
        if not executed or callable(value) or isinstance(value, types.ModuleType):
            return value
        return self._note(site, executed, value, None)[0]

    def _take_name(self, site: int, module: str, name: str, value: Any) -> Any:
        return self._take_read(site, sys.modules.get(module), name, value)

    def _take_end(self, value: Any) -> Any:
        """Take the call's result."""
        self._is_result = _is_stand_in(value) if self._replaced else _is_derived(value, self._results)
        return value

    def _note(self, site: int, executed: list[str], value: Any, raised: Any) -> tuple[Any, Any]:
        self._executed.setdefault(site, []).extend(executed)
        if self._named.is_among(executed):
            self._results.append(value if raised is None else raised)
        return (StandIn(), raised and _make_error(raised)) if site in self._replaced else (value, raised)

    def _find_owner(self, owner: Any, name: str) -> list[str]:
        """Name the owner of an attribute, if the repository has it and this run has loaded it."""
        kind = owner if isinstance(owner, (type, types.ModuleType, types.FunctionType)) else type(owner)
        module = kind if isinstance(kind, types.ModuleType) else sys.modules.get(getattr(kind, "__module__", ""), None)
        place = self._tracer.find_place(getattr(module, "__file__", None) or "")
        if not place or f"{place}:<module>" not in self._tracer.entered:
            return []
        if kind is module:
            return [f"{place}:{name}"]
        held: Any = module
        for part in getattr(kind, "__qualname__", "").split("."):
            held = getattr(held, part, None)
        return [f"{place}:{kind.__qualname__}.{name}"] if held is kind else []  # not one that only says it is

    def _find_observed(self, function: Any) -> list[str]:
        """Name the code that has run so far: the test writes to none of the files that it reads."""
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        is_output = isinstance(owner, io.StringIO) and name == "getvalue"
        if isinstance(owner, os.PathLike) and name in {"read_text", "read_bytes"}:
            is_output = os.path.isfile(owner) and not self._tracer.find_place(os.fspath(owner))  # noqa: PTH113
        return [one for one in self._tracer.entered if not one.endswith(":<module>")] if is_output else []

    def _writes_files(self, function: Any, args: Any) -> bool:
        """Whether the process would write below the repository's root, such as another module or a stale cache."""
        name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
        if name not in WRITERS or not (
            isinstance(owner, os.PathLike) or getattr(function, "__module__", "") == "shutil"
        ):
            return False
        if name == "open" and not (args and str(args[0]).strip("rbt")):
            return False
        places = [one for one in (owner, *args[:2]) if isinstance(one, (str, os.PathLike))]
        if name.startswith("copy"):
            places = places[1:]
        elif name.startswith("write"):
            places = places[:1]
        real = [os.path.realpath(os.fspath(one)) + os.sep for one in places]
        return any(one.startswith(self._root + os.sep) for one in real)

    def _prepare_command(self, args: Any, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Make a command of the repository record what it executes; reject other commands."""
        argv = [str(one) for one in (args[0] if args and isinstance(args[0], (list, tuple)) else [])]
        place = os.path.realpath(os.fspath(options.get("cwd") or "."))
        if options.get("shell") or options.get("executable") or not self._is_own_command(argv, place):
            raise PermissionError("a test may run the repository's own modules and scripts, without a shell")
        folder = tempfile.mkdtemp()
        trace = os.path.join(folder, "trace")  # noqa: PTH118
        with open(os.path.join(folder, "sitecustomize.py"), "w", encoding="utf-8") as file:  # noqa: PTH118, PTH123
            file.write(_NOTER.format(trace=trace, root=self._root + os.sep))
        environment = dict(options.get("env") or os.environ)
        environment["PYTHONPATH"] = os.pathsep.join((folder, self._root, os.path.join(self._root, "src")))  # noqa: PTH118
        return dict(options, env=environment), trace

    def _is_own_command(self, argv: list[str], place: str) -> bool:
        """Whether the command runs a module or script of the repository, and none from the current folder."""
        if place != self._root and place.startswith(self._root + os.sep):
            return False
        if len(argv) > 2 and argv[0] == sys.executable and argv[1] == "-m":
            stem = argv[2].replace(".", os.sep)
            top = f"{place}/{stem.partition(os.sep)[0]}"
            if place != self._root and (os.path.exists(top) or os.path.exists(f"{top}.py")):  # noqa: PTH110
                return False
            names = [
                f"{one}/{stem}{end}" for one in (self._root, f"{self._root}/src") for end in (".py", "/__main__.py")
            ]
            return any(map(self._tracer.find_place, names))
        script = argv[1] if len(argv) > 1 and argv[0] == sys.executable else "".join(argv[:1])
        return bool(self._tracer.find_place(os.path.join(place, script)))  # noqa: PTH118


_NOTER = """
import atexit, os, sys
seen, root = set(), {root!r}
def note(frame, event, argument):
    code = frame.f_code
    if code.co_filename.startswith(root):
        seen.add(code.co_filename[len(root):] + ":" + getattr(code, "co_qualname", code.co_name))
def write():
    with open({trace!r}, "a") as file:
        file.write("".join(one + chr(10) for one in sorted(seen)))
atexit.register(write)
sys.settrace(note)
"""


def _read_trace(path: str) -> list[str]:
    if not path or not os.path.exists(path):  # noqa: PTH110
        return []
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read(LONGEST_REPLY).split("\n")[:-1]


def _is_own(error: BaseException, name: str) -> bool:
    """Whether an assertion of the test itself failed, and not one in the called code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_name == name


class _Instruments(ast.NodeTransformer):
    """Routes every call and every attribute access of the test through the trial."""

    def __init__(self) -> None:
        self._count = 0

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _make(self, name: str, *args: ast.expr, keywords: Any = ()) -> ast.Call:
        number = ast.Constant(self._number())
        return ast.Call(func=ast.Name(name, ast.Load()), args=[number, *args], keywords=list(keywords))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return self._make("_site_call", node.func, *node.args, keywords=node.keywords)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        reads: Any = ast.parse(f"lambda o: _site_read({self._number()}, o, {node.attr!r}, o.{node.attr})", mode="eval")
        return ast.Call(func=reads.body, args=[node.value], keywords=[])

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        end = ast.Call(func=ast.Name("_site_end", ast.Load()), args=[node.value or ast.Constant(None)], keywords=[])
        return ast.Return(end)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        after: list[ast.stmt] = [node]
        for one in node.names:
            name = one.asname or one.name
            taken = self._make(
                "_site_name", ast.Constant(node.module), ast.Constant(one.name), ast.Name(name, ast.Load())
            )
            after.append(ast.Assign(targets=[ast.Name(name, ast.Store())], value=taken))
        return after


def _instrument(tree: ast.Module) -> ast.Module:
    """Return the test with its imports inside the call, and its calls and attributes routed through the trial."""
    made = copy.deepcopy(tree)
    imports = [node for node in made.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    imports = [node for node in imports if getattr(node, "module", "") != "__future__"]
    functions = [node for node in made.body if isinstance(node, ast.FunctionDef)]
    call = next(node for node in functions if node.name == CALL)
    call.body = [*imports, *call.body]
    names = sorted({(one.asname or one.name).partition(".")[0] for node in imports for one in node.names})
    _Instruments().visit(call)
    call.body = [*([ast.Global(names)] if names else []), *call.body]
    made.body = list(functions)
    return ast.fix_missing_locations(made)


# Results, and stand-ins for them


def _is_derived(value: Any, results: list[Any]) -> bool:
    """Whether a value is a result, a part of one, or a simple property of one, such as its length or its text."""
    reached = _list_reached(results)
    return _is_among(value, reached) or (
        isinstance(value, (list, tuple, set, dict)) and bool(value)
        and all(_is_among(one, reached) for one in (value.values() if isinstance(value, dict) else value))
    )  # fmt: skip


def _is_among(value: Any, reached: list[Any]) -> bool:
    for one in reached:
        try:
            if value is one or (type(value) is type(one) and bool(value == one)):
                return True
        except Exception:  # noqa: BLE001, S112 - what cannot be compared is another
            continue
    return False


def _list_reached(results: list[Any]) -> list[Any]:
    reached, layer = list(results), list(results)
    for _ in range(3):
        layer = [part for one in layer for part in _list_parts(one)][:MAX_REACHED]
        reached += layer
        if len(reached) > MAX_REACHED:
            break
    return reached


def _list_parts(value: Any) -> list[Any]:
    """List the visible parts of a value."""
    looks: list[Any] = [type, len, str, repr, sorted, list, tuple, set, json.loads]
    looks += [
        lambda one, name=name: getattr(one, name)()
        for name in (
            "strip",
            "rstrip",
            "lower",
            "splitlines",
            "split",
            "decode",
            "isoformat",
            "keys",
            "values",
            "items",
        )
    ]
    parts: list[Any] = []
    for look in looks:
        try:
            parts.append(look(value))
        except Exception:  # noqa: BLE001, S112 - most looks are for other kinds of values
            continue
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        parts += list(value.values() if isinstance(value, dict) else value)[:100]
    elif not isinstance(value, (str, bytes, int, float, type)):
        parts += list(getattr(value, "__dict__", {}).values())[:40]
        parts += _list_attributes(value)
    return parts


def _list_attributes(value: Any) -> list[Any]:
    found: list[Any] = []
    for name in [one for one in dir(value) if not one.startswith("_")][:60]:
        try:
            part = getattr(value, name)
        except Exception:  # noqa: BLE001, S112 - a property may fail
            continue
        found += [] if callable(part) else [part]
    return found


class StandIn(str):
    """Represents a result of the repository's code; everything read or taken from it is a stand-in too."""

    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = None  # type: ignore[assignment]  # nothing is computed of it

    def __new__(cls) -> StandIn:
        """Make one; all are alike."""
        return super().__new__(cls, TEXT)

    def __getattribute__(self, name: str) -> Any:
        if name in PRODUCERS:
            return lambda *args, **_: StandIn() if name == "get" and len(args) == 1 else None
        return object.__getattribute__(self, name) if name.startswith("__") else StandIn()

    def __call__(self, *_: Any, **__: Any) -> StandIn:
        """Return the result of calling it."""
        return StandIn()

    def __getitem__(self, _: Any) -> StandIn:
        return StandIn()

    def __iter__(self) -> Any:
        return iter([StandIn()])

    def __len__(self) -> int:
        return NUMBER

    def __repr__(self) -> str:
        return TEXT

    def __enter__(self) -> StandIn:
        return StandIn()

    def __exit__(self, *_: object) -> None:
        return


class StandInError(BaseException):
    """Marks an exception that represents one of the repository's code, and has its type."""


def _make_error(error: BaseException) -> BaseException:
    """Return an error of the same type that contains only stand-ins; the error itself if its type forbids that."""
    try:
        kind: Any = type(type(error).__name__, (StandInError, type(error)), {})
        other: BaseException = kind.__new__(kind)
    except TypeError:
        return error
    for name in dir(error):
        if not name.startswith("_"):
            with contextlib.suppress(Exception):
                setattr(other, name, StandIn())
    return other


def _is_stand_in(value: Any) -> bool:
    """Whether a value is a stand-in, or consists of them."""
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        parts = list(value.values() if isinstance(value, dict) else value)
        return bool(parts) and all(map(_is_stand_in, parts))
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, (StandIn, StandInError)) or (kind in (int, str) and value in (NUMBER, TEXT))


def main() -> int:
    """Write the result to the descriptor."""
    data = json.dumps(dict(prove(sys.argv[2], sys.argv[3]), kind="proof")).encode() + b"\n"
    while data:
        data = data[os.write(int(sys.argv[1]), data) :]
    return 0


if __name__ == "__main__":
    sys.exit(main())
