import os.path as p, sys
from .a import (
    b as c,
    d,
)
from x import *

LIMIT: int = 1


@register("foo", size=max(1, 2))
@other
class Foo(Base, pkg.Mixin, Generic[T], metaclass=Meta):
    """Does things. And more."""

    async def run(self, x: int = 1) -> str:  # not part of the signature
        def inner():
            return self.x.go(super().y())

        return inner().strip()

    # Says how long it is.
    @property
    def size(self): return len(self)


def après(): pass; café()
type Alias = int
