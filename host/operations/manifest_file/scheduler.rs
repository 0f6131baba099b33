//! `[scheduler]`: options that hold for everything a host does.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::de::DeTable;

use crate::operations::duration;
use crate::operations::manifest_file::{MISFIRES, SECOND, TEN_YEARS, or_none, whole_seconds};
use crate::operations::table::{Faults, Place, Section};
use crate::store::MisfirePolicy;
use crate::store::manifests::Setting;

const THIRTY_DAYS: Duration = Duration::from_hours(30 * 24);

/// Below, a host that is only busy counts as lost; above, nobody takes up what a lost one leaves.
const LEASES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_hours(1);

const KEYS: [&str; 32] = [
    "polling_interval",
    "manifest_manager_polling_interval",
    "job_dispatcher_polling_interval",
    "worker_count",
    "max_active_jobs",
    "exclude_from_max_active_jobs",
    "max_queued_jobs_per_cycle",
    "max_dispatch_attempts",
    "default_job_timeout",
    "shutdown_timeout",
    "host_lease",
    "default_max_retries",
    "failure_count_window",
    "retry_delay",
    "retry_backoff_multiplier",
    "max_retry_delay",
    "default_misfire_policy",
    "default_misfire_threshold",
    "metadata_cleanup_trains",
    "metadata_cleanup_interval",
    "metadata_cleanup_retention",
    "metadata_cleanup_batch_size",
    "auto_purge_dead_letters",
    "dead_letter_retention_period",
    "log_retention",
    "max_work_queue_entries_per_cycle",
    "dependent_priority_boost",
    "stale_staged_entry_timeout",
    "promote_stale_staged_entries",
    "stale_pending_timeout",
    "stale_in_progress_timeout",
    "liveness_timeout",
];

/// Options of the scheduler. What is `None` keeps its default.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheduler {
    /// Time between looks at which manifests are due.
    pub manifest_manager_polling_interval: Option<Duration>,
    /// Time between looks at the queue.
    pub job_dispatcher_polling_interval: Option<Duration>,
    /// How many runs this host has in progress at once.
    pub worker_count: Option<usize>,
    /// How many runs may be active on all hosts together.
    pub max_active_jobs: Setting<usize>,
    /// Trains whose runs do not count as active.
    pub exclude_from_max_active_jobs: Option<Vec<String>>,
    /// How many entries of one manifest group a look at the queue takes.
    pub max_queued_jobs_per_cycle: Setting<usize>,
    /// How often an entry is dispatched that no worker could take up; 0 and 1: once.
    pub max_dispatch_attempts: Option<i32>,
    /// How long a run may take, where the manifest does not state it.
    pub default_job_timeout: Option<Duration>,
    /// How long runs have to reach a boundary when the host ends.
    pub shutdown_timeout: Option<Duration>,
    /// How long a host may give no sign of life before its runs count as lost.
    pub host_lease: Option<Duration>,
    /// `max_retries` of a new manifest that does not state it.
    pub default_max_retries: Option<i32>,
    /// How long a failure counts, where the manifest does not state it.
    pub failure_count_window: Option<Duration>,
    /// The time before the first retry.
    pub retry_delay: Option<Duration>,
    /// What each further retry multiplies that time by.
    pub retry_backoff_multiplier: Option<f64>,
    /// The longest time before a retry.
    pub max_retry_delay: Option<Duration>,
    /// What happens to a missed occurrence, where the manifest does not state it.
    pub default_misfire_policy: Option<MisfirePolicy>,
    /// How late is not missed, where the manifest does not state it.
    pub default_misfire_threshold_seconds: Option<i32>,
    /// The trains whose finished runs are deleted when they are old, `name` or `name=7d`.
    pub metadata_cleanup_trains: Option<BTreeMap<String, Option<Duration>>>,
    /// Time between two sweeps.
    pub metadata_cleanup_interval: Option<Duration>,
    /// How long runs are kept, where their train does not state it.
    pub metadata_cleanup_retention: Option<Duration>,
    /// How many runs one transaction deletes.
    pub metadata_cleanup_batch_size: Option<u32>,
    /// Whether resolved dead letters are deleted when they are old.
    pub auto_purge_dead_letters: Option<bool>,
    /// How long resolved dead letters are kept.
    pub dead_letter_retention_period: Option<Duration>,
    /// How long lines of logs are kept whose runs stay.
    pub log_retention: Option<Duration>,
    /// How many entries a look at which manifests are due makes.
    pub max_work_queue_entries_per_cycle: Setting<u32>,
    /// How much higher the priority of a dependent's entries is than its manifest's.
    pub dependent_priority_boost: Option<i16>,
    /// How long an entry may be staged before it is resolved.
    pub stale_staged_entry_timeout: Option<Duration>,
    /// Whether an entry staged for too long is dispatched rather than withdrawn.
    pub promote_stale_staged_entries: Option<bool>,
    /// How long a run may wait for somebody to pick it up.
    pub stale_pending_timeout: Option<Duration>,
    /// How long a run may be in progress that did not stop when it was asked to.
    pub stale_in_progress_timeout: Option<Duration>,
    /// How long the dispatcher may be silent before the process counts as hung.
    pub liveness_timeout: Option<Duration>,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self {
            manifest_manager_polling_interval: None,
            job_dispatcher_polling_interval: None,
            worker_count: None,
            max_active_jobs: Setting::Keep,
            exclude_from_max_active_jobs: None,
            max_queued_jobs_per_cycle: Setting::Keep,
            max_dispatch_attempts: None,
            default_job_timeout: None,
            shutdown_timeout: None,
            host_lease: None,
            default_max_retries: None,
            failure_count_window: None,
            retry_delay: None,
            retry_backoff_multiplier: None,
            max_retry_delay: None,
            default_misfire_policy: None,
            default_misfire_threshold_seconds: None,
            metadata_cleanup_trains: None,
            metadata_cleanup_interval: None,
            metadata_cleanup_retention: None,
            metadata_cleanup_batch_size: None,
            auto_purge_dead_letters: None,
            dead_letter_retention_period: None,
            log_retention: None,
            max_work_queue_entries_per_cycle: Setting::Keep,
            dependent_priority_boost: None,
            stale_staged_entry_timeout: None,
            promote_stale_staged_entries: None,
            stale_pending_timeout: None,
            stale_in_progress_timeout: None,
            liveness_timeout: None,
        }
    }
}

impl Scheduler {
    /// The options stated that hold for the host that runs, and are nothing that is stored with manifests.
    pub fn host_options(&self) -> Vec<&'static str> {
        let stated = [
            ("manifest_manager_polling_interval", self.manifest_manager_polling_interval.is_some()),
            ("job_dispatcher_polling_interval", self.job_dispatcher_polling_interval.is_some()),
            ("worker_count", self.worker_count.is_some()),
            ("max_active_jobs", self.max_active_jobs != Setting::Keep),
            ("exclude_from_max_active_jobs", self.exclude_from_max_active_jobs.is_some()),
            ("max_queued_jobs_per_cycle", self.max_queued_jobs_per_cycle != Setting::Keep),
            ("max_dispatch_attempts", self.max_dispatch_attempts.is_some()),
            ("default_job_timeout", self.default_job_timeout.is_some()),
            ("shutdown_timeout", self.shutdown_timeout.is_some()),
            ("host_lease", self.host_lease.is_some()),
            ("failure_count_window", self.failure_count_window.is_some()),
            ("retry_delay", self.retry_delay.is_some()),
            ("retry_backoff_multiplier", self.retry_backoff_multiplier.is_some()),
            ("max_retry_delay", self.max_retry_delay.is_some()),
            ("metadata_cleanup_trains", self.metadata_cleanup_trains.is_some()),
            ("metadata_cleanup_interval", self.metadata_cleanup_interval.is_some()),
            ("metadata_cleanup_retention", self.metadata_cleanup_retention.is_some()),
            ("metadata_cleanup_batch_size", self.metadata_cleanup_batch_size.is_some()),
            ("auto_purge_dead_letters", self.auto_purge_dead_letters.is_some()),
            ("dead_letter_retention_period", self.dead_letter_retention_period.is_some()),
            ("log_retention", self.log_retention.is_some()),
        ];
        let stated = stated.into_iter().chain(self.staging_options());
        stated.filter(|(_, is_stated)| *is_stated).map(|(name, _)| name).collect()
    }

    /// Those of [`Self::staging`].
    fn staging_options(&self) -> [(&'static str, bool); 7] {
        [
            (
                "max_work_queue_entries_per_cycle",
                self.max_work_queue_entries_per_cycle != Setting::Keep,
            ),
            ("dependent_priority_boost", self.dependent_priority_boost.is_some()),
            ("stale_staged_entry_timeout", self.stale_staged_entry_timeout.is_some()),
            ("promote_stale_staged_entries", self.promote_stale_staged_entries.is_some()),
            ("stale_pending_timeout", self.stale_pending_timeout.is_some()),
            ("stale_in_progress_timeout", self.stale_in_progress_timeout.is_some()),
            ("liveness_timeout", self.liveness_timeout.is_some()),
        ]
    }

    pub(super) fn read<'t>(table: &'t DeTable<'t>, place: Place, faults: &mut Faults<'_>) -> Self {
        let section = Section::new(table, place, "scheduler", &KEYS, faults);
        let polling = SECOND..=THIRTY_DAYS;
        let delays = Duration::ZERO..=TEN_YEARS;
        let both = section.duration("polling_interval", polling.clone(), faults);
        let mut interval = |key| section.duration(key, polling.clone(), faults).or(both);
        let manifest_manager_polling_interval = interval("manifest_manager_polling_interval");
        let job_dispatcher_polling_interval = interval("job_dispatcher_polling_interval");
        Self {
            manifest_manager_polling_interval,
            job_dispatcher_polling_interval,
            worker_count: section.whole("worker_count", 1..=256, faults),
            max_active_jobs: or_none(&section, "max_active_jobs", faults, |section, faults| {
                section.whole("max_active_jobs", 1..=i64::from(i32::MAX), faults)
            }),
            exclude_from_max_active_jobs: section.texts("exclude_from_max_active_jobs", faults),
            max_queued_jobs_per_cycle: or_none(
                &section,
                "max_queued_jobs_per_cycle",
                faults,
                |section, faults| {
                    section.whole("max_queued_jobs_per_cycle", 1..=i64::from(i32::MAX), faults)
                },
            ),
            max_dispatch_attempts: section.whole(
                "max_dispatch_attempts",
                0..=i64::from(i32::MAX),
                faults,
            ),
            default_job_timeout: section.duration(
                "default_job_timeout",
                SECOND..=TEN_YEARS,
                faults,
            ),
            shutdown_timeout: section.duration(
                "shutdown_timeout",
                Duration::ZERO..=THIRTY_DAYS,
                faults,
            ),
            host_lease: section.duration("host_lease", LEASES, faults),
            default_max_retries: section.whole(
                "default_max_retries",
                0..=i64::from(i32::MAX),
                faults,
            ),
            failure_count_window: section.duration(
                "failure_count_window",
                SECOND..=TEN_YEARS,
                faults,
            ),
            retry_delay: section.duration("retry_delay", delays.clone(), faults),
            retry_backoff_multiplier: section.factor("retry_backoff_multiplier", faults),
            max_retry_delay: section.duration("max_retry_delay", delays, faults),
            default_misfire_policy: section.word("default_misfire_policy", &MISFIRES, faults),
            default_misfire_threshold_seconds: whole_seconds(
                &section,
                "default_misfire_threshold",
                Duration::ZERO,
                faults,
            ),
            ..Self::cleanup(&section, faults)
        }
    }

    /// Of cleanup only.
    fn cleanup(section: &Section<'_>, faults: &mut Faults<'_>) -> Self {
        Self {
            metadata_cleanup_trains: trains(section, faults),
            metadata_cleanup_interval: section.duration(
                "metadata_cleanup_interval",
                SECOND..=THIRTY_DAYS,
                faults,
            ),
            metadata_cleanup_retention: section.duration(
                "metadata_cleanup_retention",
                SECOND..=TEN_YEARS,
                faults,
            ),
            metadata_cleanup_batch_size: section.whole(
                "metadata_cleanup_batch_size",
                1..=10_000,
                faults,
            ),
            auto_purge_dead_letters: section.boolean("auto_purge_dead_letters", faults),
            dead_letter_retention_period: section.duration(
                "dead_letter_retention_period",
                Duration::ZERO..=TEN_YEARS,
                faults,
            ),
            log_retention: section.duration("log_retention", SECOND..=TEN_YEARS, faults),
            ..Self::staging(section, faults)
        }
    }

    /// Of what the manager queues, and of what nobody takes care of.
    fn staging(section: &Section<'_>, faults: &mut Faults<'_>) -> Self {
        let key = "max_work_queue_entries_per_cycle";
        let max_work_queue_entries_per_cycle = or_none(section, key, faults, |section, faults| {
            section.whole(key, 1..=i64::from(u32::MAX), faults)
        });
        let mut timeout = |key| section.duration(key, SECOND..=TEN_YEARS, faults);
        Self {
            max_work_queue_entries_per_cycle,
            stale_staged_entry_timeout: timeout("stale_staged_entry_timeout"),
            stale_pending_timeout: timeout("stale_pending_timeout"),
            stale_in_progress_timeout: timeout("stale_in_progress_timeout"),
            liveness_timeout: timeout("liveness_timeout"),
            dependent_priority_boost: section.whole("dependent_priority_boost", 0..=31, faults),
            promote_stale_staged_entries: section.boolean("promote_stale_staged_entries", faults),
            ..Self::default()
        }
    }
}

/// The trains to clean up: `name`, or `name=7d` for one that keeps its runs as long.
fn trains(
    section: &Section<'_>,
    faults: &mut Faults<'_>,
) -> Option<BTreeMap<String, Option<Duration>>> {
    let key = "metadata_cleanup_trains";
    let mut trains = BTreeMap::new();
    for text in section.texts(key, faults)? {
        let (name, retention) = match text.split_once('=') {
            None => (text.as_str(), None),
            Some((name, kept)) => {
                let kept = duration::parse(kept).filter(|it| (SECOND..=TEN_YEARS).contains(it));
                if kept.is_none() {
                    let problem = format!(
                        "'{text}' is not a train, nor a train and a time such as '{name}=7d'"
                    );
                    section.fault(key, problem, faults);
                }
                (name, kept)
            }
        };
        let before = trains.insert(name.to_owned(), retention);
        if before.is_some_and(|before| before != retention) {
            let problem = format!("'{name}' has two retentions; state one");
            section.fault(key, problem, faults);
        }
    }
    Some(trains)
}
