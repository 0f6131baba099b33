//! The deciders that an operator has set up on a host, and which questions go to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::deciders::Decider;

/// The deciders of a host. They are shared by all runs, so limits on what is under way hold for the host.
#[derive(Debug, Clone, Default)]
pub struct HostDeciders {
    /// The deciders.
    pub by_name: BTreeMap<String, Arc<Decider>>,
    /// Who is asked where a step names nobody, whatever its train says.
    pub default: Option<String>,
    /// Who is asked a question, by its key, whatever the step says.
    pub by_question: BTreeMap<String, String>,
    /// Who is asked a question beside those that its step names, by its key. What they answer is never acted on.
    pub shadows: BTreeMap<String, Vec<String>>,
    /// How long a run waits for shadows, where its step does not say.
    pub wait_for_shadows: Option<Duration>,
}
