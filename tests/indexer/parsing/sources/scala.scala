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
