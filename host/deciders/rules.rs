//! The rule decider that a component ships: its own `decide` export, in an instance without grants.

use std::sync::Arc;

use crate::chain::declaration::Isolation;
use crate::deciders::Request;
use crate::guest::GuestError;
use crate::guest::component::Component;
use crate::guest::context::CallContext;
use crate::guest::outcome::Ended;
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::limits::Limits;

/// A rule decider of one train of one component.
pub struct RuleDecider {
    component: Arc<Component>,
    name: String,
    limits: Limits,
}

impl RuleDecider {
    /// The decider that the component serves under this name.
    pub const fn new(component: Arc<Component>, name: String, limits: Limits) -> Self {
        Self { component, name, limits }
    }

    /// Asks the component.
    ///
    /// # Errors
    /// The failure the component returned, or what its trap, limit or silence amounts to.
    pub async fn decide(&self, request: Request<'_>) -> Result<Vec<Answer>, Failure> {
        let mut session = Arc::clone(&self.component).session(Isolation::PerJunction);
        let call = CallContext::bare(self.limits.clone());
        let called = session
            .decide(call, request.train, &self.name, request.state, request.questions)
            .await
            .map_err(|error| host_failure(&error))?;
        match called.ended {
            Ended::Returned(answers) => Ok(answers),
            Ended::Failed(failure) => Err(failure),
            Ended::Cancelled => Err(Failure::transient("Cancelled", "the decider was stopped")),
        }
    }
}

fn host_failure(error: &GuestError) -> Failure {
    Failure::transient("HostFault", error.to_string())
}
