"""Masks secrets in text: the rules are data, and a few small functions judge values."""

import hashlib
from pathlib import Path

__all__ = ["name_rules", "redact_secrets"]


def name_rules() -> str:
    """Name the masking rules' version; other rules have another name."""
    rules = Path(__file__).with_name("secret_rules.toml").read_bytes()
    return hashlib.blake2b(rules, digest_size=4).hexdigest()


def redact_secrets(text: str) -> str:
    """Mask every secret in a text; the rules are imported at the first call."""
    from indexer.secrets import masking

    return masking.redact_secrets(text)
