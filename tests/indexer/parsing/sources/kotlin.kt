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
