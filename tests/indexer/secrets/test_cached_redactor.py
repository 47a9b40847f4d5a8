"""Text that is known to hold no secret is not scanned again, and no secret is remembered."""

from __future__ import annotations

from indexer.secrets.cached_redactor import MAX_CHARACTERS, CachedRedactor


def test_a_text_without_secrets_is_gone_through_once() -> None:
    seen: list[str] = []
    redact = CachedRedactor(lambda text: seen.append(text) or text.replace("hunter2", "[REDACTED]"))  # type: ignore[func-returns-value]

    for _ in range(2):
        assert redact("def pay(): ...") == "def pay(): ..."
        assert redact("password = hunter2") == "password = [REDACTED]"
        assert redact("") == ""

    assert seen.count("def pay(): ...") == 1
    assert seen.count("password = hunter2") == 2


def test_what_is_remembered_is_bounded() -> None:
    seen: list[str] = []
    redact = CachedRedactor(lambda text: seen.append(text) or text)  # type: ignore[func-returns-value]
    for text in ("a" * (MAX_CHARACTERS // 2), "b" * (MAX_CHARACTERS // 2), "c", "b" * (MAX_CHARACTERS // 2)):
        redact(text)

    assert [text[0] for text in seen] == ["a", "b", "c"]
    redact("a" * (MAX_CHARACTERS // 2))
    assert seen[-1][0] == "a"
