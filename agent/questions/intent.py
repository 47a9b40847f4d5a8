"""Classifies a message by patterns: about the history, a repetition, small talk, or the code."""

# ruff: noqa: E501 - a pattern is read as one line, and breaking it would hide what it matches

from __future__ import annotations

import re
from typing import Literal

from agent.questions.remarks import find_remark

SmallTalk = Literal["greeting", "thanks", "farewell", "remark", "abilities", "chatter", "wordless"]

_POLITE = re.compile(
    r"(?:(?:hi|hey|hello|ok(?:ay)?|so|well|please|thanks|now|then|and|but|also|quick question)\b[\s,.!:-]{0,3}(?:there\b[\s,.!]{0,3})?"
    r"|(?:(?:can|could|would|will)\s+you\s+(?:please\s+)?(?:tell|show|explain\s+to)\s+(?:me|us)\s+(?=where|how|who|what|which|why))"
    r"|(?:do\s+you\s+know|tell\s+me|i\s+(?:want|need|would\s+like|'d\s+like)\s+to\s+know|i\s+wonder)\s+(?=where|how|who|what|which|why)"
    r"|(?:can|could|would|will)\s+you\s+(?:please\s+)?(?=show|find|list|explain|describe|give|open)){1,4}",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"(?:what|which)\s+(?:questions?\s+)?(?:did|have)\s+(?:i|we)\s+(?:just\s+|already\s+|previously\s+)?(?:ask(?:ed)?|talk(?:ed)?\s+about|discuss(?:ed)?|say|said)"
    r"(?:\s+(?:you|so\s+far|before|earlier|about|first|last|today|until\s+now|just\s+now)){0,3}"
    r"|(?:what\s+(?:was|were)|list|show(?:\s+me)?|repeat|recall)\s+(?:all\s+)?(?:of\s+)?my\s+(?:(?:very\s+)?(?:last|first|previous|earlier|prior|recent|past)\s+)?(?:questions?|history|messages?)(?:\s+so\s+far)?"
    r"|(?:show|list|print)\s+(?:me\s+)?(?:the\s+|our\s+|my\s+)?(?:chat|conversation|question)\s+history"
    r"|(?:summari[sz]e|recap)\s+(?:our|this|the)\s+(?:conversation|chat|discussion)",
    re.IGNORECASE,
)
_REPEAT = re.compile(
    r"(?:(?:can|could)\s+you\s+)?(?:(?:repeat|say)\s+(?:that|it|this)|(?:repeat|show\s+me)\s+(?:your|the)\s+(?:last\s+|previous\s+)?answer)(?:\s+(?:again|once\s+more|please)){0,2}"
    r"|(?:say\s+)?(?:that\s+)?again(?:\s+please)?|come\s+again|what\s+(?:was\s+that|did\s+you\s+(?:just\s+)?say|was\s+your\s+(?:last\s+)?answer)(?:\s+again)?|pardon",
    re.IGNORECASE,
)
_SMALL_TALK: tuple[tuple[SmallTalk, str], ...] = (
    (
        "greeting",
        r"(?:(?:hi|hey|hello|howdy|yo|hiya|greetings|good\s+(?:morning|afternoon|evening|day)|hallo|hola|bonjour|ciao|ping|test)\b[\s,!.]{0,5}(?:there|all|everyone|team|bot|citebot|again)?[\s,!.]{0,5}){1,3}(?:how\s+are\s+you(?:\s+(?:doing|today))?|what'?s\s+up)?",
    ),
    ("greeting", r"how\s+(?:are|r)\s+(?:you|u)(?:\s+(?:doing|today|feeling))?|what'?s\s+up"),
    (
        "thanks",
        r"(?:ok(?:ay)?[\s,!.]{1,3})?(?:thanks?|thank\s+you|thx|ty|cheers|much\s+appreciated|merci|danke|gracias)(?:\s+(?:a\s+lot|so\s+much|very\s+much|you|again|for\s+(?:that|the\s+help|your\s+help)|bot|citebot|that\s+helps|that\s+(?:was|is)\s+helpful)){0,3}",
    ),
    (
        "thanks",
        r"(?:ok(?:ay)?|great|nice|cool|perfect|awesome|got\s+it|good\s+(?:job|bot)|well\s+done|lol|yes|no|yep|nope|sure)(?:[\s,!.]{1,3}(?:thanks?|thank\s+you|thx|great|nice|cool|got\s+it)){0,2}",
    ),
    ("farewell", r"(?:good\s*bye|bye(?:\s+bye)?|see\s+(?:you|ya)(?:\s+later)?|good\s+night|cu|later)"),
    (
        "abilities",
        r"(?:help(?:\s+me)?|what\s+can\s+(?:you\s+do|i\s+ask(?:\s+you)?)|who\s+are\s+you|what\s+are\s+you|what\s+do\s+you\s+do|how\s+do\s+(?:you|i\s+use\s+(?:you|this(?:\s+bot)?))(?:\s+work)?|are\s+you\s+(?:a\s+)?(?:bot|human|an\s+ai|real|there))",
    ),
    (
        "abilities",
        r"(?:hilfe|was\s+kannst\s+du(?:\s+alles)?|wer\s+bist\s+du|was\s+bist\s+du|was\s+kann\s+ich\s+(?:dich\s+)?fragen|que\s+(?:peux|sais)[-\s]tu\s+faire|qu'est-ce\s+que\s+tu\s+(?:peux|sais)\s+faire|qui\s+es[-\s]tu|qué\s+(?:puedes|sabes)\s+hacer|quién\s+eres|cosa\s+(?:puoi|sai)\s+fare|chi\s+sei|o\s+que\s+você\s+(?:pode|sabe)\s+fazer|quem\s+é\s+você|何ができますか|何ができるの|あなたは誰ですか|使い方|你能做什么|你会做什么|你是谁|뭘\s*할\s*수\s*있(?:나요|어요?))[？。]?",
    ),
    (
        "chatter",
        r"(?:tell\s+(?:me|us)|know)\s+(?:a\s+|another\s+|some\s+)?(?:jokes?|stor(?:y|ies)|fun\s+facts?)[^`\n]{0,60}",
    ),
    (
        "chatter",
        r"(?:what(?:'s|\s+is|\s+will)|how(?:'s|\s+is|\s+will))\s+(?:the\s+)?weather\b[^`\n]{0,60}|(?:is|will)\s+it\s+(?:going\s+to\s+)?(?:rain|snow|be\s+(?:sunny|cold|hot|warm))\w{0,4}\b[^`\n]{0,60}",
    ),
    (
        "chatter",
        r"(?:what(?:'s|\s+is)\s+the\s+(?:time|date)|what\s+(?:time|day)\s+is\s+it)(?:\s+(?:now|today|in\s+\w{1,30}))?",
    ),
    (
        "chatter",
        r"(?:write|compose|sing)\s+(?:me\s+|us\s+)?(?:a|an)\s+(?:poem|song|haiku|story|essay|limerick|love\s+letter)\b[^`\n]{0,120}",
    ),
    (
        "chatter",
        r"(?:what(?:'s|\s+is)\s+(?:the\s+)?(?:meaning\s+of\s+life|capital\s+of\s+[\w ]{1,40}|your\s+(?:favou?rite\s+\w{1,20}|name|age))|how\s+old\s+are\s+you|who\s+(?:won|is\s+the\s+president)\b[^`\n]{0,80})",
    ),
)
_CHATTER = tuple(
    (kind, re.compile(rf"(?:{pattern})[\s?.!,:)(]{{0,8}}", re.IGNORECASE)) for kind, pattern in _SMALL_TALK
)
# A message of these words alone wants the last answer in another form: there is nothing in it to look up.
_FORM_WORDS = frozenset(
    """arabic chinese czech danish dutch english french german greek hindi italian japanese korean norwegian polish
    portuguese russian spanish swedish turkish deutsch englisch französisch français anglais español inglés italiano
    simpler simple simply easier shorter short briefer brief briefly longer plainer plain words sentence sentences
    table list bullets bullet points differently layman laymans rephrase reword translate summarize summarise summary shorten explain
    einfacher kürzer erkläre erklär más simplemente resumen plus court résume""".split()
)
_FILLING_WORDS = frozenset(
    """a an the in as to into it this that again please pls now and me us one two three can could you for with more just
    same other terms answer your auf bitte es das mal noch nochmal in als en por favor s il te vous plaît le la""".split()
)
# With "it" or "that", these ask about what is meant, which can be looked up.
_ASKING_FOR_MORE = frozenset({"explain", "erkläre", "erklär"})
_WORD = re.compile(r"[^\W\d_]{1,40}")
_ANY_WORD = re.compile(r"[^\W_]")
_LONGEST = 300


def clean_question(question: str) -> str:
    """Drop the polite words before a question, and keep the question."""
    text = question.strip()
    opening = _POLITE.match(text)
    rest = text[opening.end() :] if opening else text
    return rest if _ANY_WORD.search(rest) else text


def is_history_request(question: str) -> bool:
    """Whether a person wants to see their earlier questions."""
    return _is_whole_match(_HISTORY, question)


def is_repeat_request(question: str) -> bool:
    """Whether the person wants the last answer once more."""
    return _is_whole_match(_REPEAT, question)


def is_rewording_request(question: str, *, names_form: bool = False) -> bool:
    """Whether a person only wants the last answer in other words, another language or another form.

    If the message must `names_form`, a mere "explain it" does not count.
    """
    if len(question) > _LONGEST:
        return False
    words = _WORD.findall(question.lower())
    forms = _FORM_WORDS - _ASKING_FOR_MORE if names_form else _FORM_WORDS
    return not forms.isdisjoint(words) and _FORM_WORDS.union(_FILLING_WORDS).issuperset(words)


def find_small_talk(question: str) -> SmallTalk | None:
    """Recognise a message that is not about code; None for everything else."""
    if not _ANY_WORD.search(question):
        return "wordless"
    remark = find_remark(question)
    if remark is not None:
        return remark
    return next((kind for kind, pattern in _CHATTER if _is_whole_match(pattern, question)), None)


def _is_whole_match(pattern: re.Pattern[str], question: str) -> bool:
    line = " ".join(question.split())
    return len(line) <= _LONGEST and pattern.fullmatch(line.strip("?.!¿¡ ")) is not None
