//! Benchmarks of the guest room.

fn main() {}
