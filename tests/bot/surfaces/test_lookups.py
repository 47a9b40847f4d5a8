"""One registry of lookups: each is on every surface, and its two forms agree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent import LOOKUPS, CodeLookup
from agent.ports import Deps
from agent.tools.registry import make_tool_registry
from bot.surfaces.code_lookups import CodeLookups, add_place
from bot.surfaces.mcp.mcp_server import make_tools
from indexer import redact_secrets
from tests.agent.conftest import Told
from tests.bot.surfaces.api.test_openapi import make_document
from tests.bot.surfaces.cores import PEOPLE, POLICY, Library
from tests.fakes.code import FakeCode
from tests.fakes.shop import SHOP

ARGUMENTS: dict[str, dict[str, Any]] = {
    "search_code": {"query": "parse a date"},
    "read_file": {"path": "shop/orders.py", "ranges": ["1-2", "5"]},
    "list_files": {"folder": "shop"},
    "find_files": {"glob": "*.py"},
    "find_symbol": {"name": "parse_date"},
    "find_callers": {"name": "parse_date"},
    "find_callees": {"name": "load_order"},
    "grep": {"pattern": "def ", "more_patterns": ["class "]},
    "file_history": {"path": "shop/dates.py"},
    "repository_log": {"path": "shop"},
    "compare_refs": {"from_ref": "HEAD"},
}


def test_each_lookup_is_a_tool_of_models_and_of_mcp_and_a_path_of_the_api() -> None:
    deps = Deps(code=FakeCode(SHOP), redact=redact_secrets, emit=Told())
    offered = {tool["name"] for tool in make_tool_registry().menu(deps)}
    document = make_document()["paths"]

    assert [each.name for each in LOOKUPS] == [*ARGUMENTS]
    assert offered == {each.model_name for each in LOOKUPS}
    assert {*make_tools()} == {*ARGUMENTS, "list_repositories", "ask"}
    for each in LOOKUPS:
        operation = document[f"/api/{each.known_as.get('api', each.name.replace('_', '-'))}"]["get"]
        reference = operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        assert {one["name"] for one in operation["parameters"]} == {*add_place(each.arguments).model_fields}
        assert reference.rpartition("/")[2] == each.result.__name__


@pytest.mark.parametrize("lookup", LOOKUPS, ids=lambda each: each.name)
async def test_the_text_of_a_lookup_names_the_places_of_its_structure(lookup: CodeLookup[Any, Any]) -> None:
    core = CodeLookups(library=Library("shop"), access=POLICY, mask=redact_secrets)
    args = add_place(lookup.arguments).model_validate_json(json.dumps(ARGUMENTS[lookup.name]))

    found = await core.look_up(PEOPLE["ben"], lookup, args)

    assert found.text.startswith(f"shop at {found.result.commit[:12]}\n")
    for path in find_paths(found.result.model_dump()):
        assert path in found.text


@pytest.mark.parametrize("lookup", [each for each in LOOKUPS if each.known_as], ids=lambda each: each.name)
async def test_a_model_may_call_a_lookup_by_its_own_name_too(lookup: CodeLookup[Any, Any]) -> None:
    deps = Deps(code=FakeCode(SHOP), redact=redact_secrets, emit=Told(), tools=make_tool_registry())

    by_name = await deps.tools.call(lookup.name, ARGUMENTS[lookup.name], deps)

    assert by_name.ok
    assert by_name is await deps.tools.call(lookup.model_name, ARGUMENTS[lookup.name], deps)


def find_paths(value: Any) -> list[str]:
    """Return the paths in a structure."""
    if isinstance(value, dict):
        own = [value["path"]] if "path" in value else []
        return own + [path for each in value.values() for path in find_paths(each)]
    return [path for each in value for path in find_paths(each)] if isinstance(value, list | tuple) else []
