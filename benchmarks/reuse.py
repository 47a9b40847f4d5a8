"""Measures earlier answers that are given again: `python -m benchmarks.reuse [--repository PATH] [--pushes 20]`.

Near misses are pairs of questions made by rule about names of the repository, of which none may mean the same. Wordings
are the lines and the held-out sentences of the intents that ask about a name: how many of them are read as a whole. The
month is asked without a model in a chat of a copy of the repository, whose last commits are pushed meanwhile; each
answer that is given again is compared with a fresh one to the question that it was first given to.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent import CodeSearch, read_meaning
from agent.questions.forms import load_forms, read_form
from bot.app import TeamApp
from bot.clock import SystemClock
from bot.conversations.assembly import open_conversations
from bot.conversations.dispatcher import Conversations
from bot.messages import Place
from bot.serving.service import make_chat_policy
from bot.settings import RepositoryTable, Settings
from bot.storage.database import open_database
from bot.storage.rate_limits import QuestionLimits
from scripts.intent_training.lines import read_lines
from scripts.train_intents import HELD_OUT, read_held_out
from tests.bot.chat import message
from tests.fakes.platform import ABLE, FakePlatform
from tests.fakes.watched import Unseen

NAMES, WEEKS, ASKED_A_WEEK = 80, 4, 75
ASKED = ("callers", "callees", "tests", "definition")  # intents that ask about a name
NEGATIONS = "not never hardly nicht nie pas jamais no nunca não 没有 не nobody without".split()
CLAUSES = (
    "and since when", "and why", ", and who wrote it", "and what does it call", "with a timeout", "if it fails",
    "before it returns", "for the first time", "most often", "directly", "twice", "only", "on Windows",
)  # fmt: skip
SCOPES = ("", " in tests", " outside tests", " in the tests folder", " only in tests", " in the cli module", " in docs")
VERSIONS = (" in 1.0", " in 2.0", " in version 1.0", " since 1.0", " before 2.0", " on the branch dev")
_ALTERNATIVES = re.compile(r"\{([^{}]*)\}")

Pair = tuple[str, str]
Draw = Callable[[random.Random, Sequence[str]], Pair]


def write_form(rng: random.Random, names: Sequence[str], *, but: str = "", only: Sequence[str] = ()) -> str:
    """Write a question about the names in a form of as many."""
    fitting = [
        form
        for form, (meaning, _) in load_forms().items()
        if form.count("\0") == len(names) and meaning != but and not meaning.startswith("in ")
        and (not only or meaning in only)
    ]  # fmt: skip
    form = rng.choice(fitting)
    for name in names:
        form = form.replace("\0", name, 1)
    return form


def negate(rng: random.Random, names: Sequence[str]) -> Pair:
    words = write_form(rng, [rng.choice(names)]).split()
    at = rng.randrange(len(words) + 1)
    return " ".join(words), " ".join([*words[:at], rng.choice(NEGATIONS), *words[at:]])


def exchange(rng: random.Random, names: Sequence[str]) -> Pair:
    one, other = rng.sample(names, 2)
    if rng.random() < 0.5:
        form = write_form(rng, ["\1", "\2"])
        return form.replace("\1", one).replace("\2", other), form.replace("\1", other).replace("\2", one)
    return write_form(rng, [one], only=["callers", "is called"]), write_form(rng, [one], only=["callees"])


def add_places(rng: random.Random, names: Sequence[str], places: Sequence[str]) -> Pair:
    form = write_form(rng, [rng.choice(names)])
    one, other = rng.sample(places, 2)
    return form + one, form + other


def rename(rng: random.Random, names: Sequence[str]) -> Pair:
    """Ask of another name that shares a part: of the code, or with another case, ending or owner."""
    one = rng.choice(names)
    parts = set(re.split(r"[._]", one.lower()))
    near = [name for name in names if name != one and parts & set(re.split(r"[._]", name.lower()))]
    spelt = [f"{one}s", f"_{one}", one.swapcase(), f"{one}_2", one.rpartition(".")[2] if "." in one else f"Other.{one}"]
    form = write_form(rng, ["\1"])
    other = rng.choice([*near, *spelt])
    return form.replace("\1", one), form.replace("\1", other)


def add_clause(rng: random.Random, names: Sequence[str]) -> Pair:
    form = write_form(rng, [rng.choice(names)])
    return form, f"{form} {rng.choice([*CLAUSES, f'and {rng.choice(names)}', f'or {rng.choice(names)}'])}"


def ask_otherwise(rng: random.Random, names: Sequence[str]) -> Pair:
    """Ask something else of the same name."""
    name = rng.choice(names)
    one = write_form(rng, [name])
    form = read_form(one)
    return one, write_form(rng, [name], but=form.meaning if form is not None else "")


FOLDERS = (" in src", " in lib", " in bot/storage", " in bot/surfaces", " in the storage folder", " in the web folder")
RULES: dict[str, Draw] = {
    "negated": negate,
    "caller and callee exchanged": exchange,
    "another version": lambda rng, names: add_places(rng, names, ("", *VERSIONS)),
    "another folder": lambda rng, names: add_places(rng, names, ("", *FOLDERS)),
    "another scope": lambda rng, names: add_places(rng, names, SCOPES),
    "another name with shared parts": rename,
    "one more clause": add_clause,
    "something else of the name": ask_otherwise,
}


@dataclass
class NearMisses:
    """What became of the pairs of one rule."""

    pairs: int = 0
    read: int = 0  # of which both are read as a whole
    wrong: Sequence[Pair] = ()


async def try_near_misses(code: CodeSearch, names: Sequence[str], count: int, seed: int = 1) -> dict[str, NearMisses]:
    """Make so many pairs, and see which of them are taken for the same."""
    rng, found = random.Random(seed), {rule: NearMisses() for rule in RULES}
    rules = list(RULES.items())
    for number in range(count):
        rule, draw = rules[number % len(rules)]
        one, other = draw(rng, names)
        while one.lower().split() == other.lower().split() and rule != "another name with shared parts":
            one, other = draw(rng, names)
        keys = [meaning.key if (meaning := await read_meaning(each, [code])) else "" for each in (one, other)]
        found[rule].pairs += 1
        found[rule].read += all(keys)
        if keys[0] == keys[1] != "":
            found[rule].wrong = (*found[rule].wrong, (one, other))
    return found


def write_lines(rng: random.Random) -> list[str]:
    """Write each line of examples about one name, with one of its alternatives."""
    lines = [line.text for line in read_lines() if line.intent in ASKED]
    written = [_ALTERNATIVES.sub(lambda found: rng.choice(found[1].split("|")), line) for line in lines]
    return [" ".join(line.split()) for line in written if line.count("SYMBOL") == 1 and "PATH" not in line]


def print_wordings(rng: random.Random) -> None:
    lines = [line.replace("SYMBOL", "parse_date") for line in write_lines(rng)]
    held_out = [sentence for intent, _, sentence in read_held_out(HELD_OUT) if intent in ASKED]
    for what, texts in (("example lines", lines), ("held-out sentences", held_out)):
        read = sum(read_form(text) is not None for text in texts)
        print(f"{what}: {read} of {len(texts)} read as a whole ({read / len(texts):.0%})")


@dataclass
class Month:
    """A chat in which people ask."""

    conversations: Conversations
    platform: FakePlatform
    rng: random.Random
    names: Sequence[str]
    lines: Sequence[str]
    asked: int = 0

    def draw_question(self) -> str:
        """Draw a question: of a few names often, of a few intents often, in forms or in lines of examples."""
        name = self.names[min(int(self.rng.paretovariate(0.9)) - 1, len(self.names) - 1)]
        if self.rng.random() < 0.5:
            usual = ("callers", "uses", "place", "what", "how", "tests", "callees")
            return write_form(self.rng, [name], only=usual)
        return self.rng.choice(self.lines).replace("SYMBOL", name)

    async def ask(self, text: str, *, anew: bool = False) -> tuple[str, frozenset[str]]:
        """Ask, and return the line below the answer, and the places that it cites."""
        self.asked += 1
        channel, author = self.rng.choice(("C1", "C2", "C3", "D")), f"person-{self.rng.randrange(12)}"
        place = Place(platform="fake", workspace="W", channel=channel, thread=f"{self.asked}")
        written = replace(
            message(text, id=f"{self.asked}", author=author, author_name=author), place=place, private=channel == "D",
            anew=anew,
        )  # fmt: skip
        await self.conversations.receive(written)
        entry = await self.conversations.deps.inbox.find(written.key)
        if entry is not None:
            await self.conversations.turns.wait_for(entry.id)
        shown = self.platform.messages.popitem()[1].content
        return shown.footer, frozenset(re.findall(r"`([^`\n]+:\d[\d-]*)`", shown.text))


async def print_month(repository: Path, pushes: int, names: Sequence[str], team: TeamApp, settings: Settings) -> None:
    """Ask for a month, and print what was given again."""
    commits = git(repository, "rev-list", "--first-parent", "--reverse", f"-{pushes}", "origin/HEAD").split()
    rng, platform = random.Random(7), FakePlatform(SystemClock(), replace(ABLE, max_units=100_000))  # of one message
    limits = QuestionLimits(per_minute=1_000_000, per_day=1_000_000)
    async with (
        open_conversations(
            team.agent, team.stock.library, store=open_database(settings.home / "month.sqlite"),
            policy=make_chat_policy(settings, team, limits=limits), refs=team.stock.library.refs,
        ) as conversations,
        conversations.open(),
        conversations.connect_platform("fake", platform),
    ):  # fmt: skip
        month = Month(conversations, platform, rng, names, write_lines(rng))
        first: dict[object, str] = {}
        due = [len(commits) * (number + 1) // WEEKS for number in range(WEEKS)]
        done = 0
        print("\nweek | questions | read as a whole | given again | the fresh answer cites the same")
        for week in range(WEEKS):
            counts: Counter[str] = Counter()
            pushed = sorted(rng.sample(range(ASKED_A_WEEK), due[week] - done))
            for number in range(ASKED_A_WEEK):
                while pushed and pushed[0] == number:
                    git(repository, "reset", "--quiet", "--hard", commits[done])
                    await team.stock.library.refresh("repository")
                    done, pushed = done + 1, pushed[1:]
                text = month.draw_question()
                footer, cited = await month.ask(text)
                form = read_form(text)
                counts["read"] += form is not None
                key = (form.meaning, form.names, form.scope) if form is not None else None
                if "still true" in footer:
                    counts["given"] += 1
                    _, fresh = await month.ask(first[key], anew=True)
                    counts["same"] += cited == fresh
                    if cited != fresh:
                        print(f"  differs: {text} | {first[key]} | {sorted(cited ^ fresh)[:4]}")
                else:
                    first[key] = text
            given = f"{counts['given']} ({counts['given'] / ASKED_A_WEEK:.0%})"
            print(f"{week + 1} | {ASKED_A_WEEK} | {counts['read']} | {given} | {counts['same']}")


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(("git", "-C", str(repository), *arguments), check=True, capture_output=True, text=True).stdout


async def run(repository: Path, pairs: int, pushes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "repository"
        git(repository, "clone", "--quiet", str(repository), str(copy))
        git(copy, "reset", "--quiet", "--hard", f"HEAD~{pushes}")
        table = RepositoryTable(path=copy, name="repository")
        settings = Settings(home=Path(folder) / "home", repositories=(table,), model="none")
        async with TeamApp.open(settings, copy, Unseen()) as team:
            await team.stock.library.refresh("repository")
            code = await team.stock.library.pin_existing("repository")
            names = list(dict.fromkeys(one.symbol.name for one in await code.list_central(limit=NAMES)))
            print("rule | pairs | both read as a whole | taken for the same")
            found = await try_near_misses(code, names, pairs)
            for rule, result in found.items():
                print(f"{rule} | {result.pairs} | {result.read} | {len(result.wrong)}")
            for wrong in (one for result in found.values() for one in result.wrong):
                print(f"  WRONG: {wrong}")
            print_wordings(random.Random(3))
            await print_month(copy, pushes, names, team, settings)


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--pairs", type=int, default=3_000)
    parser.add_argument("--pushes", type=int, default=20)
    given = parser.parse_args()
    asyncio.run(run(given.repository, given.pairs, given.pushes))


if __name__ == "__main__":
    main()
