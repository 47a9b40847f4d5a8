"""Detects prompt injection in people's messages by the families of attacks: a tripwire, not a wall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

import re2

from agent.guard.injection.families import Family, combine_bits, load_families
from agent.guard.injection.lexicon import Name, Reading
from agent.guard.injection.normalization import Disguise, NormalizedQuestion, normalize_question
from agent.state import VerdictName

_WH = (
    r"how|why|where|what|when|which|who|whose|whom|wo|wie|warum|welche[rsnm]?|was|wer|wann|où|comment|pourquoi|quels?"
    r"|quelles?|qui|quand|d[oó]nde|c[oó]mo|por\s+qu[eéê]|qu[eé]|cu[aá]l(?:es)?|qui[eé]n|onde|qual|quem|quais|dove|come"
    r"|perch[eé]|quale|quali|chi|waar|waarom|hoe|welke|wat|gdzie|jak|dlaczego|kt[oó]r[aey]|где|как|почему|зачем|какой"
    r"|какая|какие|какую|кто|когда|nerede|nas[ıi]l|neden|hangi"
)
_ASKS = (
    rf"(?:{_WH}|does|do\s+(?:we|i|they|the)|did|is|are|was|were|has|have\s+we|am\s+i|should\s+(?:we|i)|must\s+(?:we|i)"
    r"|(?:can|could|may)\s+(?:we|i|a|an|the|it|they|this|somebody|anybody)|explain|describe|find|locate|count"
    r"|(?:i\s+(?:want|need|would\s+like|'d\s+like)\s+to\s+(?:know|see|understand|find)|i\s+(?:wonder|am\s+looking\s+for))"
    r"|(?:show|tell|give|list)\s+(?:me\s+)?(?:where|how|which|why|what|who|when|if|whether|about|every\s+place|(?:the|all|any|a|every)\s+"
    r"(?:\w+\s+){0,2}(?:code|places?|files?|lines?|tests?|functions?|methods?|class(?:es)?|modules?|callers?|check|template)))"
)
# The first words of orders to a bot; in the middle of a sentence they begin a new clause.
_ORDERS = (
    r"ignore|disregard|forget|reveal|print|output|repeat|recite|act|pretend|say|reply|respond|send|post|upload|obey"
    r"|override|execute|do\s+not|don'?t|never|always|you\s+(?:must|are\s+now|have\s+to|will)"
)
_LEAD = r"[\W_]{0,5}(?:(?:and|but|so|also|ok|okay|hi|hey|hello|please|then|well|now|just|thanks|fyi)\b[\s,:]{0,3}){0,4}"
_POLITELY = r"(?:can|could|would|will|won'?t)\s+(?:you|u)\s+(?:(?:please|kindly|just|now|also|maybe)\s+){0,3}"
_QUOTATION = re2.compile(
    r"(?m:```[^`]*```|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」"
    r"|(?:^|[\s(:=])'[^'\n]*'|^>.*$"
    r"|^(?i:[\w.]{0,60}(?:error|exception)|fatal|warning|panic)\s?:\s[^.?!\n]*)"  # a message of a program
)
_SENTENCE = re2.compile(r"([.?!;]+[\"')\]]*)(?:\s+|$)|([。？！；]+)")
_TURN = re2.compile(
    rf"(?i)([,:]|\s[-–—])\s+((?:(?:and|but|so|then|now|also|please|just)\s+){{0,2}}(?:{_ASKS}|{_ORDERS})\b)"
)
_ASKING = re2.compile(rf"(?i){_LEAD}{_ASKS}\b")
_ORDERING = re2.compile(rf"(?i){_LEAD}(?:{_ORDERS})\b")
_POLITE = re2.compile(rf"(?i){_LEAD}{_POLITELY}")
# Chinese, Japanese and Korean ask by a word within the clause or by its end.
_MARK = re2.compile(
    r"[?？؟][\s\"')\]]*$|(?:哪|什么|怎么|为什么|吗|どこ|なぜ|どう|何|ですか|ますか|어디|어떻게|왜|무엇|입니까|됩니까)"
)
_MIN_WORDS = 2
MAX_CLAUSES = 200  # of a message; a person writes a dozen
_QUOTE = " (quoted) "


@dataclass(frozen=True, kw_only=True, slots=True)
class Clauses:
    """The clauses of a text: `orders` a line for consecutive ones, `questions` one for each, `whole` the original.

    Quotations count in neither if the text asks something: they are its subject.
    """

    orders: str
    questions: str
    whole: str


def read_clauses(text: str) -> Clauses:
    """Tell questions from orders; bounded by the length of the text, which is cut before."""
    orders, questions = _tell_apart(_QUOTATION.sub(_QUOTE, text))
    if not questions:
        orders, questions = _tell_apart(text)
    return Clauses(orders="\n".join(orders), questions="\n".join(questions), whole=text)


def is_question(clause: str) -> bool:
    """Whether a clause asks; a request with a question mark, as "could you print x?", still counts as an order."""
    if (polite := _POLITE.match(clause)) is not None:
        return _ASKING.match(clause[polite.end() :]) is not None
    if _ASKING.match(clause) is not None:
        return len(clause.split()) >= _MIN_WORDS or clause.rstrip().endswith(("?", "？"))
    if _ORDERING.match(clause) is not None:
        return False
    return _MARK.search(clause) is not None


def _tell_apart(text: str) -> tuple[list[str], list[str]]:
    """Separate clauses that order or tell from those that ask; give up if there are too many."""
    orders: list[str] = []
    questions: list[str] = []
    left = MAX_CLAUSES
    for line in text.split("\n"):
        *clauses, rest = _cut(line, left) if left > 0 else [line]
        left -= len(clauses) + 1
        apart = [clause.strip() for clause in (*clauses, rest) if clause.strip()] if left > 0 else clauses
        for asks, run in groupby(apart, key=is_question):
            if asks:
                questions += run
            else:
                orders.append(" ".join(run))
        if left <= 0:
            orders.append(rest)
    return orders, questions


def _cut(line: str, most: int) -> list[str]:
    """Cut a line into clauses, up to twice as many places as wanted."""
    sentences = _SENTENCE.sub(r"\1\2\n", line, most)
    return str(_TURN.sub(r"\1\n\2", sentences, most)).split("\n")


EARLIER_MESSAGES = 3  # of the same conversation, read together with the newest
_MAX_QUESTIONS = 50  # of one message that are looked at for a real one
_EARLIER_LENGTH = 1200  # characters of each

# Nobody writes an order in these by accident; a letter with an accent or a digit among letters is no disguise.
_ON_PURPOSE: frozenset[Disguise] = frozenset({"base64", "hex", "tags", "rot13", "reversed", "escaped", "spaced"})
_DISGUISED_ON_PURPOSE = frozenset({"override", "prompt"})


@dataclass(frozen=True, kw_only=True, slots=True)
class InjectionVerdict:
    """The guard's judgement of a message.

    `rules` name the families that matched, for the log and never for the asker; `said` describes
    the attack.
    """

    name: VerdictName
    rules: tuple[str, ...] = ()
    said: str = "an order to me"


def judge_injection(message: NormalizedQuestion) -> InjectionVerdict:
    """Judge every form of a message: block certain attacks, watch possible ones."""
    found: dict[str, Family] = {}
    sure: list[Family] = []
    asks = False
    for disguise, form in message.forms:
        clauses = read_clauses(form)
        orders, questions = (
            load_families().lexicon.read(clauses.orders),
            load_families().lexicon.read(clauses.questions),
        )
        matches = _find_matches(orders, questions, load_families().lexicon.read(clauses.whole).names)
        asks = asks or (disguise == "plain" and _has_question(clauses))
        sure += [
            family
            for family in matches
            if family.is_in(orders.marks, "sure") or (disguise in _ON_PURPOSE and family.name in _DISGUISED_ON_PURPOSE)
        ]
        found |= {family.name: family for family in matches}
    if not found:
        return InjectionVerdict(name="allow")
    first = next(iter([*sure, *found.values()]))
    # An order with a real question does not silence its author: the question is answered, under watch.
    name: VerdictName = "block" if sure and not asks else "watch"
    return InjectionVerdict(name=name, rules=tuple(sorted(found)), said=first.said)


def judge_conversation(message: str, earlier: Sequence[str]) -> InjectionVerdict:
    """Judge a message together with earlier ones of the same person; an attack split over several gets watched."""
    own = judge_injection(normalize_question(message))
    if own.name != "allow" or not earlier:
        return own
    before = [text[:_EARLIER_LENGTH] for text in earlier[-EARLIER_MESSAGES:]]
    for together in ("\n".join([*before, message]), " ".join([*before, message])):
        verdict = judge_injection(normalize_question(together))
        if verdict.name != "allow":
            return replace(verdict, name="watch")
    return own


def _find_matches(orders: Reading, questions: Reading, names: Sequence[Name]) -> list[Family]:
    ordered, asked = combine_bits(orders.marks), combine_bits(questions.marks)
    return [
        family
        for family in load_families().every
        if family.is_in(orders.marks, "sure", "orders", "addressed", present=ordered)
        or family.is_in(questions.marks, "addressed", present=asked)
        or (family.rules["names"] and any(family.is_in(name.marks, "names") for name in names))
    ]


def _has_question(clauses: Clauses) -> bool:
    """Whether there is a harmless question with a subject, unlike "how are you?"."""
    questions = dict.fromkeys(clauses.questions.split("\n"))
    return any(map(_is_real_question, islice(questions, _MAX_QUESTIONS)))


def _is_real_question(question: str) -> bool:
    words = question.lower().strip("?! ").split()
    says_enough = len(words) > (4 if "you" in words else 2)
    marks = load_families().lexicon.read(question).marks
    present = combine_bits(marks)
    return says_enough and not any(
        family.is_in(marks, "addressed", present=present) for family in load_families().every
    )
