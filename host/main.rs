//! The `trax` binary.

fn main() {}
