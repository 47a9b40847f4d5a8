"""Decides whether a value after a name such as `password` is a secret, a word or a reference."""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import pairwise

import re2

# What a pair of letters costs in half bits, counted over names, words and paths in public code (C, JavaScript, Perl,
# Python and their documentation). A row is the first letter, a column the second; the last ones stand for any digit.
_PAIRS = """
    fa88gf9ibie687i9i675cdfccic
    6dbd7eeg79h6ef8di99d7higai9
    7ece7eh7ai88cf5di9b7bfihdic
    8cd94dcf6ihbdf9diaabbffheib
    9e88cbciefi8a7ecd677gce9die
    8ecd98gi5ii8dd6di9aa9ihidi9
    afbf4eca7ii8c99ci88bagiihie
    5gfe5ehi8igdcf7diab68hfidic
    bb89ab9iiig9947aib76ibidibf
    7hbe5ffhaibfff7cfh3f8geiiif
    acbc4dce6iicdbdcid9dadcfgib
    7eea58fi6ih7gg7dig9a9bihcie
    5adb5fhi7iga9f77ifadbfiieie
    8g877a7h9iddfc7cif76abiggie
    cb87gccichd975a8i6aa9cbfiii
    6fcc5efb9id8eg79i7889fii9id
    dedceefgeif8ddgcfabd2gehihe
    6fab4dai7idcac7di988cdgibif
    agaf5efa8icbdeaafe85affibid
    7gbe5ei86igcdg8ai7a9bhgg9ie
    b8bb7bciaii786f8i776ifieiid
    5gcf4dfi7ibb7gbciebdibhdii7
    6fcd7ffa5igdc87dh79dghaiiie
    9e9d8afhaibe9fe8ieb5gficdi5
    bdbcbedgciia98c4id78efdhige
    8ggf2ffe9iibcf9difbeehhfcd9
    dddc9diiiiigiiiiiihigiiaii1
"""
_HIGHER = 4.5  # bits that a capital behind a small letter costs beside its pair: `dbPassword` has few, `dBpAsS` many
_LOWER = 2.0  # a small letter behind a capital
_CAPITAL = 0.5  # a capital behind a capital
_SWITCH = 3.0  # a digit beside a letter
_RUN = re.compile(r"[A-Za-z0-9]{2,}")


def measure_surprise(value: str) -> tuple[float, int]:
    """Return the mean bits of adjacent letters and digits in a value, and the number of such pairs.

    Names and words take about four bits a pair, and one in a hundred takes more than 5.5; random values take seven or
    eight.
    """
    costs = _read_costs()
    total, pairs = 0.0, 0
    for run in _RUN.findall(value):
        total += sum(costs[pair] for pair in pairwise(run))
        pairs += len(run) - 1
    return (total / pairs if pairs else 0.0), pairs


@lru_cache(maxsize=1)
def _read_costs() -> dict[tuple[str, str], float]:
    rows = [[int(cost, 36) / 2 for cost in row] for row in _PAIRS.split()]
    place = {char: string.ascii_lowercase.find(char.lower()) for char in string.ascii_letters + string.digits}
    return {(one, two): rows[place[one]][place[two]] + _measure_change(one, two) for one in place for two in place}


def _measure_change(one: str, two: str) -> float:
    """Return the cost of a pair that changes the kind of character."""
    if one.isdigit() or two.isdigit():
        return _SWITCH if one.isalpha() or two.isalpha() else 0.0
    if two.isupper():
        return _CAPITAL if one.isupper() else _HIGHER
    return _LOWER if one.isupper() else 0.0


SHORTEST_RANDOM = 12  # characters; of fewer, nobody can tell whether they are random
_USUAL_BITS = 5.5  # what a pair of characters costs in one name of a hundred
_MIN_PAIRS = 5
_LONG = 32  # characters; a random value of so many may hold a word such as "xxxx" by chance

# What a value is goes by patterns of RE2 as well: the values come from outside.
_PLACEHOLDER = re2.compile(
    r"(?i)\[REDACTED|change.?me|example|sample|dummy|placeholder|replace|insert|your[_-]|^my[_-]|x{4,}|0{6,}|1234567"
    r"|abcdef|deadbeef|redacted|passw|secret|token|^test|[_-]test|fake|mock|foobar|localhost"
)
_VARIABLE = (
    r"[*&]{1,3}[A-Za-z_][\w.]*|(?i:pbkdf2with\w+)|(?:\\u[0-9A-Fa-f]{4}.*)|"
    r"\$[\w-]+\$?|%\w+%\W*|\{\w*\}|<[^<>]*>|@\w+@|__\w+__|\*+|\.+|[a-z]+\.[A-Z][A-Za-z]+"
)
_TEMPLATE = r"[$#]\{[A-Za-z_][\w.:-]*\}|\$\([A-Za-z_][^()]*\)|\{\{[^{}]*\}\}|<%[^<>%]*%>|%\(\w+\)"
_EXPRESSION = (
    r"[*&]?[A-Za-z_$][\w$.:]*(?:->\w+|\[[^\[\]]{1,20}\]|\([^()]*\))(?:->|[\w$.:]|\[[^\[\]]{1,20}\]|\([^()]*\))*;?"
)
_PATTERN = r"\[\^?(?:[aA]-[zZfF]|0-9)|\\[dDwWsS][+*{)\]]|\(\?[:=!<P]"
_ADDRESS = r"[A-Za-z][A-Za-z0-9+.-]{1,20}://|mailto:|~/[\w.-]{2,40}(?:/|$)|sha(?:1|256|384|512)[-:]"
_REFERENCE = re2.compile(rf"^(?:{_ADDRESS})|^(?:{_VARIABLE}|{_EXPRESSION})$|{_TEMPLATE}|{_PATTERN}")
_HEX = re2.compile(r"[0-9a-f]+(?:-[0-9a-f]+)*|[0-9A-F]+(?:-[0-9A-F]+)*")

# Texts in a password's place that are none.
_STAND_IN = (
    r"(?i:\[REDACTED|change.?me|example|sample|dummy|placeholder|replace|insert|your[_-]|x{4,}|\*{3}|\.{3}|redacted|fake|"
    r"mock|foobar|localhost|undefined|unknown)"
)
_TRANSLATED = (
    "passw|passphr|passord|kennwort|wachtwoord|contrasena|senha|heslo|parola|salasana|lozinka|haslo|adgangskode|geslo|"
    "jelszo|sifre|losenord|geheimnis"
)
# Words that only name the kind or purpose of a value.
_NOUNS = (
    rf"(?i:passwords?|passphrase|passwd|passwort|{_TRANSLATED}|motdepasse|mot|kata|mat|pass|pwd|secrets?|tokens?|credentials?|username|user|name|admin|"
    r"root|access|refresh|client|server|service|database|api|auth|private|public|super|your|test|required|optional|string|"
    r"hidden|null|none|nil|true|false|value|default|current|confirm|forgot|reset|change|update|enter|invalid|missing|"
    r"empty|wrong|strong|weak|encrypted|hashed|hash|plain|text|basic|bearer|digest|login|input|field|email|keys?|here|"
    r"include|same-origin|omit|postgres|mysql|mongo|redis|rabbitmq|guest|my|the|[^A-Za-z0-9])*"
)
_POINTER = (
    r"[#.@:-]+[A-Za-z_][\w.:-]*|[*&]{1,3}[\w.]+|[!%][A-Za-z_.]+|[A-Z]\w+#[a-z_]+[!?]?|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|"
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
)
_MEASURE = (
    r"[A-Z]{2,6}-\d+|v?[\d.,:_/+xX-]+(?:[A-Za-z]{0,2}|sec|min|days?|hours?|minutes?|seconds?|weeks?|months?|years?|alpha|beta|rc)\.?|0x[0-9a-fA-F]+|(?:\d+(?:ns|us|ms|[smhdwy]|[kmg]i?b?))+|"
    r"P(?:T?\d+[A-Z])+"
)
_CODE = (
    r"[({\[]|->|=>|[=!]=|::|&&|\|\||\w\|\w|\?\.|%[sdvrqxi]\b|^[a-z_]\w*=.|^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+[!?]?$|"
    r"^[A-Za-z_][\w.-]*/|^(?:\.{0,2}|~)/[\w.:-]+(?:/|\.\w)|^\$\w+/|^--?\w|:[!+-][A-Z]|\\u[0-9A-Fa-f]{4}|^[<>=^~]"
)
_NO_PASSWORD = re2.compile(rf"{_STAND_IN}|^(?:{_NOUNS}[A-Za-z0-9]?{_NOUNS}|{_POINTER}|{_MEASURE})$|{_CODE}")
# Words that are no values where only a literal can follow.
_TYPES = (
    r"(?i:str|basestring|unicode|n?(?:var)?char|u?int(?:eger)?(?:8|16|32|64)?|bool(?:ean)?|bytes?|float|double|number|any|"
    r"object|dict|list|array|tuple|map|buffer|u8|void|optional|unknown|never|undefined|yes|off|on|no|prompt|ask)[!?]?|"
    r"foo|bar|baz|abc|xyz|(?i:utf_?-?\d+|latin-?1|base64|ascii|hex|ucs2)|\\.*"
)
_FILE = r"\.(?:txt|pem|key|json|ya?ml|crt|cfg|conf|ini|jks|p12|pfx|env|py|js|ts|html?|php|sh|md)"
_NO_VALUE = re2.compile(
    rf"{_STAND_IN}|^(?:{_NOUNS}[A-Za-z0-9]?{_NOUNS}|{_TYPES}|[A-Z]{{4,}}|[A-Za-z_-]*(?i:{_TRANSLATED})[A-Za-z_-]*|{_POINTER}|{_MEASURE})$|{_FILE}$|\S/\S+/|"
    r"^(?:\.{0,2}|~)/|[({\[]|->|=>|[=!]=|::|&&|\|\||\w\|\w|\?\.|%[sdvrqxi]\b|^\$\w+/|:[!+-][A-Z]|\\u[0-9A-Fa-f]{4}|^[<>=^~]"
)
_DEFAULTS = frozenset("admin root postgres mysql mongo redis rabbitmq guest".split())
_JOINED = re2.compile(r"[./]")
_PLACE = re2.compile(
    r"(?i)(?:^|[./_-])(?:self|this|env|vars?|settings?|args?|opts?|options|props|state|req(?:uest)?|body|data|process|vault|"
    r"values?|local|module|com|org|net|io|www|account|db|database|common|errors?|labels?|messages?|fields?|page|view)(?:[./_-]|$)"
)
_MEASURE_ONLY = re2.compile(r"v?[\d.]*")
_ALGORITHM = re2.compile(
    r"(?i)(?:^|[^a-z])(?:sha|md|aes|rs|es|hs|ps|rsa|ed|utf|base|x|p|int|uint|float|hmac|pbkdf|argon|bcrypt|oauth|http|ipv|"
    r"gpt|cl|o|v|s|iso|latin|cp|windows)[_-]?\d+[a-z]{0,2}(?:$|[^a-z0-9])|token\d"
)
_WORDS_AND_NUMBER = re2.compile(r"(?:[A-Za-z]{3,}[_.-]?)+\d{2,}|(?:[A-Z][a-z]+){2,}\d+|[a-z]{3,}(?:-[a-z]{3,})+-\d+")
_WORD_WITH_SIGN = re2.compile(r"[A-Z]?[a-z]+[!?*.:]+|[A-Za-z]+(?:[_.-][A-Za-z]+)+")
_KEY_WORD = re2.compile(r"(?i)passw|passph|pwd|secret|token|credential|login|encod|user|keys?$")
_SIGN_WITHIN = re2.compile(r"\w[!@#$%^&*?+=~]+\w")
# What only people write: digits in a word or before it, words that are joined by dashes, a number behind a long word.
_CHOSEN = re2.compile(
    r"[A-Za-z_]*[A-Za-z]\d+[A-Za-z]\w*|\d+[A-Za-z]{4,}\w*|[a-z]{3,}(?:-[a-z]{3,}){2,}|[a-z]{8,}\d+|[a-z]{5,}!+|"
    r"[A-Z][a-z]{2,}_[A-Z]\w*\d+"
)
_PROGRAM = (
    r"(?i)pass|pwd|secret|token|cred|(?:^|[^n])key|login|encod|user|hash|salt|auth|input|field|string|array|type|value|config|"
    r"param|model|schema|text|form|admin"
)
_TECHNICAL_WORD = re2.compile(_PROGRAM)
_TECHNICAL = re2.compile(
    rf"{_PROGRAM}|(?:^|[^a-z])(?:u?int|i|u|f|s|float|bool|oauth|k|e|l|p|db|es|ec|v|h|x|sha|md|utf|base|b|"
    r"http|ipv|aes|rsa|rc|ed|argon|web|py|ssh|ldap|log)\d"
)
# Words of which labels and messages are made, rather than passwords of several words.
_LABEL = re2.compile(
    r"(?i)type|show|forgot(?:ten)?|new|old|again|repeat|characters?|at|least|must|is|are|be|not|should|set|in?correct|valid|log|sign|"
    r"length|match|cannot|can|use|used|for|of|de|with|or|and|if|to|by|from|this|that|a|an|as|it|is|only|when|have"
)
_SAID = re2.compile(
    r"(?i)[a-z]+(?:ed|ing|able|ible|ly|[cs]al|less|base64)|hidden|given|taken|shown|known|broken|blank|same|different|unique|secure|"
    r"safe|stronger|weaker|shorter|longer|short|long|never|always|also|then|too|very|just|still|now|th[aeio]\w{1,3}|in|on|"
    r"what|how|why|where|good|bad|ok|okay|fine|sent|kept|read|lost|below|above|here|up|out|absent|present|mandatory|sensitive|"
    r"case|some\w*|any\w*|your|our|their|mine|clear|visible|identical|random|enough|all|part|one|stale|ready|"
    r"correct|found|made|gone|seen|left|built|bcrypt|sha\w*|md5|argon2\w*|scrypt"
)
_WORD = re2.compile(r"[A-Za-z0-9]+[!?]?")
_MAX_PHRASE = 48
_STROKES = str.maketrans("łŁıø", "lLio")  # letters that no accent is taken off
_SIGNS = "!@#$%^&*?+=~"
SHORTEST_LITERAL = 5
SHORTEST_WORD = 6
SHORTEST_VALUE = 3
_WRAPPING = "[]{}()=\\"  # what a language puts around a value, or fills it up with
_DOCUMENTED_PASSWORDS = frozenset(
    "pass passwd password pw pwd secret changeme xxx xxxx example token guest postgres mysql".split()
)


def is_random(value: str) -> bool:
    """Whether a value is random, and not a name, word, number, expression or reference."""
    if len(value) < SHORTEST_RANDOM or not value.isascii() or not value.isprintable():
        return False
    if is_placeholder(value) or is_reference(value) or _is_monotonous(value):
        return False
    return _is_random_hex(value.strip(_WRAPPING).removeprefix("0x")) or _is_noise(value)


def is_literal(value: str, *, words: bool = True, bare: bool = False, chosen: bool = False) -> bool:
    """Whether a value after a name is a chosen password.

    Placeholders, references, types, numbers, booleans and durations are none. A plain word is one
    only with `words`. A `bare` value has no quotes, so only its form tells it from a variable's
    name. Outside code, a password may be `chosen`: recognised by forms that only people write.
    """
    if is_random(value):
        return True
    if len(value) < SHORTEST_LITERAL or not value.isprintable() or is_reference(value) or _NO_PASSWORD.search(value):
        return False
    chosen = bool(chosen and _CHOSEN.fullmatch(value) and not _TECHNICAL.search(value))
    if value.isalpha() or _WORD_WITH_SIGN.fullmatch(value):
        is_word = words and value.isascii() and len(value) >= SHORTEST_WORD and not _KEY_WORD.search(value)
        return chosen or is_word
    has_sign = any(sign in value for sign in _SIGNS) and (_count_kinds(value) >= 2 or _SIGN_WITHIN.search(value))
    if has_sign or _ALGORITHM.search(value):
        return bool(has_sign)
    is_mixed = not bare and _count_kinds(value) >= 2 and words
    return bool(chosen or is_mixed or _WORDS_AND_NUMBER.fullmatch(value))


def is_value(value: str, *, is_given: bool = True) -> bool:
    """Whether a value is a password in a position that only allows a literal.

    Several words are one unless they may be a label or a message; without an assignment, only with
    a digit.
    """
    if " " in value:
        return _is_phrase(value, is_given=is_given)
    if len(value) < SHORTEST_VALUE or not value.isprintable() or is_reference(value):
        return False
    if value.lower() in _DEFAULTS:
        return True
    if _JOINED.search(value) and value.isascii() and (_TECHNICAL.search(value) or _PLACE.search(value)):
        return is_literal(value)
    return is_random(value) or not _NO_VALUE.search(_fold(value))


def _fold(value: str) -> str:
    """Remove accents: "contraseña" is no password, but the word for one."""
    bare = unicodedata.normalize("NFD", value.translate(_STROKES)) if not value.isascii() else value
    return "".join(letter for letter in bare if not unicodedata.combining(letter))


def is_stated(value: str) -> bool:
    """Whether a word after `is` is a password, and not a statement about one: that it is hashed, or wrong."""
    return is_value(value) and not _SAID.fullmatch(value) and not _LABEL.fullmatch(value)


def is_technical(value: str) -> bool:
    """Whether a value contains a technical term, and is no common password."""
    return value not in _DEFAULTS and _TECHNICAL_WORD.search(value) is not None


def is_chosen(value: str) -> bool:
    """Whether a value is a chosen password and more than a word."""
    return is_literal(value, words=False)


def is_url_password(value: str) -> bool:
    """Whether a password in an address is real, and not an example or a variable."""
    if value.lower() in _DOCUMENTED_PASSWORDS or is_reference(value) or value.startswith("[REDACTED"):
        return False
    return len(value) >= SHORTEST_RANDOM or not value.startswith(("%", "*", "$", ":", "(", "\\", "["))


def is_path_password(value: str) -> bool:
    """Whether a text with a slash in an address is a password, and not a port or a version with a path."""
    first = value.partition("/")[0]
    return (
        not _MEASURE_ONLY.fullmatch(first)
        and _count_kinds(value) >= 2
        and any(map(str.isdigit, value))
        and is_url_password(value)
    )


def is_placeholder(value: str) -> bool:
    """Recognise placeholders in documentation; long random values contain such words by chance."""
    ends = (value,) if len(value) < _LONG else (value[:8], value[-10:])
    return any(_PLACEHOLDER.search(end) for end in ends)


def is_reference(value: str) -> bool:
    """Whether a value refers to a secret or describes one: a variable, a template, an address, a digest, a pattern."""
    return _REFERENCE.search(value) is not None


def measure_entropy(value: str) -> float:
    """Return Shannon's entropy in bits a character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _is_phrase(value: str, *, is_given: bool) -> bool:
    words = value.split(" ")
    if not value.isascii() or len(value) > _MAX_PHRASE or not all(_WORD.fullmatch(word) for word in words):
        return False
    is_likely = is_given or any(map(str.isdigit, value))
    said = [word for word in words if not word.isdigit() and word.lower() != "my"]
    return is_likely and not any(_LABEL.fullmatch(word) or _NO_VALUE.search(word) for word in said)


def _is_monotonous(value: str) -> bool:
    """Whether a value repeats few characters, or follows the alphabet."""
    if len(set(value)) < (5 if len(value) < 20 else 7):
        return True
    steps = sum(abs(ord(one) - ord(two)) <= 1 for one, two in pairwise(value))
    return 2 * steps > len(value)


def _is_random_hex(value: str) -> bool:
    return bool(_HEX.fullmatch(value)) and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_noise(value: str) -> bool:
    """Whether letters and digits follow each other as in no language."""
    bits, pairs = measure_surprise(value)
    if pairs >= _MIN_PAIRS:
        return bits > _USUAL_BITS
    return _count_kinds(value) >= 2 and len(set(value)) >= 8


def _count_kinds(value: str) -> int:
    return any(map(str.islower, value)) + any(map(str.isupper, value)) + any(map(str.isdigit, value))
