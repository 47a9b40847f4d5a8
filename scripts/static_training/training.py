"""One training run: batches of pairs that are hard to tell apart, and the steps from the starting table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scripts.static_training.bags import KINDS, Bags
from scripts.static_training.objective import Batch, Floats, Parameters, measure_loss
from scripts.static_training.table import HEADER_WEIGHT, StartingTable, Table

Places = NDArray[np.int64]

# Words that long questions are full of, and that say nothing about where the answer is: some questions get a few of
# them, so that the training learns to weigh them less.
QUESTION_WORDS = """affect approach architecture behavior behaviour code codebase component components design determine
ensure explain flow handle handled handles happen happens impact implementation interact interaction located logic
manage mechanism module occurs part performed process processes purpose reason relationship responsible role specific
strategy system used work works""".split()

_WARM_UP = 50  # steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How a run goes. The defaults are what a trial on other packages found best."""

    temperature: float
    seed: int
    steps: int = 600
    blocks: int = 4  # of a batch
    block: int = 512  # pairs of one package, neighbours by folder: what is hard to tell apart
    rate: float = 0.02
    # So large that rare rows move in proportion to what was seen of them, and are not thrown about.
    epsilon: float = 3e-6
    pull: float = 5e-4  # towards the starting table, each step
    word_dropout: float = 0.15
    header_dropout: float = 0.15
    question_dropout: float = 0.1
    generic_share: float = 0.3  # of questions that get generic words
    fewest: float = 25  # uses of a word that gets a row of its own
    # How many of the pairs of each kind take part in a round.
    shares: Mapping[str, float] = field(
        default_factory=lambda: {"doc": 1.0, "long": 1.0, "docs": 1.0, "name": 0.4, "file": 1.0, "test": 0.4}
    )

    def shortened(self, steps: int) -> Settings:
        """The same with so many steps."""
        return replace(self, steps=steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rows:
    """All pairs as counts of rows of the table, and the generic words."""

    headers: csr_array
    bodies: csr_array
    questions: csr_array
    generic: csr_array


def train_table(bags: Bags, base: StartingTable, settings: Settings) -> Table:
    """Train one table on all pairs."""
    used = (bags.bodies > 0).sum(axis=0) + 3 * (bags.questions > 0).sum(axis=0)
    start = base.extend(bags.words, np.asarray(used, np.float64), fewest=settings.fewest)
    spelling = start.spell_words(bags.words)
    rows = _Rows(
        headers=bags.headers @ spelling,
        bodies=bags.bodies @ spelling,
        questions=bags.questions @ spelling,
        generic=start.spell_words(QUESTION_WORDS),
    )
    parameters = Parameters(
        vectors=start.vectors.copy(),
        weights=np.zeros(len(start.tokens), np.float32),
        query_weights=np.zeros(len(start.tokens), np.float32),
        header=np.zeros(1, np.float32),
    )
    print(f"{len(bags)} pairs, {len(bags.words)} words, {len(start.tokens)} rows", flush=True)
    _descend(parameters, start.vectors, bags, rows, settings)
    return Table(
        name=f"code-{start.vectors.shape[1]}",
        tokens=start.tokens,
        vectors=parameters.vectors * np.exp(parameters.weights)[:, None],
        query_weights=np.exp(parameters.query_weights),
        header_weight=HEADER_WEIGHT,
    )


def _descend(parameters: Parameters, start: Floats, bags: Bags, rows: _Rows, settings: Settings) -> None:
    """Take the steps of Adam, with a pull towards the starting table in place of a decay towards zero."""
    rng = np.random.default_rng(settings.seed)
    optimizer = _Adam(parameters, settings.epsilon)
    batches = _draw_batches(bags, settings, rng)
    mean = 0.0
    for step in range(settings.steps):
        loss, gradient = measure_loss(
            parameters, _make_batch(next(batches), bags, rows, settings, rng), settings.temperature
        )
        optimizer.step(parameters, gradient, _find_rate(step, settings))
        parameters.vectors += np.float32(settings.pull) * (start - parameters.vectors)
        mean += (loss - mean) * max(0.02, 1 / (step + 1))
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} loss {mean:.3f} header {float(np.exp(parameters.header[0])):.2f}", flush=True)


def _find_rate(step: int, settings: Settings) -> float:
    return settings.rate * min(1.0, (step + 1) / _WARM_UP) * (0.5 + 0.5 * math.cos(math.pi * step / settings.steps))


class _Adam:
    """Adam (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2015)."""

    _DECAYS = (0.9, 0.98)

    def __init__(self, parameters: Parameters, epsilon: float) -> None:
        self._names = [each.name for each in fields(parameters)]
        self._epsilon = np.float32(epsilon)
        self._means = {name: np.zeros_like(getattr(parameters, name)) for name in self._names}
        self._squares = {name: np.zeros_like(getattr(parameters, name)) for name in self._names}
        self._steps = 0

    def step(self, parameters: Parameters, gradient: Parameters, rate: float) -> None:
        """Change the parameters in place."""
        self._steps += 1
        first, second = self._DECAYS
        for name in self._names:
            slope, mean, square = getattr(gradient, name), self._means[name], self._squares[name]
            mean *= np.float32(first)
            mean += np.float32(1 - first) * slope
            square *= np.float32(second)
            slope *= slope
            slope *= np.float32(1 - second)
            square += slope
            np.multiply(square, np.float32(1 / (1 - second**self._steps)), out=slope)
            np.sqrt(slope, out=slope)
            slope += self._epsilon
            np.divide(mean, slope, out=slope)
            slope *= np.float32(rate / (1 - first**self._steps))
            value = getattr(parameters, name)
            value -= slope


def _draw_batches(bags: Bags, settings: Settings, rng: np.random.Generator) -> Iterator[Places]:
    """Yield the places of a batch's pairs, round after round, without end."""
    shares = np.array([settings.shares[kind] for kind in KINDS])[bags.kinds]
    while True:
        kept = np.flatnonzero(rng.random(len(bags)) < shares)
        blocks = _cut_blocks(bags, kept, settings.block, rng)
        order = rng.permutation(len(blocks))
        size = min(settings.blocks, len(blocks))
        for first in range(0, len(blocks) - size + 1, size):
            yield np.concatenate([blocks[place] for place in order[first : first + size]])


def _cut_blocks(bags: Bags, kept: Places, size: int, rng: np.random.Generator) -> list[Places]:
    """Cut the pairs of each source into blocks, folders next to each other in an order that changes; none is tiny."""
    noise = rng.random(int(bags.folders.max()) + 1)
    blocks: list[Places] = []
    for source in np.unique(bags.sources[kept]):
        own = kept[bags.sources[kept] == source]
        own = own[np.argsort(noise[bags.folders[own]] + 0.25 * rng.random(len(own)))]
        blocks += [own[first : first + size] for first in range(0, len(own), size)]
    enough = [block for block in blocks if len(block) >= size // 3]
    return enough or blocks


def _make_batch(places: Places, bags: Bags, rows: _Rows, settings: Settings, rng: np.random.Generator) -> Batch:
    """Take the rows of the pairs, and leave words out of them at random."""
    headers, bodies, questions = rows.headers[places], rows.bodies[places], rows.questions[places]
    shown = (rng.random(len(places)) >= settings.header_dropout).astype(np.float32)
    headers.data *= np.repeat(shown, np.diff(headers.indptr))
    questions = questions + _draw_generic_words(len(places), rows.generic, settings, rng)
    for matrix, share in (
        (headers, settings.word_dropout),
        (bodies, settings.word_dropout),
        (questions, settings.question_dropout),
    ):
        matrix.data *= rng.random(len(matrix.data), dtype=np.float32) >= share
    return Batch(headers=headers, bodies=bodies, questions=questions, groups=bags.groups[places])


def _draw_generic_words(count: int, generic: csr_array, settings: Settings, rng: np.random.Generator) -> csr_array:
    """Return one to four generic words for some of so many questions."""
    lengths = np.where(rng.random(count) < settings.generic_share, rng.integers(1, 5, count), 0)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    chosen = rng.integers(0, generic.shape[0], int(starts[-1]))
    shape = (count, generic.shape[0])
    words: csr_array = csr_array((np.ones(len(chosen), np.float32), chosen, starts), shape=shape) @ generic
    return words
