use std::collections::{HashMap, hash_map::Entry as E, self};
use crate::x::*;
pub(crate) use serde;

/// A point. In space.
#[derive(Debug)]
pub struct Point<T> { x: T }
enum Kind { A, B(i32) }
pub trait Draw: Base + fmt::Other {
    fn draw(&self);
}
impl<T> Draw for ns::Point<T> {
    fn draw(&self) {
        println!("{}", self.x);
        foo::bar::<T>(1);
        self.parts.iter().map(|p| p.len());
    }
}
impl Point<u8> {
    const K: i32 = 1;
}
static S: i32 = 2;
type R = Result<()>;
macro_rules! mac { () => {} }
mod m {
    pub fn f() { let c = || g(); }
}
