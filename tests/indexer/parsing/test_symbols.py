"""Signatures, documentation, nesting and places of symbols, whatever the language."""

from __future__ import annotations

import pytest

from indexer.parsing.file_parser import parse_file
from indexer.types import ParsedFile, Symbol


def symbols(parsed: ParsedFile) -> list[str]:
    """`4-9 class Foo.Bar` for every definition."""
    return [f"{s.start_line}-{s.end_line} {s.kind} {s.qualified_name}" for s in parsed.symbols]


def calls(parsed: ParsedFile) -> list[str]:
    """`7 Foo.run: self.x go` for every call: line, scope, qualifier and name."""
    return [_use(parsed, index) for index, r in enumerate(parsed.references) if r.kind == "call"]


def bases(parsed: ParsedFile) -> list[str]:
    """The same for every base class."""
    return [_use(parsed, index) for index, r in enumerate(parsed.references) if r.kind == "inherit"]


def imports(parsed: ParsedFile) -> list[tuple[int, str, str, str]]:
    """Line, module, name and alias of every import."""
    return [(i.line, i.module, i.name, i.alias) for i in parsed.imports]


def _use(parsed: ParsedFile, index: int) -> str:
    reference = parsed.references[index]
    return f"{reference.line} {reference.scope}: {reference.qualifier} {reference.name}"


def only(path: str, text: str) -> Symbol:
    """Return the one symbol of a text."""
    (symbol,) = parse_file(path, text).symbols
    return symbol


@pytest.mark.parametrize(
    ("path", "text", "signature"),
    [
        ("a.py", "def f(\n    a: int,  # first\n    b: str = '#',\n) -> str:\n    # why\n    return b\n", None),
        ("a.py", "class A(B, metaclass=C):\n    pass\n", "class A(B, metaclass=C)"),
        ("a.py", "@cache\nasync def f(): return 1\n", "async def f()"),
        ("a.js", "export const f = async (a) => a;\n", "const f = async (a)"),
        ("a.ts", "export function f<T>(a: T): T { return a }\n", "function f<T>(a: T): T"),
        ("a.go", "func (s *S) Run(a int) (err error) { return }\n", "func (s *S) Run(a int) (err error)"),
        ("a.go", "type S struct {\n\ta int\n}\n", "type S struct"),
        (
            "a.rs",
            "#[inline]\npub fn f<T>(a: T) -> T\nwhere\n    T: A,\n{\n    a\n}\n",
            "pub fn f<T>(a: T) -> T where T: A",
        ),
        ("A.java", "@Ann\nclass A extends B { }\n", "@Ann class A extends B"),
        ("a.c", "static int\nadd(int a, /* no */ int b)\n{ }\n", "static int add(int a, int b)"),
        ("a.rb", "def run(a) = a\n", "def run(a)"),
        ("a.ex", "def run(x) when x > 1, do: x\n", "def run(x) when x > 1"),
        ("a.hs", "run 0 = 1\n", "run 0"),
    ],
)
def test_a_signature_is_the_declaration_without_its_body(path: str, text: str, signature: str | None) -> None:
    assert only(path, text).signature == (signature or "def f( a: int, b: str = '#', ) -> str")


def test_a_long_signature_is_cut() -> None:
    parameters = ", ".join(f"parameter_{number}" for number in range(100))

    signature = only("a.py", f"def f({parameters}):\n    pass\n").signature

    assert signature.startswith("def f(parameter_0, parameter_1")
    assert len(signature) == 300


@pytest.mark.parametrize(
    ("path", "text", "doc"),
    [
        ("a.py", 'def f():\n    r"""One sentence\n    over lines. Another."""\n', "One sentence over lines."),
        ("a.py", "def f():\n    'Single quotes'\n    return 1\n", "Single quotes"),
        ("a.py", "def f():\n    '-'.join(x)\n", ""),
        ("a.py", "# Above.\n\n\ndef f(): pass\n", ""),
        ("a.py", "# Above.\n@cache\ndef f(): pass\n", "Above."),
        ("a.py", "x()  # of x\ndef f(): pass\n", ""),
        ("a.js", "/** Adds. */\nfunction f() {}\n", "Adds."),
        ("a.js", "/**\n * Adds\n * both.\n * @param a first\n */\nexport function f() {}\n", "Adds both."),
        ("a.go", "// F adds v1.2 up.\n// More.\nfunc F() {}\n", "F adds v1.2 up."),
        ("a.rs", "/// Adds.\n#[inline]\n/// More.\nfn f() {}\n", "More."),
        ("a.cs", "/// <summary>\n/// Adds up.\n/// </summary>\nenum F { }\n", "Adds up."),
        ("a.lua", "-- Adds.\nfunction f() end\n", "Adds."),
        ("a.sh", "# ----\n# Adds.\nf() { :; }\n", "Adds."),
    ],
)
def test_documentation_is_the_first_sentence_beside_the_definition(path: str, text: str, doc: str) -> None:
    assert only(path, text).doc == doc


def test_attributes_are_the_first_lines_of_a_definition() -> None:
    rust = "#[a]\n/// Doc.\n#[b(\n  c\n)]\nstruct S;\n"
    python = "@a\n@b(\n  c\n)\ndef f():\n  pass\n"
    typescript = "@A()\nexport class C {\n  @B()\n  @C() x() {}\n}\n"

    assert symbols(parse_file("a.rs", rust)) == ["1-6 struct S"]
    assert symbols(parse_file("a.py", python)) == ["1-6 function f"]
    assert symbols(parse_file("a.ts", typescript)) == ["1-5 class C", "3-4 method C.x"]


def test_characters_outside_ascii_do_not_shift_names_or_lines() -> None:
    text = "naïve = '日本語'; größe = lambda: 'ß'\nclass Ärger(Müll): pass; x = '🎉'; ändern('é')\n"

    parsed = parse_file("a.py", text)

    assert symbols(parsed) == ["1-1 constant naïve", "1-1 constant größe", "2-2 class Ärger"]
    assert [symbol.signature for symbol in parsed.symbols][-1] == "class Ärger(Müll)"
    assert calls(parsed) == ["2 Ärger:  ändern"]
    assert bases(parsed) == ["2 Ärger:  Müll"]


def test_carriage_returns_and_form_feeds_end_no_line() -> None:
    text = "a = 1\rb = 2\n\fclass A:\n\tdef f(self):\n\t\tpass\n\x0bx = 3"

    assert "3-4 method A.f" in symbols(parse_file("a.py", text))


def test_definitions_around_broken_syntax_are_still_found() -> None:
    text = "def one(): pass\n\ndef broken(:\n\nclass Two:\n    def three(self): return four()\n"

    parsed = parse_file("a.py", text)

    assert {"one", "three"} <= {symbol.name for symbol in parsed.symbols}
    assert "four" in {reference.name for reference in parsed.references}


def test_long_receivers_keep_their_end_only() -> None:
    chain = "builder" + "".join(f".step{number}(1)" for number in range(200))

    last = parse_file("a.py", chain + "\n").references[-1]

    assert last.name == "step199"
    assert last.qualifier.startswith("...")
    assert last.qualifier.endswith(".step197(1).step198(1)")
    assert len(last.qualifier) <= 83


def test_calls_in_decorators_belong_to_what_is_around() -> None:
    text = "class A:\n    @register(key())\n    def f(self, x=default()):\n        pass\n"

    assert calls(parse_file("a.py", text)) == ["2 A:  register", "2 A:  key", "3 A.f:  default"]


def test_a_namespace_without_braces_holds_the_rest_of_the_file() -> None:
    text = "namespace A.B;\nclass X { void M() { N(); } }\n"

    parsed = parse_file("a.cs", text)

    assert symbols(parsed) == ["1-1 module A.B", "2-2 class A.B.X", "2-2 method A.B.X.M"]
    assert calls(parsed) == ["2 A.B.X.M:  N"]


def test_clauses_of_one_name_become_one_symbol_within_their_module_only() -> None:
    text = "defmodule A do\n  def f(0), do: 1\n  def f(n), do: n\nend\ndefmodule A do\n  def f(x), do: x\nend\n"

    assert symbols(parse_file("a.ex", text)) == [
        "1-4 module A",
        "2-3 function A.f",
        "5-7 module A",
        "6-6 function A.f",
    ]


def test_typescript_overloads_and_anonymous_functions_make_no_noise() -> None:
    text = "export default function () { go(); }\nitems.map((x) => x.y());\nclass A { 'quoted'() {} [computed]() {} }\n"

    parsed = parse_file("a.ts", text)

    assert symbols(parsed) == ["3-3 class A", "3-3 method A.quoted", "3-3 method A.[computed]"]
    assert calls(parsed) == ["1 :  go", "2 : items map", "2 : x y"]


def test_a_require_is_an_import_in_each_of_its_shapes() -> None:
    text = (
        "var a = require('a');\nvar { b, c: d } = require('./b');\nvar e = require('e').f;\n"
        "var g = require('g')('name');\nrequire('./h');\nimport('./i');\nlocal(require);\n"
    )

    assert imports(parse_file("a.js", text)) == [
        (1, "a", "", "a"),
        (2, "./b", "b", "b"),
        (2, "./b", "c", "d"),
        (3, "e", "f", "e"),
        (4, "g", "", "g"),
        (5, "./h", "", ""),
        (6, "./i", "", ""),
    ]


def test_nested_use_trees_are_multiplied_out() -> None:
    text = "use a::{\n    b::{self, c as d}, // why\n    e::*,\n};\nuse ::f;\n"

    assert imports(parse_file("a.rs", text)) == [
        (1, "a::b", "", "b"),
        (1, "a::b", "c", "d"),
        (1, "a::e", "*", "*"),
        (5, "f", "", "f"),
    ]


def test_go_modules_are_known_by_their_last_part_without_version() -> None:
    text = 'package a\nimport "gopkg.in/yaml.v3"\nimport _ "x/y/v2"\nimport "x/z/v2"\n'

    assert imports(parse_file("a.go", text)) == [
        (2, "gopkg.in/yaml.v3", "", "yaml"),
        (3, "x/y/v2", "", "_"),
        (4, "x/z/v2", "", "z"),
    ]


def test_names_in_a_shell_script_are_of_any_alphabet() -> None:
    """The parser itself ends the process over some letters that are beyond its table."""
    script = "# 🚀\ngrüße_世界() { echo {🎉} {\U0010ffff} ${x:-é}; sag_welt; }\nsag_welt() { grüße_世界; }\n"
    parsed = parse_file("a.sh", script)

    assert symbols(parsed) == ["2-2 function grüße_世界", "3-3 function sag_welt"]
    assert calls(parsed) == ["2 grüße_世界:  echo", "2 grüße_世界:  sag_welt", "3 sag_welt:  grüße_世界"]
    assert "".join(chunk.text for chunk in parsed.chunks) == script.strip("\n")
