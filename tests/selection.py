"""Which tests a run takes, in which order, and the line at its end about those that it left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest

from tests.needs import find_problem

_LEFT_OUT = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("citebot")
    group.addoption("--all", action="store_true", help="run the tests marked as exhaustive too")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LEFT_OUT] = 0


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.option.all and not any("::" in argument for argument in config.args):
        exhaustive = [item for item in items if item.get_closest_marker("exhaustive")]
        _leave_out(config, items, exhaustive)
        config.stash[_LEFT_OUT] = len(exhaustive)
    _fold_missing(config, items)


def _fold_missing(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the first of the tests that need something missing, and leave out the others."""
    groups = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        for need in {name: None for mark in item.iter_markers("needs") for name in mark.args}:
            groups[need].append(item)
    gone = set[pytest.Item]()
    for need, group in groups.items():
        rest = [item for item in group if item not in gone]
        if rest and (problem := find_problem(need)):
            rest[0].add_marker(pytest.mark.skip(reason=f"{len(rest)} tests need {need}: {problem}"))
            _leave_out(config, items, rest[1:])
            gone.update(rest)


def _leave_out(config: pytest.Config, items: list[pytest.Item], left_out: Sequence[pytest.Item]) -> None:
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        unwanted = set(left_out)
        items[:] = [item for item in items if item not in unwanted]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash[_LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over how many tests a worker left out, which are the same for all of them."""
    node.config.stash[_LEFT_OUT] |= getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.pluginmanager.has_plugin("randomly"):
        seed = config.option.randomly_seed
        terminalreporter.write_line(f"The order was random; to repeat it: -p randomly --randomly-seed={seed}")
    skipped = [each.longrepr[2].removeprefix("Skipped: ") for each in terminalreporter.stats.get("skipped", [])]
    exhaustive = config.stash[_LEFT_OUT]
    reasons = [f"{exhaustive} tests are exhaustive: make test-all"] * bool(exhaustive) + [*dict.fromkeys(skipped)]
    if reasons:
        terminalreporter.write_line(f"Not run: {'; '.join(reasons)}.")


def mark_all_but(quick: Sequence[str], points: Sequence[str]) -> list[Any]:
    """Return the parameters of a test of which only a few run in `make test`."""
    assert set(quick) <= set(points)
    return [each if each in quick else pytest.param(each, marks=pytest.mark.exhaustive) for each in points]
