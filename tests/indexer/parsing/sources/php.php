<?php
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
