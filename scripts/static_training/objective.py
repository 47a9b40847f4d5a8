"""The training objective: how badly each question finds its own chunk among those of its batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.floating]

CHUNK_SHARE = 0.5  # what finding the question of a chunk counts beside finding the chunk of a question
_MASKED = np.float32(-1e4)


@dataclass(kw_only=True, slots=True)
class Parameters:
    """What is learned: the vectors, and as logarithms the rows' weights and how much a header counts."""

    vectors: Floats
    weights: Floats
    query_weights: Floats
    header: Floats


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Pairs as counts of rows of the table; the pairs of one group show one chunk, and are not told apart."""

    headers: csr_array
    bodies: csr_array
    questions: csr_array
    groups: NDArray[np.int32]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Units:
    """Rows scaled to length 1, and the lengths that they had."""

    rows: Floats
    lengths: Floats

    @classmethod
    def of(cls, rows: Floats) -> _Units:
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None] + np.float32(1e-6)
        return cls(rows=rows / lengths, lengths=lengths)

    def pass_back(self, gradient: Floats) -> Floats:
        """Turn a gradient by the unit rows into one by the rows as they were."""
        along = np.einsum("ij,ij->i", gradient, self.rows)[:, None]
        turned: Floats = (gradient - self.rows * along) / self.lengths
        return turned


def measure_loss(parameters: Parameters, batch: Batch, temperature: float) -> tuple[float, Parameters]:
    """Return the loss of a batch and its gradient, which has the form of the parameters.

    Source: van den Oord, Li and Vinyals, "Representation Learning with Contrastive Predictive Coding", 2018 (InfoNCE),
    here in both directions.
    """
    chunk_table = parameters.vectors * np.exp(parameters.weights)[:, None]
    query_table = chunk_table * np.exp(parameters.query_weights)[:, None]
    headers, bodies = _Units.of(batch.headers @ chunk_table), _Units.of(batch.bodies @ chunk_table)
    header_weight = np.exp(parameters.header)
    chunks = _Units.of(header_weight * headers.rows + bodies.rows)
    questions = _Units.of(batch.questions @ query_table)
    loss, by_likeness = _compare(questions.rows, chunks.rows, batch.groups, temperature)
    by_mixed = chunks.pass_back(by_likeness.T @ questions.rows)
    by_headers = headers.pass_back(header_weight * by_mixed)
    by_chunk_table = batch.headers.T @ by_headers + batch.bodies.T @ bodies.pass_back(by_mixed)
    by_query_table = batch.questions.T @ questions.pass_back(by_likeness @ chunks.rows)
    by_query_weights = np.einsum("ij,ij->i", by_query_table, query_table)
    by_query_table *= np.exp(parameters.query_weights)[:, None]
    by_chunk_table += by_query_table
    gradient = Parameters(
        vectors=by_chunk_table * np.exp(parameters.weights)[:, None],
        weights=np.einsum("ij,ij->i", by_chunk_table, chunk_table),
        query_weights=by_query_weights,
        header=header_weight * np.einsum("ij,ij->", by_mixed, headers.rows),
    )
    return loss, gradient


def _compare(questions: Floats, chunks: Floats, groups: NDArray[np.int32], temperature: float) -> tuple[float, Floats]:
    """Return the cross entropy of choosing each other's partner, and its gradient by the likenesses."""
    likeness = questions @ chunks.T / np.float32(temperature)
    other_views = groups[:, None] == groups[None, :]
    np.fill_diagonal(other_views, val=False)
    likeness[other_views] = _MASKED
    loss = 0.0
    gradient: Floats = np.zeros_like(likeness)
    for axis, share in ((1, 1.0), (0, CHUNK_SHARE)):
        chances = np.exp(likeness - likeness.max(axis=axis, keepdims=True))
        chances /= chances.sum(axis=axis, keepdims=True)
        own = np.diagonal(chances)
        loss += share * float(-np.log(own + 1e-12).mean())
        gradient += np.float32(share) * chances
        np.fill_diagonal(gradient, np.diagonal(gradient) - np.float32(share))
    gradient /= np.float32(len(questions) * temperature)
    return loss, gradient
