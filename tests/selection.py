"""Selects and orders the tests of a run, and reports at its end those that it left out.

`tests/slow_modules.txt` lists the modules that take seconds, with how many: they begin first, and `--fast` leaves them
out. `pytest --note-slow` writes it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.needs import find_problem

_SLOW_FILE = Path(__file__).with_name("slow_modules.txt")
_SLOW_SECONDS = 1.0
_NEEDS_OF_EXHAUSTIVE = {"postgres", "chromium", "mounts", "dot"}
_NOT_RUN = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("citebot")
    group.addoption("--all", action="store_true", help="run the tests marked as exhaustive too")
    group.addoption("--fast", action="store_true", help="leave out the modules listed in tests/slow_modules.txt")
    group.addoption("--note-slow", action="store_true", help="write tests/slow_modules.txt anew")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_NOT_RUN] = []


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.option.fast and str(collection_path.relative_to(config.rootpath)) in _read_slow_modules():
        return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = _read_slow_modules()
    if not config.option.all and not any("::" in argument for argument in config.args):
        exhaustive = [item for item in items if _is_exhaustive(item)]
        _leave_out(config, items, exhaustive, "exhaustive tests: make test-all")
    _fold_missing(config, items)
    if not config.pluginmanager.has_plugin("randomly"):
        items.sort(key=lambda item: -slow.get(item.nodeid.partition("::")[0], 0))


def _is_exhaustive(item: pytest.Item) -> bool:
    """Whether a test runs with `--all` alone: one marked so, or one that needs a server, a browser or rights."""
    needs = {name for mark in item.iter_markers("needs") for name in mark.args}
    return item.get_closest_marker("exhaustive") is not None or not needs.isdisjoint(_NEEDS_OF_EXHAUSTIVE)


def _read_slow_modules() -> dict[str, int]:
    """Return the seconds that each slow module takes."""
    lines = _SLOW_FILE.read_text(encoding="utf-8").splitlines()
    return {path: int(seconds) for seconds, path in map(str.split, lines)}


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
            _leave_out(config, items, rest[1:], "")
            gone.update(rest)


def _leave_out(config: pytest.Config, items: list[pytest.Item], left_out: Sequence[pytest.Item], why: str) -> None:
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        config.stash[_NOT_RUN] += [f"{len(left_out)} {why}"] * bool(why)
        unwanted = set(left_out)
        items[:] = [item for item in items if item not in unwanted]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["not_run"] = session.config.stash[_NOT_RUN]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker left out, which is the same for all of them."""
    node.config.stash[_NOT_RUN] = getattr(node, "workeroutput", {}).get("not_run") or node.config.stash[_NOT_RUN]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.pluginmanager.has_plugin("randomly"):
        seed = config.option.randomly_seed
        terminalreporter.write_line(f"The order was random; to repeat it: -p randomly --randomly-seed={seed}")
    skipped = [each.longrepr[2].removeprefix("Skipped: ") for each in terminalreporter.stats.get("skipped", [])]
    fast = [f"{len(_read_slow_modules())} slow modules: make test"] * config.option.fast
    if reasons := [*fast, *config.stash[_NOT_RUN], *dict.fromkeys(skipped)]:
        terminalreporter.write_line(f"Not run: {'; '.join(reasons)}.")
    if config.option.note_slow:
        _write_slow_modules(terminalreporter)


def _write_slow_modules(terminalreporter: pytest.TerminalReporter) -> None:
    seconds = defaultdict[str, float](float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0]] += report.duration
    lines = (
        f"{spent:.0f} {path}\n"
        for path, spent in sorted(seconds.items(), key=lambda each: -each[1])
        if spent >= _SLOW_SECONDS
    )
    _SLOW_FILE.write_text("".join(lines), encoding="utf-8")


def mark_all_but(quick: Sequence[object], points: Sequence[object]) -> list[Any]:
    """Return the parameters of a test of which only a few run in `make test`."""
    assert all(each in points for each in quick)
    return [each if each in quick else pytest.param(each, marks=pytest.mark.exhaustive) for each in points]
