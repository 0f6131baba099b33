//! What a set of manifests would do: every firing, retry and dead letter up to an instant, on a clock that only this
//! module moves. Nothing runs, and nothing is written.
//!
//! The rules are those of [`schedule`](crate::model::schedule) and [`retry`](crate::model::retry); what they leave open
//! is assumed: a run takes no time, whoever is due gets a worker at once, and nobody triggers anything. The variance of
//! a schedule is drawn after each success, and is left out here.

mod plans;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use crate::model::retry::{Facts, Next, RetryPolicy};
use crate::model::schedule::zone::Zone;
use crate::model::schedule::{Anchors, Schedule};
use crate::model::timestamp::Timestamp;
pub use crate::operations::sim::plans::{of_database, of_files};

/// A manifest as it stands where the simulation starts.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its external id.
    pub id: String,
    /// The zone in which people read its instants.
    pub zone: Zone,
    /// What makes it due by time, if anything does.
    pub schedule: Option<Schedule>,
    /// What that is measured from.
    pub anchors: Anchors,
    /// The manifest whose successes make it due.
    pub parent: Option<String>,
    /// The last success of that one which it has not used up.
    pub parent_succeeded_at: Option<Timestamp>,
    /// When its failures that may still count began.
    pub failures: Vec<Timestamp>,
    /// Whether its newest finished run failed.
    pub has_last_failed: bool,
    /// How many retries it has.
    pub max_retries: i32,
    /// How long a failure counts.
    pub window: Duration,
    /// Why it does nothing, if that is so.
    pub is_held: Option<&'static str>,
}

/// What is assumed of the runs of a manifest: how many of the next ones fail. `None`: all of them.
pub type Failing = BTreeMap<String, Option<u32>>;

/// How far a simulation goes.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Where it starts.
    pub from: Timestamp,
    /// Where it ends, itself included.
    pub until: Timestamp,
    /// The most events that are told.
    pub events_max: usize,
}

/// What happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A run, and the occurrence that it stands for.
    Run {
        /// The occurrence.
        occurrence: Option<Timestamp>,
        /// Whether it is assumed to fail.
        fails: bool,
    },
    /// A retry after so many failures.
    Retry {
        /// How many.
        failures: i64,
        /// How long it was held back.
        delay: Duration,
        /// Whether it is assumed to fail.
        fails: bool,
    },
    /// A dead letter: nothing more happens until somebody resolves it.
    DeadLetter {
        /// What it says.
        reason: String,
    },
}

/// Something that happens to a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// The manifest's place among the plans.
    pub plan: usize,
    /// What.
    pub what: What,
}

/// What a simulation came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// What happens, in order.
    pub events: Vec<Event>,
    /// Whether there was more than is told.
    pub is_cut: bool,
}

/// What a manifest is looked at for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Its retry has waited.
    Retry(i64, Duration),
    /// It may be due.
    Look,
}

/// Simulates manifests.
pub fn simulate(plans: Vec<Plan>, failing: Failing, policy: &RetryPolicy, span: Span) -> Told {
    let mut simulation = Simulation::of(plans, failing, policy, span);
    while let Some(Reverse((at, plan, step))) = simulation.coming.pop() {
        if at > span.until {
            break;
        }
        if simulation.told.events.len() >= span.events_max {
            simulation.told.is_cut = true;
            break;
        }
        match step {
            Step::Look => simulation.look(at, plan),
            Step::Retry(failures, delay) => {
                simulation.is_waiting[plan] = false;
                let fails = simulation.fails(plan);
                simulation.tell(at, plan, What::Retry { failures, delay, fails });
                simulation.end(at, plan, None, fails);
            }
        }
    }
    simulation.told
}

struct Simulation<'p> {
    plans: Vec<Plan>,
    children: Vec<Vec<usize>>,
    /// Whose retry is queued: nothing else is queued for them.
    is_waiting: Vec<bool>,
    failing: Failing,
    policy: &'p RetryPolicy,
    coming: BinaryHeap<Reverse<(Timestamp, usize, Step)>>,
    told: Told,
}

impl<'p> Simulation<'p> {
    fn of(plans: Vec<Plan>, failing: Failing, policy: &'p RetryPolicy, span: Span) -> Self {
        let places: BTreeMap<&str, usize> =
            plans.iter().enumerate().map(|(place, plan)| (plan.id.as_str(), place)).collect();
        let mut children = vec![Vec::new(); plans.len()];
        for (place, plan) in plans.iter().enumerate() {
            if let Some(parent) = plan.parent.as_deref().and_then(|id| places.get(id)) {
                children[*parent].push(place);
            }
        }
        let looks = (0..plans.len()).map(|plan| Reverse((span.from, plan, Step::Look)));
        let coming = looks.collect();
        let is_waiting = vec![false; plans.len()];
        Self { plans, children, is_waiting, failing, policy, coming, told: Told::default() }
    }

    fn tell(&mut self, at: Timestamp, plan: usize, what: What) {
        self.told.events.push(Event { at, plan, what });
    }

    /// Looks at a manifest as the manager does.
    fn look(&mut self, now: Timestamp, place: usize) {
        let plan = &mut self.plans[place];
        if plan.is_held.is_some() || self.is_waiting[place] {
            return;
        }
        let since = now.saturating_sub(plan.window);
        plan.failures.retain(|failed| *failed >= since);
        let facts = Facts {
            failures: i64::try_from(plan.failures.len()).unwrap_or(i64::MAX),
            has_last_failed: plan.has_last_failed,
            max_retries: plan.max_retries,
        };
        let due = match (&plan.schedule, &plan.parent) {
            (_, Some(_)) => plan.parent_succeeded_at,
            (Some(schedule), None) => schedule.due_at(&plan.anchors, now),
            (None, None) => None,
        };
        let next = facts.next(self.policy);
        if let Next::DeadLetter { reason } = next {
            plan.is_held = Some("a dead letter of it awaits somebody");
            return self.tell(now, place, What::DeadLetter { reason });
        }
        let Some(due) = due else { return };
        if due > now {
            return self.coming.push(Reverse((due, place, Step::Look)));
        }
        if let Next::Retry { delay } = next {
            let step = Step::Retry(facts.failures, delay);
            self.is_waiting[place] = true;
            return self.coming.push(Reverse((now.saturating_add(delay), place, step)));
        }
        let occurrence = match &plan.schedule {
            Some(schedule) => schedule.occurrence(&plan.anchors, now),
            None => plan.parent_succeeded_at,
        };
        let fails = self.fails(place);
        self.tell(now, place, What::Run { occurrence, fails });
        self.end(now, place, occurrence, fails);
    }

    /// Whether the next run of a manifest is assumed to fail.
    fn fails(&mut self, place: usize) -> bool {
        match self.failing.get_mut(&self.plans[place].id) {
            None => false,
            Some(None) => true,
            Some(Some(left)) => {
                let fails = *left > 0;
                *left = left.saturating_sub(1);
                fails
            }
        }
    }

    /// A run has ended, at once.
    fn end(&mut self, now: Timestamp, place: usize, occurrence: Option<Timestamp>, fails: bool) {
        let plan = &mut self.plans[place];
        plan.has_last_failed = fails;
        if fails {
            plan.failures.push(now);
        } else {
            // A retry stands for the occurrence that was due.
            let due = || plan.schedule.as_ref()?.occurrence(&plan.anchors, now);
            plan.anchors = Anchors {
                last_occurrence: occurrence.or_else(due),
                last_success: Some(now),
                ..Anchors::default()
            };
            plan.parent_succeeded_at = None;
            for child in &self.children[place] {
                self.plans[*child].parent_succeeded_at = Some(now);
                self.coming.push(Reverse((now, *child, Step::Look)));
            }
        }
        self.coming.push(Reverse((now, place, Step::Look)));
    }
}
