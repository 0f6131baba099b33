//! How many things an operator may name at once.

use crate::model::message;
use crate::operations::outcome::Outcome;

/// The most ids of one call.
pub const IDS_MAX: usize = 1_000;

/// Why so many ids are not taken, if they are not.
pub fn refusal(ids: usize) -> Option<Outcome> {
    let message = match ids {
        0 => message::NO_IDS.to_owned(),
        1..=IDS_MAX => return None,
        _ => message::too_many_ids(IDS_MAX, ids),
    };
    Some(Outcome::refused(message).with_count(0))
}
