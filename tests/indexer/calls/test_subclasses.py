"""Subclasses of a type are found in the syntax of each language."""

from __future__ import annotations

import pytest

from indexer.calls.call_graph import CallGraph
from tests.indexer.calls.test_call_graph import Graph, graph

__all__ = ["graph"]


def heirs(graph: CallGraph, name: str) -> list[str]:
    """`a.py Name`, with a star behind those that inherit through another."""
    return [
        f"{one.definition.path} {one.definition.symbol.qualified_name}{'' if one.is_direct else '*'}"
        for one in graph.subclasses(name)
    ]


def test_the_direct_ones_come_first_and_those_below_them_after(graph: Graph) -> None:
    made = graph(
        {
            "ports.py": "class Exporter: ...\n",
            "a.py": "from ports import Exporter\n\n\nclass Deep(Exporter): ...\n\n\nclass Deeper(Deep): ...\n",
            "b.py": "import ports\n\n\nclass Flat(ports.Exporter): ...\n",
        }
    )

    assert heirs(made, "Exporter") == ["a.py Deep", "b.py Flat", "a.py Deeper*"]


def test_a_namesake_from_another_module_is_no_base(graph: Graph) -> None:
    made = graph(
        {
            "ports.py": "class Field: ...\n",
            "other.py": "class Field: ...\n\n\nclass Text(Field): ...\n",
            "a.py": "from ports import Field as Plain\n\n\nclass Number(Plain): ...\n",
        }
    )

    assert [one for one in heirs(made, "ports.Field") if "Text" in one] == []
    assert "a.py Number" in heirs(made, "ports.Field")


def test_a_base_from_outside_is_known_by_its_name(graph: Graph) -> None:
    made = graph({"errors.py": "class ShopError(Exception): ...\n\n\nclass NoItem(ShopError): ...\n"})

    assert heirs(made, "Exception") == ["errors.py ShopError", "errors.py NoItem*"]


def test_classes_that_inherit_from_each_other_in_a_circle_are_listed_once(graph: Graph) -> None:
    made = graph({"a.py": "class A(B): ...\n\n\nclass B(A): ...\n"})

    assert heirs(made, "A") == ["a.py B"]


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("a.java", "interface Port{}\nclass Slack implements Port {}\nclass Big extends Slack{}\n", ["Slack", "Big*"]),
        ("a.ts", "interface Port{}\nclass Slack implements Port {}\ninterface Big extends Port{}\n", ["Slack", "Big"]),
        ("a.rs", "trait Port {}\nstruct Slack;\nimpl Port for Slack {}\nfn all<T: Port>(x: T) {}\n", ["Slack"]),
        ("a.rb", "module Port\nend\nclass Slack\n  include Port\nend\nclass Loud < Slack\nend\n", ["Slack", "Loud*"]),
        ("a.go", "package a\n\ntype Port struct{}\n\ntype Slack struct {\n\tPort\n}\n", ["Slack"]),
        ("a.php", "<?php\ninterface Port {}\nclass Slack implements Port {}\n", ["Slack"]),
        ("a.cs", "interface Port {}\nclass Slack : Port {}\n", ["Slack"]),
    ],
)  # fmt: skip
def test_every_language_says_in_its_own_words_what_inherits(
    graph: Graph, path: str, source: str, expected: list[str]
) -> None:
    assert heirs(graph({path: source}), "Port") == [f"{path} {each}" for each in expected]
