"""The declaration of a lookup: its name, arguments and result, as text and as structure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from agent.evidence.coverage import Denial
from agent.evidence.refs import make_definition_ref
from agent.lookups.results import LookupResult, describe_coverage
from agent.lookups.tool import MAX_CHARACTERS, Tool, ToolEvidence, ToolReport
from agent.ports import CodeSearch, Deps
from indexer.types import Definition

WIDE_CHARACTERS = 40_000  # of the text that a program reads
ROOT_PATH = "The path from the root of the repository."

Surface = Literal["model", "api", "operation"]
Item = TypeVar("Item")

Offset = Annotated[
    int,
    Field(
        ge=0,
        le=1_000_000,
        validation_alias=AliasChoices("offset", "skip"),
        description="`next` of an earlier result, to see what follows it.",
    ),
]
Path = Annotated[str, Field(max_length=1_000)]
Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=300,
        validation_alias=AliasChoices("name", "function_name"),
        description="A plain or qualified name: send, Session.send.",
    ),
]


def _check_plain(text: str) -> str:
    """Refuse text that is no name, path or word, or that git would read as several patterns."""
    if any(ord(character) < 32 for character in text):
        raise ValueError("control characters and line breaks are not allowed here")
    return text.strip()


PlainText = Annotated[str, Field(json_schema_extra={"pattern": r"^[^\x00-\x1f]*$"}), AfterValidator(_check_plain)]
Plain = Annotated[PlainText, Field(max_length=200)]


class Arguments(BaseModel):
    """Arguments of a lookup. Unknown ones are refused, and texts are converted to numbers only for models."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)
ResultT_co = TypeVar("ResultT_co", bound=LookupResult, covariant=True)


class Look(ToolReport):
    """One lookup in progress: the code that it reads, its text, and the fields of all results.

    It `is_wide` for programs, which get larger pages than models.
    """

    def __init__(
        self, code: CodeSearch, redact: Callable[[str], str], *, is_wide: bool = False, room: int = MAX_CHARACTERS
    ) -> None:
        super().__init__(redact, WIDE_CHARACTERS if is_wide else room)
        self.code = code
        self.mask = redact
        self.is_wide = is_wide
        self.head: dict[str, Any] = {"repository": code.repository, "commit": code.commit.sha, "total": 0}

    async def cite_first_line(self, definition: Definition) -> None:
        """Add the first line of a definition."""
        ref = make_definition_ref(definition)
        ref["end_line"] = ref["start_line"]
        line = await self.code.read(ref["path"], ref["start_line"], ref["start_line"])
        self.cite(ref, f"{ref['symbol']}: {line.text.strip()}")

    def take_page(self, found: Sequence[Item], limit: int, offset: int) -> Sequence[Item]:
        """Return a page of the results, and note their number."""
        end = offset + limit
        self.head |= {"total": len(found), "next": end if end < len(found) else None}
        return found[offset:end]

    def deny(self, no: Denial, hint: str = "") -> None:
        """Say that nothing was found, and how much code was read."""
        self.say(f"{no.text}{hint}")
        self.head |= {"note": no.text, "coverage": describe_coverage(self.code.commit.sha, no.coverage)}

    def note(self, sentence: str) -> None:
        """Add a note for programs too."""
        self.say(sentence)
        self.head["note"] = " ".join(filter(None, [self.head.get("note"), sentence]))


class CodeLookup(Tool[ArgumentsT], Generic[ArgumentsT, ResultT_co]):
    """A read-only lookup in the code. `known_as` are its published names on single surfaces."""

    title: ClassVar[str]
    result: type[LookupResult]
    known_as: ClassVar[Mapping[Surface, str]] = {}
    room: ClassVar[int] = MAX_CHARACTERS  # of the text that a model reads
    only_reads = True

    @property
    def model_name(self) -> str:
        """The name that models know it by."""
        return self.known_as.get("model", self.name)

    @abstractmethod
    async def find(self, args: ArgumentsT, look: Look) -> ResultT_co:
        """Do the lookup: write the text, and return the structure."""

    async def look_up(self, args: ArgumentsT, look: Look) -> ResultT_co:
        """Do the lookup, and say how to see the rest."""
        result = await self.find(args, look)
        if result.next is not None and "offset" in type(args).model_fields:
            total = f"{'' if result.is_total_exact else 'at least '}{result.total:,}"
            look.say(f"There are {total} in all; offset = {result.next} has the next ones.")
        return result

    async def run(self, args: ArgumentsT, deps: Deps) -> ToolEvidence:
        """Do the lookup for a model."""
        look = Look(deps.code, deps.redact, room=self.room)
        await self.look_up(args, look)
        return look.evidence()


def clean_path(path: str) -> str:
    """Return a path as in the index; empty for the top."""
    written = path.strip().removeprefix("./").strip("/").removesuffix("/.")
    return "" if written == "." else written


def explain_arguments(error: ValidationError, model: type[Arguments]) -> str:
    """Explain in one line what is wrong with the arguments of a call, and list the valid ones."""
    problems = [_explain(detail["loc"], detail["type"], detail["msg"]) for detail in error.errors(include_url=False)]
    return f"{'; '.join(problems[:5])}. The arguments are {', '.join(model.model_fields)}."


def _explain(place: tuple[Any, ...], kind: str, message: str) -> str:
    name = ".".join(str(part) for part in place)[:80]
    return f"{name!r} is no argument" if kind == "extra_forbidden" else f"{name}: {message[:200]}"
