//! The tracks taken before a checkpoint, as they are stored: a JSON list of `{"key","step","track","fallbackReason"}`,
//! oldest first.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::chain::next::Routed;
use crate::chain::node::NodeIndex;

/// The track that each of some routing steps took, by name.
pub type Taken = HashMap<NodeIndex, String>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    step: String,
    track: String,
    fallback_reason: Option<String>,
}

/// The tracks as they are stored.
pub fn to_json(chain: &Chain, tracks: &[Routed]) -> String {
    let entry = |routed: &Routed| Entry {
        key: Some(routed.question_key.clone()),
        step: chain.node(routed.node).id.clone(),
        track: routed.track.clone(),
        fallback_reason: routed.fallback_reason.clone(),
    };
    let entries: Vec<Entry> = tracks.iter().map(entry).collect();
    serde_json::to_string(&entries).unwrap_or_else(|_| "[]".to_owned())
}

/// The tracks that a text stands for. None: it is no such text, or names what the chain does not have.
pub(super) fn from_json(chain: &Chain, text: &str) -> Option<Vec<Routed>> {
    let entries: Vec<Entry> = serde_json::from_str(text).ok()?;
    let routed = |entry: Entry| {
        Some(Routed {
            node: chain.find(&entry.step)?,
            question_key: entry.key?,
            track: entry.track,
            fallback_reason: entry.fallback_reason,
        })
    };
    entries.into_iter().map(routed).collect()
}

/// Notes the tracks that a text names, of a checkpoint or of a decision. What the chain does not have is left out.
pub fn note(chain: &Chain, text: &str, taken: &mut Taken) {
    let entries: Vec<Entry> = serde_json::from_str(text).unwrap_or_default();
    for entry in entries {
        if let Some(node) = chain.find(&entry.step) {
            taken.entry(node).or_insert(entry.track);
        }
    }
}
