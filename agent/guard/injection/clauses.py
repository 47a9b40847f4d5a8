"""Divides a message into questions, orders and quotations, as a person would read it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import re2

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
_FEWEST_WORDS = 2
MOST_CLAUSES = 200  # of a message; a person writes a dozen
_QUOTE = " (quoted) "


@dataclass(frozen=True, kw_only=True, slots=True)
class Clauses:
    """A text apart: `orders` a line for what follows upon each other, `questions` one for each, `whole` as it was.

    What is quoted counts in neither where the text asks something: it is what the question is about.
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
    """Whether a clause asks; a request with a question mark, as "could you print x?", is an order all the same."""
    if (polite := _POLITE.match(clause)) is not None:
        return _ASKING.match(clause[polite.end() :]) is not None
    if _ASKING.match(clause) is not None:
        return len(clause.split()) >= _FEWEST_WORDS or clause.rstrip().endswith(("?", "？"))
    if _ORDERING.match(clause) is not None:
        return False
    return _MARK.search(clause) is not None


def _tell_apart(text: str) -> tuple[list[str], list[str]]:
    """Return the runs of clauses that order or tell, and each clause that asks; too many are not told apart."""
    orders: list[str] = []
    questions: list[str] = []
    left = MOST_CLAUSES
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
    """Cut a line into clauses, at some twice as many places as wanted at most."""
    sentences = _SENTENCE.sub(r"\1\2\n", line, most)
    return str(_TURN.sub(r"\1\n\2", sentences, most)).split("\n")
