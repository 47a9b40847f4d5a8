"""Answers about tables, interfaces and what is deployed, from a question in words to the text, over a real index."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.evidence.contracts import match_paths
from tests.agent.answers.test_registered_lists import ask, list_names
from tests.fakes.frameworks import FRAMEWORKS

SHOP = {
    "db/001.sql": "CREATE TABLE invoices (\n  id BIGINT PRIMARY KEY\n);\n"
    "CREATE VIEW open_invoices AS SELECT * FROM invoices;\n",
    "api/openapi.yaml": "openapi: 3.0.0\npaths:\n  /refunds/{id}:\n    post:\n      operationId: createRefund\n",
    "shop/store.py": 'def save(db):\n    db.execute("INSERT INTO invoices (id) VALUES (1)")\n\n\n'
    'def load(db):\n    return db.execute("SELECT id FROM invoices WHERE id = 1")\n',
    "docker-compose.yml": "services:\n  db:\n    image: postgres:16\n",
    ".github/workflows/ci.yml": "name: CI\non: {schedule: [{cron: '0 5 * * 1'}]}\njobs:\n  unit:\n    runs-on: x\n",
    "infra/main.tf": 'resource "aws_sqs_queue" "refunds" {}\n',
}  # fmt: skip

WITH_BOTH_ENDS = {"spring", "aspnet", "sidekiq"}
CALLS = {
    "orders/app.py": '@app.get("/orders/{order_id}")\ndef get_order(order_id): ...\n\n\n'
    'def place():\n    producer.send("orders.placed", b"")\n',
    "orders/settings.py": 'import os\n\nURL = os.environ["SHOP_DB_URL"]\n',
    "docker-compose.yml": "services:\n  shop:\n    image: shop\n    environment:\n      SHOP_DB_URL: x\n",
    "web/client.ts": "export async function load(id) {\n  return fetch(`${API}/api/orders/${id}`);\n}\n",
}


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("list all database tables", ["invoices", "open_invoices"]),
        ("list all API endpoints", ["POST /refunds/{id}"]),
        ("list tables and endpoints", ["invoices", "open_invoices", "POST /refunds/{id}"]),
        ("which services are there?", ["db"]),
        ("what CI jobs are there?", ["unit"]),
        ("list the terraform resources", ["aws_sqs_queue.refunds"]),
        ("list all cron schedules", ["CI"]),
        ("what endpoints, services and resources are there?", ["POST /refunds/{id}", "db", "aws_sqs_queue.refunds"]),
        ("welche Tabellen gibt es?", ["invoices", "open_invoices"]),
    ],
)
async def test_what_schemas_and_deployments_declare_is_listed_by_what_it_is(
    tmp_path: Path, question: str, names: list[str]
) -> None:
    [answer] = await ask(tmp_path, question, files=SHOP)

    assert list_names(answer) == names


async def test_both_ends_of_a_table_are_named_with_their_lines(tmp_path: Path) -> None:
    created, written, whole, dropped = await ask(
        tmp_path,
        "where is the invoices table defined?",
        "where is table invoices written?",
        "who uses the invoices table?",
        "where is the table invoices dropped?",
        files=SHOP,
    )

    assert "`invoices` is created in 1 place:" in created.text
    assert [(one.path, one.start_line) for one in created.citations] == [("db/001.sql", 1)]
    assert "- `save` in `shop/store.py` [1]" in written.text
    assert "`invoices` is created in 1 place, written in 1 place and read in 2 places:" in whole.text
    assert "No place where `invoices` is dropped was found" in dropped.text


async def test_who_calls_an_endpoint_and_who_produces_or_consumes_a_topic_is_known(tmp_path: Path) -> None:
    called, both, produced, variable = await ask(
        tmp_path,
        "who calls GET /orders/{id}?",
        "who handles or calls /orders/{id}?",
        "who produces topic orders.placed?",
        "where is SHOP_DB_URL set and read?",
        files=CALLS,
    )

    assert "- `load` in `web/client.ts` [1], `GET /api/orders/${id}`" in called.text
    assert "is answered in 1 place and called in 1 place:" in both.text
    assert [(one.path, one.start_line) for one in both.citations] == [("orders/app.py", 1), ("web/client.ts", 2)]
    assert "- `place` in `orders/app.py` [1]" in produced.text
    assert "`SHOP_DB_URL` is set in 1 place and read in 1 place:" in variable.text


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("GET /orders/{id}", "GET /api/v1/orders/42", True),
        ("GET|HEAD /orders/:id", "/orders/{}", True),
        ("GET /orders", "POST /orders", False),
        ("GET /orders", "GET /orders/{id}", False),
        ("GET /{tenant}", "GET /orders", False),
        ("GET /users/{id}", "GET /orders/{id}", False),
        ("GET /", "GET /orders", False),
    ],
)
def test_paths_are_the_same_where_only_what_is_put_in_or_a_prefix_differs(
    one: str, other: str, *, is_same: bool
) -> None:
    assert match_paths(one, other) is match_paths(other, one) is is_same


async def test_what_a_registration_defines_is_found_as_a_symbol(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "where is createRefund defined?", files=SHOP)

    assert (answer.citations[0].path, answer.citations[0].start_line) == ("api/openapi.yaml", 4)


PACKAGES = {
    "package.json": '{\n  "name": "shop",\n  "dependencies": {\n    "express": "^4.18.0"\n  }\n}\n',
    "package-lock.json": '{\n  "lockfileVersion": 3,\n  "packages": {\n    "": {\n      "dependencies": {\n'
    '        "express": "^4.18.0"\n      }\n    },\n    "node_modules/express": {\n      "version": "4.18.2",\n'
    '      "dependencies": {\n        "qs": "6.11.0",\n        "send": "0.18.0"\n      }\n    },\n'
    '    "node_modules/qs": {\n'
    '      "version": "6.11.0"\n    }\n  }\n}\n',
    "tools/pyproject.toml": '[project]\nname = "tools"\ndependencies = [\n    "Jinja2>=3.1",\n]\n',
    "app.js": "const express = require('express');\n",
}  # fmt: skip


async def test_versions_of_packages_are_named_with_what_needs_them(tmp_path: Path) -> None:
    direct, through, needing, python, unknown, everyday = await ask(
        tmp_path,
        "which version of express do we use?",
        "which version of qs is used?",
        "which packages depend on qs?",
        "which version of jinja2 is used?",
        "which packages depend on left-pad?",
        "which API version do we send?",
        files=PACKAGES,
    )

    assert "`express` is declared in 1 place and locked in 1 place:" in direct.text
    assert "- `shop` in `package.json` [1], `^4.18.0`" in direct.text
    assert [(one.path, one.start_line) for one in direct.citations[:2]] == [
        ("package.json", 4),
        ("package-lock.json", 9),
    ]
    assert "`6.11.0 through express`" in through.text
    assert "- `express 4.18.2` in `package-lock.json` [1], `6.11.0`" in needing.text
    assert "- `tools` in `tools/pyproject.toml` [1], `>=3.1`" in python.text
    assert "`send` is needed" not in everyday.text
    assert unknown.text.startswith("No place where the package `left-pad` is declared or locked or needed was found")
    assert "lock file" not in unknown.text  # which were read


async def test_requirements_of_packages_and_of_the_project_are_listed(tmp_path: Path) -> None:
    library, needing, none, project, workspace, dependents, missing = await ask(
        tmp_path,
        "what does express depend on?",
        "which packages does express need?",
        "what does qs depend on?",
        "what does this project depend on?",
        "what does tools depend on?",
        "which packages depend on express?",
        "what does left-pad depend on?",
        files=PACKAGES,
    )

    assert library.text == needing.text
    assert library.text.startswith("`express` depends on 2 packages:")
    assert [(one.path, one.start_line) for one in library.citations] == [
        ("package-lock.json", 12),
        ("package-lock.json", 13),
    ]
    assert none.text.startswith("No package that `qs` needs was found")
    assert "`6.11.0 through express`" in none.text
    assert project.text.startswith("`shop` depends on 2 packages:")
    assert list_names(project) == ["express", "Jinja2"]
    assert workspace.text.startswith("`tools` depends on 1 package:")
    assert "- `shop` in `package.json` [1], `^4.18.0`" in dependents.text
    assert missing.text.startswith("No place where the package `left-pad` is")


async def test_a_package_of_the_repository_may_have_an_everyday_name(tmp_path: Path) -> None:
    files = {**PACKAGES, "ui/package.json": '{"name": "web", "dependencies": {"lodash": "^4"}}\n'}
    [answer] = await ask(tmp_path, "what does web depend on?", files=files)

    assert answer.text == "`web` depends on 1 package:\n\n- `lodash` in `ui/package.json` [1], `^4`"


async def test_what_is_called_so_nowhere_is_a_no_with_what_was_read(tmp_path: Path) -> None:
    answers = await ask(
        tmp_path,
        "where is table receipts created?",
        "who consumes topic receipts.sent?",
        "who calls GET /receipts/{id}?",
        "where is the resource aws_sns_topic.receipts declared?",
        files={**SHOP, **CALLS},
    )

    assert [answer.text.partition(" was found")[0] for answer in answers] == [
        "No place where the table `receipts` is created",
        "No place where the topic `receipts.sent` is consumed",
        "No place where the endpoint `GET /receipts/{id}` is called",
        "No place where the resource `aws_sns_topic.receipts` is declared",
    ]
    assert all("files of" in answer.text and not answer.citations for answer in answers)


async def test_jobs_flags_and_requests_of_interfaces_are_known_at_both_ends(tmp_path: Path) -> None:
    files = {path: text for path, (text, _) in FRAMEWORKS.items() if path.split("_")[0] in WITH_BOTH_ENDS}
    files |= {path: text for path, (text, _) in FRAMEWORKS.items() if path.startswith(("flags/", "deployed/"))}
    jobs, flag, flags, called, consumed, variable = await ask(
        tmp_path,
        "who enqueues job SyncOrderJob?",
        "where is the feature flag new-checkout set and read?",
        "which feature flags are there?",
        "who calls GET /api/orders/{id}?",
        "who consumes topic refunds?",
        "where is SHOP_PORT set?",
        files=files,
    )

    assert "- `Orders.place` in `sidekiq_shop/orders.rb` [1]" in jobs.text
    assert "`new-checkout` is set in 1 place and read in 1 place:" in flag.text
    assert sorted(list_names(flags)) == ["dark-mode", "fast-path", "new-checkout", "sync_orders"]
    assert "- `OrdersClient.get` in `spring_shop/OrdersClient.java` [1], `GET /api/orders/{id}`" in called.text
    assert "- `on` in `spring_shop/OrdersClient.java` [1]" in consumed.text
    assert "`SHOP_PORT` is set in 3 places:" in variable.text
