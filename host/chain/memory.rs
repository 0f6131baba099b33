//! What a run holds: one value per type, the tracks it took, and how often it asked each question.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chain::names::is_host_made;
use crate::chain::next::Routed;
use crate::model::value::Value;

/// The Memory of a run or of a branch.
///
/// A value replaces an older one of the same type. A branch has a Memory over the one it forked from: it sees what was
/// there, and what it puts is only its own until the branches are joined, so that forking copies nothing.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    below: Option<Arc<Self>>,
    values: BTreeMap<Arc<str>, Value>,
    routed: Vec<Routed>,
    askings: BTreeMap<Arc<str>, u32>,
}

/// What a Memory without another below it holds.
pub(super) type Parts = (Vec<Value>, Vec<Routed>, BTreeMap<Arc<str>, u32>);

impl Memory {
    /// A Memory that holds the input of a run.
    pub fn of(input: Value) -> Self {
        let mut memory = Self::default();
        memory.put(input);
        memory
    }

    /// An empty Memory over this one.
    pub fn over(below: Arc<Self>) -> Self {
        Self { below: Some(below), ..Self::default() }
    }

    /// The newest value of the type.
    pub fn get(&self, type_name: &str) -> Option<&Value> {
        self.layers().find_map(|layer| layer.values.get(type_name))
    }

    /// Keeps a value instead of an older one of its type.
    pub fn put(&mut self, value: Value) {
        self.values.insert(value.type_name.clone(), value);
    }

    /// Counts an asking and gives its number, from 0.
    pub fn count_asking(&mut self, question_key: &str) -> u32 {
        let count = self.layers().find_map(|layer| layer.askings.get(question_key)).copied();
        let occurrence = count.unwrap_or_default();
        self.askings.insert(question_key.into(), occurrence.saturating_add(1));
        occurrence
    }

    /// Keeps a track taken.
    pub fn take_track(&mut self, routed: Routed) {
        self.routed.push(routed);
    }

    /// The tracks taken, oldest first, those before the fork included.
    pub fn tracks(&self) -> Vec<&Routed> {
        let mut layers: Vec<&Self> = self.layers().collect();
        layers.reverse();
        layers.into_iter().flat_map(|layer| &layer.routed).collect()
    }

    /// The Memory after a fork: the shared one with what each branch put, in order. Decisions, tracks and counts stay a
    /// branch's own, so that two branches may ask the same question. Copies nothing unless somebody else holds a share.
    pub fn join(shared: Arc<Self>, branches: impl IntoIterator<Item = Self>) -> Self {
        let branches: Vec<_> = branches.into_iter().map(|branch| branch.values).collect();
        let mut memory = Arc::unwrap_or_clone(shared);
        for values in branches {
            memory.values.extend(values.into_iter().filter(|(name, _)| !is_host_made(name)));
        }
        memory
    }

    /// Counts askings that an earlier run made.
    pub(super) fn count_askings(&mut self, askings: &BTreeMap<Arc<str>, u32>) {
        for (key, times) in askings {
            (0..*times).for_each(|_| {
                self.count_asking(key);
            });
        }
    }

    /// Takes back the counting of an asking that got no answer.
    pub(super) fn uncount_asking(&mut self, question_key: &str) {
        if let Some(count) = self.askings.get_mut(question_key) {
            *count = count.saturating_sub(1);
        }
    }

    /// Everything it holds: values by name, tracks in order, askings by key. `None` for a branch's.
    pub(super) fn into_parts(self) -> Option<Parts> {
        let values = self.values.into_values().collect();
        self.below.is_none().then_some((values, self.routed, self.askings))
    }

    /// A Memory that holds this.
    pub(super) fn from_parts(
        values: impl Iterator<Item = Value>,
        routed: Vec<Routed>,
        askings: BTreeMap<Arc<str>, u32>,
    ) -> Self {
        let values = values.map(|value| (value.type_name.clone(), value)).collect();
        Self { below: None, values, routed, askings }
    }

    /// This Memory and those below it. As many as parallel steps are nested, which verification bounds.
    fn layers(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |memory| memory.below.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::node::NodeIndex;

    fn value(type_name: &str, json: &str) -> Value {
        Value::new(type_name, json)
    }

    fn routed(track: &str) -> Routed {
        let question_key = "Team".to_string();
        Routed { node: NodeIndex(0), question_key, track: track.to_string(), fallback_reason: None }
    }

    /// C5: one value per type name; a newer one replaces the older.
    #[test]
    fn a_newer_value_replaces_the_older() {
        let mut memory = Memory::of(value("Order", "1"));
        memory.put(value("Payment", "2"));
        memory.put(value("Order", "3"));

        assert_eq!(memory.get("Order"), Some(&value("Order", "3")));
        assert_eq!(memory.get("Payment"), Some(&value("Payment", "2")));
        assert_eq!(memory.get("Receipt"), None);
    }

    /// C5, C20: a branch sees what was there at the fork, and nobody sees what it puts until it is joined.
    #[test]
    fn branches_see_the_fork_and_not_each_other() {
        let mut memory = Memory::of(value("Order", "1"));
        memory.take_track(routed("before"));
        let shared = Arc::new(memory);
        let mut left = Memory::over(shared.clone());
        let mut right = Memory::over(shared.clone());
        left.put(value("Order", "2"));
        left.put(value("YesNoDecision<Fraud>", "{}"));
        left.take_track(routed("left"));
        right.put(value("Score", "3"));

        assert_eq!(left.get("Order"), Some(&value("Order", "2")));
        assert_eq!(right.get("Order"), Some(&value("Order", "1")));
        assert_eq!(left.get("Score"), None);
        let tracks: Vec<&str> = left.tracks().iter().map(|routed| routed.track.as_str()).collect();
        assert_eq!(tracks, ["before", "left"]);

        let joined = Memory::join(shared, [left, right]);
        assert_eq!(joined.get("Order"), Some(&value("Order", "2")));
        assert_eq!(joined.get("Score"), Some(&value("Score", "3")));
        assert_eq!(joined.get("YesNoDecision<Fraud>"), None);
        assert_eq!(joined.tracks().len(), 1);
    }

    /// C22: askings are counted per key, and in a branch on from the fork.
    #[test]
    fn askings_are_counted_on_from_the_fork() {
        let mut memory = Memory::default();
        assert_eq!([memory.count_asking("Team"), memory.count_asking("Team")], [0, 1]);
        assert_eq!(memory.count_asking("Fraud"), 0);
        let shared = Arc::new(memory);
        let mut left = Memory::over(shared.clone());
        let mut right = Memory::over(shared.clone());
        assert_eq!([left.count_asking("Team"), left.count_asking("Team")], [2, 3]);
        assert_eq!(right.count_asking("Team"), 2);

        drop(left);
        let mut joined = Memory::join(shared, [right]);
        assert_eq!(joined.count_asking("Team"), 2);
    }
}
