"""Type hints for receivers are found in text, hostile text included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.calls.receivers import (
    find_type_hints,
    is_any_type,
    is_literal,
    parse_result_type,
    parse_type_names,
    split_chain,
)

SUFFIXES = ("py", "ts", "js", "go", "java", "rs", "rb", "kt", "php", "cpp", "")


def chain(expression: str) -> str:
    return ".".join(f"{step.name}{'()' * step.is_called}" for step in split_chain(expression))


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("app.router.get(1, (2))[0]", "app.router.get()"),
        ("await new Session(url)", "Session()"),
        ("&mut self.wheel", "self.wheel"),
        ("Vec::<u8>::new()", "Vec.new()"),
        ("new Map<String, List<Foo>>()", "Map()"),
        ("a?.b!.c!!.d", "a.b.c.d"),
        ("$this->port->send", "$this.port.send"),
        ("@port.ready?", "@port.ready"),
        ("Wheel{size: 1}", "Wheel()"),
        ("open(path", "open()"),
        ("made();  // why", "made()"),
        ("thing as Other", "thing"),
        ("a + b", ""),
        ("", ""),
    ],
)
def test_a_chain_of_accesses_is_taken_apart(expression: str, expected: str) -> None:
    assert chain(expression) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http.Session = None", ("http.Session",)),
        ("'Session' | None", ("Session",)),
        ("Session | Adapter, other: int", ("Session", "Adapter")),
        ("Optional[Session]", ("Session",)),
        ("typing.Annotated[Session, Depends(x)]", ("Session",)),
        ("Session[]", ("Session[]",)),
        ("&'a mut Session)", ("Session",)),
        ("Arc<Box<dyn Port>>", ("Port",)),
        ("Promise<Session> {", ("Session",)),
        ("*store.Session", ("store.Session",)),
        ("Fn(A) -> B, c: D", ("Fn",)),
        ("None", ()),
        ("", ()),
        ("(a) => b", ()),
    ],
)
def test_a_type_expression_names_what_it_allows(text: str, expected: tuple[str, ...]) -> None:
    assert parse_type_names(text) == expected


def test_variables_of_generics_and_top_types_say_nothing() -> None:
    assert all(map(is_any_type, ["T", "K", "T_co", "_T", "Any", "Self", "object"]))
    assert not any(map(is_any_type, ["Session", "Table", "Text"]))


@pytest.mark.parametrize(
    ("suffix", "signature", "expected"),
    [
        ("py", "def name(a: Callable[[], int]) -> Session", "Session"),
        ("py", "def name(a)", ""),
        ("rs", "fn name<T>(a: T) -> Arc<T> where T: A", "Arc<T>"),
        ("java", "public Map<K, V> name(int a)", "Map<K, V>"),
        ("java", "public name(int a)", ""),
        ("ts", "name<T>(a: (b) => c): Promise<Session>", "Promise<Session>"),
        ("ts", "const name = (a)", ""),
        ("kt", "fun name(a: Int): Session", "Session"),
        ("go", "func (s *S) name(a int) (*Session, error)", "*Session"),
        ("go", "func name()", ""),
    ],
)
def test_a_signature_says_what_is_returned(suffix: str, signature: str, expected: str) -> None:
    assert parse_result_type("name", signature, suffix) == expected


@pytest.mark.parametrize(
    ("suffix", "line", "expected"),
    [
        ("py", "def f(port: Adapter):", ["type Adapter"]),
        ("py", "def f(port: Adapter | None = None):", ["type Adapter"]),
        ("py", "    port = Adapter(1)", ["value Adapter()"]),
        ("py", "with Adapter() as port:", ["value Adapter()"]),
        ("py", "except Failure as port:", ["type Failure"]),
        ("py", "for key, port in ports:", ["loop "]),
        ("py", "send(port=port)", []),
        ("py", "self.port = Adapter()", []),
        ("py", "support = Adapter()", []),
        ("ts", "const port = await open();", ["value open()"]),
        ("go", "func f(port *Adapter, n int) {", ["type Adapter"]),
        ("go", "\tport, err := open()", ["value open()"]),
        ("go", "for _, port := range ports {", ["loop "]),
        ("java", "final Map<String, Foo> port;", ["type Map"]),
        ("java", "return port;", []),
        ("php", "function f(\\App\\Adapter $port) {", ["type App\\Adapter"]),
        ("rs", "let mut port = Adapter::new();", ["value Adapter.new()"]),
        ("rs", "for (i, port) in ports {", ["loop "]),
    ],
)
def test_a_line_says_what_a_variable_is(suffix: str, line: str, expected: list[str]) -> None:
    def shown(kind: str, text: str) -> str:
        return f"{kind} {chain(text) if kind == 'value' else ' '.join(parse_type_names(text))}"

    assert [shown(each.kind, each.text) for each in find_type_hints("port", line, suffix)] == expected


def test_clues_carry_the_number_of_their_line() -> None:
    text = "port = A()\n\n# port\n  port: B = port\nclass C:\n  def f(self, port: D):\n    self.port = port"

    assert [each.line for each in find_type_hints("port", text, "py")] == [1, 4, 6]
    assert [each.line for each in find_type_hints("self.port", text, "py")] == [7]


def test_a_parameter_may_be_a_field_too() -> None:
    line = "constructor(private readonly port: Adapter, other: B) {}"

    assert [each.is_promoted for name in ("port", "other") for each in find_type_hints(name, line, "ts")] == [
        True,
        False,
    ]


def test_brackets_within_brackets_are_read_to_any_depth() -> None:
    assert parse_type_names("Optional[" * 30 + "Session" + "]" * 30) == ("Session",)
    assert parse_type_names("Optional[" * 5000 + "Session" + "]" * 5000) == ()
    assert chain("a" + "(" * 50_000 + ")" * 50_000 + ".b") == "a().b"


@given(st.text(alphabet="xT ab.:,|<>[](){}=\"'*&@$?!-\n\\ forinwithas"), st.sampled_from(SUFFIXES))
def test_no_text_is_too_strange_to_be_read(text: str, suffix: str) -> None:
    assert all(each.line <= text.count("\n") + 1 for each in find_type_hints("x", text, suffix))
    assert all(step.name for step in split_chain(text))
    assert all(parse_type_names(text))
    assert isinstance(parse_result_type("x", text, suffix), str)
    assert isinstance(is_literal(text), bool)
