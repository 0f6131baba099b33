//! Runs the tasks of the project.

fn main() {}
