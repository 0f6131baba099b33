//! What is left of a junction's limits.

use crate::bindings::trax::train::budget;

pub use crate::bindings::trax::train::budget::RemainingBudget;

/// What is left.
pub fn remaining() -> RemainingBudget {
    budget::remaining()
}

/// Whether one of the limits is used up by 80 % or more.
pub fn warned() -> bool {
    budget::warned()
}
