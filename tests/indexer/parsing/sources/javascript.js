import def, { one as uno, two } from './lib';
import * as ns from "ns";
const fs = require('fs');
const { join, sep: s } = require('path');

/** Greets people. Twice. */
export const greet = (name) => ns.hello(name);
export default class Dog extends base.Animal {
  #secret = 1;
  bark = () => this.woof();
  static make() {
    return new Dog();
  }
}
module.exports.run = async function () {
  fs.promises
    .readFile(join('a'))
    .then(uno);
};
app.use = function use(fn) { return <Panel a={s()} />; };
const LIMIT = 10;
export function* gen() {}
