"""Verifies that a webhook's sender knows the secret, as GitHub, GitLab, Gitea, Forgejo and Bitbucket prove it.

Everything is compared in constant time, and over the bytes as they came.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

STALE_SECONDS = 300.0  # between a signed time and ours

# Headers that hold the HMAC-SHA256 of the body in hexadecimal; the first that is there decides.
_HEXADECIMAL = (
    ("X-Forgejo-Signature", ""),
    ("X-Gitea-Signature", ""),
    ("X-Hub-Signature-256", "sha256="),  # GitHub
    ("X-Hub-Signature", "sha256="),  # Bitbucket; the `sha1=` that GitHub puts there is not believed
)
_DIGEST = re.compile("[0-9a-f]{64}")
_SIGNED, _SIGNED_ID, _SIGNED_AT = "webhook-signature", "webhook-id", "webhook-timestamp"  # GitLab
_TOKEN = "X-Gitlab-Token"  # noqa: S105 - the name of a header
_ENCODED = "whsec_"  # begins a secret that is a key in base64, and never sent itself


def has_signature(headers: Mapping[str, str], secrets: Sequence[str], *, now: float) -> bool:
    """Tell by the headers alone whether the body may turn out authentic: no other is worth reading."""
    if _SIGNED in headers:
        return _is_of_now(headers, now)
    for header, prefix in _HEXADECIMAL:
        if header in headers:
            given = headers[header]
            return given.startswith(prefix) and _DIGEST.fullmatch(given.removeprefix(prefix)) is not None
    return _has_token(headers, secrets)


def verify_signature(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], *, now: float) -> bool:
    """Return whether one of the secrets vouches for a body; the strongest proof that is given has to hold.

    `headers` ignore case. Without a secret nothing is authentic.
    """
    secrets = [secret for secret in secrets if secret]
    if _SIGNED in headers:
        return _is_signed(headers, body, secrets, now)
    for header, prefix in _HEXADECIMAL:
        if header in headers:
            digests = (hmac.new(_to_bytes(secret), body, hashlib.sha256).hexdigest() for secret in secrets)
            return _is_one_of(headers[header], [prefix + digest for digest in digests])
    return _has_token(headers, secrets)


def _has_token(headers: Mapping[str, str], secrets: Sequence[str]) -> bool:
    sent = [secret for secret in secrets if secret and not secret.startswith(_ENCODED)]
    return _TOKEN in headers and _is_one_of(headers[_TOKEN], sent)


def _is_of_now(headers: Mapping[str, str], now: float) -> bool:
    at = headers.get(_SIGNED_AT, "")
    return at.isascii() and at.isdecimal() and len(at) < 16 and abs(now - int(at)) <= STALE_SECONDS


def _is_signed(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: float) -> bool:
    """The signature covers the delivery's id and time; several may be given while secrets are exchanged."""
    identity, at = headers.get(_SIGNED_ID, ""), headers.get(_SIGNED_AT, "")
    if not identity or not _is_of_now(headers, now):
        return False
    signed = b".".join((_read_header(identity), at.encode(), body))
    digests = (hmac.new(_decode_key(secret), signed, hashlib.sha256).digest() for secret in secrets)
    expected = ["v1," + base64.b64encode(digest).decode() for digest in digests]
    return any([_is_one_of(given, expected) for given in headers[_SIGNED].split()[:8]])  # noqa: C419 - in constant time


def _is_one_of(given: str, expected: Sequence[str]) -> bool:
    """Compare with every one of them, so that the duration reveals nothing."""
    return any([hmac.compare_digest(_read_header(given), _to_bytes(each)) for each in expected])  # noqa: C419


def _decode_key(secret: str) -> bytes:
    if not secret.startswith(_ENCODED):
        return _to_bytes(secret)
    try:
        return base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
    except binascii.Error:
        return _to_bytes(secret)


def _read_header(value: str) -> bytes:
    """Return a header as it was sent: the server decodes its bytes as Latin-1."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return _to_bytes(value)


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
