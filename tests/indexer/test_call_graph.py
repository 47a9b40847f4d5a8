"""The call graph: which definition a use of a name means."""

from __future__ import annotations

import numpy as np
import pytest

from indexer.call_graph import page_rank, resolve
from indexer.models import Definition, Import, Reference, Symbol


def defined(path: str, qualified_name: str) -> Definition:
    symbol = Symbol(
        name=qualified_name.rpartition(".")[2],
        qualified_name=qualified_name,
        kind="method" if "." in qualified_name else "function",
        signature=f"def {qualified_name}()",
        doc="",
        start_line=1,
        end_line=9,
    )
    return Definition(path=path, symbol=symbol)


def use(name: str, qualifier: str = "", scope: str = "") -> Reference:
    return Reference(name=name, qualifier=qualifier, kind="call", line=5, scope=scope)


def imported(module: str, name: str = "", alias: str = "") -> Import:
    return Import(module=module, name=name, alias=alias or name or module, line=1)


SESSION = defined("http/session.py", "Session.send")
ADAPTER = defined("http/adapter.py", "Adapter.send")
FREE = defined("mail/smtp.py", "send")


@pytest.mark.parametrize(
    ("path", "reference", "imports", "expected"),
    [
        ("http/session.py", use("send", "self", "Session.get"), [], [SESSION]),
        ("app.py", use("send", "Adapter"), [], [ADAPTER]),
        ("app.py", use("send", "smtp"), [imported("mail", "smtp")], [FREE]),
        ("app.py", use("send", "s"), [imported("mail.smtp", alias="s")], [FREE]),
        ("app.py", use("send"), [imported("mail.smtp", "send")], [FREE]),
        ("app.py", use("send"), [imported("elsewhere", "send")], []),
        ("mail/smtp.py", use("send", scope="deliver"), [], [FREE]),
        ("app.py", use("send"), [], [FREE]),
    ],
)
def test_the_syntax_tells_which_definition_is_meant(
    path: str, reference: Reference, imports: list[Import], expected: list[Definition]
) -> None:
    resolution = resolve(path, reference, [SESSION, ADAPTER, FREE], imports)
    assert list(resolution.targets) == expected
    assert not resolution.is_ambiguous


def test_a_method_of_an_object_of_unknown_class_is_ambiguous() -> None:
    resolution = resolve("app.py", use("send", "thing"), [SESSION, ADAPTER, FREE], [])
    assert list(resolution.targets) == [SESSION, ADAPTER]
    assert resolution.is_ambiguous


def test_the_innermost_definition_in_sight_hides_the_outer_one() -> None:
    outer, inner = defined("a.py", "helper"), defined("a.py", "run.helper")
    assert resolve("a.py", use("helper", scope="run"), [outer, inner], []).targets == (inner,)
    assert resolve("a.py", use("helper", scope="walk"), [outer, inner], []).targets == (outer,)


def test_a_name_with_too_many_definitions_resolves_to_none() -> None:
    many = [defined(f"{number}/a.py", f"C{number}.get") for number in range(30)]
    assert resolve("app.py", use("get", "thing"), many, []).targets == ()


@pytest.mark.parametrize(
    ("importer", "module"),
    [
        ("pkg/b/app.ts", "./util"),
        ("pkg/b/app.ts", "./util.js"),
        ("pkg/c/app.ts", "../b/util"),
        ("pkg/b/app.py", ".util"),
        ("pkg/c/app.py", "..b.util"),
        ("main.py", "pkg.b.util"),
        ("main.rs", "crate::b::util"),
    ],
)
def test_an_import_means_the_module_at_its_path(importer: str, module: str) -> None:
    here, there = defined("pkg/a/util.py", "trim"), defined("pkg/b/util.py", "trim")
    assert resolve(importer, use("trim"), [here, there], [imported(module, "trim")]).targets == (there,)


def test_a_node_that_others_point_to_ranks_higher() -> None:
    ranks = page_rank(4, {(0, 3), (1, 3), (2, 3), (3, 0)})
    assert ranks.argmax() == 3
    assert ranks.mean() == pytest.approx(1, abs=1e-3)


def test_nodes_without_edges_all_rank_alike() -> None:
    np.testing.assert_array_equal(page_rank(3, set()), np.ones(3))
