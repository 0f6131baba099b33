//! How the types of the model stand in columns, on both databases.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, PgValueFormat, PgValueRef};
use sqlx::sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Postgres, Sqlite, Type};

use crate::model::access::Role;
use crate::model::failure::FailureClass;
use crate::model::ids::{
    AuditId, ClaimToken, DeadLetterId, DecisionId, EntryId, GroupId, Incarnation, ManifestId,
    RunId, TenantId, TokenId, VersionId,
};
use crate::model::timestamp::Timestamp;

type Encoded = Result<IsNull, BoxDynError>;

/// Stores a newtype as what it holds.
macro_rules! as_inner {
    ($inner:ty: $($name:ident)*) => {$(
        impl Type<Sqlite> for $name {
            fn type_info() -> SqliteTypeInfo {
                <$inner as Type<Sqlite>>::type_info()
            }

            fn compatible(info: &SqliteTypeInfo) -> bool {
                <$inner as Type<Sqlite>>::compatible(info)
            }
        }

        impl Type<Postgres> for $name {
            fn type_info() -> PgTypeInfo {
                <$inner as Type<Postgres>>::type_info()
            }

            fn compatible(info: &PgTypeInfo) -> bool {
                <$inner as Type<Postgres>>::compatible(info)
            }
        }

        impl Encode<'_, Sqlite> for $name {
            fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Encoded {
                Encode::<Sqlite>::encode_by_ref(&self.0, buffer)
            }
        }

        impl Encode<'_, Postgres> for $name {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Encoded {
                Encode::<Postgres>::encode_by_ref(&self.0, buffer)
            }
        }

        impl Decode<'_, Sqlite> for $name {
            fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
                Decode::<Sqlite>::decode(value).map(Self)
            }
        }

        impl Decode<'_, Postgres> for $name {
            fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
                Decode::<Postgres>::decode(value).map(Self)
            }
        }
    )*};
}

as_inner!(i64: TenantId VersionId GroupId ManifestId EntryId RunId DeadLetterId DecisionId);
as_inner!(i64: ClaimToken TokenId AuditId);
as_inner!(String: Incarnation);

/// Stores an enum as the text that its `as_str` gives and its `of_str` reads.
macro_rules! as_text {
    ($($name:ident)*) => {$(
        impl Type<Sqlite> for $name {
            fn type_info() -> SqliteTypeInfo {
                <str as Type<Sqlite>>::type_info()
            }
        }

        impl Type<Postgres> for $name {
            fn type_info() -> PgTypeInfo {
                <str as Type<Postgres>>::type_info()
            }

            fn compatible(info: &PgTypeInfo) -> bool {
                <str as Type<Postgres>>::compatible(info)
            }
        }

        impl Encode<'_, Sqlite> for $name {
            fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Encoded {
                Encode::<Sqlite>::encode(self.as_str(), buffer)
            }
        }

        impl Encode<'_, Postgres> for $name {
            fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Encoded {
                Encode::<Postgres>::encode(self.as_str(), buffer)
            }
        }

        impl Decode<'_, Sqlite> for $name {
            fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
                Self::of_str(Decode::<Sqlite>::decode(value)?)
            }
        }

        impl Decode<'_, Postgres> for $name {
            fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
                Self::of_str(Decode::<Postgres>::decode(value)?)
            }
        }
    )*};
}

/// Declares an enum that is stored as text.
macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every one, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The text in rows and output.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            fn of_str(text: &str) -> Result<Self, BoxDynError> {
                match text {
                    $($text => Ok(Self::$variant),)*
                    _ => Err(unknown(stringify!($name), text)),
                }
            }
        }
    };
}

fn unknown(name: &str, text: &str) -> BoxDynError {
    format!("'{text}' is no {name} that this trax knows").into()
}

text_enum! {
    /// Where a run is in its life.
    ///
    /// ```text
    /// pending -> in_progress -> completed | failed | cancelled
    ///    \-----------------------------------^---------^
    /// ```
    ///
    /// A parked run is in progress, and nobody owns it.
    TrainState {
        /// Nobody has started it.
        Pending = "pending",
        /// It runs or is parked.
        InProgress = "in_progress",
        /// It reached the end of its chain.
        Completed = "completed",
        /// It did not.
        Failed = "failed",
        /// An operator or its timeout ended it.
        Cancelled = "cancelled",
    }
}

text_enum! {
    /// What makes a manifest due.
    ScheduleType {
        /// Only triggers.
        None = "none",
        /// A cron expression.
        Cron = "cron",
        /// A length of time after the last success.
        Interval = "interval",
        /// Only triggers, and meant so.
        OnDemand = "on_demand",
        /// A success of its parent.
        Dependent = "dependent",
        /// A run of its parent that activates it.
        DormantDependent = "dormant_dependent",
        /// One instant, once.
        Once = "once",
    }
}

text_enum! {
    /// What happens to an occurrence that was missed.
    MisfirePolicy {
        /// It fires once, late.
        FireOnceNow = "fire_once_now",
        /// It is left out.
        DoNothing = "do_nothing",
    }
}

text_enum! {
    /// Where an entry of the queue is.
    EntryStatus {
        /// It waits.
        Queued = "queued",
        /// A run came out of it.
        Dispatched = "dispatched",
        /// It was withdrawn.
        Cancelled = "cancelled",
    }
}

text_enum! {
    /// What became of a dead letter.
    DeadLetterStatus {
        /// It waits for somebody.
        AwaitingIntervention = "awaiting_intervention",
        /// It was requeued.
        Retried = "retried",
        /// Somebody took note, and nothing runs again for it.
        Acknowledged = "acknowledged",
    }
}

text_enum! {
    /// What a recorded step of a run is.
    JunctionRunKind {
        /// A junction's call.
        Junction = "junction",
        /// A question with options.
        Choice = "choice",
        /// A question with a scale.
        Score = "score",
        /// A question of yes or no.
        YesNo = "yes_no",
        /// A track taken.
        Route = "route",
    }
}

text_enum! {
    /// Where a recorded step of a run is.
    JunctionRunState {
        /// It has begun.
        InProgress = "in_progress",
        /// It is done.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// The run was cancelled meanwhile.
        Cancelled = "cancelled",
    }
}

text_enum! {
    /// How much a line of the log matters.
    LogLevel {
        /// Every detail.
        Trace = "trace",
        /// For finding faults.
        Debug = "debug",
        /// For the record.
        Information = "information",
        /// Something to look at.
        Warning = "warning",
        /// Something failed.
        Error = "error",
        /// Something is broken.
        Critical = "critical",
    }
}

text_enum! {
    /// Why a run is parked.
    ParkReason {
        /// A person has been asked.
        Person = "person",
        /// There was no room for it.
        Capacity = "capacity",
        /// Its host drained.
        HandOver = "hand_over",
    }
}

as_text!(TrainState ScheduleType MisfirePolicy EntryStatus DeadLetterStatus JunctionRunKind);
as_text!(JunctionRunState LogLevel ParkReason FailureClass Role);

impl FailureClass {
    fn of_str(text: &str) -> Result<Self, BoxDynError> {
        match text {
            "transient" => Ok(Self::Transient),
            "conflict" => Ok(Self::Conflict),
            "unclassified" => Ok(Self::Unclassified),
            "permanent" => Ok(Self::Permanent),
            _ => Err(unknown("FailureClass", text)),
        }
    }
}

impl Role {
    fn of_str(text: &str) -> Result<Self, BoxDynError> {
        Self::of_name(text).ok_or_else(|| unknown("Role", text))
    }
}

/// Postgres counts microseconds from the year 2000.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;
/// The type `timestamptz` in every Postgres.
const TIMESTAMPTZ: PgTypeInfo = PgTypeInfo::with_oid(Oid(1184));

impl Type<Sqlite> for Timestamp {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }

    fn compatible(info: &SqliteTypeInfo) -> bool {
        <i64 as Type<Sqlite>>::compatible(info)
    }
}

impl Type<Postgres> for Timestamp {
    fn type_info() -> PgTypeInfo {
        TIMESTAMPTZ
    }
}

impl Encode<'_, Sqlite> for Timestamp {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Sqlite>::encode(self.as_micros(), buffer)
    }
}

impl Encode<'_, Postgres> for Timestamp {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode(self.as_micros() - POSTGRES_EPOCH_MICROS, buffer)
    }
}

impl Decode<'_, Sqlite> for Timestamp {
    fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
        instant(Decode::<Sqlite>::decode(value)?)
    }
}

impl Decode<'_, Postgres> for Timestamp {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        if value.format() == PgValueFormat::Text {
            return Err("an instant came as text; read it with a prepared statement".into());
        }
        let micros: [u8; 8] = value.as_bytes()?.try_into()?;
        instant(i64::from_be_bytes(micros).saturating_add(POSTGRES_EPOCH_MICROS))
    }
}

fn instant(micros: i64) -> Result<Timestamp, BoxDynError> {
    Timestamp::from_micros(micros).ok_or_else(|| "an instant beyond the calendar".into())
}

/// Reads a row into a struct whose fields are named like its columns.
macro_rules! row {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl sqlx::FromRow<'_, sqlx::sqlite::SqliteRow> for $name {
            fn from_row(row: &sqlx::sqlite::SqliteRow) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: sqlx::Row::try_get(row, stringify!($field))?,)* })
            }
        }

        impl sqlx::FromRow<'_, sqlx::postgres::PgRow> for $name {
            fn from_row(row: &sqlx::postgres::PgRow) -> Result<Self, sqlx::Error> {
                Ok(Self { $($field: sqlx::Row::try_get(row, stringify!($field))?,)* })
            }
        }
    };
}
pub(super) use row;
