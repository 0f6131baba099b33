//! Real host processes on a real database: killed, drained, started again.
//!
//! A test waits for what a process prints or for what the database holds, and for nothing else.

/// Makes each case two tests, so that a failure names the database.
macro_rules! process_cases {
    ($($case:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $case() { $crate::processes::site::on_sqlite(super::$case); })*
        }

        mod postgres {
            $(#[test] fn $case() {
                $crate::processes::site::on_postgres(concat!("processes_", stringify!($case)), super::$case);
            })*
        }
    };
}

mod host;
pub(crate) mod random;
mod site;

mod hand_over;
mod kills;
mod restarts;
mod serve;
