"""The call graph: which definition a use of a name means, asked of small sources in a real catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from indexer.calls.call_graph import CallGraph
from indexer.parsing.file_parser import parse_file
from indexer.search.centrality import compute_page_rank
from indexer.store.catalog import Catalog
from indexer.text.decoding import pack
from indexer.types import CallSite, Commit, FileEntry

Graph = Callable[[Mapping[str, str]], CallGraph]

SESSION = "class Session:\n    def send(self):\n        pass\n"
ADAPTER = "class Adapter:\n    def send(self):\n        pass\n"
FREE = "def send():\n    pass\n"
NAMESAKES = {"http/session.py": SESSION, "http/adapter.py": ADAPTER, "mail/smtp.py": FREE}
PORTS = "class Adapter:\n    def send_all(self): pass\n\n\nclass Queue:\n    def send_all(self): pass\n\n\n"
APP = "class App:\n    def __init__(self, port: Adapter):\n"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    """Make the call graph of sources by path."""
    opened: list[Catalog] = []

    def make(sources: Mapping[str, str]) -> CallGraph:
        catalog = Catalog(tmp_path / f"{len(opened)}.sqlite")
        opened.append(catalog)
        with catalog.begin_write() as writer:
            commit = Commit(sha="a" * 40, branch="main", committed_at=1, subject="first")
            generation = writer.begin_generation(commit, provenance="p")
            for path, source in sources.items():
                text = dedent(source)
                parsed = parse_file(path, text)
                entry = FileEntry(path=path, language=parsed.language, source_type="code", lines=text.count("\n"))
                file = writer.add_file(generation, entry, path, pack(text))
                writer.add_parsed(file, parsed, [f"{path}:{number}" for number in range(len(parsed.chunks))])
        return CallGraph(catalog, generation)

    yield make
    for catalog in opened:
        catalog.close()


def callers(graph: CallGraph, name: str) -> list[str]:
    """`app.py:7` for every caller, with a question mark where it is ambiguous."""
    return [f"{site.path}:{site.line}{'?' * site.ambiguous}" for site in graph.callers(name)]


def callees(graph: CallGraph, name: str) -> list[str]:
    """`7 http/session.py Session.send` for every callee, or `7 print` for one from outside."""
    return [_callee(site) for site in graph.callees(name)]


def _callee(site: CallSite) -> str:
    found = f"{site.callee.path} {site.callee.symbol.qualified_name}" if site.callee else site.name
    return f"{site.line} {found}{'?' * site.ambiguous}"


def without_lines(found: list[str]) -> list[str]:
    return [each.partition(" ")[2] for each in found]


# Names, scopes and imports


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("http/session.py", f"{SESSION}    def get(self):\n        self.send()\n", "5 http/session.py Session.send"),
        (
            "app.py",
            "from http.adapter import Adapter\ndef get():\n    Adapter.send()\n",
            "3 http/adapter.py Adapter.send",
        ),
        ("app.py", "from mail import smtp\ndef get():\n    smtp.send()\n", "3 mail/smtp.py send"),
        ("app.py", "import mail.smtp\ndef get():\n    mail.smtp.send()\n", "3 mail/smtp.py send"),
        ("app.py", "import mail.smtp as s\ndef get():\n    s.send()\n", "3 mail/smtp.py send"),
        ("app.py", "from mail.smtp import send\ndef get():\n    send()\n", "3 mail/smtp.py send"),
        ("app.py", "from mail.smtp import send as post\ndef get():\n    send()\n", "3 send"),
        ("app.py", "from elsewhere import send\ndef get():\n    send()\n", "3 send"),
        ("app.py", "import requests\ndef get():\n    requests.send()\n", "3 send"),
        ("app.py", "def get():\n    send()\n", "2 send"),
        ("app.py", "def get():\n    'text'.send()\n", "2 send"),
        ("mail/smtp.py", f"{FREE}def get():\n    send()\n", "4 mail/smtp.py send"),
    ],
)
def test_the_syntax_and_the_imports_tell_which_definition_is_meant(
    graph: Graph, path: str, source: str, expected: str
) -> None:
    found = graph({**NAMESAKES, path: source})

    assert callees(found, f"{'Session.' * (path == 'http/session.py')}get") == [expected]


def test_this_means_the_class_around_it(graph: Graph) -> None:
    source = "class A { run() {} go() { this.run(); } }\nclass B { run() {} }\n"

    found = graph({"a.ts": source})

    assert (callers(found, "A.run"), callers(found, "B.run")) == (["a.ts:1"], [])


def test_a_method_of_an_object_of_unknown_class_is_ambiguous(graph: Graph) -> None:
    found = graph({**NAMESAKES, "app.py": "def get(thing):\n    thing.send()\n"})

    assert callees(found, "get") == ["2 http/adapter.py Adapter.send?", "2 http/session.py Session.send?"]
    assert callers(found, "Session.send") == ["app.py:2?"]


def test_the_only_method_of_a_telling_name_is_meant_for_certain(graph: Graph) -> None:
    found = graph({"a.py": "class A:\n    def send_all(self): pass\n", "b.py": "def f(x):\n    x.send_all()\n"})

    assert callers(found, "A.send_all") == ["b.py:2"]


def test_the_innermost_definition_in_sight_hides_the_outer_one(graph: Graph) -> None:
    source = """\
        def helper(): pass

        def run():
            def helper(): pass
            helper()

        def walk():
            helper()
    """

    found = graph({"a.py": source})

    assert callees(found, "run") == ["5 a.py run.helper"]
    assert callees(found, "walk") == ["8 a.py helper"]


def test_a_name_with_too_many_definitions_resolves_to_none(graph: Graph) -> None:
    many = {f"{number}/a.py": f"class C{number}:\n    def get(self): pass\n" for number in range(30)}

    found = graph({**many, "app.py": "def run(thing):\n    thing.get()\n"})

    assert callees(found, "run") == ["2 get"]
    assert callers(found, "C3.get") == []


@pytest.mark.parametrize(
    ("importer", "line"),
    [
        ("pkg/b/app.ts", 'import { trim } from "./util";'),
        ("pkg/b/app.ts", 'import { trim } from "./util.js";'),
        ("pkg/c/app.ts", 'import { trim } from "../b/util";'),
        ("pkg/b/app.py", "from .util import trim"),
        ("pkg/c/app.py", "from ..b.util import trim"),
        ("main.py", "from pkg.b.util import trim"),
        ("pkg/main.rs", "use crate::b::util::trim;"),
    ],
)
def test_an_import_means_the_module_at_its_path(graph: Graph, importer: str, line: str) -> None:
    suffix = importer.rpartition(".")[2]
    trim, run = {
        "ts": ("export function trim() {}\n", "function run() { trim(); }"),
        "py": ("def trim(): pass\n", "def run(): trim()"),
        "rs": ("pub fn trim() {}\n", "fn run() { trim(); }"),
    }[suffix]

    found = graph({f"pkg/a/util.{suffix}": trim, f"pkg/b/util.{suffix}": trim, importer: f"{line}\n{run}\n"})

    assert callees(found, "run") == [f"2 pkg/b/util.{suffix} trim"]


def test_a_name_is_followed_through_the_packages_that_hand_it_on(graph: Graph) -> None:
    found = graph(
        {
            "pkg/__init__.py": "from pkg.core.api import send\n",
            "pkg/core/__init__.py": "",
            "pkg/core/api.py": FREE,
            "other.py": FREE,
            "app.py": "from pkg import send\nsend()\n",
            "web/index.ts": 'export { post } from "./http/post";\n',
            "web/http/post.ts": "export function post() {}\n",
            "stray/post.ts": "export function post() {}\n",
            "main.ts": 'import { post } from "./web";\npost();\n',
        }
    )

    assert [(site.path, site.line, site.ambiguous) for site in found.callers("send")] == [("app.py", 2, False)]
    assert [site.callee.path for site in found.callers("post") if site.callee] == ["web/http/post.ts"]


def test_go_imports_are_read_by_the_name_of_the_module(graph: Graph) -> None:
    found = graph(
        {
            "go.mod": "module example.org/shop\n",
            "store/store.go": "package store\n\nfunc Open() {}\n",
            "cache/cache.go": "package cache\n\nfunc Open() {}\n",
            "main.go": (
                'package main\n\nimport (\n\t"os"\n\t"example.org/shop/store"\n)\n\n'
                "func main() {\n\tstore.Open()\n\tos.Open()\n}\n"
            ),
        }
    )

    assert callees(found, "main") == ["9 store/store.go Open", "10 Open"]


# The classes of receivers


def test_an_inherited_method_is_that_of_the_nearest_base(graph: Graph) -> None:
    found = graph(
        {
            "base.py": "class Root:\n    def send_all(self): pass\n    def close_all(self): pass\n",
            "mid.py": "from base import Root\n\nclass Mid(Root):\n    def send_all(self): pass\n",
            "app.py": """\
                from mid import Mid

                class Leaf(Mid):
                    def run(self):
                        self.send_all()
                        self.close_all()

                class Stranger:
                    def send_all(self): pass
                    def close_all(self): pass
            """,
        }
    )

    assert callees(found, "Leaf.run") == ["5 mid.py Mid.send_all", "6 base.py Root.close_all"]


def test_super_means_the_bases_and_not_the_class_itself(graph: Graph) -> None:
    source = """\
        class Base:
            def send(self): pass

        class Child(Base):
            def send(self):
                super().send()
    """

    assert callees(graph({"a.py": source}), "Child.send") == ["6 super", "6 a.py Base.send"]


def test_super_of_a_class_from_outside_means_nothing_of_ours(graph: Graph) -> None:
    source = """\
        from elsewhere import Base

        class Child(Base):
            def run(self):
                super().send_all()
                super().port.send_all()
                super().port.queue.send_all()
    """

    found = graph({"ports.py": PORTS, "a.py": source})

    assert callers(found, "send_all") == []


@pytest.mark.parametrize(
    "source",
    [
        "def run(port: Adapter):\n    port.send_all()\n",
        "def run(port: Adapter | None = None):\n    port.send_all()\n",
        "def run(ports, port: 'Optional[Adapter]'):\n    port.send_all()\n",
        "def run():\n    port = Adapter(1)\n    port.send_all()\n",
        "def run():\n    Adapter().send_all()\n",
        "def run():\n    with Adapter() as port:\n        port.send_all()\n",
        "def made() -> Adapter: pass\ndef run():\n    made().send_all()\n",
        "def made() -> Adapter: pass\ndef run():\n    port = made()\n    port.send_all()\n",
        "async def made() -> Adapter: pass\nasync def run():\n    (await made()).send_all()\n",
        "class App:\n    port: Adapter\n    def run(self):\n        self.port.send_all()\n",
        f"{APP}        self.port = Adapter()\n    def run(self):\n        self.port.send_all()\n",
        f"{APP}        self.port = port\n    def run(self):\n        self.port.send_all()\n",
        "class App:\n    def port(self) -> Adapter: pass\n    def run(self):\n        self.port().send_all()\n",
        f"{APP}        self.port = Adapter()\ndef run(app: App):\n    app.port.send_all()\n",
    ],
)
def test_python_objects_are_of_the_class_that_is_written_for_them(graph: Graph, source: str) -> None:
    found = graph({"a.py": PORTS + source})

    assert [line.partition(" ")[2] for line in callees(found, "run") if "send_all" in line] == ["a.py Adapter.send_all"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "a.ts",
            """\
            class Adapter { sendAll() {} }
            class Queue { sendAll() {} }
            class App {
              constructor(private readonly port: Adapter) {}
              run() { this.port.sendAll(); }
            }
            """,
        ),
        (
            "A.java",
            """\
            class Adapter { void sendAll() {} }
            class Queue { void sendAll() {} }
            class App {
              private final Adapter port = new Adapter();
              void run() { port.sendAll(); }
            }
            """,
        ),
        (
            "a.kt",
            """\
            class Adapter {
              fun sendAll() {}
            }
            class Queue {
              fun sendAll() {}
            }
            class App(private val port: Adapter) {
              fun run() { port.sendAll() }
            }
            """,
        ),
        (
            "a.rb",
            """\
            class Adapter
              def sendAll; end
            end
            class Queue
              def sendAll; end
            end
            class App
              def initialize
                @port = Adapter.new
              end
              def run
                @port.sendAll()
              end
            end
            """,
        ),
        (
            "a.go",
            """\
            package a
            type Adapter struct{}
            func (a *Adapter) sendAll() {}
            type Queue struct{}
            func (q *Queue) sendAll() {}
            type App struct {
            \tport *Adapter
            }
            func (app *App) run() { app.port.sendAll() }
            """,
        ),
        (
            "a.rs",
            """\
            struct Adapter;
            impl Adapter { fn sendAll(&self) {} }
            struct Queue;
            impl Queue { fn sendAll(&self) {} }
            struct App {
                port: Arc<Adapter>,
            }
            impl App {
                fn run(&self) { self.port.sendAll(); }
            }
            """,
        ),
    ],
)
def test_a_field_is_of_the_class_that_is_written_for_it(graph: Graph, path: str, source: str) -> None:
    found = graph({path: source})

    assert without_lines(callees(found, "App.run")) == [f"{path} Adapter.sendAll"]


def test_self_in_a_rust_impl_means_its_struct(graph: Graph) -> None:
    source = """\
        struct Wheel;
        impl Wheel {
            fn turn(&self) {}
            fn new() -> Self { Wheel }
            fn run(&self) {
                self.turn();
                Self::new().turn();
            }
        }
        struct Screw;
        impl Screw { fn turn(&self) {} }
    """

    found = graph({"a.rs": source})

    assert callers(found, "Wheel.turn") == ["a.rs:6", "a.rs:7"]
    assert callers(found, "Screw.turn") == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "A.java",
            """\
            class Base { void send() {} }
            class Other { void send() {} }
            class Child extends Base { void run() { send(); } }
            """,
        ),
        (
            "a.kt",
            """\
            open class Base {
              fun send() {}
            }
            class Other {
              fun send() {}
            }
            class Child : Base() {
              fun run() { send() }
            }
            """,
        ),
        (
            "a.dart",
            """            class Base { void send() {} }
            class Other { void send() {} }
            class Child extends Base { void run() { send(); } }
            """,
        ),
        (
            "a.sol",
            """            contract Base { function send() public {} }
            contract Other { function send() public {} }
            contract Child is Base { function run() public { send(); } }
            """,
        ),
    ],
)
def test_a_bare_name_means_a_member_where_this_is_left_out(graph: Graph, path: str, source: str) -> None:
    assert without_lines(callees(graph({path: source}), "Child.run")) == [f"{path} Base.send"]


@pytest.mark.parametrize(
    ("sources", "name", "expected"),
    [
        (
            {"Tree.pm": "package Tree;\nsub list_all { 1 }\n", "a.pl": "$dir->list_all->each;\n"},
            "list_all",
            ["a.pl:1"],
        ),
        (
            {
                "a.f90": "module m\ncontains\nfunction to_text(a)\nend function\nend module\n",
                "b.f90": "program p\nx = json%to_text(y)\nend program\n",
            },
            "to_text",
            ["b.f90:2"],
        ),
        (
            {"a.jl": "function Base.empty!(s::A{T}) where {T}\n  s\nend\nf(s) = empty!(s)\ng(s) = empty!.(s)\n"},
            "empty!",
            ["a.jl:4", "a.jl:5"],
        ),
        (
            {
                "src/shop/core.clj": "(ns shop.core)\n(defn add-all [x] x)\n",
                "test/a.clj": "(ns a (:require [shop.core :as s]))\n(s/add-all 1)\n(other.core/add-all 1)\n",
            },
            "add-all",
            ["test/a.clj:2"],
        ),
        ({"a.fs": "module A\nlet rec internal add x y = x\nlet b = add 1 2\n"}, "add", ["a.fs:3"]),
        (
            {"a.dart": "class Box { void copyWith() {} }\nvoid f(x) { x?.copyWith(); x..copyWith(); }\n"},
            "copyWith",
            ["a.dart:2", "a.dart:2"],
        ),
    ],
)
def test_functions_are_called_as_their_language_writes_it(
    graph: Graph, sources: dict[str, str], name: str, expected: list[str]
) -> None:
    assert callers(graph(sources), name) == expected


def test_overloads_of_a_method_are_one_callee(graph: Graph) -> None:
    python = """\
        from typing import overload

        class A:
            @overload
            def get(self, key: int) -> int: ...
            @overload
            def get(self, key: str) -> str: ...
            def get(self, key):
                if key:
                    return key
                return None

        def run(a: A):
            a.get(1)
    """
    java = "class B {\n  void put(int a) {}\n  void put(long a) {}\n  void run() { put(1); }\n}\n"

    found = graph({"a.py": python, "B.java": java})

    assert callees(found, "run") == ["4 B.java B.put", "14 a.py A.get"]
    assert callers(found, "A.get") == ["a.py:14"]


@pytest.mark.parametrize(
    "source",
    [
        "def run():\n    a = b\n    b = a\n    a.send_all()\n",
        "def run():\n    a = a.b\n    a.send_all()\n",
        "class A:\n    def run(self):\n        self.x = self.y\n        self.y = self.x\n        self.x.send_all()\n",
        "class A:\n    def run(self):\n        self.x = self.x.x.x\n        self.x.send_all()\n",
        "class A(B):\n    def run(self):\n        self.x.send_all()\n\n\nclass B(A):\n    pass\n",
        "from b import run\n\n\ndef go():\n    run.send_all()\n",
    ],
)
def test_what_is_defined_by_itself_is_not_known(graph: Graph, source: str) -> None:
    mutual = {"b.py": "from c import run\n", "c.py": "from b import run\n"}

    found = graph({"ports.py": PORTS, "a.py": source, **mutual})

    assert all(each.endswith("?") for each in callers(found, "send_all"))


def test_names_that_lead_to_each_other_many_times_over_are_given_up_soon(graph: Graph) -> None:
    fields = [f"        self.f{n} = self.f{m}.f{k}" for n in range(12) for m in range(12) for k in range(12)]
    source = "\n".join(["class A:", "    def run(self):", *fields, "        self.f0.send_all()", ""])

    assert len(callers(graph({"ports.py": PORTS, "a.py": source}), "Queue.send_all")) == 1


# Questions


def test_definitions_are_found_by_plain_and_by_qualified_name(graph: Graph) -> None:
    found = graph({**NAMESAKES, "a.rs": "struct S;\nimpl S { fn send(&self) {} }\n"})

    def named(name: str) -> list[str]:
        return [f"{each.path} {each.symbol.qualified_name}" for each in found.definitions(name)]

    assert named("Session.send") == named("Session#send") == ["http/session.py Session.send"]
    assert named("S::send") == ["a.rs S.send"]
    assert named("smtp.send") == ["mail/smtp.py send"]
    assert len(named("send")) == len(named("SEND")) == 4
    assert named("Nothing.send") == named("nothing") == named("") == named(".") == []


def test_only_names_with_few_definitions_are_remembered(graph: Graph) -> None:
    found = graph({"few.py": "def few(): pass\n", "many.py": "def many(): pass\n" * 300})

    assert [len(found.definitions(name)) for name in ("few", "many")] == [1, 300]

    assert found.read_remembered("few") == found.definitions("few")
    assert found.read_remembered("many") is None


def test_a_call_at_module_level_has_no_caller(graph: Graph) -> None:
    found = graph({"a.py": "def send(): pass\nsend()\ndef run():\n    send()\n"})

    assert [site.caller and site.caller.symbol.name for site in found.callers("send")] == [None, "run"]


def test_a_call_counts_for_every_definition_around_it(graph: Graph) -> None:
    found = graph({"a.py": "def send(): pass\nclass A:\n    def run(self):\n        send()\n"})

    assert callees(found, "A") == callees(found, "A.run") == ["4 a.py send"]


def test_languages_do_not_share_definitions(graph: Graph) -> None:
    found = graph({"a.py": FREE, "b.go": "package b\nfunc run() { send() }\n"})

    assert callees(found, "run") == ["2 send"]


def test_a_node_that_others_point_to_ranks_higher() -> None:
    ranks = compute_page_rank(4, (np.array([0, 1, 2, 3]), np.array([3, 3, 3, 0])))
    assert ranks.argmax() == 3
    assert ranks.mean() == pytest.approx(1, abs=1e-3)


def test_nodes_without_edges_all_rank_alike() -> None:
    nothing = np.empty(0, dtype=np.int64)
    np.testing.assert_array_equal(compute_page_rank(3, (nothing, nothing)), np.ones(3))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("app.py", "from mail.smtp import send as post\n\n\ndef go():\n    post()\n"),
        ("app.ts", "import { send as post } from './mail/smtp'\n\n\nfunction go() {\n  post()\n}\n"),
        ("src/app.rs", "use crate::mail::smtp::send as post;\n\n\nfn go() {\n    post();\n}\n"),
    ],
)
def test_a_name_that_is_imported_under_another_one_is_still_called(graph: Graph, path: str, source: str) -> None:
    suffix = path.rpartition(".")[2]
    folder = path.removesuffix(f"app.{suffix}")
    defined = {"py": FREE, "ts": "export function send() {\n}\n", "rs": "pub fn send() {\n}\n"}[suffix]
    code = graph({f"{folder}mail/smtp.{suffix}": defined, path: source})

    assert callers(code, "send") == [f"{path}:5"]
    assert callees(code, "go") == [f"5 {folder}mail/smtp.{suffix} send"]


def test_a_call_through_a_base_class_possibly_means_the_method_that_overrides(graph: Graph) -> None:
    code = graph(
        {
            "store.py": """
                class Store:
                    def save(self): pass


                class Files(Store):
                    def save(self):
                        super().save()


                class Tables(Store):
                    pass


                def close(store: Store, files: Files, tables: Tables):
                    store.save()
                    files.save()
                    tables.save()
                """
        }
    )

    assert callers(code, "Files.save") == ["store.py:16?", "store.py:17", "store.py:18?"]
    assert callers(code, "Store.save") == ["store.py:8", "store.py:16", "store.py:18"]


def test_a_module_that_is_imported_within_a_package_names_the_package_too(graph: Graph) -> None:
    made = graph(
        {
            "src/shop/__init__.py": "from .helpers import make_response as make_response\n",
            "src/shop/helpers.py": "def make_response():\n    pass\n",
            "src/shop/views.py": "class Views:\n    def make_response(self):\n        pass\n",
            "test_views.py": "import shop.views\n\n\ndef test():\n    shop.make_response()\n",
        }
    )

    assert callers(made, "helpers.make_response") == ["test_views.py:5"]
    assert callers(made, "Views.make_response") == []


def test_a_module_that_a_rust_file_declares_is_called_by_its_name(graph: Graph) -> None:
    made = graph(
        {
            "src/main.rs": "mod walk;\n\nfn main() {\n    walk::scan(1);\n}\n",
            "src/walk.rs": "struct State {}\n\nimpl State {\n    fn scan(&self) {}\n}\n\n"
            "pub fn scan(paths: u8) {\n    State {}.scan();\n}\n",
        }
    )

    assert callees(made, "main") == ["4 src/walk.rs scan"]
    assert "src/main.rs:4" not in "".join(callers(made, "State.scan"))


IMPORTS = {
    "shop/__init__.py": "from shop.orders import order\n",
    "shop/index.py": "import json\nimport discord\n",
    "shop/orders.py": "from shop import store, errors\nfrom shop.errors import (\n    A,\n    B,\n)\nimport shop\n",
    "shop/store/__init__.py": "from . import table\nfrom .table import rows as all_rows\n",
    "shop/store/table.py": "from ..errors import A\nimport shop.store.table\n",
    "shop/errors.py": "class A: pass\nclass B: pass\n",
    "docs/discord.md": "# Discord\n",
    "web/app.ts": "import { rows } from './table'\nimport './missing'\n",
    "web/table.ts": "export const rows = []\n",
}


def test_files_import_the_modules_that_their_imports_name(graph: Graph) -> None:
    found = {(each.path, *each.targets) for each in graph(IMPORTS).list_file_imports()}

    assert found == {
        ("shop/__init__.py", "shop/orders.py"),
        ("shop/orders.py", "shop/store/__init__.py"),
        ("shop/orders.py", "shop/errors.py"),
        ("shop/orders.py", "shop/__init__.py"),
        ("shop/store/__init__.py", "shop/store/table.py"),
        ("shop/store/table.py", "shop/errors.py"),
        ("web/app.ts", "web/table.ts"),
    }


def test_a_package_of_go_is_imported_as_all_of_its_files(graph: Graph) -> None:
    sources = {
        "go.mod": "module example.com/shop\n",
        "main.go": 'package main\n\nimport (\n\t"fmt"\n\t"example.com/shop/store"\n)\n',
        "store/a.go": "package store\n",
        "store/b.go": "package store\n",
    }

    assert [(each.path, each.targets) for each in graph(sources).list_file_imports()] == [
        ("main.go", ("store/a.go", "store/b.go"))
    ]
