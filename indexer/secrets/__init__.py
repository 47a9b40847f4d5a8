"""Masks secrets in text: the rules are data, and few small functions decide what a value is."""

__all__ = ["redact_secrets"]


def redact_secrets(text: str) -> str:
    """Mask every secret in a text; what masks them is imported with the first one."""
    from indexer.secrets import masking

    return masking.redact_secrets(text)
