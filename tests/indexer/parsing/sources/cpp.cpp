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
