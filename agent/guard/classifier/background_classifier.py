"""Asks a classifier about questions in the background; it can only make citebot watch a question."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol, Self

from agent.errors import ClassifierUnusable
from agent.guard.injection.verdict import InjectionVerdict
from agent.ports import Classified, Deps

AT_ONCE = 2
FAILURES = 5  # in a row; then it is not asked for a while
REST_SECONDS = 60.0

log = logging.getLogger(__name__)

RULE = "classifier"


class InjectionModel(Protocol):
    """A loaded model; its calls block."""

    def score(self, text: str, until: float) -> float:
        """Return how likely a text is an attack, from 0 to 1; `TimeoutError` past `until` (`time.monotonic`)."""


class BackgroundClassifier:
    """A `Classifier` whose model is loaded and run in separate threads.

    Until the model is loaded, and whenever it fails, the rules decide alone. After repeated
    failures it pauses for a minute, then tries once.
    """

    def __init__(
        self, threads: ThreadPoolExecutor, *, threshold: float, deadline: float, clock: Callable[[], float]
    ) -> None:
        self._threads = threads
        self._threshold = threshold
        self._deadline = deadline
        self._clock = clock
        self._model: InjectionModel | None = None
        self._running = 0
        self._failures = 0
        self._rests_until = 0.0
        self._is_settled = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        load: Callable[[], InjectionModel],
        *,
        threshold: float,
        deadline: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> AsyncIterator[Self]:
        """Start loading a model, without waiting for it."""
        threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="classifier")
        classifier = cls(threads, threshold=threshold, deadline=deadline, clock=clock)
        loading = asyncio.create_task(classifier._load(load))
        try:
            yield classifier
        finally:
            loading.cancel()
            threads.shutdown(wait=False, cancel_futures=True)
            await asyncio.wait({loading})

    async def classify(self, text: str) -> Classified:
        """Return the model's judgement of a text, or why it cannot be asked now."""
        if self._model is None:
            return "unusable" if self._is_settled.is_set() else "loading"
        if self._clock() < self._rests_until:
            return "resting"
        if self._running >= AT_ONCE:
            return "busy"
        try:
            score = await self._score(self._model, text)
        except TimeoutError:
            return self._count_failure("slow", f"took longer than {self._deadline * 1000:.0f} ms")
        except Exception as error:
            log.debug("the classifier failed", exc_info=True)
            return self._count_failure("failed", f"failed ({type(error).__name__})")
        if self._failures >= FAILURES:
            log.warning("the classifier answers again")
        self._failures = 0
        return "suspect" if score >= self._threshold else "clean"

    async def _load(self, load: Callable[[], InjectionModel]) -> None:
        try:
            self._model = await asyncio.get_running_loop().run_in_executor(self._threads, load)
        except ClassifierUnusable as error:
            log.warning("questions are judged without the classifier: %s", error)
        except Exception:
            log.exception("questions are judged without the classifier, which cannot be loaded")
        finally:
            self._is_settled.set()

    async def _score(self, model: InjectionModel, text: str) -> float:
        """Wait for a thread no longer than the deadline; one that takes longer counts as running until it ends."""
        running = asyncio.get_running_loop().run_in_executor(
            self._threads, model.score, text, time.monotonic() + self._deadline
        )
        self._running += 1
        running.add_done_callback(self._finish)
        done, _ = await asyncio.wait({running}, timeout=self._deadline)
        if not done:
            raise TimeoutError
        return running.result()

    def _finish(self, running: asyncio.Future[float]) -> None:
        self._running -= 1
        if not running.cancelled():
            running.exception()  # an error after the deadline has nobody to go to

    def _count_failure(self, result: Classified, what: str) -> Classified:
        self._failures += 1
        if self._failures >= FAILURES:
            self._rests_until = self._clock() + REST_SECONDS
        if self._failures == FAILURES:
            log.warning(
                "the classifier %s, %d times in a row: questions are judged without it, and it is tried again "
                "every %.0f seconds",
                what,
                FAILURES,
                REST_SECONDS,
            )
        return result


async def consult_classifier(verdict: InjectionVerdict, text: str, deps: Deps) -> InjectionVerdict:
    """Raise a verdict of `allow` to `watch` if the classifier finds an attack; keep any other."""
    if verdict.name != "allow" or deps.classifier is None:
        return verdict
    result = await deps.classifier.classify(text)
    deps.emit("classified", result=result)
    return replace(verdict, name="watch", rules=(*verdict.rules, RULE)) if result == "suspect" else verdict
