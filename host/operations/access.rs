//! Who asks, what they may, and the record of what came of it.
//!
//! Whoever asks is looked at before what they ask is read; whatever they ask to change is in the audit, done or not.

use crate::engine::error::causes;
use crate::model::access::Role;
use crate::model::ids::TenantId;
use crate::operations::error::OperationError;
use crate::operations::outcome::Outcome;
use crate::operations::requeue_jobs::RequeueJob;
use crate::operations::triggers::Triggered;
use crate::store::audit::{self, NewRecord};
use crate::store::{Db, StoreError};

/// How much of a message or a target the audit keeps, in characters.
const KEPT_MAX: usize = 500;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// For whom.
    pub tenant: TenantId,
    /// The name of their token, or of the user of this machine.
    pub name: String,
    /// What they may.
    pub role: Role,
    /// The address or the machine they ask from.
    pub origin: String,
}

macro_rules! actions {
    ($($variant:ident $name:literal $role:ident;)*) => {
        /// What somebody can ask to change. Its name is that of the mutation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum Action {
            $($variant,)*
        }

        impl Action {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name of the mutation.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What whoever asks has to be.
            pub const fn needs(self) -> Role {
                match self {
                    $(Self::$variant => Role::$role,)*
                }
            }
        }
    };
}

actions! {
    QueueTrain "queueTrain" Operator;
    CancelWorkQueueEntry "cancelWorkQueueEntry" Operator;
    CancelWorkQueueEntries "cancelWorkQueueEntries" Operator;
    TriggerManifest "triggerManifest" Operator;
    TriggerManifestDelayed "triggerManifestDelayed" Operator;
    EnableManifest "enableManifest" Operator;
    DisableManifest "disableManifest" Operator;
    CancelManifest "cancelManifest" Operator;
    SetManifestsEnabled "setManifestsEnabled" Operator;
    SetManifestsReplayDecisionsOnRetry "setManifestsReplayDecisionsOnRetry" Operator;
    TriggerGroup "triggerGroup" Operator;
    CancelExecution "cancelExecution" Operator;
    CancelExecutions "cancelExecutions" Operator;
    RequeueExecution "requeueExecution" Operator;
    ResumeExecution "resumeExecution" Operator;
    SetManifestGroupsEnabled "setManifestGroupsEnabled" Operator;
    RequeueDeadLetter "requeueDeadLetter" Operator;
    RequeueDeadLetters "requeueDeadLetters" Operator;
    RequeueAllDeadLetters "requeueAllDeadLetters" Operator;
    AcknowledgeDeadLetter "acknowledgeDeadLetter" Operator;
    AcknowledgeDeadLetters "acknowledgeDeadLetters" Operator;
    AcknowledgeAllDeadLetters "acknowledgeAllDeadLetters" Operator;
    LabelDecision "labelDecision" Operator;
    CreateToken "createToken" Admin;
    RevokeToken "revokeToken" Admin;
}

/// What an action came to, as the audit keeps it.
pub trait Audited {
    /// Whether it was done, and what whoever asked was told.
    fn told(&self) -> (bool, String);
}

impl Audited for Outcome {
    fn told(&self) -> (bool, String) {
        (self.is_done, self.message.clone())
    }
}

impl Audited for RequeueJob {
    fn told(&self) -> (bool, String) {
        (self.started, self.message.clone())
    }
}

impl Audited for Triggered {
    fn told(&self) -> (bool, String) {
        (true, self.message())
    }
}

/// Carries an action out if the caller may ask for it, and keeps a record of it either way. The work is not begun
/// before that is known.
///
/// # Errors
/// [`OperationError::Forbidden`] when they may not, and what the work fails with.
pub async fn act<T: Audited, E: Into<OperationError>>(
    db: &Db,
    caller: &Caller,
    action: Action,
    target: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, OperationError> {
    let done = if caller.role >= action.needs() {
        work.await.map_err(Into::into)
    } else {
        Err(OperationError::Forbidden)
    };
    let (outcome, message) = match &done {
        Ok(done) => match done.told() {
            (true, message) => ("done", message),
            (false, message) => ("refused", message),
        },
        Err(OperationError::Forbidden) => ("forbidden", OperationError::Forbidden.to_string()),
        Err(OperationError::NotFound(message) | OperationError::Invalid(message)) => {
            ("refused", message.clone())
        }
        // What a store says can name what nobody but an operator of the host may know.
        Err(_) => ("failed", "see the server's log".to_owned()),
    };
    let record = NewRecord {
        tenant: caller.tenant,
        who: &caller.name,
        origin: &caller.origin,
        action: action.as_str(),
        target: &kept(target),
        outcome,
        message: &kept(&message),
    };
    if let Err(error) = keep(db, &record).await {
        let error = causes(&error);
        tracing::error!(?record, error, "an action is missing from the audit");
    }
    done
}

async fn keep(db: &Db, record: &NewRecord<'_>) -> Result<(), StoreError> {
    db.write(async |tx| audit::add(tx, record).await).await
}

/// As much of a text as the audit keeps; databases do not keep NUL.
fn kept(text: &str) -> String {
    text.chars().filter(|letter| *letter != '\0').take(KEPT_MAX).collect()
}
