//! Cascades, which name other deciders.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::deciders::Decider;
use crate::deciders::cascade::{Bounds, Cascade};
use crate::operations::deciders_file::{no_decider, required};
use crate::operations::table::{Faults, Section};

pub(super) const KEYS: [&str; 6] =
    ["kind", "first", "then", "escalate_below", "unsure_above", "unsure_below"];

/// A cascade whose deciders have not been looked up.
pub(super) struct StatedCascade<'t> {
    section: Section<'t>,
    first: &'t str,
    then: &'t str,
    bounds: Bounds,
}

pub(super) fn read<'t>(section: Section<'t>, faults: &mut Faults<'_>) -> Option<StatedCascade<'t>> {
    let first = required(&section, "first", faults);
    let then = required(&section, "then", faults);
    if section.value("escalate_below").is_none() {
        section.fault("escalate_below", "it is missing; state a confidence from 0 to 1", faults);
    }
    let escalate_below = section.share("escalate_below", faults);
    let unsure_above = section.share("unsure_above", faults);
    let unsure_below = section.share("unsure_below", faults);
    let mut bounds = Bounds::below(escalate_below?);
    bounds.unsure_above = unsure_above.unwrap_or(bounds.unsure_above);
    bounds.unsure_below = unsure_below.unwrap_or(bounds.unsure_below);
    if let Err((key, problem)) = bounds.check() {
        section.fault(key, problem, faults);
        return None;
    }
    Some(StatedCascade { first: first?, then: then?, section, bounds })
}

/// Adds the cascades, each after those that it names. What is left over names itself, or somebody who is not there.
pub(super) fn add(
    known: &mut BTreeMap<String, Arc<Decider>>,
    mut open: BTreeMap<String, StatedCascade<'_>>,
    faults: &mut Faults<'_>,
) {
    loop {
        let ready = open.iter().find_map(|(name, cascade)| {
            let first = Arc::clone(known.get(cascade.first)?);
            let then = Arc::clone(known.get(cascade.then)?);
            let cascade = Cascade { first, then, bounds: cascade.bounds };
            Some((name.clone(), Arc::new(Decider::Cascade(cascade))))
        });
        let Some((name, cascade)) = ready else { break };
        open.remove(&name);
        known.insert(name, cascade);
    }
    for cascade in open.values() {
        for (key, name) in [("first", cascade.first), ("then", cascade.then)] {
            if open.contains_key(name) {
                cascade.section.fault(key, "the cascades ask each other in a circle", faults);
            } else if !known.contains_key(name) {
                cascade.section.fault(key, no_decider(name, known), faults);
            }
        }
    }
}
