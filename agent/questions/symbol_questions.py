"""The forms that questions about one named thing take: who calls it, what it calls, where it is, its tests."""

# ruff: noqa: E501 - a pattern is read as one line, and breaking it would hide what it matches

from __future__ import annotations

from dataclasses import dataclass

from agent.questions.mentions import normalize_name
from agent.state import Lookup
from indexer.text.linear_patterns import Pattern, compile_pattern

_KIND = (
    r"(?:function|method|class|interface|struct|enum|trait|type|constant|(?:environment\s+|env\s+)?variable|env\s+var|macro"
    r"|module|symbol|decorator|exception|(?:config(?:uration)?\s+)?(?:option|setting|value|key)|helper|hook|fixture)"
)
_X = (
    rf"(?:the\s+|our\s+)?(?:{_KIND}\s+)?(?P<name>`[^`\n]+`|[\w$][\w$.:#]*!?(?:\(\))?)(?:\s+{_KIND})?"
    r"(?:\s+in\s+(?:the\s+|this\s+|our\s+)?(?:code|codebase|repo|repository|project))?"
)
_LIST = r"(?:(?:list|show|find|give|get)(?:\s+me)?\s+)?(?:all\s+)?(?:of\s+)?(?:the\s+)?"
_THINGS = r"(?:\s+(?:all|else|code|other|functions?|methods?|class(?:es)?|places?|modules?|files?|parts?)){0,3}"

_FORMS: tuple[tuple[Lookup, str], ...] = (
    ("callers", rf"(?:who|what|which){_THINGS}\s+(?:calls?|invokes?|is\s+calling|are\s+calling)\s+{_X}"),
    (
        "callers",
        rf"(?:from\s+)?(?:where|when)\s+(?:is|are|does|do)\s+{_X}\s+(?:get\s+|being\s+)?(?:called|invoked)(?:\s+from)?",
    ),
    ("callers", rf"(?:from\s+)?where\s+{_X}\s+(?:is|gets|are)\s+(?:called|invoked)(?:\s+from)?"),
    ("callers", rf"{_LIST}(?:callers?|calls)\s+(?:of|for|to)\s+{_X}"),
    ("callers", rf"{_LIST}{_X}(?:'s|’s)\s+callers?"),
    (
        "callees",
        rf"(?:what|which|who){_THINGS}\s+(?:does|do)\s+{_X}\s+(?:all\s+)?(?:calls?|invokes?|uses?|depends?\s+on)",
    ),
    ("callees", rf"(?:what|which|who){_THINGS}\s+(?:is|are|gets?)\s+(?:called|invoked|used)\s+(?:by|from|in)\s+{_X}"),
    ("callees", rf"{_LIST}callees?\s+(?:of|for)\s+{_X}"),
    ("callees", rf"{_LIST}{_X}(?:'s|’s)\s+callees?"),
    (
        "usages",
        rf"(?:who|what|which){_THINGS}\s+(?:uses?|references?|imports?|depends?\s+on|instantiates?|inherits?\s+from|subclass(?:es)?|throws?|raises?)\s+{_X}",
    ),
    (
        "usages",
        rf"where\s+(?:is|are|do\s+we|does\s+\w{{1,40}})\s+(?:use\s+)?{_X}(?:\s+(?:being\s+)?(?:used|referenced|imported|instantiated|set|read|checked|configured|raised|thrown|caught|handled|emitted|overridden|subclassed))",
    ),
    (
        "usages",
        rf"where\s+{_X}\s+(?:is|gets|are)\s+(?:used|referenced|imported|instantiated|set|read|checked|configured|raised|thrown|caught|handled|emitted|overridden|subclassed)",
    ),
    ("usages", rf"where\s+do\s+we\s+(?:use|reference|import|instantiate)\s+{_X}"),
    ("usages", rf"{_LIST}(?:usages?|uses|references|occurrences|imports)\s+(?:of|to|for)\s+{_X}"),
    ("usages", rf"{_LIST}{_X}(?:'s|’s)\s+(?:usages?|uses|references)"),
    (
        "tests",
        rf"(?:(?:are|is)\s+there\s+|do\s+we\s+have\s+)?(?:any\s+)?{_LIST}(?:unit\s+)?tests?\s+(?:of|for|covering|that\s+cover)\s+{_X}",
    ),
    ("tests", rf"(?:where|how|is|are)\s+(?:is\s+|are\s+)?{_X}\s+tested"),
    ("tests", rf"where\s+(?:are|is)\s+(?:the\s+)?(?:unit\s+)?tests?\s+(?:of|for)\s+{_X}"),
    (
        "tests",
        rf"(?:which|what){_THINGS}\s+(?:unit\s+)?tests?\s+(?:cover|covers|use|uses|call|calls|test|tests|exercise|exercises|check|checks)\s+{_X}",
    ),
    ("tests", rf"(?:which|what){_THINGS}\s+tests?\s+{_X}"),
    ("tests", rf"(?:what\s+about\s+|how\s+about\s+)?{_LIST}{_X}(?:'s|’s)\s+tests?"),
    (
        "definition",
        rf"where\s+(?:is|are|does|do|can\s+i\s+find)\s+{_X}(?:\s+(?:is\s+)?(?:defined|implemented|declared|located|live|lives|come\s+from|sit))?",
    ),
    ("definition", rf"where\s+{_X}\s+(?:is|are|lives)(?:\s+(?:defined|implemented|declared|located))?"),
    (
        "definition",
        rf"(?:show|find|open|give|get|display|print|see|view|locate|look\s+up)(?:\s+me)?\s+(?:the\s+(?:definition|source|code|body|implementation)\s+(?:of|for)\s+)?{_X}",
    ),
    ("definition", rf"(?:the\s+)?(?:definition|source|implementation|signature|code)\s+(?:of|for)\s+{_X}"),
    ("definition", rf"what(?:'s|’s|\s+is|\s+are)\s+{_X}(?:\s+for)?"),
    (
        "definition",
        rf"(?:what|how|why)\s+(?:does|do|is)\s+{_X}\s+(?:do|work|works|return|mean|implemented|defined|for|used\s+for)",
    ),
    ("definition", rf"(?:explain|describe|summari[sz]e|define)(?:\s+to\s+me)?\s+(?:how\s+)?{_X}(?:\s+works)?"),
    (
        "callers",
        rf"wer\s+(?:ruft|benutzt)\s+{_X}(?:\s+auf)?|qui\s+appelle\s+{_X}|¿?qui[eé]n\s+llama\s+a\s+{_X}|谁\s*调用了?\s*{_X}",
    ),
    (
        "usages",
        rf"wo\s+wird\s+{_X}\s+(?:benutzt|verwendet|aufgerufen)|o[uù]\s+est\s+utilisée?\s+{_X}|¿?d[oó]nde\s+se\s+(?:usa|utiliza)\s+{_X}",
    ),
    ("definition", rf"wo\s+(?:ist|wird|liegt|steht)\s+{_X}(?:\s+(?:definiert|implementiert|deklariert))?"),
    (
        "definition",
        rf"o[uù]\s+(?:est|se\s+trouve)\s+(?:définie?\s+|la\s+classe\s+|la\s+fonction\s+|le\s+)?{_X}(?:\s+définie?)?",
    ),
    (
        "definition",
        rf"¿?d[oó]nde\s+(?:est[aá]|se\s+define|se\s+implementa)\s+(?:definid[ao]\s+)?(?:la\s+|el\s+)?(?:clase\s+|funci[oó]n\s+|m[eé]todo\s+)?{_X}(?:\s+definid[ao])?",
    ),
    (
        "definition",
        rf"(?:wie\s+funktioniert|was\s+(?:ist|macht)|c[oó]mo\s+funciona|qu[eé]\s+(?:es|hace)|comment\s+fonctionne|que\s+fait)\s+{_X}",
    ),
    (
        "definition",
        rf"{_X}\s*(?:在哪里?|是在哪里?)(?:被)?(?:定义|实现)?(?:的)?|(?:什么是|解释)\s*{_X}|{_X}\s*(?:是什么|怎么工作|如何工作)",
    ),
    ("definition", _X),
)


def _compile_form(form: str) -> Pattern:
    """Compile a form whose alternatives each have a name, which a pattern may hold only once."""
    alternatives = form.split("(?P<name>")
    named = alternatives[0] + "".join(f"(?P<name{at}>{rest}" for at, rest in enumerate(alternatives[1:]))
    return compile_pattern(rf"(?i)(?:{named})[\s?？.!。]*", loose=True)


_COMPILED = tuple((lookup, _compile_form(form)) for lookup, form in _FORMS)
_LONGEST = 400
_NO_NAMES = frozenset(
    "a again all an and any anything are code else everything he here how it me more next none nothing ok one other others something that the them there these they this those us what where who why".split()
)


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedQuestion:
    """A question about one name, and what it wants to know of it."""

    lookup: Lookup
    name: str


def parse_named_question(question: str) -> NamedQuestion | None:
    """Recognise a question about one name; None when it is anything else."""
    line = " ".join(question.split())
    if len(line) > _LONGEST:
        return None
    for lookup, form in _COMPILED:
        found = form.fullmatch(line)
        if found is not None:
            name = normalize_name(next(filter(None, found.groupdict().values()), ""))
            if name and name.lower() not in _NO_NAMES:
                return NamedQuestion(lookup=lookup, name=name)
    return None
