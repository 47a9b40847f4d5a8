"""Judges whether a pattern of Python's `re` can take more than linear time.

A backtracking matcher is slow where an automaton can read the same text in many ways and still fail. Two ways round one
loop make it exponential; a loop that leads to another one, both reading the same word, makes it polynomial. A search
starts over at each position, which is a loop of its own before the pattern. Loops from which every text ends in a match
cannot fail and do no harm. (Weber and Seidl 1991; Weideman et al. 2016.)
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from re import _constants as op  # type: ignore[attr-defined, unused-ignore]
from re import _parser as parser  # type: ignore[attr-defined, unused-ignore]
from typing import Any, Literal, TypeVar

import networkx

T = TypeVar("T")
Mode = Literal["search", "match", "fullmatch"]
_SMALL = 32  # repetitions up to here cost a factor, beyond it they count as unbounded
_SAMPLES = (*map(chr, range(128)), *"\x85\xa0éßÄΣжא中あ٣²½\u0301\u061c\u200d\u202e\u2028\ufeff“”‘’«»„–—…·。？、／＠￿😀")
_MAX = 300_000
_CHARACTERS = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)
_START, _END = -1, -2  # what stands before the first and after the last character

Guard = Callable[[int, int], bool]
State = tuple[int, int]  # a position in the pattern, and the kind of character that was read last


class Unjudged(Exception):
    """A pattern has a part that no finite automaton has."""


def find_slowness(pattern: str, flags: int = 0, mode: Mode = "search") -> str:
    """Name the way in which a pattern can become slow, or return nothing."""
    try:
        slowness = _Automaton(pattern, flags, mode, bounded=False).find_slowness()
        if slowness != "quadratic":
            return slowness
        return _Automaton(pattern, flags, mode, bounded=True).find_slowness()
    except Unjudged as error:
        return str(error)


@dataclass(kw_only=True)
class _Node:
    """A place between characters: where one can go without reading, under which conditions, and by reading what."""

    ways: list[tuple[int, Guard | None]] = field(default_factory=list)
    reads: tuple[frozenset[str], int] | None = None


class _Automaton:
    def __init__(self, pattern: str, flags: int, mode: Mode, *, bounded: bool) -> None:
        tree = parser.parse(pattern, flags)
        self._flags = tree.state.flags
        self._bounded = bounded
        self._samples = sorted({*_SAMPLES, *(char for char in pattern if not char.isascii())})
        self._nodes: list[_Node] = []
        self._sets: list[frozenset[str]] = []
        self._guard_sets: list[frozenset[str]] = [self._members(_word), frozenset("\n")]
        self._bodies: list[int] = []  # where the body of a look ahead ends
        self._ahead: set[int] = set()  # what is read by looking ahead
        self._end = self._node()
        first = self._sequence(tree, self._end, self._flags)
        self._kinds = self._partition()
        self._root = self._node(ways=[(first, None)])
        if mode == "search":
            again = self._node()
            self._nodes[again].reads = (frozenset(self._samples), self._root)
            self._nodes[self._root].ways.append((again, None))
        self._whole = mode == "fullmatch"

    # Building

    def _node(self, **given: Any) -> int:
        self._nodes.append(_Node(**given))
        return len(self._nodes) - 1

    def _members(self, holds: Callable[[str], bool]) -> frozenset[str]:
        return frozenset(filter(holds, self._samples))

    def _sequence(self, items: Iterable[Any], after: int, flags: int) -> int:
        """Build items from the last to the first; returns where they begin."""
        for kind, value in reversed(list(items)):
            after = self._item(kind, value, after, flags)
        return after

    def _item(self, kind: Any, value: Any, after: int, flags: int) -> int:
        if kind in _CHARACTERS:
            return self._node(reads=(self._charset(kind, value, flags), after))
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            return self._repeat(value, after, flags)
        if kind in (op.ASSERT, op.ASSERT_NOT):
            direction, items = value
            return self._look(kind is op.ASSERT, direction, items, after, flags)
        return self._node(ways=self._ways(kind, value, after, flags))

    def _ways(self, kind: Any, value: Any, after: int, flags: int) -> list[tuple[int, Guard | None]]:
        if kind is op.SUBPATTERN:
            _, added, removed, items = value
            return [(self._sequence(items, after, (flags | added) & ~removed), None)]
        if kind is op.ATOMIC_GROUP:
            return [(self._sequence(value, after, flags), None)]
        if kind is op.BRANCH:
            return [(self._sequence(items, after, flags), None) for items in value[1]]
        if kind is op.AT:
            return [(after, self._anchor(value, flags))]
        if kind is op.FAILURE:
            return []
        raise Unjudged(f"has a {str(kind).lower()}, which no automaton has")

    def _repeat(self, value: tuple[int, int, Any], after: int, flags: int) -> int:
        """A long repetition is a loop; a short one stands twice, which shows whether it overlaps with itself."""
        least, most, items = value
        if most == 1:
            start = self._sequence(items, after, flags)
        elif self._bounded and least == most:
            start = self._sequence([*items, *items], after, flags)
        elif self._bounded and most <= _SMALL:
            second = self._node(ways=[(self._sequence(items, after, flags), None), (after, None)])
            start = self._sequence(items, second, flags)
        else:
            loop = self._node()
            start = self._sequence(items, loop, flags)
            self._nodes[loop].ways += [(start, None), (after, None)]
        return start if least else self._node(ways=[(start, None), (after, None)])

    def _look(self, wanted: bool, direction: int, items: Any, after: int, flags: int) -> int:
        """A look at one character is a condition, one ahead at more is read besides, one behind has a fixed length."""
        single = items[0] if len(items) == 1 and items[0][0] in _CHARACTERS else None
        if single:
            members = self._charset(single[0], single[1], flags)
            self._guard_sets.append(members)
            place = len(self._guard_sets) - 1
            if direction < 0:
                return self._node(ways=[(after, lambda before, _: (before in self._guarded(place)) is wanted)])
            return self._node(ways=[(after, lambda _, ahead: (ahead in self._guarded(place)) is wanted)])
        if wanted and direction < 0:
            return self._look(True, -1, items[-1:], after, flags)  # what stood before that is not remembered
        ways: list[tuple[int, Guard | None]] = [(after, None)]
        if direction > 0:
            self._bodies.append(self._node())
            ways.append((self._sequence(items, self._bodies[-1], flags), None))
            self._ahead.update(range(self._bodies[-1], len(self._nodes)))
        return self._node(ways=ways)

    def _anchor(self, where: Any, flags: int) -> Guard:
        multiline = bool(flags & re.MULTILINE)
        if where is op.AT_BEGINNING_STRING or (where is op.AT_BEGINNING and not multiline):
            return lambda before, _: before == _START
        if where is op.AT_BEGINNING:
            return lambda before, _: before == _START or before in self._guarded(1)
        if where is op.AT_END_STRING:
            return lambda _, ahead: ahead == _END
        if where is op.AT_END:
            return lambda _, ahead: ahead == _END or ahead in self._guarded(1)
        apart = where is op.AT_BOUNDARY
        return lambda before, ahead: ((before in self._guarded(0)) != (ahead in self._guarded(0))) is apart

    def _charset(self, kind: Any, value: Any, flags: int) -> frozenset[str]:
        if kind is op.ANY:
            found = self._members(lambda char: bool(flags & re.DOTALL) or char != "\n")
        elif kind is op.IN:
            negated = value[0][0] is op.NEGATE
            found = self._members(lambda char: any(_holds(each, char, flags) for each in value) is not negated)
        else:
            found = self._members(lambda char: _holds((op.LITERAL, value), char, flags) is (kind is op.LITERAL))
        self._sets.append(found)
        return found

    # Reading

    def _partition(self) -> list[frozenset[str]]:
        """Sort the characters into kinds that no part of the pattern tells apart."""
        kinds: dict[tuple[bool, ...], set[str]] = {}
        sets = {*self._sets, *self._guard_sets}
        for char in self._samples:
            kinds.setdefault(tuple(char in each for each in sets), set()).add(char)
        return [frozenset(kind) for kind in kinds.values()]

    def _kinds_in(self, members: frozenset[str]) -> frozenset[int]:
        return frozenset(index for index, kind in enumerate(self._kinds) if kind <= members)

    @cache  # noqa: B019 - lives as long as the judgement
    def _guarded(self, place: int) -> frozenset[int]:
        return self._kinds_in(self._guard_sets[place])

    @cache  # noqa: B019
    def _paths(self, node: int) -> tuple[tuple[int, tuple[Guard, ...]], ...]:
        """Every way to a node that reads, or to an end, without reading on the way."""
        found: list[tuple[int, tuple[Guard, ...]]] = []

        def walk(here: int, passed: frozenset[int], guards: tuple[Guard, ...]) -> None:
            if len(found) > 5000:
                raise Unjudged("has too many ways to be judged")
            if self._nodes[here].reads or here == self._end or here in self._bodies:
                found.append((here, guards))
            for there, guard in self._nodes[here].ways:
                if there not in passed:
                    walk(there, passed | {there}, (*guards, guard) if guard else guards)

        walk(node, frozenset({node}), ())
        return tuple(found)

    def _after(self, position: int) -> int:
        reads = self._nodes[position].reads if position >= 0 else None
        return reads[1] if reads else self._root

    @cache  # noqa: B019
    def _steps(self, state: State, ahead: int) -> dict[State, int]:
        """The states that reading a character of a kind leads to, with the number of ways there."""
        position, before = state
        steps: dict[State, int] = {}
        for target, guards in self._paths(self._after(position)):
            reads = self._nodes[target].reads
            if reads and ahead in self._readable(target) and all(guard(before, ahead) for guard in guards):
                steps[target, ahead] = steps.get((target, ahead), 0) + 1
        return steps

    @cache  # noqa: B019
    def _readable(self, position: int) -> frozenset[int]:
        reads = self._nodes[position].reads
        return self._kinds_in(reads[0]) if reads else frozenset()

    def _accepts(self, state: State, ahead: int) -> bool:
        position, before = state
        return any(
            all(guard(before, ahead) for guard in guards)
            for target, guards in self._paths(self._after(position))
            if target in self._bodies or (target == self._end and (ahead == _END or not self._whole))
        )

    # Judging

    def find_slowness(self) -> str:
        states = self._reachable()
        failing = states - self._surely_matching(states)
        loops = _components(failing, lambda state: self._within(state, failing))
        if any(self._forks(loop) for loop in loops):
            return "exponential"
        # A look ahead is tried at each step, also by a loop that cannot fail.
        harmless = _components(states - failing, lambda state: self._within(state, states - failing))
        looking = [loop for loop in loops if {position for position, _ in loop} <= self._ahead]
        follows = (*itertools.permutations(loops, 2), *itertools.product(harmless, looking))
        return "quadratic" if any(self._follow(one, other) for one, other in follows) else ""

    @cache  # noqa: B019
    def _reachable(self) -> set[State]:
        start = (-1, _START)
        found, queue = set[State](), deque([start])
        while queue:
            state = queue.popleft()
            for ahead in range(len(self._kinds)):
                for step in self._steps(state, ahead):
                    if step not in found:
                        found.add(step)
                        queue.append(step)
        return found

    def _surely_matching(self, states: set[State]) -> set[State]:
        """The states from which every text ends in a match, whatever comes."""
        sure = {state for state in states if self._accepts(state, _END)}
        while True:
            unsure = {
                state
                for state in sure
                if not all(
                    self._accepts(state, ahead) or any(step in sure for step in self._steps(state, ahead))
                    for ahead in range(len(self._kinds))
                )
            }
            if not unsure:
                return sure
            sure -= unsure

    def _within(self, state: State, among: set[State]) -> Iterator[State]:
        for ahead in range(len(self._kinds)):
            yield from (step for step in self._steps(state, ahead) if step in among)

    def _forks(self, loop: frozenset[State]) -> bool:
        """Tell whether two ways round a loop read the same."""
        read = {kind for _, kind in loop}
        for state in loop:
            for ahead in read:
                if any(count > 1 for step, count in self._steps(state, ahead).items() if step in loop):
                    return True

        def pairs(pair: tuple[State, State]) -> Iterator[tuple[State, State]]:
            for ahead in read:
                lefts = [step for step in self._steps(pair[0], ahead) if step in loop]
                rights = [step for step in self._steps(pair[1], ahead) if step in loop]
                yield from ((left, right) for left in lefts for right in rights)

        reached = _closure([(state, state) for state in loop], pairs)
        return any(
            any(left == right for left, right in ring) and any(left != right for left, right in ring)
            for ring in _components(reached, lambda pair: (each for each in pairs(pair) if each in reached))
        )

    def _follow(self, one: frozenset[State], other: frozenset[State]) -> bool:
        """Tell whether a word leads round the first loop, from there to the second, and round that."""
        read = {kind for _, kind in one} & {kind for _, kind in other}
        between = self._sources(other, frozenset(read))
        if one.isdisjoint(between):
            return False

        def triples(triple: tuple[State, State, State]) -> Iterator[tuple[State, State, State]]:
            for ahead in read:
                firsts = [step for step in self._steps(triple[0], ahead) if step in one]
                lasts = [step for step in self._steps(triple[2], ahead) if step in other]
                if firsts and lasts:
                    middles = [step for step in self._steps(triple[1], ahead) if step in between]
                    yield from itertools.product(firsts, middles, lasts)

        pairs = ((start, end) for start in one & between for end in other if start[1] == end[1])
        return any((start, end, end) in _closure([(start, start, end)], triples) for start, end in pairs)

    @cache  # noqa: B019
    def _sources(self, loop: frozenset[State], kinds: frozenset[int]) -> frozenset[State]:
        """The states from which a word of some kinds of characters leads to a loop."""
        backwards = self._backwards()
        return frozenset(_closure(loop, lambda state: (each for each in backwards.get(state, ()) if each[1] in kinds)))

    @cache  # noqa: B019
    def _backwards(self) -> dict[State, list[State]]:
        backwards: dict[State, list[State]] = {}
        states = self._reachable()
        for state in states:
            for step in self._within(state, states):
                backwards.setdefault(step, []).append(state)
        return backwards


def _holds(member: tuple[Any, Any], char: str, flags: int) -> bool:
    """Tell whether a member of a class is a character, or its other case."""
    kind, value = member
    forms = {char, char.lower(), char.upper()} if flags & re.IGNORECASE else {char}
    if kind is op.LITERAL:
        return chr(value) in forms or bool(flags & re.IGNORECASE and chr(value).lower() in forms)
    if kind is op.RANGE:
        return any(len(form) == 1 and value[0] <= ord(form) <= value[1] for form in forms)
    if kind is op.CATEGORY:
        return _CATEGORIES[value](char)
    return False


def _word(char: str) -> bool:
    return char.isalnum() or char == "_"


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    op.CATEGORY_WORD: _word,
    op.CATEGORY_NOT_WORD: lambda char: not _word(char),
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_NOT_DIGIT: lambda char: not char.isdecimal(),
}


def _closure(starts: Iterable[T], steps: Callable[[T], Iterator[T]]) -> set[T]:
    """Everything that steps lead to, in one step at least."""
    found: set[T] = set()
    queue = deque(starts)
    while queue:
        for each in steps(queue.popleft()):
            if each not in found:
                found.add(each)
                queue.append(each)
        if len(found) > _MAX:
            raise Unjudged("has too many states to be judged")
    return found


def _components(states: Iterable[T], steps: Callable[[T], Iterator[T]]) -> list[frozenset[T]]:
    """The loops among states: each largest set of which every member leads to every other."""
    graph: networkx.DiGraph[T] = networkx.DiGraph((state, step) for state in states for step in steps(state))
    found = map(frozenset, networkx.strongly_connected_components(graph))
    return [each for each in found if len(each) > 1 or graph.has_edge(*(2 * [*each]))]
