"""Masks secrets in text: the rules are data, and few small functions decide what a value is."""

from indexer.secrets.masking import redact_secrets

__all__ = ["redact_secrets"]
