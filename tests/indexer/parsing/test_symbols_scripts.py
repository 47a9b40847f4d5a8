"""Symbols are found in files of Python, Ruby, PHP, Lua and Bash."""

from __future__ import annotations

from indexer.parsing.file_parser import parse_file
from tests.indexer.parsing.outlines import bases, calls, docs, imports, symbols

PYTHON = '''\
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
'''


def test_python_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.py", PYTHON)

    assert symbols(parsed) == [
        "8-8 constant LIMIT",
        "11-24 class Foo",
        "16-20 method Foo.run",
        "17-18 function Foo.run.inner",
        "23-24 method Foo.size",
        "27-27 function après",
        "28-28 type Alias",
    ]
    assert calls(parsed) == [
        "11 :  register",
        "11 :  max",
        "18 Foo.run.inner: self.x go",
        "18 Foo.run.inner:  super",
        "18 Foo.run.inner: super() y",
        "20 Foo.run:  inner",
        "20 Foo.run: inner() strip",
        "24 Foo.size:  len",
        "27 après:  café",
    ]
    assert bases(parsed) == [
        "13 Foo:  Base",
        "13 Foo: pkg Mixin",
        "13 Foo:  Generic",
    ]
    assert imports(parsed) == [
        (1, "os.path", "", "p"),
        (1, "sys", "", "sys"),
        (3, ".a", "b", "c"),
        (4, ".a", "d", "d"),
        (6, "x", "*", "*"),
    ]
    assert docs(parsed) == ["Foo: Does things.", "size: Says how long it is."]


RUBY = """\
require 'json'
require_relative "lib/x"

# A module. More.
module Outer
  VERSION = "1"

  class Foo::Bar < Base::Thing
    include Comparable
    # runs
    def run(a) = helper.go(a)

    def self.make(x)
      new(x)
      obj&.call!
    end

    class << self
      def meta; end
    end
  end
end

def top?; Outer::Foo.make; end
"""


def test_ruby_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.rb", RUBY)

    assert symbols(parsed) == [
        "5-22 module Outer",
        "6-6 constant Outer.VERSION",
        "8-21 class Outer.Foo.Bar",
        "11-11 method Outer.Foo.Bar.run",
        "13-16 method Outer.Foo.Bar.make",
        "19-19 method Outer.Foo.Bar.meta",
        "24-24 function top?",
    ]
    assert calls(parsed) == [
        "1 :  require",
        "2 :  require_relative",
        "9 Outer.Foo.Bar:  include",
        "11 Outer.Foo.Bar.run: helper go",
        "14 Outer.Foo.Bar.make:  new",
        "15 Outer.Foo.Bar.make: obj call!",
        "24 top?: Outer::Foo make",
    ]
    assert bases(parsed) == [
        "8 Outer.Foo.Bar: Base Thing",
        "9 Outer.Foo.Bar:  Comparable",
    ]
    assert imports(parsed) == [
        (1, "json", "", ""),
        (2, "lib/x", "", ""),
    ]
    assert docs(parsed) == ["Outer: A module.", "run: runs"]


PHP = r"""<?php
namespace App\Http;
use Foo\Bar;
use Foo\{A, B as C};
use function Foo\fn1;
const LIMIT = 1;

/** Doc. */
#[Attr]
final class Ctl extends Base implements I1, \Ns\I2 {
    use TraitX;
    public function run(int $a): int {
        $this->go($a);
        self::stat();
        new Helper(fn1(2));
        return \strlen("a");
    }
}
interface I extends J { public function m(); }
trait T { function t() {} }
enum Suit: string { case A = 'a'; }
function top() { $o?->x(); }
"""


def test_php_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.php", PHP)

    assert symbols(parsed) == [
        "2-2 module App.Http",
        "6-6 constant App.Http.LIMIT",
        "9-18 class App.Http.Ctl",
        "12-17 method App.Http.Ctl.run",
        "19-19 interface App.Http.I",
        "19-19 method App.Http.I.m",
        "20-20 trait App.Http.T",
        "20-20 method App.Http.T.t",
        "21-21 enum App.Http.Suit",
        "22-22 function App.Http.top",
    ]
    assert calls(parsed) == [
        "13 App.Http.Ctl.run: $this go",
        "14 App.Http.Ctl.run: self stat",
        "15 App.Http.Ctl.run:  Helper",
        "15 App.Http.Ctl.run:  fn1",
        "16 App.Http.Ctl.run:  strlen",
        "22 App.Http.top: $o x",
    ]
    assert bases(parsed) == [
        "10 App.Http.Ctl:  Base",
        "10 App.Http.Ctl:  I1",
        "10 App.Http.Ctl: \\Ns I2",
        "11 App.Http.Ctl:  TraitX",
        "19 App.Http.I:  J",
    ]
    assert imports(parsed) == [
        (3, "Foo", "Bar", "Bar"),
        (4, "Foo", "A", "A"),
        (4, "Foo", "B", "C"),
        (5, "Foo", "fn1", "fn1"),
    ]
    assert docs(parsed) == ["Ctl: Doc."]


LUA = """\
local json = require("lib.json")
local M = {}

-- Doc here.
function M.run(a)
  return M.go(a)
end
function M:meth() self:other() end
local function loc() print("x") end
M.assign = function(x) return x end
LIMIT = 10
"""


def test_lua_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.lua", LUA)

    assert symbols(parsed) == [
        "1-1 constant json",
        "2-2 constant M",
        "5-7 method M.run",
        "8-8 method M.meth",
        "9-9 function loc",
        "10-10 method M.assign",
        "11-11 constant LIMIT",
    ]
    assert calls(parsed) == [
        "1 :  require",
        "6 M.run: M go",
        "8 M.meth: self other",
        "9 loc:  print",
    ]
    assert imports(parsed) == [
        (1, "lib.json", "", "json"),
    ]
    assert docs(parsed) == ["run: Doc here."]


BASH = """\
#!/bin/bash
source ./lib.sh
LIMIT=10
readonly X=1

# Does it. Well.
run() {
  helper "$1" | grep x
  local y=$(compute)
}
function _bash-it:other { run; }
"""


def test_bash_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.sh", BASH)

    assert symbols(parsed) == [
        "3-3 constant LIMIT",
        "4-4 constant X",
        "7-10 function run",
        "11-11 function _bash-it:other",
    ]
    assert calls(parsed) == [
        "2 :  source",
        "8 run:  helper",
        "8 run:  grep",
        "9 run:  compute",
        "11 _bash-it:other:  run",
    ]
    assert imports(parsed) == [
        (2, "./lib.sh", "", ""),
    ]
    assert docs(parsed) == ["run: Does it."]


def test_names_in_a_shell_script_are_of_any_alphabet() -> None:
    """The parser itself ends the process over some letters that are beyond its table."""
    script = "# 🚀\ngrüße_世界() { echo {🎉} {\U0010ffff} ${x:-é}; sag_welt; }\nsag_welt() { grüße_世界; }\n"
    parsed = parse_file("a.sh", script)

    assert symbols(parsed) == ["2-2 function grüße_世界", "3-3 function sag_welt"]
    assert calls(parsed) == ["2 grüße_世界:  echo", "2 grüße_世界:  sag_welt", "3 sag_welt:  grüße_世界"]
    assert "".join(chunk.text for chunk in parsed.chunks) == script.strip("\n")
