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
