"""Masks secrets in text: the token forms of providers, key blocks, passwords in URLs and in assignments.

Everything runs on RE2, so that no text can make it slow: one pass over the text tells which rules to apply at all.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

# A rule with a group masks that part of its match only. Counted repetitions stand behind a literal wherever they can:
# before one, the automaton would have to count at every word of the text.
_PROVIDERS: tuple[tuple[str, str], ...] = (
    ("github", r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{40,}"),
    ("gitlab", r"gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent|oas|imt|ffct)-[\w.-]{20,}"),
    ("bitbucket", r"ATBB[A-Za-z0-9]{28,}"),
    ("atlassian", r"ATATT3[\w=-]{60,}"),
    ("slack", r"xox[abeoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    ("slack-webhook", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    ("discord-webhook", r"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{10,}/[\w-]{40,}"),
    ("discord", r"\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    ("telegram", r"\b[0-9]{8,10}:AA[\w-]{32,}"),
    ("aws", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16,}|\bABSK[A-Za-z0-9+/=]{100,}"),
    (
        "aws-secret",
        r"(?i:aws|amazon|secret_?access)[\w.-]*['\"]?\s{0,4}(?:=>?|:=?|,)\s{0,4}['\"]?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)",
    ),
    ("google", r"AIza[\w-]{35,}|GOCSPX-[\w-]{24,}|ya29\.[\w-]{30,}"),
    ("azure", r"(?:AccountKey|SharedAccessKey|SharedAccessSignature)=([A-Za-z0-9+/]{40,}={0,2})"),
    ("azure", r"[0-9]Q~([\w~.-]{31,})"),
    ("azure", r"[?&;]sig=([A-Za-z0-9%+/]{40,}={0,2})"),
    ("anthropic", r"sk-ant-[\w-]{20,}"),
    ("openai", r"sk-(?:proj|svcacct|admin|or-v1|None)-[\w-]{32,}|\bsk-[A-Za-z0-9]{32,}"),
    ("huggingface", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("replicate", r"\br8_[A-Za-z0-9]{37,}"),
    ("groq", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("langsmith", r"lsv2_(?:pt|sk)_[a-f0-9]{32,}(?:_[a-f0-9]{10,})?"),
    ("stripe", r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/=]{24,}"),
    ("square", r"\bsq0[a-z]{3}-[\w-]{22,}|\bEAAA[\w-]{60,}"),
    ("shopify", r"\bshp(?:at|ca|pa|ss|ua)_[A-Fa-f0-9]{32,}"),
    ("twilio", r"\bSK[a-f0-9]{32,}"),
    ("sendgrid", r"\bSG\.[\w-]{16,}\.[\w-]{32,}"),
    ("mailgun", r"\bkey-[a-f0-9]{32,}"),
    ("npm", r"\bnpm_[A-Za-z0-9]{36,}"),
    ("pypi", r"pypi-AgEI[\w-]{50,}"),
    ("rubygems", r"rubygems_[a-f0-9]{48,}"),
    ("docker", r"dckr_(?:pat|oat)_[\w-]{24,}"),
    ("digitalocean", r"\bdo[opr]_v1_[a-f0-9]{64,}"),
    ("databricks", r"\bdapi[a-f0-9]{32,}(?:-[0-9])?"),
    ("heroku", r"\bHRKU-[\w-]{36,}"),
    ("linear", r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    ("notion", r"\bntn_[A-Za-z0-9]{40,}"),
    ("figma", r"\bfigd_[\w-]{36,}"),
    ("grafana", r"\bglsa_[A-Za-z0-9]{32,}_[A-Fa-f0-9]{8,}|\bglc_[A-Za-z0-9+/=]{40,}"),
    ("sentry", r"\bsntr(?:ys|yu)_[A-Za-z0-9+/=_-]{40,}"),
    ("newrelic", r"\bNR(?:AK|RA|JS|II)-[A-Za-z0-9]{20,}"),
    ("postman", r"\bPMAK-[a-f0-9]{24,}-[a-f0-9]{30,}"),
    ("supabase", r"\bsb(?:p|_secret)_[\w-]{30,}"),
    ("vault", r"\bhv[sbr]\.[\w-]{24,}"),
    ("terraform", r"\.atlasv1\.([\w-]{60,})"),
    ("age", r"AGE-SECRET-KEY-1[A-Z0-9]{58,}"),
    ("jwt", r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),
)

# Between the lines of a key block there may be quotes, escaped newlines, comment marks and concatenation.
_GAP = r"(?:\\[nrt]|[\s\"'`,;+.()|*#>\\])*"
_KEY_BLOCK = (
    rf"-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----{_GAP}"
    rf"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]*{_GAP})*"
    rf"[A-Za-z0-9+/=]{{40,}}(?:{_GAP}[A-Za-z0-9+/=]{{16,}})*(?:{_GAP}[A-Za-z0-9+/]{{2,}}={{1,2}})?"
    rf"(?:(?:{_GAP}[A-Za-z0-9+/=]+){{0,2}}{_GAP}-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)?"
)
_IN_URL = r"[A-Za-z0-9]://[^\s/@:\"'<>\[\]{}$]*:([^\s/@\"'`<>\[\]{}$]{3,})@[\w\[]"
_BEARER = r"(?i:authorization)['\"]?\s{0,4}[:=,]\s{0,4}['\"]?(?i:bearer|basic|token)\s+([A-Za-z0-9._~+/-]{16,}={0,2})"
_NAME = (
    r"(?i:pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|"
    r"(?:api|access|auth|secret|private|signing|encryption|account|master)[_.-]?key|webhook[_.-]?url)"
)
_QUOTED = (
    rf"(?:\b|_){_NAME}(?:_[A-Za-z0-9]{{1,12}})?['\"]?\]?\s{{0,8}}"
    r"(?::\s{0,4}[A-Za-z\[\].| ]{1,30})?(?:=>?|:=?)\s{0,8}"
    r"(?:[brfuBRFU]{0,2}\"([^\"\s]{8,})\"|[brfuBRFU]{0,2}'([^'\s]{8,})')"
)
# Without quotes only as configuration files have it: the value ends its line and looks drawn by lot.
_BARE = (
    rf"(?m:^[ \t]*(?:-[ \t]+)?(?:export[ \t]+|set[ \t]+)?[A-Za-z0-9_.-]*{_NAME}"
    r"(?:=|:[ \t]+|[ \t]+=[ \t]+)([A-Za-z0-9+/=_!@#%^&*~-]{12,})[ \t]*\r?$)"
)

_PLACEHOLDER = re.compile(
    r"^\[REDACTED|^[<{%$]|\$\{|\{\{|\}\}|%\(|^\*+$|^\.+$"
    r"|change.?me|example|sample|dummy|placeholder|replace|insert|your[_-]|^my[_-]?|x{4,}|0{6,}|1234567|abcdef|redacted"
    r"|passw|secret|token|^test|[_-]test|fake|mock|foobar|localhost",
    re.IGNORECASE,
)
# Python's own engine judges the short values that RE2 found; no two parts of these can match the same characters.
_WORD = r"[A-Za-z]*(?:\d{1,3}[A-Za-z]*)?"
_WORDS = re.compile(rf"[A-Za-z]+\W*|{_WORD}(?:[\s._/:,-]{_WORD})+")
_REFERENCE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|/)[A-Za-z_$][\w$]*)*(?:\(.*)?")
_JUDGED = 256  # bytes of a value that decide whether it is a secret
_DOCUMENTED_PASSWORDS = frozenset("pass passwd password pw pwd secret changeme xxx xxxx example token hunter2".split())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    label: str
    pattern: str
    is_secret: Callable[[str], bool]


def redact(text: str) -> str:
    """Replace every known form of secret by a mark such as `[REDACTED:github]`.

    The number of lines stays, and a text that was masked already stays as it is.
    """
    data = text.encode("utf-8", "surrogatepass")
    masked = _masked(data)
    if masked == data:
        return text
    # Taking a secret out can make its neighbour recognisable; each round masks something, so this ends.
    while (again := _masked(masked)) != masked:
        masked = again
    return masked.decode("utf-8", "surrogatepass")


def _masked(data: bytes) -> bytes:
    rules, prefilter = _compiled()
    for index in sorted(prefilter.Match(data) or ()):
        label, regex, is_secret = rules[index]
        data = _apply(label, regex, is_secret, data)
    return data


def _apply(label: str, regex: Any, is_secret: Callable[[str], bool], data: bytes) -> bytes:
    pieces: list[bytes] = []
    end = 0
    for match in regex.finditer(data):
        start, stop = _span(match)
        secret = data[start:stop]
        if is_secret(secret[:_JUDGED].decode("utf-8", "replace")):
            pieces += [data[end:start], f"[REDACTED:{label}]".encode(), b"\n" * secret.count(b"\n")]
            end = stop
    return b"".join(pieces) + data[end:] if pieces else data


def _span(match: Any) -> tuple[int, int]:
    """The part of a match to mask: the group that took part, or everything."""
    spans: list[tuple[int, int]] = [match.span(group) for group in range(match.re.groups + 1)]
    return next((span for span in spans[1:] if span != (-1, -1)), spans[0])


@lru_cache(maxsize=1)
def _compiled() -> tuple[list[tuple[str, Any, Callable[[str], bool]]], Any]:
    """The rules, and the set that tells in one pass which of them match anywhere."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20  # room for the automaton of all rules; below it RE2 falls back to a slower way
    prefilter = re2.Set.SearchSet(options)
    rules = []
    for rule in _rules():
        pattern = rule.pattern.encode()
        prefilter.Add(pattern)
        rules.append((rule.label, re2.compile(pattern, options), rule.is_secret))
    prefilter.Compile()
    return rules, prefilter


def _rules() -> list[_Rule]:
    """All rules, the surest first: what a later one would also take has its right name by then."""
    return [
        _Rule(label="private-key", pattern=_KEY_BLOCK, is_secret=_always),
        *(_Rule(label=label, pattern=pattern, is_secret=_varied) for label, pattern in _PROVIDERS),
        _Rule(label="url-password", pattern=_IN_URL, is_secret=_is_url_password),
        _Rule(label="authorization", pattern=_BEARER, is_secret=_is_random),
        _Rule(label="secret", pattern=_QUOTED, is_secret=_is_password),
        _Rule(label="secret", pattern=_BARE, is_secret=_is_random),
    ]


def _always(_: str) -> bool:
    return True


def _varied(value: str) -> bool:
    """Tell a token from its drawing in documentation (`ghp_xxxxxxxx`)."""
    return len(set(value[-16:])) > 4


def _is_url_password(value: str) -> bool:
    return value.lower() not in _DOCUMENTED_PASSWORDS and not value.startswith(("%", "*", "$", ":", "(", "\\"))


def _is_password(value: str) -> bool:
    """Tell a quoted password from the other strings that are assigned to such names.

    Words, names and placeholders are none; a password mixes kinds of characters.
    """
    if _is_placeholder(value) or _WORDS.fullmatch(value):
        return False
    kinds = [any(map(str.islower, value)), any(map(str.isupper, value)), any(map(str.isdigit, value))]
    has_symbol = any(char in "!@#$%^&*+=?~" for char in value)
    return (sum(kinds) + has_symbol >= 2) and _bits(value) >= 2.7 and not _looks_like_address(value)


def _is_random(value: str) -> bool:
    """Tell a key drawn by lot from an expression: many digits among the letters, and nothing repeats much."""
    if _is_placeholder(value) or _WORDS.fullmatch(value):
        return False
    digits = sum(map(str.isdigit, value))
    letters = sum(map(str.isalpha, value))
    if _REFERENCE.fullmatch(value) and digits < max(4, len(value) // 8):
        return False
    return digits >= 2 and letters >= 3 and _bits(value) >= 3.0


def _is_placeholder(value: str) -> bool:
    """Long random keys hold such words by chance, so that these count in short values only."""
    return bool(_PLACEHOLDER.search(value if len(value) < 32 else value[:8]))


def _looks_like_address(value: str) -> bool:
    return "://" in value or value.startswith(("/", "./", "../", "~/", "#", ".", "@")) or "(" in value


def _bits(value: str) -> float:
    """Shannon entropy in bits a character."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
