//! Ids of stored things, so that one never stands where another is meant.

use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// Whose it is.
    TenantId;
    /// One version of a component.
    VersionId;
    /// A group of manifests.
    GroupId;
    /// A manifest.
    ManifestId;
    /// An entry of the queue.
    EntryId;
    /// A run.
    RunId;
    /// A dead letter.
    DeadLetterId;
    /// A recorded decision.
    DecisionId;
    /// A token of the API.
    TokenId;
    /// A record of the audit.
    AuditId;
    /// Which claim of a run: it goes up with every claim, and a write that carries an older one changes nothing.
    ClaimToken;
}

/// One start of a host: random, and never used again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub String);

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The right to write to a run, until somebody else claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The run.
    pub run: RunId,
    /// Which claim of it.
    pub token: ClaimToken,
}
