"""Symbols are found in files of JavaScript, TypeScript and TSX."""

from __future__ import annotations

from indexer.parsing.file_parser import parse_file
from tests.indexer.parsing.outlines import bases, calls, docs, imports, symbols

JAVASCRIPT = """\
import def, { one as uno, two } from './lib';
import * as ns from "ns";
const fs = require('fs');
const { join, sep: s } = require('path');

/** Greets people. Twice. */
export const greet = (name) => ns.hello(name);
export default class Dog extends base.Animal {
  #secret = 1;
  bark = () => this.woof();
  static make() {
    return new Dog();
  }
}
module.exports.run = async function () {
  fs.promises
    .readFile(join('a'))
    .then(uno);
};
app.use = function use(fn) { return <Panel a={s()} />; };
const LIMIT = 10;
export function* gen() {}
"""


def test_javascript_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.js", JAVASCRIPT)

    assert symbols(parsed) == [
        "3-3 constant fs",
        "7-7 function greet",
        "8-14 class Dog",
        "10-10 method Dog.bark",
        "11-13 method Dog.make",
        "15-19 function run",
        "20-20 method app.use",
        "21-21 constant LIMIT",
        "22-22 function gen",
    ]
    assert calls(parsed) == [
        "3 :  require",
        "4 :  require",
        "7 greet: ns hello",
        "10 Dog.bark: this woof",
        "12 Dog.make:  Dog",
        "17 run: fs.promises readFile",
        "17 run:  join",
        "18 run: fs.promises.readFile(join('a')) then",
        "20 app.use:  Panel",
        "20 app.use:  s",
    ]
    assert bases(parsed) == [
        "8 Dog: base Animal",
    ]
    assert imports(parsed) == [
        (1, "./lib", "default", "def"),
        (1, "./lib", "one", "uno"),
        (1, "./lib", "two", "two"),
        (2, "ns", "", "ns"),
        (3, "fs", "", "fs"),
        (4, "path", "join", "join"),
        (4, "path", "sep", "s"),
    ]
    assert docs(parsed) == ["greet: Greets people."]


TYPESCRIPT = """\
import type { A } from './a';
import fs = require("fs");
export { z as w } from './z';
import './side';

@Component({ selector: make() })
export abstract class Shape<T> extends Base<T> implements Drawable, ns.Other {
  constructor(private x: number) { super(); }
  abstract area(): number;
  @dec()
  draw(): void {
    this.x.foo<string>();
  }
}
interface Drawable extends Thing<T> {
  draw(): void;
}
type Alias = string | number;
enum Color { Red }
namespace N.M {
  export function inner() {}
}
export const router = createRouter({ a: 1 });
export const arrow = async <T,>(x: T): Promise<T> => x;
"""


def test_typescript_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.ts", TYPESCRIPT)

    assert symbols(parsed) == [
        "6-14 class Shape",
        "8-8 method Shape.constructor",
        "9-9 method Shape.area",
        "10-13 method Shape.draw",
        "15-17 interface Drawable",
        "16-16 method Drawable.draw",
        "18-18 type Alias",
        "19-19 enum Color",
        "20-22 module N.M",
        "21-21 function N.M.inner",
        "23-23 constant router",
        "24-24 function arrow",
    ]
    assert calls(parsed) == [
        "6 :  Component",
        "6 :  make",
        "10 Shape:  dec",
        "12 Shape.draw: this.x foo",
        "23 :  createRouter",
    ]
    assert bases(parsed) == [
        "7 Shape:  Base",
        "7 Shape:  Drawable",
        "7 Shape: ns Other",
        "15 Drawable:  Thing",
    ]
    assert imports(parsed) == [
        (1, "./a", "A", "A"),
        (2, "fs", "", "fs"),
        (3, "./z", "z", "w"),
        (4, "./side", "", ""),
    ]


TSX = """\
import React, { useState } from 'react';

export const App: React.FC<Props> = ({ a }) => {
  const [x] = useState(1);
  const inner = () => <b onClick={() => go(x)} />;
  return <Foo.Bar a={inner()}><Child /></Foo.Bar>;
};
"""


def test_tsx_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.tsx", TSX)

    assert symbols(parsed) == [
        "3-7 function App",
        "5-5 function App.inner",
    ]
    assert calls(parsed) == [
        "4 App:  useState",
        "5 App.inner:  go",
        "6 App: Foo Bar",
        "6 App:  inner",
        "6 App:  Child",
    ]
    assert imports(parsed) == [
        (1, "react", "default", "React"),
        (1, "react", "useState", "useState"),
    ]
