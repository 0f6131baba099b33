//! What can go wrong with the store, told so that an operator knows what, where, and what to do.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::model::ids::RunId;

/// A failed call of the store. Its text never holds a password: a [`Place`] has none.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The URL is not one of a store.
    #[error(
        "{0}; give `sqlite:path/to/file`, `sqlite::memory:` or `postgres://user@host/database`"
    )]
    Url(String),
    /// The database does not answer.
    #[error("cannot reach {place}; check that it runs and that the URL is right")]
    Unreachable {
        /// Where.
        place: Place,
        /// What the driver says.
        source: Box<sqlx::Error>,
    },
    /// The database refused the user name, the password or the database's name.
    #[error("{place} refused the connection; check user name, password and database in the URL")]
    Refused {
        /// Where.
        place: Place,
        /// What the driver says.
        source: Box<sqlx::Error>,
    },
    /// The file cannot be opened.
    #[error("cannot open {place}: {problem}")]
    NotOpened {
        /// Where.
        place: Place,
        /// Why, and what to do.
        problem: &'static str,
    },
    /// The file is a database of something else.
    #[error(
        "{0} belongs to another program: its tables are not those of trax; choose another file"
    )]
    Foreign(Place),
    /// The operating system does not let the file be read or written on.
    #[error("failed to read or write {place}; check its disk, and the limit on the size of files")]
    Disk {
        /// Where.
        place: Place,
        /// What the driver says.
        source: Box<sqlx::Error>,
    },
    /// The database may be read but not written.
    #[error("{0} is read-only; make it writable for this user, or choose another")]
    ReadOnly(Place),
    /// The file is no database, or a damaged one.
    #[error("{0} is damaged or is no SQLite database; restore it from a backup, or choose another")]
    Damaged(Place),
    /// The disk is full.
    #[error("{0} has no space left; free some disk space, then try again")]
    Full(Place),
    /// Somebody else holds what this call waits for.
    #[error("{0} is busy: another process or a long transaction holds it; try again")]
    Busy(Place),
    /// No connection came free in time, or none could be made.
    #[error("no connection to {0}: it does not answer, or all connections are in use; try again")]
    NoConnection(Place),
    /// A newer trax has changed the schema.
    #[error(
        "{place} has schema version {found}, and this trax knows versions up to {known}; run the newer trax"
    )]
    Newer {
        /// Where.
        place: Place,
        /// The schema's version.
        found: i64,
        /// The newest version known.
        known: i64,
    },
    /// The schema has not been migrated to what this trax needs.
    #[error(
        "{place} has schema version {found}, and this trax needs version {known}; run `trax db migrate`"
    )]
    Older {
        /// Where.
        place: Place,
        /// The schema's version, 0 when there is none.
        found: i64,
        /// The version needed.
        known: i64,
    },
    /// A migration did not succeed; nothing of it is kept.
    #[error("failed to migrate {place} with '{migration}'")]
    Migration {
        /// Where.
        place: Place,
        /// The migration's number and name.
        migration: String,
        /// What the driver says.
        source: Box<sqlx::Error>,
    },
    /// There is no such thing, or it is another tenant's.
    #[error("{what} {id} not found")]
    NotFound {
        /// A dead letter, a run, ...
        what: &'static str,
        /// Which.
        id: String,
    },
    /// The thing exists, but not in the state that the change needs.
    #[error("{what} {id} is not {expected}, so nothing was changed")]
    WrongState {
        /// A dead letter, a run, ...
        what: &'static str,
        /// Which.
        id: String,
        /// The state it should have.
        expected: &'static str,
    },
    /// Something else has that name already.
    #[error("{what} '{name}' {problem}")]
    Conflict {
        /// A tenant, a train, ...
        what: &'static str,
        /// Its name.
        name: String,
        /// Why it cannot have it.
        problem: String,
    },
    /// The tenant has as many queued entries as it may.
    #[error(
        "the tenant has {0} queued jobs, which is its limit, so nothing was queued; wait, or raise the limit with \
         `trax tenants set`"
    )]
    QueueFull(i32),
    /// This host no longer owns the run: it ended, or somebody else claimed it. Nothing was written.
    #[error("run {0} is no longer claimed by this host, so nothing was written")]
    LostClaim(RunId),
    /// The operating system gave no random bytes for an id.
    #[error("failed to make an id")]
    Random(#[source] std::io::Error),
    /// A test stopped the host at this point.
    #[error("stopped by an injected fault")]
    Injected,
    /// Anything else the driver reports.
    #[error("{place} failed")]
    Driver {
        /// Where.
        place: Place,
        /// What the driver says.
        source: Box<sqlx::Error>,
    },
}

impl StoreError {
    /// Whether it is the database that failed, and not what it was asked: the same call can succeed when the database
    /// is well again.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Refused { .. }
                | Self::NotOpened { .. }
                | Self::Disk { .. }
                | Self::ReadOnly(_)
                | Self::Damaged(_)
                | Self::Full(_)
                | Self::Busy(_)
                | Self::NoConnection(_)
        )
    }
}

impl StoreError {
    /// Whether a write was refused because another row has what has to be unique.
    pub fn is_taken(&self) -> bool {
        let Self::Driver { source, .. } = self else { return false };
        source.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
    }

    /// Whether the store will never take the value that it was given.
    pub fn is_refusal_of_value(&self) -> bool {
        let Self::Driver { source, .. } = self else { return false };
        let code = source.as_database_error().and_then(sqlx::error::DatabaseError::code);
        code.is_some_and(|code| refuses_value(&code))
    }
}

/// Bad data, a broken constraint, or more than a row may hold, as each database says it.
fn refuses_value(code: &str) -> bool {
    if code.len() == 5 {
        return ["22", "23", "54"].iter().any(|class| code.starts_with(class));
    }
    code.parse::<u32>().is_ok_and(|number| matches!(number & 0xff, 18..=20))
}

/// Where the store is, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(Arc<str>);

impl Place {
    /// A SQLite file.
    pub(super) fn file(path: &str) -> Self {
        Self(format!("the SQLite file '{path}'").into())
    }

    /// A SQLite database in memory.
    pub(super) fn memory() -> Self {
        Self("the SQLite database in memory".into())
    }

    /// A Postgres database.
    pub(super) fn postgres(host: &str, port: u16, user: &str, database: &str) -> Self {
        Self(
            format!("the Postgres database '{database}' at {host}:{port}, as user '{user}'").into(),
        )
    }

    /// The driver's error as what an operator can act on.
    pub(super) fn error(&self, source: sqlx::Error) -> StoreError {
        let place = self.clone();
        let cause = match &source {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed => Cause::Unreachable,
            sqlx::Error::PoolTimedOut => Cause::NoConnection,
            sqlx::Error::Database(error) => cause(error.code().as_deref().unwrap_or_default()),
            _ => Cause::Other,
        };
        match cause {
            Cause::Unreachable => StoreError::Unreachable { place, source: Box::new(source) },
            Cause::Refused => StoreError::Refused { place, source: Box::new(source) },
            Cause::NotOpened => StoreError::NotOpened {
                place,
                problem: "this user may not read or write the file or its folder; change their permissions, or choose \
                          another",
            },
            Cause::Disk => StoreError::Disk { place, source: Box::new(source) },
            Cause::ReadOnly => StoreError::ReadOnly(place),
            Cause::Damaged => StoreError::Damaged(place),
            Cause::Full => StoreError::Full(place),
            Cause::Busy => StoreError::Busy(place),
            Cause::NoConnection => StoreError::NoConnection(place),
            Cause::Other => StoreError::Driver { place, source: Box::new(source) },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Cause {
    Unreachable,
    Refused,
    NotOpened,
    Disk,
    ReadOnly,
    Damaged,
    Full,
    Busy,
    NoConnection,
    Other,
}

/// What a driver's code means. Postgres's have five characters; SQLite's are numbers whose low byte is the kind.
fn cause(code: &str) -> Cause {
    if code.len() == 5 {
        return match code {
            "28P01" | "28000" | "3D000" | "42501" => Cause::Refused,
            "25006" => Cause::ReadOnly,
            "53100" => Cause::Full,
            "40001" | "40P01" | "55P03" | "57014" => Cause::Busy,
            "25P03" | "53300" | "57P01" | "57P02" | "57P03" | "57P05" => Cause::Unreachable,
            "XX001" | "XX002" => Cause::Damaged,
            _ if code.starts_with("08") => Cause::Unreachable,
            _ => Cause::Other,
        };
    }
    match code.parse::<u32>().map(|number| number & 0xff) {
        Ok(5 | 6) => Cause::Busy,
        Ok(8) => Cause::ReadOnly,
        Ok(11 | 26) => Cause::Damaged,
        Ok(13) => Cause::Full,
        Ok(10) => Cause::Disk,
        Ok(14) => Cause::NotOpened,
        _ => Cause::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drivers_code_is_told_as_what_to_do_about_it() {
        let cases = [
            ("28P01", Cause::Refused),
            ("3D000", Cause::Refused),
            ("53100", Cause::Full),
            ("57P03", Cause::Unreachable),
            ("08006", Cause::Unreachable),
            ("55P03", Cause::Busy),
            ("40001", Cause::Busy),
            ("25P03", Cause::Unreachable),
            ("25006", Cause::ReadOnly),
            ("42P01", Cause::Other),
            ("5", Cause::Busy),
            ("517", Cause::Busy),
            ("1032", Cause::ReadOnly),
            ("11", Cause::Damaged),
            ("26", Cause::Damaged),
            ("13", Cause::Full),
            ("14", Cause::NotOpened),
            ("778", Cause::Disk),
            ("2067", Cause::Other),
            ("", Cause::Other),
        ];
        for (code, expected) in cases {
            assert_eq!(cause(code), expected, "{code}");
        }
    }
}
