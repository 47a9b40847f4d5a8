from __future__ import annotations

import random
import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexer.secrets import redact_secrets

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
BASE64 = ALNUM + "+/"
UPPER = string.ascii_uppercase + "234567"
DIGITS = string.digits

# Keys are drawn here rather than written down, so that no scanner takes this file for a leak.
# label, then literals and (alphabet, length) pairs
SHAPES: list[tuple[str, tuple[str | tuple[str, int], ...]]] = [
    ("github", ("ghp_", (ALNUM, 36))),
    ("slack-webhook", ("https://hooks.slack.com/services/T", (UPPER, 8), "/B", (UPPER, 8), "/", (ALNUM, 24))),
    ("discord", ("M", (ALNUM, 23), ".", (ALNUM, 6), ".", (ALNUM, 38))),
    ("aws-secret", ("aws_secret_access_key = ", (BASE64, 40))),
    ("azure", ("AccountKey=", (BASE64, 86), "==")),
    ("stripe", ("sk_live_", (ALNUM, 24))),
    ("terraform", ((ALNUM, 14), ".atlasv1.", (ALNUM, 67))),
    ("jwt", ("eyJ", (ALNUM, 33), ".eyJ", (ALNUM, 60), ".", (ALNUM, 43))),
]


def draw(shape: tuple[str | tuple[str, int], ...], seed: int) -> str:
    chosen = random.Random(seed)
    return "".join(part if isinstance(part, str) else "".join(chosen.choices(part[0], k=part[1])) for part in shape)


def drawn_parts(shape: tuple[str | tuple[str, int], ...], key: str) -> str:
    """The longest part of a key that was drawn, which must not survive."""
    lengths = [len(part) if isinstance(part, str) else part[1] for part in shape]
    starts = [sum(lengths[:index]) for index in range(len(lengths))]
    longest = max(
        (index for index, part in enumerate(shape) if not isinstance(part, str)), key=lambda index: lengths[index]
    )
    return key[starts[longest] : starts[longest] + lengths[longest]]


def key_block(kind: str = "RSA ", newline: str = "\n", lines: int = 5, seed: int = 1) -> str:
    body = [draw(((BASE64, 64),), seed + index) for index in range(lines)] + ["Qx+0aa=="]
    return newline.join([f"-----BEGIN {kind}PRIVATE KEY-----", *body, f"-----END {kind}PRIVATE KEY-----"])


def test_provider_keys_are_masked_under_their_name() -> None:
    keys = [draw(shape, seed=7) for _, shape in SHAPES]
    masked = redact_secrets("".join(f'value: "{key}" # after\n' for key in keys))

    assert re.findall(r"\[REDACTED:([\w-]+)\]", masked) == [label for label, _ in SHAPES]
    assert [key for (_, shape), key in zip(SHAPES, keys, strict=True) if drawn_parts(shape, key) in masked] == []


@given(
    shape=st.sampled_from([shape for _, shape in SHAPES]),
    seed=st.integers(0, 10**6),
    before=st.text(max_size=40),
    after=st.text(max_size=40),
)
def test_no_generated_key_survives_in_any_surroundings(
    shape: tuple[str | tuple[str, int], ...], seed: int, before: str, after: str
) -> None:
    key = draw(shape, seed)
    text = f"{before} {key}\n{after}"
    masked = redact_secrets(text)
    assert drawn_parts(shape, key) not in masked
    assert masked.count("\n") == text.count("\n")


_FRAGMENTS = st.one_of(
    st.text(max_size=12),
    st.builds(draw, st.sampled_from([shape for _, shape in SHAPES]), st.integers(0, 50)),
    st.builds(key_block, lines=st.integers(0, 3), seed=st.integers(0, 50)),
    st.sampled_from(
        [
            'password = "',
            "token: ",
            '"',
            "'",
            "\n",
            "\r\n",
            "https://u:",
            "@host",
            "[REDACTED:",
            "]",
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            "Authorization: Bearer ",
            "aZ4!kQ9?xW2#",
        ]
    ),
)


@given(st.lists(_FRAGMENTS, max_size=12).map("".join))
@example("ghp_" + "a1B2" * 10 + "ghp_" + "c3D4" * 10)
@example('x = "\ud800 ghp_' + "a1B2" * 10 + '"')
def test_masking_twice_changes_nothing_and_keeps_the_lines(text: str) -> None:
    masked = redact_secrets(text)
    assert redact_secrets(masked) == masked
    assert masked.count("\n") == text.count("\n")


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_key_blocks_are_masked_with_their_lines_kept(kind: str) -> None:
    text = f"before\n{key_block(kind)}\nafter\n"
    masked = redact_secrets(text)
    assert masked == "before\n[REDACTED:private-key]" + "\n" * 8 + "after\n"


def test_key_blocks_within_string_literals_are_masked() -> None:
    masked = redact_secrets('KEY = "' + key_block("", newline="\\n") + '"\nnext = 1\n')
    assert masked == 'KEY = "[REDACTED:private-key]"\nnext = 1\n'


def test_key_blocks_that_are_concatenated_or_indented_are_masked() -> None:
    for newline in ('\\n" +\n    "', "\r\n", "\n      ", "\n# "):
        masked = redact_secrets("k = " + key_block(newline=newline) + "\nnext = 1\n")
        assert masked.endswith("]" + "\n" * 8 + "next = 1\n")
        assert "PRIVATE KEY" not in masked


def test_key_blocks_with_headers_are_masked() -> None:
    text = key_block().replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n", 1)
    assert redact_secrets(text) == "[REDACTED:private-key]" + "\n" * 10


def test_key_blocks_cut_off_before_their_end_are_masked() -> None:
    cut = key_block().rpartition("\n")[0]
    assert redact_secrets(cut) == "[REDACTED:private-key]" + "\n" * 6


def test_code_that_mentions_key_markers_is_left_alone() -> None:
    code = 'ok = s.startswith("-----BEGIN PRIVATE KEY-----") and s.endswith("-----END PRIVATE KEY-----")\n'
    assert redact_secrets(code) == code


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ('password = "Zu7!kd93pQ"', 'password = "[REDACTED:secret]"'),
        ("DB_PASSWORD='Zu7!kd93pQ'", "DB_PASSWORD='[REDACTED:secret]'"),
        ('"api_key": "9f8a7c6b5d4e3f2a1b0c"', '"api_key": "[REDACTED:secret]"'),
        ("api-key: 9f8a7c6b5d4e3f2a1b0c", "api-key: [REDACTED:secret]"),
        ("export AUTH_TOKEN=k3J9x0Qw7Lm2Zp5V", "export AUTH_TOKEN=[REDACTED:secret]"),
        ('apiKey: "k3J9x0Qw7Lm2Zp5V",', 'apiKey: "[REDACTED:secret]",'),
        ('client_secret => "k3J9x0Qw7Lm2Zp5V"', 'client_secret => "[REDACTED:secret]"'),
        ('let token := "k3J9x0Qw7Lm2Zp5V"', 'let token := "[REDACTED:secret]"'),
        ('const secret: string = "k3J9x0Qw7Lm2Zp5V"', 'const secret: string = "[REDACTED:secret]"'),
        ('config["secret_key"] = "k3J9x0Qw7Lm2Zp5V"', 'config["secret_key"] = "[REDACTED:secret]"'),
        ('SECRET_KEY = b"k3J9x0Qw7Lm2Zp5V"', 'SECRET_KEY = b"[REDACTED:secret]"'),
        ("Authorization: Bearer k3J9x0Qw7Lm2Zp5V", "Authorization: Bearer [REDACTED:authorization]"),
        ("postgres://app:Zu7kd93pQ@db:5432/x", "postgres://app:[REDACTED:url-password]@db:5432/x"),
        ("redis://:Zu7kd93pQ@cache/0", "redis://:[REDACTED:url-password]@cache/0"),
        ("  password: MyD0gSpot", "  password: [REDACTED:secret]"),
        ("password: purple-horse-battery", "password: [REDACTED:secret]"),
        ("bind_password Berlin#1990", "bind_password [REDACTED:secret]"),
        ("WITH PASSWORD 'sw0rdfish';", "WITH PASSWORD '[REDACTED:secret]';"),
        (
            "| who | Password |\n|---|---|\n| bob | `Winter2026!` |",
            "| who | Password |\n|---|---|\n| bob | `[REDACTED:secret]` |",
        ),
        ("name,password\nbob,MyD0gSpot\n\nbob,MyD0gSpot", "name,password\nbob,[REDACTED:secret]\n\nbob,MyD0gSpot"),
    ],
)
def test_assigned_passwords_are_masked(line: str, masked: str) -> None:
    assert redact_secrets(f"{line}\n") == f"{masked}\n"


@pytest.mark.parametrize(
    "line",
    [
        'password = os.environ["X"]',
        "  password: oauth2Client",
        "  password: string",
        "  password: String!",
        "password = user2row",
        "| name | password |\n|---|---|\n| type | string |\n| where | `auth.py` |",
        "def login(name, password,\n          token, otp):",
        "token = get_token()",
        'secret = "changeme"',
        'secret = "your-secret-here"',
        'password = "${DB_PASSWORD}"',
        'password = "{{ vault.password }}"',
        "password: $PASSWORD",
        "password = None",
        'token: str = ""',
        'token = "xxxxxxxxxxxxxxxx"',
        'API_KEY = "<your key 123>"',
        'password_field = "user_password"',
        'token_type = "bearer"',
        'secret: "my-app-settings"',
        'tokenUrl: "https://example.org/oauth2/v1/token"',
        'private_key = "/etc/ssl/key1.pem"',
        "self.token = self.config.token2",
        "token=settings.api_token_v2",
        'TOKEN_PREFIX = "base64url.bearer.phx."',
        "api_key: ApiKeySettings2",
        "https://user:password@example.org",
        "https://$USER:$TOKEN@example.org",
        "http://localhost:8080/@scope/package",
        "git@github.com:owner/name.git",
        "Authorization: Bearer <token>",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "task-abcdefghijklmnopqrstuvwxyzabcdefgh",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "[REDACTED:github]",
    ],
)
def test_ordinary_code_is_left_alone(line: str) -> None:
    assert redact_secrets(f"{line}\n") == f"{line}\n"


def test_several_secrets_of_one_line_are_masked_each() -> None:
    github, aws = draw(("ghp_", (ALNUM, 36)), 1), draw(("AKIA", (UPPER, 16)), 2)
    assert redact_secrets(f"{github}, {aws} ünd {github}") == "[REDACTED:github], [REDACTED:aws] ünd [REDACTED:github]"


def test_text_without_secrets_is_returned_itself() -> None:
    text = "def login(password: str) -> None:\n    check(password)\n"
    assert redact_secrets(text) is text
