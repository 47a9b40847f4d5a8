const std = @import("std");

/// Doc.
pub const Point = struct {
    x: i32,
    pub fn init(x: i32) Point {
        return make(x);
    }
};
const E = enum { a, b };
pub fn main() !void {
    std.debug.print("x", .{});
}
const LIMIT = 10;
