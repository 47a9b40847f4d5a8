"""Questions in English are told from those in other languages."""

from __future__ import annotations

import pytest

from agent.questions.languages import is_english


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("how are citations checked?", True),
        ("do we use Kafka?", True),
        ("parse_date", True),
        ("what does `la` do with los?", True),
        ("", True),
        ("wo werden Fehler des Modells behandelt?", False),
        ("où est géré le cache des réponses?", False),
        ("¿dónde se valida el token?", False),
        ("onde os pedidos são pagos?", False),
        ("gdzie jest obsługiwany błąd?", False),
        ("где обрабатываются ошибки?", False),
        ("エラーはどこで処理されますか", False),
        ("parse_date を呼ぶのは誰ですか", False),
    ],
)
def test_the_language_of_a_question_is_told_by_its_words(question: str, expected: bool) -> None:
    assert is_english(question) is expected
