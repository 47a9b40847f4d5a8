"""Which lines an excerpt shows: whole statements, the ones that answer, and nothing that only leads to others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.answers.answer_parts import strip_doc_markup
from agent.answers.excerpts import QuestionWeights, find_best_window, find_body_start, find_signature
from agent.questions.literals import Literal
from agent.text.statement_starts import dedent, read_layout

NOTHING = QuestionWeights(terms=frozenset())
REGISTER = '''\
    @setupmethod
    def register(
        self,
        blueprint: Blueprint,
    ) -> None:
        """Register a blueprint.

        The blueprint is kept.
        """
        self._check(
            blueprint,
            "register",
        )
        if blueprint is self:
            raise ValueError(
                "Cannot register a blueprint"
                " on itself"
            )
        else:
            self._blueprints.append(blueprint)
        for one in self._blueprints:
            one.order(
                first=True,
            )
        self.count += 1
        self.touched = True
        self.name = blueprint.name
        # Nothing is left to do
        # but to tell the others.
        self.tell()
        return None
'''.splitlines()
SIGNATURE = "def register( self, blueprint: Blueprint, ) -> None"
GO = """\
func (n *node) insert(path string) {
	if n.wild {
		panic("wildcard conflicts with " +
			path)
	}
	for i := range path {
		n.walk(func(child *node) {
			child.add(i)
		})
	}
}
""".splitlines()


def asking(*terms: str) -> QuestionWeights:
    return QuestionWeights(terms=frozenset(terms))


def shown(lines: list[str], emphasis: QuestionWeights, *, language: str = "python", first: int = 0) -> list[str]:
    start, end, _ = find_best_window(lines, emphasis, language=language, first=first)
    return lines[start:end]


def test_the_window_holds_the_lines_that_answer() -> None:
    lines = [f"line {number}" for number in range(40)]
    lines[30] = "retry the payment"
    assert "retry the payment" in shown(lines, asking("retry"))


def test_a_window_without_a_match_begins_after_the_docstring() -> None:
    lines = ["def f(a):", '    """Do it.', "", '    Well."""', "", "    return a"]
    assert find_body_start(lines, "def f(a):") == 5
    assert shown(lines, NOTHING, first=5) == ["    return a"]


def test_a_signature_over_many_lines_is_found_whole() -> None:
    assert find_signature(REGISTER, SIGNATURE) == (0, 5)
    assert find_body_start(REGISTER, SIGNATURE) == 9


def test_decorators_longer_than_the_function_are_left_out() -> None:
    lines = ["@option(", *['    "--flag",'] * 50, ")", "def run(info: Info) -> None:", "    go()"]
    assert find_signature(lines, "def run(info: Info) -> None") == (52, 53)


def test_an_excerpt_begins_with_a_statement_and_not_inside_one() -> None:
    starts = [
        line.strip() for line, begins in zip(REGISTER, read_layout(REGISTER, "python").starts, strict=True) if begins
    ]
    assert starts == [
        "@setupmethod",
        "def register(",
        '"""Register a blueprint.',
        "self._check(",
        "if blueprint is self:",
        "raise ValueError(",
        "self._blueprints.append(blueprint)",
        "for one in self._blueprints:",
        "one.order(",
        "self.count += 1",
        "self.touched = True",
        "self.name = blueprint.name",
        "# Nothing is left to do",
        "return None",
    ]


def test_braces_of_a_block_do_not_hide_its_statements() -> None:
    starts = [line.strip() for line, begins in zip(GO, read_layout(GO, "go").starts, strict=True) if begins]
    assert starts == [
        "func (n *node) insert(path string) {",
        "if n.wild {",
        'panic("wildcard conflicts with " +',
        "for i := range path {",
        "n.walk(func(child *node) {",
        "child.add(i)",
    ]


def test_a_raise_is_shown_with_its_condition() -> None:
    message = QuestionWeights(
        terms=frozenset(), literals=(Literal(text="Cannot register a blueprint on itself", is_message=True),)
    )
    lines = shown(REGISTER, message, first=9)
    assert lines[0].strip() == "if blueprint is self:"
    assert '" on itself"' in lines[3]


def test_a_panic_is_shown_with_its_condition() -> None:
    assert shown(GO, asking("wildcard"), language="go", first=1)[0].strip() == "if n.wild {"


def test_an_excerpt_ends_with_a_whole_statement() -> None:
    lines = shown(REGISTER, asking("check"), first=9)
    assert lines[0].strip() == "self._check("
    assert lines[-1].strip() == "self._blueprints.append(blueprint)"


def test_an_excerpt_does_not_end_with_what_leads_on() -> None:
    lines = ["a = 1", "b = 2", "c = 3", "d = 4", "e = 5", "f = 6", "g = 7", "h = 8", "i = 9", "j = 10", "", "# then"]
    lines += ["if late:", "    go()"]
    assert shown(lines, NOTHING)[-1] == "j = 10"


def test_an_excerpt_stays_within_its_block() -> None:
    lines = ["class A:", "    def f(self):", "        retry()", "", "    def g(self):", "        stop()"]
    assert shown(lines, asking("retry"), first=2) == ["        retry()"]


def test_code_counts_for_more_than_the_words_about_it() -> None:
    lines = ["# retry the payment", *["other()"] * 20, "retry(payment)"]
    assert "retry(payment)" in shown(lines, asking("retry", "payment"))


def test_imports_count_for_nearly_nothing() -> None:
    lines = ["from shop import retry, payment", *["other()"] * 20, "x = payment"]
    assert "x = payment" in shown(lines, asking("payment"))


@given(
    st.lists(
        st.text(alphabet=" \tab(){}[]\"'#/*:,\n", max_size=14).map(lambda line: line.replace("\n", "")), max_size=60
    )
)
def test_any_lines_have_a_window_within_them(lines: list[str]) -> None:
    lines = lines or [""]
    for language in ("python", "go"):
        start, end, weight = find_best_window(lines, asking("ab"), language=language)
        assert 0 <= start < end <= len(lines)
        assert weight >= 0


@given(st.lists(st.text(alphabet=" \tab", max_size=8), max_size=12))
def test_dedenting_takes_the_same_white_space_from_every_line(lines: list[str]) -> None:
    bare = dedent(lines)
    assert [line.strip() for line in bare] == [line.strip() for line in lines]
    filled = [(line, less) for line, less in zip(lines, bare, strict=True) if line.strip()]
    assert len({line[: len(line) - len(less)] for line, less in filled}) <= 1


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Register a :class:`~flask.Blueprint` on it.", "Register a Blueprint on it."),
        ("Like :meth:`.Flask.run`, see :ref:`the docs <running>`.", "Like Flask.run, see the docs."),
        ("Show ``Set-Cookie`` in the `manual <https://x.example>`_.", "Show Set-Cookie in the manual."),
        ("Error of [`Mutex::lock`] and [`RwLock`](crate::RwLock).", "Error of Mutex::lock and RwLock."),
        ("See {@link Foo.bar} or {@code x}.", "See Foo.bar or x."),
        ("<p>Parses <b>all</b> of it.", "Parses all of it."),
        ("An **async** list[int] of 2 * 3 * 4.", "An async list[int] of 2 * 3 * 4."),
        ('A <see cref="T:Shop.Order"/>.', "A Shop.Order."),
    ],
)
def test_markup_is_taken_out_of_sentences(written: str, read: str) -> None:
    assert strip_doc_markup(written) == read
