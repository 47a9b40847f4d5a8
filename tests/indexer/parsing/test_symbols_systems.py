"""Symbols are found in files of Go, Rust, C, C++ and Zig."""

from __future__ import annotations

from indexer.parsing.file_parser import parse_file
from tests.indexer.parsing.outlines import bases, calls, docs, imports, symbols

GO = """\
package main

import (
	"fmt"
	str "strings"
	. "os"
	"github.com/go-chi/chi/v5"
)

// Max is the limit. Really.
const Max = 10

const (
	A = iota
	B
)

var x, y = 1, 2

// Server serves.
type Server struct {
	*http.Server
	Base
	name string
}
type Doer interface {
	Do() error
	io.Reader
}
type ID = string

func (s *Server[T]) Run(a int) error {
	fmt.Println(s.name)
	go s.do()
	return nil
}
func New() *Server { return str.Map(func() { x() }) }
"""


def test_go_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.go", GO)

    assert symbols(parsed) == [
        "11-11 constant Max",
        "14-14 constant A",
        "15-15 constant B",
        "18-18 constant x",
        "18-18 constant y",
        "21-25 struct Server",
        "26-29 interface Doer",
        "27-27 method Doer.Do",
        "30-30 type ID",
        "32-36 method Server.Run",
        "37-37 function New",
    ]
    assert calls(parsed) == [
        "33 Server.Run: fmt Println",
        "34 Server.Run: s do",
        "37 New: str Map",
        "37 New:  x",
    ]
    assert bases(parsed) == [
        "22 Server: http Server",
        "23 Server:  Base",
        "28 Doer: io Reader",
    ]
    assert imports(parsed) == [
        (4, "fmt", "", "fmt"),
        (5, "strings", "", "str"),
        (6, "os", "", "."),
        (7, "github.com/go-chi/chi/v5", "", "chi"),
    ]
    assert docs(parsed) == ["Max: Max is the limit.", "Server: Server serves."]


RUST = """\
use std::collections::{HashMap, hash_map::Entry as E, self};
use crate::x::*;
pub(crate) use serde;

/// A point. In space.
#[derive(Debug)]
pub struct Point<T> { x: T }
enum Kind { A, B(i32) }
pub trait Draw: Base + fmt::Other {
    fn draw(&self);
}
impl<T> Draw for ns::Point<T> {
    fn draw(&self) {
        println!("{}", self.x);
        foo::bar::<T>(1);
        self.parts.iter().map(|p| p.len());
    }
}
impl Point<u8> {
    const K: i32 = 1;
}
static S: i32 = 2;
type R = Result<()>;
macro_rules! mac { () => {} }
mod m {
    pub fn f() { let c = || g(); }
}
"""


def test_rust_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.rs", RUST)

    assert symbols(parsed) == [
        "6-7 struct Point",
        "8-8 enum Kind",
        "9-11 trait Draw",
        "10-10 method Draw.draw",
        "13-17 method Point.draw",
        "20-20 constant Point.K",
        "22-22 constant S",
        "23-23 type R",
        "24-24 macro mac",
        "25-27 module m",
        "26-26 function m.f",
    ]
    assert calls(parsed) == [
        "14 Point.draw:  println",
        "15 Point.draw: foo bar",
        "16 Point.draw: self.parts iter",
        "16 Point.draw: self.parts.iter() map",
        "16 Point.draw: p len",
        "26 m.f:  g",
    ]
    assert bases(parsed) == [
        "9 Draw:  Base",
        "9 Draw: fmt Other",
        "12 Point:  Draw",
    ]
    assert imports(parsed) == [
        (1, "std::collections", "HashMap", "HashMap"),
        (1, "std::collections::hash_map", "Entry", "E"),
        (1, "std::collections", "", "collections"),
        (2, "crate::x", "*", "*"),
        (3, "serde", "", "serde"),
    ]
    assert docs(parsed) == ["Point: A point."]


C = """\
#include <stdio.h>
#include "my/lib.h"
#ifndef GUARD
#define GUARD
#endif
#define MAX 10
#define SQ(x) ((x)*(x))

/* A point.
 * In space. */
struct point { int x; };
typedef struct { int y; } anon_t;
typedef struct node { int y; } node_t;
typedef int (*callback)(int);
enum color { RED };

static int
add(int a, int b)
{
    return mul(a, b) + p->fn(a);
}
char *name(void) { return s.get(1); }
static const int limit = 3;
int proto(int a);
"""


def test_c_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.c", C)

    assert symbols(parsed) == [
        "6-6 macro MAX",
        "7-7 macro SQ",
        "11-11 struct point",
        "12-12 struct anon_t",
        "13-13 type node_t",
        "13-13 struct node",
        "14-14 type callback",
        "15-15 enum color",
        "17-21 function add",
        "22-22 function name",
        "23-23 constant limit",
    ]
    assert calls(parsed) == [
        "20 add:  mul",
        "20 add: p fn",
        "22 name: s get",
    ]
    assert imports(parsed) == [
        (1, "stdio.h", "", ""),
        (2, "my/lib.h", "", ""),
    ]
    assert docs(parsed) == ["point: A point."]


CPP = """\
#include <vector>
namespace a::b {
/// Shape doc.
class Shape : public Base, private ns::Other<int> {
 public:
  Shape(int x) : Base(x) {}
  int area() const { return helper::calc(1) + this->x(); }
  bool operator==(const Shape& o) { return true; }
};
template <typename T>
T Box<T>::get() {
  v.push_back(foo<int>(2));
  return new Shape(1);
}
}
int a::b::Shape::size() { return 1; }
using Alias = int;
enum class Color { Red };
template <class T> struct Pair { T one; };
constexpr int K = 1;
Foo& operator<<(Foo& a, int b) { return a; }
"""


def test_cpp_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.cpp", CPP)

    assert symbols(parsed) == [
        "2-15 module a.b",
        "4-9 class a.b.Shape",
        "6-6 method a.b.Shape.Shape",
        "7-7 method a.b.Shape.area",
        "8-8 method a.b.Shape.operator==",
        "10-14 method a.b.Box.get",
        "16-16 method a.b.Shape.size",
        "17-17 type Alias",
        "18-18 enum Color",
        "19-19 struct Pair",
        "20-20 constant K",
        "21-21 function operator<<",
    ]
    assert calls(parsed) == [
        "7 a.b.Shape.area: helper calc",
        "7 a.b.Shape.area: this x",
        "12 a.b.Box.get: v push_back",
        "12 a.b.Box.get:  foo",
        "13 a.b.Box.get:  Shape",
    ]
    assert bases(parsed) == [
        "4 a.b.Shape:  Base",
        "4 a.b.Shape: ns Other",
    ]
    assert imports(parsed) == [
        (1, "vector", "", ""),
    ]
    assert docs(parsed) == ["Shape: Shape doc."]


ZIG = """\
const std = @import("std");

/// Doc.
pub const Point = struct {
    x: i32,
    pub fn init(x: i32) Point {
        return make(x);
    }
};
const E = enum { a, b };
pub fn main() !void {
    std.debug.print("x", .{});
}
const LIMIT = 10;
"""


def test_zig_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.zig", ZIG)

    assert symbols(parsed) == [
        "1-1 constant std",
        "4-9 struct Point",
        "6-8 method Point.init",
        "10-10 enum E",
        "11-13 function main",
        "14-14 constant LIMIT",
    ]
    assert calls(parsed) == [
        "7 Point.init:  make",
        "12 main: std.debug print",
    ]
    assert imports(parsed) == [
        (1, "std", "", "std"),
    ]
    assert docs(parsed) == ["Point: Doc."]
