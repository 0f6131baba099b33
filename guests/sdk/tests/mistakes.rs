//! What the compiler says about mistakes: each file in `ui` is one, beside what it is told.
//!
//! `TRYBUILD=overwrite cargo test` writes the texts anew.

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
