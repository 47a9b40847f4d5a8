"""Fits a multinomial logistic regression to hashed sentences, and packs it small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from agent.questions.intents.model import BITS, INTENTS, list_features

_STRENGTH = 2.0  # of the sentences against the wish for small weights
_ROUNDS = 60
_FURTHER_ROUNDS = 20  # of a fit that begins where another ended
_KEPT = 0.52  # of the columns that are used: the ones with the largest weights


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """A row of weights for each column, and a bias for each intent."""

    rows: NDArray[np.float64]
    bias: NDArray[np.float64]

    def score(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the scores of masked texts for each intent."""
        scores: NDArray[np.float64] = hash_texts(texts) @ self.rows + self.bias
        return scores


def hash_texts(texts: Sequence[str]) -> csr_matrix:
    """Return a row of features for each masked text."""
    found = [list_features(text) for text in texts]
    ends = np.cumsum([0, *(len(columns) for columns, _ in found)])
    columns = np.concatenate([columns for columns, _ in found]).astype(np.int32)
    values = np.concatenate([values for _, values in found])
    hashed = csr_matrix((values, columns, ends), shape=(len(texts), 1 << BITS))
    hashed.sum_duplicates()
    return hashed


def fit_weights(texts: Sequence[str], intents: Sequence[str], start: Weights | None = None) -> Weights:
    """Find the weights that tell the intents of masked texts, sooner from those of other sentences."""
    hashed = hash_texts(texts)
    used = np.unique(hashed.indices)
    features = hashed[:, used].astype(np.float32)
    turned = features.T.tocsr()
    wanted = np.zeros((len(texts), len(INTENTS)), np.float32)
    wanted[np.arange(len(texts)), [INTENTS.index(intent) for intent in intents]] = 1

    def measure(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.astype(np.float32).reshape(len(used) + 1, len(INTENTS))
        scores = features @ weights[:-1] + weights[-1]
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores)
        totals = odds.sum(axis=1, keepdims=True)
        loss = float(np.sum(np.log(totals)) - np.sum(scores * wanted))
        error = odds / totals - wanted
        slope = np.vstack([turned @ error, error.sum(axis=0)]) * _STRENGTH
        slope[:-1] += weights[:-1]
        return _STRENGTH * loss + 0.5 * float(np.sum(weights[:-1] ** 2)), slope.ravel().astype(np.float64)

    first = np.zeros((len(used) + 1, len(INTENTS))) if start is None else np.vstack([start.rows[used], start.bias])
    rounds = _ROUNDS if start is None else _FURTHER_ROUNDS
    found = minimize(measure, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": rounds})
    weights = found.x.reshape(len(used) + 1, len(INTENTS))
    rows = np.zeros((1 << BITS, len(INTENTS)))
    rows[used] = weights[:-1]
    return Weights(rows=rows, bias=weights[-1])


def average_weights(fitted: Sequence[Weights]) -> Weights:
    """Return the mean of several fits."""
    rows = np.mean([one.rows for one in fitted], axis=0)
    return Weights(rows=rows, bias=np.mean([one.bias for one in fitted], axis=0))


def find_temperature(scores: NDArray[np.float64], intents: Sequence[str]) -> float:
    """Return what scores are to be divided by so that a confidence is as often right as it says."""
    wanted = np.array([INTENTS.index(intent) for intent in intents])

    def measure(temperature: float) -> float:
        cooled = scores / temperature
        cooled = cooled - cooled.max(axis=1, keepdims=True)
        return float(np.mean(np.log(np.exp(cooled).sum(axis=1)) - cooled[np.arange(len(wanted)), wanted]))

    return float(min(np.arange(0.3, 3.01, 0.05), key=measure))


def write_model(path: Path, weights: Weights, *, temperature: float, common: Mapping[str, int], digest: str) -> None:
    """Write the strongest rows as small integers, with a scale each."""
    strength = np.abs(weights.rows).max(axis=1)
    count = int(np.count_nonzero(strength) * _KEPT)
    columns = np.sort(np.argsort(-strength, kind="stable")[:count])
    scales = (strength[columns] / 127).astype(np.float16)
    rows = np.round(weights.rows[columns] / scales.astype(np.float64)[:, None]).clip(-127, 127).astype(np.int8)
    np.savez_compressed(
        path,
        columns=columns.astype(np.uint16),
        rows=rows,
        scales=scales,
        bias=weights.bias.astype(np.float32),
        temperature=np.float32(temperature),
        common=np.array(" ".join(sorted(common))),
        frames=np.array([common[word] for word in sorted(common)], np.uint32),
        digest=np.array(digest),
    )
