"""Answers that list what is registered, from a question in words to the text, over a real index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.agent import Agent
from agent.persistence.checkpointer import open_saver
from agent.ports import Answer, CodeSearch
from indexer.index import CodeIndex
from indexer.secrets import redact_secrets
from tests.agent.conftest import answer_to
from tests.fakes.frameworks import FRAMEWORKS
from tests.fakes.repositories import GitRepo

CLI = """parser.add_argument("-H", "--hidden", action="store_true", help="Look into hidden files.")
parser.add_argument("--max-depth", type=int, default=3, help="How deep to look.")
parser.add_argument("--threads", default=4, help="How many threads.")
"""
SETTINGS = """# Seconds between two orders.
ORDER_DELAY = 5
DB_HOST = os.getenv("DB_HOST", "localhost")
DB_PORT = os.getenv("DB_PORT", "5432")
MAIL_FROM = os.getenv("MAIL_FROM")
"""
EXPORTERS = """class Exporter: ...


class CsvExporter(Exporter): ...


class TsvExporter(CsvExporter): ...
"""
ROUTES = "".join(f'@app.get("/items/{number:02}")\ndef item_{number:02}(): ...\n' for number in range(40))
SHOP: Mapping[str, str] = {
    "shop/cli.py": CLI,
    "shop/settings.py": SETTINGS,
    "shop/exporters.py": EXPORTERS,
    "shop/views.py": '@app.get("/orders")\ndef list_orders():\n    """Show all orders."""\n\n\n'
    '@app.post("/orders/<id>/ship")\ndef ship(id): ...\n\n\n@app.get("/health")\ndef health(): ...\n',
    "tests/test_views.py": '@app.get("/only/for/tests")\ndef fake(): ...\n',
    "tests/test_export.py": "from shop.exporters import Exporter\n\n\nclass FakeExporter(Exporter): ...\n",
    "docs/settings.md": "# Settings\n\n| Name | Default | Description |\n|---|---|---|\n"
    "| `MAIL_FROM` | `shop@example.org` | Who sends mails. |\n",
}  # fmt: skip


class OneIndex:
    """A library of one real index."""

    def __init__(self, index: CodeIndex) -> None:
        self._index = index

    async def pin(self, repository: str | None = None) -> CodeSearch:
        """Return the newest generation, whatever the name."""
        return await self._index.pin()


async def ask(tmp_path: Path, *questions: str, files: Mapping[str, str] = SHOP) -> list[Answer]:
    """Index files, and put questions about them in one conversation."""
    repository = GitRepo(tmp_path / "shop")
    for path, text in files.items():
        repository.write(path, text)
    repository.commit()
    index = await CodeIndex.open(repository.root, home=tmp_path / "home")
    try:
        await index.refresh()
        async with open_saver(tmp_path / "conversations.db") as saver:
            agent = Agent(OneIndex(index), saver, redact_secrets)
            return [await answer_to(agent, question) for question in questions]
    finally:
        await index.aclose()


def list_names(answer: Answer) -> list[str]:
    return re.findall(r"^- `([^`]+)`", answer.text, re.MULTILINE)


async def test_endpoints_are_counted_and_listed_with_what_answers_them_those_of_tests_last(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "which endpoints are there?")

    assert "3 endpoints are registered in 1 file, and 1 more in tests and examples:" in answer.text
    assert "- `GET /orders` [1], `list_orders`: *Show all orders.*" in answer.text
    assert list_names(answer) == ["GET /orders", "POST /orders/<id>/ship", "GET /health", "GET /only/for/tests"]
    assert [(one.path, one.start_line) for one in answer.citations][:2] == [("shop/views.py", 1), ("shop/views.py", 6)]


async def test_more_goes_on_with_the_list_until_each_endpoint_was_named_once(tmp_path: Path) -> None:
    answers = await ask(tmp_path, "list all routes", "more", "more", files={"app.py": ROUTES})

    assert [f"GET /items/{number:02}" for number in range(40)] == [n for each in answers for n in list_names(each)]
    assert 'say "more"' not in answers[-1].text


async def test_only_the_endpoints_that_the_question_is_about_are_listed(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "which endpoints are there for orders?")

    assert "2 endpoints for `orders` (of 4 in all) are registered in 1 file:" in answer.text
    assert list_names(answer) == ["GET /orders", "POST /orders/<id>/ship"]


async def test_options_are_listed_with_defaults_and_what_they_are_for(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "what command line options are there?")

    assert "3 command-line options in 1 file:" in answer.text
    assert "- `--max-depth` = `3` [2]: *How deep to look.*" in answer.text


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("what flags does shop have for hidden files?", ["-H, --hidden"]),
        ("env vars for the database", ["DB_HOST", "DB_PORT"]),
        ("which env vars begin with DB_?", ["DB_HOST", "DB_PORT"]),
        ("what MAIL_* env vars are there?", ["MAIL_FROM"]),
        ("which setting controls the order delay?", ["ORDER_DELAY"]),
        ("what environment variables are read?", ["DB_HOST", "DB_PORT", "MAIL_FROM"]),
        ("welche umgebungsvariablen gibt es?", ["DB_HOST", "DB_PORT", "MAIL_FROM"]),
    ],
)
async def test_a_narrowed_question_gets_the_options_that_its_words_are_about(
    tmp_path: Path, question: str, names: list[str]
) -> None:
    [answer] = await ask(tmp_path, question)

    assert list_names(answer) == names


@pytest.mark.parametrize(
    ("question", "sentence", "place"),
    [
        ("what is the default of ORDER_DELAY?", "`ORDER_DELAY`, a setting, is `5` by default [1].", "shop/settings.py"),
        ("what does --max-depth default to?", "`--max-depth`, a command-line option, is `3` by default", "shop/cli.py"),
        ("what's the default value for MAIL_FROM", "is `shop@example.org` by default [1].", "docs/settings.md"),
        ("what is the default of DB_PORT", '`DB_PORT`, an environment variable, is `"5432"`', "shop/settings.py"),
    ],
)  # fmt: skip
async def test_the_default_of_an_option_is_said_at_once_and_cited_where_it_stands(
    tmp_path: Path, question: str, sentence: str, place: str
) -> None:
    [answer] = await ask(tmp_path, question)

    assert sentence in answer.text
    assert answer.citations[0].path == place


async def test_options_that_there_are_not_are_searched_for_and_not_made_up(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "which options are there for telepathy?")

    assert "by default" not in answer.text
    assert "of 9 in all" not in answer.text


async def test_subclasses_are_listed_the_direct_ones_first(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "list all subclasses of Exporter")

    assert "2 types inherit from `Exporter`, 1 of them directly, as far as the syntax tells" in answer.text
    assert list_names(answer) == ["CsvExporter", "TsvExporter", "FakeExporter"]
    assert "- `TsvExporter` [2], through `CsvExporter`" in answer.text


async def test_everything_that_is_called_by_a_noun_is_listed(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "which exporters are there?")

    assert "2 classes for `exporters`, in 1 file, and 1 more in tests and examples:" in answer.text
    assert list_names(answer) == ["CsvExporter", "TsvExporter", "FakeExporter"]


async def test_a_folder_of_the_name_is_the_list_where_no_types_are_called_so(tmp_path: Path) -> None:
    files = {"migrations/0001_first.sql": "select 1;\n", "migrations/0002_second.sql": "select 2;\n"}

    [answer] = await ask(tmp_path, "which migrations are there?", files=files)

    assert list_names(answer) == ["migrations/0001_first.sql", "migrations/0002_second.sql"]


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("which commands are there?", "manage.py ship"),
        ("list all celery tasks", "clean_up"),
        ("which events are emitted?", "order_placed"),
        ("what database tables are there?", "Order"),
        ("what routes are there for orders?", "GET /orders"),
    ],
)
async def test_each_kind_of_registration_is_asked_for_by_its_own_nouns(
    tmp_path: Path, question: str, name: str
) -> None:
    answers = await ask(tmp_path, question, "more", "more", files={p: text for p, (text, _) in FRAMEWORKS.items()})

    assert name in [each for answer in answers for each in list_names(answer)]


async def test_markup_in_a_default_or_a_help_text_stays_text(tmp_path: Path) -> None:
    files = {"cli.py": 'parser.add_argument("--x", default="`](http://evil.example)[1]", help="<b>**now**</b> [2]")\n'}

    [answer] = await ask(tmp_path, "what flags are there?", files=files)

    assert "](http://evil.example)" not in re.sub(r"(`+).*?\1", "", answer.text)
    assert len(answer.citations) == 1


MANY_EVENTS = "".join(f"event_{number:02} = Signal()\n" for number in range(40))
KNOBS: Mapping[str, str] = {
    "shop/settings.py": "".join(f"{name} = {value}\n" for name, value in (
        ("S3_BUCKET", '"orders"'), ("S3_REGION", '"eu"'), ("RETRY_TIMES", "3"), ("TELNETCONSOLE_PORT", "6023"),
    )),
    "shop/urls.py": "".join(
        f'@app.get("/api/{version}/{name}")\ndef {name}_{version}(): ...\n'
        for version in ("v1", "v2") for name in ("orders", "items")
    ),
    "Rakefile": "desc 'Count all'\ntask :stock do\nend\nnamespace :release do\n  task :tag do\n  end\nend\n",
    "events/signals.py": MANY_EVENTS,
}  # fmt: skip


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("which settings configure S3 / object storage?", ["S3_BUCKET", "S3_REGION"]),
        ("which settings are there for retries and what are their defaults?", ["RETRY_TIMES"]),
        ("default port of the telnet console?", ["TELNETCONSOLE_PORT"]),
        ("all routes under /api/v2?", ["GET /api/v2/orders", "GET /api/v2/items"]),
        ("which order endpoints does the api have?", ["GET /api/v1/orders", "GET /api/v2/orders"]),
        ("which rake tasks are defined?", ["rake stock", "rake release:tag"]),
        ("what commands (cli) does the shop binary have?", ["rake stock", "rake release:tag"]),
    ],
)
async def test_a_list_is_narrowed_by_what_the_words_mean(tmp_path: Path, question: str, names: list[str]) -> None:
    [answer] = await ask(tmp_path, question, files=KNOBS)

    assert list_names(answer) == names


async def test_a_long_list_of_mere_names_has_several_in_a_row_and_is_whole(tmp_path: Path) -> None:
    [answer] = await ask(tmp_path, "qué señales (signals) hay?", files=KNOBS)

    assert "40 events are registered in 1 file:" in answer.text
    assert re.findall(r"event_\d\d", answer.text) == [f"event_{number:02}" for number in range(40)]
    assert len(answer.text.splitlines()) < 20


GROUPS: Mapping[str, str] = {
    "shop/status.py": "from enum import IntEnum\n\n\nclass ExitStatus(IntEnum):\n    SUCCESS = 0\n    NO_STOCK = 3\n",
    "shop/settings.py": 'MIDDLEWARE = [\n    "shop.middleware.Session",\n    "shop.middleware.Cart",\n]\n',
    "lib/hooks.js": "const lifecycleHooks = [\n  'onOrder',\n  'onShip'\n]\nconst hooks = build(() => [1])\n",
    "lib/errors.js": "const codes = {\n  SHOP_ERR_A: makeError('A'),\n  SHOP_ERR_B: makeError('B')\n}\n",
    "adapters/epoll.h": "int epoll(void);\n",
    "adapters/kqueue.h": "int kqueue(void);\n",
    "adapters/README.md": "# Adapters\n",
    "rack-guard/lib/rack/guard/token.rb": "class Token\nend\n",
    "rack-guard/lib/rack/guard/origin.rb": "class Origin\nend\n",
    "locale/messages_de.properties": "a=b\n",
    "locale/messages_pt_BR.properties": "a=b\n",
    "locale/messages.properties": "a=b\n",
    "src/opcode_list.h": "OP(FORK, BRANCH, 0)\nOP(ADD, NONE, 0)\nOP(JUMP, BRANCH, 1)\n",
    "middleware/csrf.go": "package middleware\n\ntype CSRFConfig struct{}\ntype GzipConfig struct{}\n",
    "core/core.go": "package core\n\ntype CoreConfig struct{}\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("question", "sentence", "names"),
    [
        ("which exit codes can shop return?", "2 members of `ExitStatus`, in 1 file:", ["SUCCESS", "NO_STOCK"]),
        (
            "list all middlewares that are switched on",
            "2 members of `MIDDLEWARE`, in 1 file:",
            ["shop.middleware.Session", "shop.middleware.Cart"],
        ),
        ("which hooks exist?", "2 members of `lifecycleHooks`, in 1 file:", ["onOrder", "onShip"]),
        ("list all SHOP_ERR_* error codes", "2 names for `SHOP_ERR_*`, in 1 file:", ["SHOP_ERR_A", "SHOP_ERR_B"]),
        (
            "which event library adapters are there?",
            "2 files for `event library adapters`, in 2 files:",
            ["adapters/epoll.h", "adapters/kqueue.h"],
        ),
        (
            "list all rack-guard middlewares",
            "2 files for `rack-guard middlewares`, in 2 files:",
            ["rack-guard/lib/rack/guard/origin.rb", "rack-guard/lib/rack/guard/token.rb"],
        ),
        (
            "which languages are the messages translated to?",
            "2 files for `languages`, in 2 files:",
            ["locale/messages_de.properties", "locale/messages_pt_BR.properties"],
        ),
        ("how many translations do we ship?", "2 files for `translations`, in 2 files:", None),
        ("list all opcodes that take a BRANCH", "2 rows for `opcodes`, in 1 file:", ["FORK", "JUMP"]),
        (
            "list all *Config structs in the middleware package",
            "2 structs for `*Config`, in 1 file:",
            ["CSRFConfig", "GzipConfig"],
        ),
    ],
)
async def test_a_group_is_listed_whole_wherever_the_code_names_it(
    tmp_path: Path, question: str, sentence: str, names: list[str] | None
) -> None:
    [answer] = await ask(tmp_path, question, files=GROUPS)

    assert sentence in answer.text
    assert names is None or list_names(answer) == names


HELD: Mapping[str, str] = {
    "shop/till.php": "<?php\nclass Till {\n  private $own = 1;\n"
    "  public function __construct(string $name, int $most = 9)"
    " {}\n}\nclass DrawerTill extends Till {}\nclass PocketTill extends Till {}\n",
    "shop/RequestOptions.php": "<?php\nfinal class RequestOptions\n{\n    /** How long to wait. */\n"
    "    public const TIMEOUT = 'timeout';\n\n    public const PROXY = 'proxy';\n}\n",
    "shop/Filters.php": "<?php\nclass Filter\n{\n    public static function round(): callable {}\n\n"
    "    public static function cut(): callable {}\n\n    private static function hide(): callable {}\n}\n",
    "shop/defaults.rb": "DEFAULTS = {\n  queues: [],\n  timeout: 25,\n  lifecycle_events: {\n    startup: [],\n"
    "    shutdown: []\n  }\n}\n",
    "shop/draw.go": "package shop\n\ntype Drawer interface {\n\tDraw() error\n\tName() string\n}\n\n"
    "type Line struct {\n\t// How thick it is.\n\tWidth int\n\town bool\n}\n\n"
    "func (l Line) Draw() error { return nil }\n"
    "func (l Line) Name() string { return \"\" }\n\ntype Dot struct{}\n\nfunc (d *Dot) Draw() error { return nil }\n\n"
    "// Retry returns a guard that tries again.\nfunc Retry() {}\n\n// Slow returns a simple guard.\nfunc Slow() {}\n\n"
    "// Config is the table for a guard.\nfunc Config() {}\n",
    "shop/OrderBuilder.java": "class OrderBuilder {\n    OrderBuilder() {}\n\n"
    "    public OrderBuilder setName(String n) {"
    " return this; }\n\n    public OrderBuilder express() { return this; }\n}\n",
    "shop/errors.py": "class HTTPError(Exception): ...\n\n\nclass Gone(HTTPError): ...\n\n\n"
    "class Missing(HTTPError): ...\n",
    "shop/options.py": "class QueryOptions:\n    def __init__(self):\n        self.strict = True\n"
    "        self._own = 1\n"
    "        self.depth: int = 4\n",
    "include/shop.h": "#define SHOP_OPT_FAST 1\n#define SHOP_OPT_SAFE 2\n",
    "include/till.h": "int till(void);\n",
    "shop/cut-internal.h": "int cut(void);\n",
    "plugins/stripe/pom.xml": "<project/>\n",
    "plugins/stripe/Stripe.java": "class Stripe {}\n",
    "plugins/paypal/pom.xml": "<project/>\n",
    "plugins/paypal/Paypal.java": "class Paypal {}\n",
    "plugins/cash/pom.xml": "<project/>\n",
    "plugins/cash/Cash.java": "class Cash {}\n",
}  # fmt: skip


@pytest.mark.parametrize(
    ("question", "sentence", "lines"),
    [
        ("what options does Till take?", "2 parameters of `Till`", ["- `name` [1]", "- `most` [1] = `9`"]),
        (
            "which request options are there?",
            "2 constants of `RequestOptions`",
            ["- `TIMEOUT` [1] = `'timeout'`: *How long to wait.*", "- `PROXY` [2] = `'proxy'`"],
        ),
        ("which filters does shop ship?", "2 methods of `Filter`", ["- `round` [1]", "- `cut` [2]"]),
        ("what are the default options and their values?", "3 members of `DEFAULTS`", ["- `timeout` [2] = `25`"]),
        ("which lifecycle events are there?", "2 members of `lifecycle_events`", ["- `shutdown` [2] = `[]`"]),
        ("which types implement the Drawer interface?", "1 type inherits from `Drawer`", ["- `Line` [1]"]),
        ("what fields does the Line struct have?", "1 field of `Line`", ["- `Width` [1]: *How thick it is.*"]),
        ("which guards are there?", "2 functions for `guards`", ["- `Slow` [2]: *Slow returns a simple guard.*"]),
        (
            "which options does OrderBuilder have?",
            "2 methods of `OrderBuilder`",
            ["- `setName` [1]", "- `express` [2]"],
        ),
        (
            "how many http error classes are there?",
            "2 types inherit from `HTTPError`",
            ["- `Gone` [1]", "- `Missing` [2]"],
        ),
        (
            "which options does QueryOptions have and what are the defaults?",
            "2 fields of `QueryOptions`",
            ["- `strict` [1] = `True`", "- `depth` [2] = `4`"],
        ),
        ("list the SHOP_OPT_* flags", "2 macros for `SHOP_OPT_`", ["- `SHOP_OPT_FAST` [1]"]),
        ("list the public header files", "2 files for `public header files`", ["- `include/till.h` [2]"]),
        ("which plugins are there?", "3 folders for `plugins`", ["- `cash/` [1]", "- `stripe/` [3]"]),
        ("which maven modules are there?", "3 folders for `maven modules`", ["- `plugins/stripe/` [3]"]),
        ("which tills extend Till?", "2 types inherit from `Till`", ["- `DrawerTill` [1]"]),
    ],
)
async def test_what_is_of_a_type_or_a_folder_is_listed(
    tmp_path: Path, question: str, sentence: str, lines: list[str]
) -> None:
    [answer] = await ask(tmp_path, question, files=HELD)

    assert sentence in answer.text
    assert [line for line in lines if line not in answer.text.split("\n")] == []


VALUES: Mapping[str, str] = {
    "read.h": "/* Deepest nesting of a reply. */\n#define READER_MAX_REPLY_DEPTH 1024\n",
    "shop/Connection.java": "class Connection {\n    Connection() {\n        timeoutMillis = 30000; // 30 seconds\n"
    "        maxBodySize = 1024 * 1024;\n    }\n}\n",
    "tests/test_connection.py": "timeout_millis = 5\n",
}


@pytest.mark.parametrize(
    ("question", "lines"),
    [
        ("what is the default max nesting depth of replies?", ["- `READER_MAX_REPLY_DEPTH` = `1024` [1]"]),
        (
            "what are the default connect timeout and max body size?",
            ["- `timeoutMillis` = `30000` [1]: *30 seconds*", "- `maxBodySize` = `1024 * 1024` [2]"],
        ),
        ("what is the default maxBodySize?", ["`maxBodySize`, an assigned value, is `1024 * 1024` by default [1]."]),
    ],
)
async def test_a_default_that_no_option_has_is_what_the_code_sets(
    tmp_path: Path, question: str, lines: list[str]
) -> None:
    [answer] = await ask(tmp_path, question, files=VALUES)

    assert [line for line in answer.text.splitlines() if "`" in line and not line.startswith(("In ", "2 "))][
        -len(lines) :
    ] == lines
