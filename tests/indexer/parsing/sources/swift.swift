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
