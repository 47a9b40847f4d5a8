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
