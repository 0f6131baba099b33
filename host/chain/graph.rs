//! The chain graph: a declaration as one canonical JSON text, and its hash.
//!
//! The properties stand in this order, without space; what is absent is `null`:
//!
//! - train: `train`, `input`, `output`, `nodes`, `refusals` (always `[]`: a chain with refusals does not exist);
//! - node: `id`, `kind`, `junction` (of `CHAIN` and `SHORT_CIRCUIT`), `in`, `out`, `opaque` (always `false`: every step
//!   is declared), `tracks` (of routing and parallel steps);
//! - track: `name`, `description`, `isFallback` (`otherwise`, which is taken when a decision is not followed), `nodes`.
//!
//! `in` and `out` are the types that a node needs in Memory and puts there, as declared and in declared order, several
//! joined by `, `. So a `DECIDE` has its state and its decisions, a routing step the decision and `TrackTaken<Key>`, a
//! `CHECKPOINT` its state and nothing, `RESOLVE` the train's output and nothing.
//!
//! The text, and so the hash, covers names, types and tracks. It covers no bar, no wording and no decider: changing one
//! of those keeps runs resumable.

use std::fmt::{self, Write};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::chain::Chain;
use crate::chain::node::{Node, NodeIndex, NodeKind};
use crate::chain::step::home;
use crate::model::json::write_string;

/// The canonical text of a chain.
pub(super) fn text(chain: &Chain) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write_train(&mut text, chain);
    text
}

/// SHA-256 of a text in 64 lowercase hexadecimal digits.
pub(super) fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn write_train(out: &mut String, chain: &Chain) -> fmt::Result {
    let train = chain.train();
    for (property, value) in [
        ("{\"train\":", &train.name),
        (",\"input\":", &train.input),
        (",\"output\":", &train.output),
    ] {
        out.push_str(property);
        write_string(out, value)?;
    }
    out.push_str(",\"nodes\":");
    write_nodes(out, chain, chain.scope(0))?;
    out.push_str(",\"refusals\":[]}");
    Ok(())
}

/// Recurses once per level of tracks, of which verification allows few.
fn write_nodes(out: &mut String, chain: &Chain, nodes: &[NodeIndex]) -> fmt::Result {
    out.push('[');
    for (position, node) in nodes.iter().enumerate() {
        out.push_str(if position == 0 { "" } else { "," });
        write_node(out, chain, chain.node(*node))?;
    }
    out.push(']');
    Ok(())
}

fn write_node(out: &mut String, chain: &Chain, node: &Node) -> fmt::Result {
    let is_call = matches!(node.kind, NodeKind::Chain | NodeKind::ShortCircuit);
    out.push_str("{\"id\":");
    write_string(out, &node.id)?;
    write!(out, ",\"kind\":\"{}\",\"junction\":", node.kind.as_str())?;
    write_optional(out, is_call.then_some(&node.name))?;
    out.push_str(",\"in\":");
    write_optional(out, joined(&node.inputs).as_deref())?;
    out.push_str(",\"out\":");
    write_optional(out, joined(&node.outputs).as_deref())?;
    out.push_str(",\"opaque\":false,\"tracks\":");
    write_tracks(out, chain, node)?;
    out.push('}');
    Ok(())
}

fn write_tracks(out: &mut String, chain: &Chain, node: &Node) -> fmt::Result {
    let tracks = chain.tracks_of(node);
    if tracks.is_empty() {
        out.push_str("null");
        return Ok(());
    }
    out.push('[');
    for (position, used) in tracks.iter().enumerate() {
        let Some(track) = chain.track(used.track) else { continue };
        out.push_str(if position == 0 { "{\"name\":" } else { ",{\"name\":" });
        write_string(out, &track.name)?;
        out.push_str(",\"description\":");
        write_optional(out, track.description.as_deref())?;
        write!(out, ",\"isFallback\":{},\"nodes\":", used.is_fallback)?;
        write_nodes(out, chain, chain.scope(home(used.track)))?;
        out.push('}');
    }
    out.push(']');
    Ok(())
}

fn joined(names: &[Arc<str>]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(", "))
}

fn write_optional(out: &mut String, text: Option<impl AsRef<str>>) -> fmt::Result {
    match text {
        Some(text) => write_string(out, text.as_ref()),
        None => out.write_str("null"),
    }
}
