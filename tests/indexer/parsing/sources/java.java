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
