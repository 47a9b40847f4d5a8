"""The OpenAPI document against the server that it describes: schemathesis asks what it says may be asked, and more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from bot.surfaces.api.ask_requests import RepeatedQuestions
from bot.surfaces.api.http_api import HttpApi
from bot.surfaces.team_surfaces import Late, SurfaceCore
from tests.bot.surfaces.api.conftest import TOKEN, World, open_world
from tests.waiting import LIMIT_SECONDS


def make_document() -> dict[str, Any]:
    core = Late[SurfaceCore]()
    return HttpApi(core, RepeatedQuestions()).application.openapi()


# What a schema cannot say of a question, such as how long it is without blanks, is refused with 422.
ACCEPTED = ["2xx", "401", "403", "404", "409", "422", "429", "5xx"]
REFUSED = ["400", "401", "404", "405", "413", "415", "422"]
CONFIG = schemathesis.Config.from_dict(
    {
        "checks": {
            "positive_data_acceptance": {"expected-statuses": ACCEPTED},
            "negative_data_rejection": {"expected-statuses": REFUSED},
        }
    }
)
SCHEMA = schemathesis.openapi.from_dict(make_document(), config=CONFIG)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server in a thread of its own: the test's side waits for each answer."""
    opened: list[str] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with open_world() as world:
            opened.append(world.address)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(LIMIT_SECONDS)
    yield opened[0]
    loop.call_soon_threadsafe(ended.set)
    thread.join(LIMIT_SECONDS)
    loop.close()


@SCHEMA.parametrize()
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_server_does_what_the_document_says(address: str, case: Any) -> None:
    case.call_and_validate(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=LIMIT_SECONDS)


async def test_the_document_is_served_to_everybody_as_it_is(world: World) -> None:
    reply = await world.request("GET", "/api/openapi.json", token=None)

    assert (reply.status, reply.body) == (200, make_document())
    assert reply.body["openapi"] == "3.1.0"


def test_every_operation_names_its_refusals_and_says_what_it_is() -> None:
    operations = [each for path in make_document()["paths"].values() for each in path.values()]

    for each in operations:
        assert each["summary"].endswith(".")
        assert {"200", "400", "401", "404", "429", "503"} <= set(each["responses"])
