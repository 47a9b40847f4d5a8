"""The shape of the house: who imports whom, which library stands where, and that importing does nothing."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import agent
import indexer
from indexer.lazy_names import list_lazy_names
from tests.fakes.repositories import GitRepo
from tests.waiting import LIMIT_SECONDS

ROOT = Path(__file__).parent.parent
PACKAGES = ("bot", "agent", "indexer")

# What each package may import of ours.
ALLOWED = {
    "bot": ("bot", "agent", "indexer"),
    "agent": (
        "agent",
        "indexer.types",
        "indexer.errors",
        "indexer.installation",
        "indexer.lazy_names",
        "indexer.text.linear_patterns",
        "indexer.text.globs",
        "indexer.text.languages",
    ),
    "indexer": ("indexer",),
}
# Concrete parts of the others that only the composition root may name.
JOINED_IN_APP = (
    "indexer.CachedRedactor",
    "indexer.CodeIndex",
    "indexer.LocalHead",
    "indexer.ParserPool",
    "indexer.RemoteClone",
    "indexer.Watcher",
    "indexer.open_clones",
    "indexer.open_objects",
    "indexer.redact_secrets",
    "indexer.start_confined_async",
    "agent.Agent",
    "agent.BackgroundClassifier",
    "agent.open_copy",
    "agent.GoalAgent",
    "agent.GoalRegistry",
    "agent.OnnxModel",
    "agent.RetryPolicy",
    "agent.SearxngSearch",
    "agent.open_conversations",
    "agent.open_memory_store",
    "agent.find_sandbox",
    "agent.make_goal_tools",
    "agent.open_models",
    "agent.try_sandboxes",
)

# Where a third-party library may be imported; a folder ends with a slash.
HOMES = {
    "aiohttp": ("bot/adapters/",),  # as a client: nothing is served with it
    "aiosqlite": ("agent/persistence/checkpointer.py",),
    "chromadb": ("indexer/store/vectors.py", "indexer/store/chroma_client.py", "indexer/store/chroma_server.py"),
    "click": (
        "bot/cli/main.py",
        "bot/cli/command_groups.py",
        "bot/cli/data_commands.py",
        "bot/cli/goals.py",
        "bot/cli/context.py",
        "bot/cli/lookups.py",
    ),
    "discord": ("bot/adapters/discord/",),
    # Wildcards in names and in whole paths; globs in the language of .gitignore all go through indexer/text/globs.py.
    "fastapi": ("bot/surfaces/api/http_api.py",),
    "fnmatch": (
        "agent/evidence/refs.py",
        "bot/access.py",
        "indexer/git/file_selection.py",
        "indexer/git/tags.py",
        "indexer/remotes/ref_list.py",
    ),
    "git": ("indexer/subprocesses.py",),
    "httpx": (
        "agent/llm/ollama.py",
        "agent/tools/web_search.py",
        "bot/repositories/deploy_marks.py",
        "indexer/store/chroma_client.py",
        "indexer/store/chroma_server.py",
    ),
    "jinja2": ("bot/surfaces/web/page_files.py",),
    "langchain_core": ("agent/", "bot/cli/diagram.py", "indexer/embedding/"),
    "langgraph": ("agent/",),
    "re2": (
        "indexer/text/linear_patterns.py",
        "indexer/git/gitattributes.py",
        "indexer/text/globs.py",
        "indexer/generations/grep.py",
        "indexer/secrets/",
        "agent/guard/",
        "agent/text/storable.py",
    ),
    "mcp": ("bot/surfaces/mcp/",),
    "mcp_types": ("bot/surfaces/mcp/",),
    "obstore": ("indexer/segments/bucket.py",),
    "opentelemetry": ("bot/tracing.py",),
    "markdown_it": ("bot/surfaces/web/answer_markup.py",),
    "markupsafe": ("bot/surfaces/web/", "bot/adapters/local/"),
    "networkx": ("bot/pictures/",),
    "pathspec": ("indexer/text/globs.py",),
    "platformdirs": ("bot/settings.py",),
    "prometheus_client": ("bot/monitoring/metrics.py", "bot/monitoring/metrics.py"),
    "prompt_toolkit": ("bot/adapters/terminal/prompt.py", "bot/adapters/terminal/prompt.py"),
    "procrastinate": ("bot/jobs/",),
    "psycopg": ("agent/persistence/", "bot/jobs/"),
    "psycopg_pool": ("agent/persistence/", "bot/jobs/"),
    "pygments": ("bot/surfaces/web/highlight_worker.py",),
    "rank_bm25": ("indexer/search/bm25.py",),
    "resvg_py": ("bot/pictures/flow_rendering.py",),
    "rich": ("bot/adapters/",),
    "h11": ("bot/http/connections.py",),
    "slack_bolt": ("bot/adapters/slack/",),
    "slack_sdk": ("bot/adapters/slack/",),
    "onnxruntime": ("agent/guard/classifier/onnx_model.py",),
    "starlette": (
        "bot/http/",
        "bot/monitoring/health.py",
        "bot/webhooks/",
        "bot/surfaces/",
        "bot/serving/monitoring.py",
        "bot/adapters/slack/endpoint.py",
        "bot/adapters/local/endpoint.py",
    ),
    "tenacity": (
        "bot/tasks.py",
        "bot/serving/platforms.py",
        "bot/replies/reply.py",
        "bot/adapters/discord/adapter.py",
    ),
    "tokenizers": ("agent/guard/classifier/onnx_model.py",),
    "tree_sitter": ("indexer/",),
    "uvicorn": ("bot/http/",),
}
# The one module that starts programs, and what it could be done with elsewhere; and a program that becomes another.
IN_SANDBOX = "agent/goals/claim_proof.py"  # a program that the sandbox starts
DOOR = "indexer/subprocesses.py"
LAUNCHERS = {
    "agent/sandbox/kernel/box_watch.py": ["os.execvp", "os.fork"],
    "agent/sandbox/kernel/landlock_launcher.py": ["os.execvpe", "os.fork"],
}
STARTING = re.compile(
    r"subprocess\.(Popen|run|call|check_\w+|get\w+)|(\w+\.)*create_subprocess_\w+|(\w+\.)*subprocess_(exec|shell)"
    r"|os\.(system|popen|fork|forkpty|exec\w+|spawn\w+|posix_spawnp?)|(multiprocessing|pty|_posixsubprocess)(\.\w+)*"
    r"|(\w+\.)*ProcessPoolExecutor"
)
# What no command may wait for before it is known to be right.
HEAVY = {
    "chromadb",
    "langgraph",
    "numpy",
    "onnxruntime",
    "pydantic",
    "rich",
    "prompt_toolkit",
    "scipy",
    "git",
    "tree_sitter",
}


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module that a file imports; `from a import b` gives `a.b`, since b may be a module."""
    found: list[str] = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)} imports relatively"
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return tuple(found)


def within(module: str, allowed: tuple[str, ...]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in allowed)


def classes() -> set[str]:
    """The names of all classes that are ours, except frozen values: those are constants."""
    nodes = (node for path in sources() for node in ast.walk(parsed(path)) if isinstance(node, ast.ClassDef))
    return {node.name for node in nodes if not any("frozen=True" in ast.unparse(each) for each in node.decorator_list)}


def test_imports_run_one_way() -> None:
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in sources()
        for module in imports(path)
        if module.split(".")[0] in PACKAGES and not within(module, ALLOWED[name_of(path).split("/")[0]])
    ]

    assert wrong == []


def test_no_node_imports_another_node() -> None:
    nodes = [path for path in sources() if "nodes" in path.parts]
    wrong = [f"{name_of(path)}: {module}" for path in nodes for module in imports(path) if "agent.nodes" in module]

    assert len(nodes) > 8
    assert not wrong, "\n".join(wrong)


def test_concrete_parts_meet_in_the_composition_root_alone() -> None:
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in sources()
        if name_of(path).startswith("bot/") and name_of(path) != "bot/app.py"
        for module in imports(path)
        if within(module, JOINED_IN_APP)
    ]

    assert wrong == []


@pytest.mark.parametrize(("package", "beside"), [(agent, ("agent.text",)), (indexer, ())], ids=["agent", "indexer"])
def test_the_bot_uses_the_public_surface_of_a_package_alone(package: ModuleType, beside: tuple[str, ...]) -> None:
    public = {f"{package.__name__}.{name}" for name in list_lazy_names(package.__name__)}
    used = {
        (name_of(path), module)
        for path in sources()
        if name_of(path).startswith("bot/")
        for module in imports(path)
        if within(module, (package.__name__,)) and not within(module, beside)
    }

    assert {each for each in used if each[1] not in public} == set()
    assert public - {module for _, module in used} == set(), "nothing in bot uses it: it need not be public"


@pytest.mark.parametrize("package", ["agent", "agent.chat", "indexer"])
def test_every_public_name_is_loaded_from_where_type_checkers_find_it(package: str) -> None:
    loaded = importlib.import_module(package)
    for name, module in list_lazy_names(package).items():
        assert getattr(loaded, name) is getattr(importlib.import_module(module), name)


def test_importing_the_indexer_loads_none_of_its_modules() -> None:
    inner = {module for path in sources() if (module := name_of(path).removesuffix(".py").replace("/", "."))}

    assert loaded_by("indexer", inner) == {"indexer.lazy_names"}


def test_a_library_is_imported_only_where_it_belongs() -> None:
    strangers = {
        (name_of(path), library)
        for path in sources()
        for library in HOMES.keys() & {module.split(".")[0] for module in imports(path)}
        if not name_of(path).startswith(HOMES[library])
    }

    assert strangers == set()


def test_the_environment_is_read_for_the_settings_and_for_other_programs_alone() -> None:
    readers = {name_of(path) for path in sources() for node in ast.walk(parsed(path)) if reads_environment(node)}

    assert readers == {"bot/settings.py", DOOR, IN_SANDBOX}


def test_programs_are_started_through_one_door() -> None:
    places = {name_of(path): calls for path in sources() if (calls := starting_calls(path))}

    starting = {DOOR: ["asyncio.create_subprocess_exec", "subprocess.Popen"], **LAUNCHERS}
    assert places == {**starting, IN_SANDBOX: ["os.fork"]}


def test_every_program_is_started_with_the_chosen_environment_in_the_fixed_folder() -> None:
    for node in ast.walk(parsed(ROOT / DOOR)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in starting_calls(ROOT / DOOR):
            given = {each.arg: ast.unparse(each.value) for each in node.keywords}
            assert given["cwd"] == "_FOLDER"
            # The second is the first with what every git is told; test_processes.py holds them to that.
            assert given["env"] in {
                "select_environment(os.environ)",
                "_make_git_environment(protocols)",
                "_make_editor_environment()",
                "_make_bare_environment()",
            }


def starting_calls(path: Path) -> list[str]:
    """Everything in a file that could start a program, other than through the door."""
    called = {ast.unparse(node.func) for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)}
    return sorted([*filter(STARTING.fullmatch, called), *filter(STARTING.fullmatch, imports(path))])


def reads_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}


def test_no_module_holds_an_instance_of_our_classes() -> None:
    ours = classes()
    held = [
        f"{name_of(path)}:{node.lineno}"
        for path in sources()
        for node in parsed(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
        if isinstance(node.value.func, ast.Name) and node.value.func.id in ours
    ]

    assert held == []


def test_no_function_writes_to_a_global() -> None:
    wrong = [name_of(path) for path in sources() for node in ast.walk(parsed(path)) if isinstance(node, ast.Global)]

    assert wrong == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [name_of(path) for path in sources() if not ast.get_docstring(parsed(path))]

    assert silent == []


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    assert loaded_by("bot.cli.main", HEAVY) == set()


def test_importing_what_a_search_needs_loads_neither_chroma_nor_langgraph() -> None:
    heavy = {"chromadb", "langgraph", "langchain_core", "prompt_toolkit", "networkx", "tree_sitter"}

    assert loaded_by("bot.app, bot.cli.query, bot.adapters.terminal.display, indexer.index", heavy) == set()


# What an answer without a model does without: the graph's engine, models, platforms, and what only indexing needs.
IDLE = {
    "PIL",
    "agent.persistence.checkpointer",
    "aiohttp",
    "aiosqlite",
    "bot.conversations",
    "bot.serving",
    "chromadb",
    "discord",
    "fastapi",
    "google",
    "httpx",
    "langchain_core",
    "langgraph",
    "langsmith",
    "networkx",
    "onnxruntime",
    "opentelemetry",
    "pathspec",
    "prometheus_client",
    "prompt_toolkit",
    "pydantic_settings",
    "requests",
    "slack_bolt",
    "slack_sdk",
    "starlette",
    "tree_sitter",
    "uvicorn",
}
# And what a lookup does without, or an index in which nothing has changed.
IDLE_IN_LOOKUPS = IDLE | {
    "agent.agent",
    "agent.ports",
    "bot.repositories.library",
    "bot.repositories.ref_chooser",
    "bot.surfaces",
    "indexer.generations.pipeline",
    "indexer.secrets.masking",
    "rich.progress",
}


@pytest.mark.parametrize("question", ["where is parse_date defined?", "how are dates parsed?"])
def test_a_question_without_a_model_loads_nothing_that_it_has_no_use_for(question: str, tmp_path: Path) -> None:
    said = run_on_shop(tmp_path, ["index"], ["ask", question])

    assert "shop/dates.py" in said[1]
    assert IDLE & set(said[1].split()) == set()


@pytest.mark.parametrize(
    ("lookup", "needed"),
    [
        (["callers", "parse_date"], set()),
        (["search", "parse dates", "--mode", "lexical"], set()),
        (["index"], {"indexer.secrets.masking"}),
    ],
    ids=["callers", "search", "index"],
)
def test_a_lookup_loads_nothing_that_it_has_no_use_for(lookup: list[str], needed: set[str], tmp_path: Path) -> None:
    said = run_on_shop(tmp_path, ["index"], lookup)

    assert ("0 parsed" if lookup == ["index"] else "shop/dates.py") in said[1]
    assert (IDLE_IN_LOOKUPS - needed) & set(said[1].split()) == set()


def run_on_shop(tmp_path: Path, *lines: list[str]) -> list[str]:
    """Run commands in a small repository; return what each printed, and the names of the modules that it loaded."""
    repository = GitRepo(tmp_path / "shop")
    repository.write("shop/dates.py", "def parse_date(text):\n    return text.split('-')\n\n\nTODAY = parse_date('')\n")
    repository.commit("Sell things")
    home = {"CITEBOT_HOME": str(tmp_path / "home"), "CITEBOT_MODEL": "none", "PATH": os.environ["PATH"]}
    program = "import sys; from bot.cli.main import run; code = run(sys.argv[1:]); print(*sys.modules); sys.exit(code)"
    return [
        subprocess.run(
            [sys.executable, "-c", program, *words, "--repo", str(repository.root)],
            cwd=ROOT, env=home, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS,
        ).stdout
        for words in lines
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_a_process_that_answers_has_nothing_to_parse_with() -> None:
    everything = (
        "bot.serving.service, bot.cli.ask, bot.app, indexer.index, indexer.generations.pipeline, "
        "indexer.generations.reader, agent.agent"
    )

    assert loaded_by(everything, {"tree_sitter", "indexer.parsing.file_parser", "indexer.parsing.grammars"}) == set()


def loaded_by(modules: str, suspects: set[str]) -> set[str]:
    """Which of the suspects a fresh interpreter has loaded after an import."""
    program = f"import sys, {modules}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS
    )
    return suspects & set(done.stdout.split())
