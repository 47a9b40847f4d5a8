"""Fit the model that tells what a question wants, from the example lines of agent/questions/intents/examples.

    python -m scripts.train_intents [--held-out FILE]

Takes less than a minute, and needs scipy (it is in the extra `dev`). The same machine gives the same file. Lines of the
held-out file (intent, language, sentence, with tabs between) are never trained on: they set how sure a confidence is,
and how many of them are right is printed.
"""

from __future__ import annotations

import argparse
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agent.questions.intents.model import INTENTS, SURE, IntentModel, load_model
from scripts.intent_training.fitting import Weights, average_weights, find_temperature, fit_weights, write_model
from scripts.intent_training.lines import (
    EXAMPLES,
    ExampleLine,
    compute_digest,
    list_common_words,
    read_lines,
    write_samples,
)

HELD_OUT = Path(__file__).parents[1] / "tests" / "agent" / "questions" / "intents" / "held_out.tsv"
_SEEDS = (1, 2, 3)
_SENTENCES = 450  # of each intent


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, fit, and write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", type=Path, metavar="FILE", default=HELD_OUT)
    parser.add_argument("--to", dest="target", type=Path, metavar="FILE", default=EXAMPLES.parent / "model.npz")
    options = parser.parse_args(arguments)
    lines = read_lines()
    fitted: list[Weights] = []
    for seed in _SEEDS:
        fitted.append(fit_lines(lines, seed, *fitted[:1]))
    write_model(
        options.target,
        average_weights(fitted),
        temperature=measure_temperature(lines),
        common=list_common_words(lines),
        digest=compute_digest(),
    )
    load_model.cache_clear()
    print(f"{len(lines)} lines, {options.target.stat().st_size // 1024} kB")
    print(describe_held_out(load_model(), read_held_out(options.held_out)))


def fit_lines(lines: Sequence[ExampleLine], seed: int, start: Weights | None = None) -> Weights:
    """Fit sentences that are written of some lines."""
    samples = list(write_samples(lines, _SENTENCES, seed))
    return fit_weights([text for _, text in samples], [intent for intent, _ in samples], start)


def measure_temperature(lines: Sequence[ExampleLine]) -> float:
    """Leave every fifth line out, and see how far the scores of its sentences are to be trusted."""
    left_out = [zlib.crc32(line.text.encode()) % 5 == 0 for line in lines]
    weights = fit_lines([line for line, out in zip(lines, left_out, strict=True) if not out], _SEEDS[0])
    samples = list(write_samples([line for line, out in zip(lines, left_out, strict=True) if out], 100, _SEEDS[0]))
    intents = [intent for intent, _ in samples]
    scores = weights.score([text for _, text in samples])
    temperature = find_temperature(scores, intents)
    right = [INTENTS[at] == intent for at, intent in zip(scores.argmax(axis=1), intents, strict=True)]
    odds = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
    sure = odds.max(axis=1) / odds.sum(axis=1) >= SURE
    wrong = sum(is_sure and not is_right for is_sure, is_right in zip(sure, right, strict=True))
    print(
        f"lines left out: {np.mean(right):.1%} right, {np.mean(sure):.1%} sure, {wrong / len(right):.1%} surely wrong"
    )
    return temperature


def read_held_out(file: Path) -> list[tuple[str, str, str]]:
    """Read sentences with their intent and their language."""
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line]
    return [(intent, language, sentence) for intent, language, sentence in rows]


def describe_held_out(model: IntentModel, held: Sequence[tuple[str, str, str]]) -> str:
    """Return which share of the sentences is right, and which is right or wrong where the model is sure."""
    groups: dict[str, list[bool]] = defaultdict(list)
    sure = wrong = 0
    for intent, language, sentence in held:
        best = model.rank(sentence)[0]
        for group in ("all", language, intent):
            groups[group].append(best.name == intent)
        sure += best.confidence >= SURE
        wrong += best.confidence >= SURE and best.name != intent
    shares = ", ".join(f"{name} {sum(own) / len(own):.0%} of {len(own)}" for name, own in groups.items())
    return f"right: {shares}; sure {sure / len(held):.1%}, surely wrong {wrong / len(held):.1%}"


if __name__ == "__main__":
    main()
