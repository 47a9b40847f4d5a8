"""Symbols are found in files of Java, Kotlin, Scala, C# and Swift."""

from __future__ import annotations

from indexer.parsing.file_parser import parse_file
from tests.indexer.parsing.outlines import bases, calls, docs, imports, symbols

JAVA = """\
package a.b;

import java.util.List;
import static java.lang.Math.max;
import java.io.*;

/**
 * Does {@code things}. More.
 * @param T a type
 */
@Deprecated
public class Foo<T> extends Base<T> implements Bar, x.Baz<T> {
    public static final int LIMIT = 1;
    Foo(int a) { this.run(); }

    @Override
    public <R> R run(int a) throws E {
        new Helper<T>(a).go();
        return List.of(max(1));
    }
    interface In extends A, B { void m(); }
    enum E implements I { A, B; void x() {} }
    record R(int x) implements I {}
}
"""


def test_java_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.java", JAVA)

    assert symbols(parsed) == [
        "11-24 class Foo",
        "14-14 method Foo.Foo",
        "16-20 method Foo.run",
        "21-21 interface Foo.In",
        "21-21 method Foo.In.m",
        "22-22 enum Foo.E",
        "22-22 method Foo.E.x",
        "23-23 class Foo.R",
    ]
    assert calls(parsed) == [
        "14 Foo.Foo: this run",
        "18 Foo.run:  Helper",
        "18 Foo.run: new Helper<T>(a) go",
        "19 Foo.run: List of",
        "19 Foo.run:  max",
    ]
    assert bases(parsed) == [
        "12 Foo:  Base",
        "12 Foo:  Bar",
        "12 Foo: x Baz",
        "21 Foo.In:  A",
        "21 Foo.In:  B",
        "22 Foo.E:  I",
        "23 Foo.R:  I",
    ]
    assert imports(parsed) == [
        (3, "java.util", "List", "List"),
        (4, "java.lang.Math", "max", "max"),
        (5, "java.io", "*", "*"),
    ]
    assert docs(parsed) == ["Foo: Does things."]


KOTLIN = """\
package a.b
import kotlin.math.max
import foo.bar.Baz as Q
import x.*

/** Doc here. */
@Ann
open class Foo(val a: Int) : Base(a), Iface, x.Y<Int> {
    companion object {
        fun make() = Foo(1)
    }
    fun run(x: Int): Int {
        helper.go(x)
        return max(x)
    }
}
interface Iface {
    fun f()
}
object Single : Iface
enum class Color { RED; fun z() {} }
fun String.ext() = this.trim().foo { it.bar() }
typealias A = List<Int>
const val TOP = 1
"""


def test_kotlin_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.kt", KOTLIN)

    assert symbols(parsed) == [
        "7-16 class Foo",
        "10-10 method Foo.make",
        "12-15 method Foo.run",
        "17-19 interface Iface",
        "18-18 method Iface.f",
        "20-20 class Single",
        "21-21 enum Color",
        "21-21 method Color.z",
        "22-22 function ext",
        "23-23 type A",
        "24-24 constant TOP",
    ]
    assert calls(parsed) == [
        "10 Foo.make:  Foo",
        "13 Foo.run: helper go",
        "14 Foo.run:  max",
        "22 ext: this trim",
        "22 ext: this.trim() foo",
        "22 ext: it bar",
    ]
    assert bases(parsed) == [
        "8 Foo:  Base",
        "8 Foo:  Iface",
        "8 Foo: x Y",
        "20 Single:  Iface",
    ]
    assert imports(parsed) == [
        (2, "kotlin.math", "max", "max"),
        (3, "foo.bar", "Baz", "Q"),
        (4, "x", "*", "*"),
    ]
    assert docs(parsed) == ["Foo: Doc here."]


SCALA = """\
package a.b
import x.y.Z
import x.{A, B => C, _}

/** Doc. */
@ann
class Foo[T](a: Int) extends Base[T](a) with Tr {
  def run(x: Int): Int = helper.go(x) + max(1)
  type T2 = Int
}
object Foo { def apply() = new Foo[Int](1) }
trait Tr extends Q { def abs(): Int }
enum Color { case Red }
def top(x: Int) = foo[Int](x)
val K = 1
"""


def test_scala_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.scala", SCALA)

    assert symbols(parsed) == [
        "6-10 class Foo",
        "8-8 method Foo.run",
        "9-9 type Foo.T2",
        "11-11 class Foo",
        "11-11 method Foo.apply",
        "12-12 trait Tr",
        "12-12 method Tr.abs",
        "13-13 enum Color",
        "14-14 function top",
        "15-15 constant K",
    ]
    assert calls(parsed) == [
        "8 Foo.run: helper go",
        "8 Foo.run:  max",
        "11 Foo.apply:  Foo",
        "14 top:  foo",
    ]
    assert bases(parsed) == [
        "7 Foo:  Base",
        "7 Foo:  Tr",
        "12 Tr:  Q",
    ]
    assert imports(parsed) == [
        (2, "x.y", "Z", "Z"),
        (3, "x", "A", "A"),
        (3, "x", "B", "C"),
        (3, "x", "*", "*"),
    ]
    assert docs(parsed) == ["Foo: Doc."]


CSHARP = """\
using System;
using static System.Math;
using Col = System.Collections;
namespace A.B
{
    /// <summary>Does things. Yes.</summary>
    [Attr]
    public class Foo<T> : Base<T>, IBar where T : class
    {
        public Foo(int a) : base(a) { }
        public int Prop { get; set; }
        public override int Run(int a)
        {
            helper.Go(a); new Helper(1); Gen<int>(2); a?.B();
            int In(int z) => z;
            return In(1);
        }
    }
    interface IBar : IBaz { void M(); }
    struct S { }
    record R(int X) : Q;
    enum E { A }
    delegate int D(int x);
}
"""


def test_csharp_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.cs", CSHARP)

    assert symbols(parsed) == [
        "4-24 module A.B",
        "7-18 class A.B.Foo",
        "10-10 method A.B.Foo.Foo",
        "11-11 method A.B.Foo.Prop",
        "12-17 method A.B.Foo.Run",
        "15-15 function A.B.Foo.Run.In",
        "19-19 interface A.B.IBar",
        "19-19 method A.B.IBar.M",
        "20-20 struct A.B.S",
        "21-21 class A.B.R",
        "22-22 enum A.B.E",
        "23-23 type A.B.D",
    ]
    assert calls(parsed) == [
        "14 A.B.Foo.Run: helper Go",
        "14 A.B.Foo.Run:  Helper",
        "14 A.B.Foo.Run:  Gen",
        "14 A.B.Foo.Run: a B",
        "16 A.B.Foo.Run:  In",
    ]
    assert bases(parsed) == [
        "8 A.B.Foo:  Base",
        "8 A.B.Foo:  IBar",
        "19 A.B.IBar:  IBaz",
        "21 A.B.R:  Q",
    ]
    assert imports(parsed) == [
        (1, "System", "", "System"),
        (2, "System.Math", "", "Math"),
        (3, "System.Collections", "", "Col"),
    ]
    assert docs(parsed) == ["Foo: Does things."]


SWIFT = """\
import Foundation
import struct A.B

/// Doc.
@objc
public class Foo<T>: Base, Proto {
    init(a: Int) { super.init() }
    func run(_ a: Int) -> Int {
        helper.go(a)
        return Foo(a: 1)
    }
}
struct S { func m() {} }
enum E { case a }
protocol P: Q { func req() }
extension Foo: R {
    func ext() { self.x?.y() }
}
typealias A = Int
let K = 1
"""


def test_swift_definitions_uses_and_imports_are_found() -> None:
    parsed = parse_file("a.swift", SWIFT)

    assert symbols(parsed) == [
        "5-12 class Foo",
        "7-7 method Foo.init",
        "8-11 method Foo.run",
        "13-13 struct S",
        "13-13 method S.m",
        "14-14 enum E",
        "15-15 interface P",
        "15-15 method P.req",
        "17-17 method Foo.ext",
        "19-19 type A",
        "20-20 constant K",
    ]
    assert calls(parsed) == [
        "7 Foo.init: super init",
        "9 Foo.run: helper go",
        "10 Foo.run:  Foo",
        "17 Foo.ext: self.x y",
    ]
    assert bases(parsed) == [
        "6 Foo:  Base",
        "6 Foo:  Proto",
        "15 P:  Q",
        "16 Foo:  R",
    ]
    assert imports(parsed) == [
        (1, "Foundation", "", "Foundation"),
        (2, "A.B", "", "B"),
    ]
    assert docs(parsed) == ["Foo: Doc."]
