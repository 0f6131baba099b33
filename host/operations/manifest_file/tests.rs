//! Tests of reading manifest files: what a person writes wrong, and what they are told.

use std::path::Path;

use super::*;
use crate::model::timestamp::Timestamp;

fn parsed(text: &str) -> Result<ManifestFile, String> {
    parse(Path::new("m.toml"), text.to_owned()).map_err(|error| error.to_string())
}

#[test]
fn a_file_states_what_it_says_and_nothing_else() {
    let file = parsed(
        r#"
        [scheduler]
        polling_interval = "2s"
        job_dispatcher_polling_interval = "1s"
        retry_delay = "5s"
        retry_backoff_multiplier = 2
        max_retry_delay = "1h30m"
        default_max_retries = 4
        default_misfire_policy = "do_nothing"
        exclude_from_max_active_jobs = ["hello"]
        max_queued_jobs_per_cycle = "none"
        max_dispatch_attempts = 0

        [decisions]
        recording = false
        replay_answers_for = "1s"

        [[group]]
        name = "nightly"
        max_active_jobs = "none"
        enabled = false

        [[manifest]]
        id = "full"
        train = "hello"
        every = "30s"
        input = { name = "Ada", big = 12345678901234567890, rate = 1.50, on = true, list = [0x10] }
        enabled = true
        group = "nightly"
        priority = 31
        max_retries = 0
        failure_window = "1d"
        timeout = "none"
        misfire = "fire_once_now"
        misfire_threshold = "0s"
        replay_decisions_on_retry = false

        [[manifest]]
        id = "bare"
        train = "hello"
        "#,
    )
    .unwrap();

    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(file.scheduler.manifest_manager_polling_interval, seconds(2));
    assert_eq!(file.scheduler.job_dispatcher_polling_interval, seconds(1));
    assert_eq!(file.scheduler.retry_delay, seconds(5));
    assert_eq!(file.scheduler.retry_backoff_multiplier, Some(2.0));
    assert_eq!(file.scheduler.max_retry_delay, seconds(5_400));
    assert_eq!(file.scheduler.default_max_retries, Some(4));
    assert_eq!(file.scheduler.default_misfire_policy, Some(MisfirePolicy::DoNothing));
    assert_eq!(file.scheduler.exclude_from_max_active_jobs, Some(vec!["hello".to_owned()]));
    assert_eq!(file.scheduler.max_queued_jobs_per_cycle, Setting::Clear);
    assert_eq!(file.scheduler.max_dispatch_attempts, Some(0));
    assert_eq!(file.decisions.recording, Some(false));
    assert_eq!(file.decisions.replay_answers_for, Setting::Set(Duration::from_secs(1)));
    assert_eq!(file.decisions.host_options(), ["recording", "replay_answers_for"]);
    assert_eq!(file.groups[0].max_active_jobs, Setting::Clear);
    assert_eq!((file.groups[0].priority, file.groups[0].is_enabled), (None, Some(false)));
    let [full, bare] = &file.manifests[..] else { panic!("{:?}", file.manifests) };
    assert_eq!(
        full.input.to_string(),
        r#"{"big":12345678901234567890,"list":[16],"name":"Ada","on":true,"rate":1.50}"#
    );
    assert_eq!(
        (&full.schedule.timer, full.priority),
        (&StatedTimer::Every(Duration::from_secs(30)), Some(31))
    );
    assert_eq!(full.failure_window_seconds, Setting::Set(86_400));
    assert_eq!(full.timeout_seconds, Setting::Clear);
    assert_eq!(full.misfire, Some(MisfirePolicy::FireOnceNow));
    assert_eq!(full.misfire_threshold_seconds, Some(0));
    assert_eq!(full.replay_decisions_on_retry, Some(false));
    assert_eq!(full.max_retries, Some(0));
    assert_eq!((&bare.schedule.timer, bare.priority), (&StatedTimer::OnDemand, None));
    assert_eq!((bare.timeout_seconds, bare.is_enabled), (Setting::Keep, None));
    assert_eq!(bare.input.to_string(), "{}");
}

#[test]
fn every_kind_of_schedule_can_be_stated() {
    let timer = |text: &str| {
        let file = parsed(&format!("[[manifest]]\nid = 'a'\ntrain = 't'\n{text}")).unwrap();
        file.manifests[0].schedule.clone()
    };
    let cron = timer(
        "cron = '0 7 * * mon-fri'\ntime_zone = 'Europe/Berlin'\nvariance = '30s'
        exclude = [{ dates = ['2026-12-24'] }, { from = '22:00', to = '06:00' }]",
    );
    assert_eq!(cron.timer, StatedTimer::Cron("0 7 * * mon-fri".to_owned()));
    assert_eq!((cron.zone.name(), cron.variance_seconds), ("Europe/Berlin", Some(30)));
    assert_eq!(cron.exclusions.len(), 2);
    let instant = Timestamp::parse("2026-12-24T17:00:00Z").unwrap();
    assert_eq!(timer("once = '2026-12-24T18:00:00+01:00'").timer, StatedTimer::OnceAt(instant));
    let delay = Duration::from_mins(10);
    assert_eq!(timer("once = '10m'").timer, StatedTimer::OnceIn(delay));
    let after = timer("after = 'b'\ndormant = true").timer;
    assert!(matches!(&after, StatedTimer::After { parent, is_dormant: true, .. } if parent == "b"));
}

#[test]
fn a_fault_names_file_line_key_and_what_to_do() {
    let cases = [
        ("a = ", "m.toml:1: not TOML: "),
        ("[schedular]", "m.toml:1: the file: unknown key 'schedular'; did you mean 'scheduler'?"),
        (
            "manifest = 1",
            "m.toml:1: the file: manifest: is no list of tables; write `[[manifest]]`",
        ),
        ("scheduler = 1", "m.toml:1: the file: scheduler: is no table; write `[scheduler]`"),
        ("manifest = [1]", "m.toml:1: manifest: expected a table, found integer"),
        (
            "[scheduler]\nretry_dealy = \"1s\"",
            "m.toml:2: scheduler: unknown key 'retry_dealy'; did you mean 'retry_delay'?",
        ),
        (
            "[scheduler]\nmetadata_cleanup_trains = [\"a=soon\"]",
            "m.toml:2: scheduler: metadata_cleanup_trains: 'a=soon' is not a train, nor a train and a time such as 'a=7d'",
        ),
        (
            "[scheduler]\npolling_interval = \"10ms\"",
            "m.toml:2: scheduler: polling_interval: '10ms' is not from 1s to 30d",
        ),
        (
            "[scheduler]\nretry_backoff_multiplier = 0.5",
            "m.toml:2: scheduler: retry_backoff_multiplier: expected a number of at least 1, found 0.5",
        ),
        (
            "[scheduler]\nretry_backoff_multiplier = inf",
            "m.toml:2: scheduler: retry_backoff_multiplier: expected a number of at least 1, found inf",
        ),
        (
            "[[group]]\nname = \"a\"\n[[group]]\nname = \"a\"",
            "m.toml:3: group 'a': is stated in line 1 already; keep one of them",
        ),
    ];
    for (text, expected) in cases {
        let fault = parsed(text).unwrap_err();
        assert!(fault.starts_with(expected), "{text}\nexpected {expected}\nfound    {fault}");
    }
}

#[test]
fn a_fault_of_a_manifest_names_it_and_the_key() {
    let cases = [
        ("evry = \"1s\"", "m.toml:4: manifest 'a': unknown key 'evry'; did you mean 'every'?"),
        (
            "every = \"30 parsecs\"",
            "m.toml:4: manifest 'a': every: '30 parsecs' is no duration; write whole numbers with units, such as \
             \"30s\", \"5m\", \"1h30m\" or \"2d\"",
        ),
        (
            "every = 30",
            "m.toml:4: manifest 'a': every: expected a duration in quotes, such as \"30s\", found 30",
        ),
        ("every = \"0s\"", "m.toml:4: manifest 'a': every: '0s' is not from 1s to 3650d"),
        (
            "every = \"1s500ms\"",
            "m.toml:4: manifest 'a': every: has a part of a second; write whole seconds",
        ),
        (
            "cron = \"0 25 * * *\"",
            "m.toml:4: manifest 'a': cron: the hour '25' is not from 0 to 23",
        ),
        ("cron = \"0 0 30 2 *\"", "m.toml:4: manifest 'a': cron: never occurs: no such month"),
        (
            "every = \"1s\"\ncron = \"* * * * *\"",
            "m.toml:5: manifest 'a': cron: stands beside `every`; keep one of them",
        ),
        (
            "time_zone = \"Europe/Berln\"",
            "m.toml:4: manifest 'a': time_zone: unknown time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
        ),
        (
            "once = \"tomorrow\"",
            "m.toml:4: manifest 'a': once: 'tomorrow' is neither an instant, such as ",
        ),
        ("dormant = true", "m.toml:4: manifest 'a': dormant: needs `after`"),
        ("variance = \"5s\"", "m.toml:4: manifest 'a': variance: needs `every` or `cron`"),
        (
            "every = \"1m\"\nvariance = \"-5s\"",
            "m.toml:5: manifest 'a': variance: '-5s' is no duration",
        ),
        (
            "every = \"1m\"\nexclude = [\n  { days = [\"sun\"] },\n  { days = [\"caturday\"] },\n]",
            "m.toml:7: manifest 'a': exclude: 'caturday' is no day; write monday, tue, ...",
        ),
        (
            "every = \"1m\"\nexclude = [{ from = \"22:00\" }]",
            "m.toml:5: manifest 'a': exclude: write one of { days = ",
        ),
        (
            "after = \"b\"\nexclude = [{ days = [\"sun\"] }]",
            "m.toml:5: manifest 'a': exclude: needs `every`, `cron` or `once`",
        ),
        (
            "priority = 32",
            "m.toml:4: manifest 'a': priority: expected a whole number from 0 to 31, found 32",
        ),
        (
            "max_retries = -1",
            "m.toml:4: manifest 'a': max_retries: expected a whole number from 0 to 2147483647, found -1",
        ),
        (
            "enabled = \"yes\"",
            "m.toml:4: manifest 'a': enabled: expected true or false, found string",
        ),
        (
            "misfire = \"do_nothin\"",
            "m.toml:4: manifest 'a': misfire: unknown value 'do_nothin'; did you mean 'do_nothing'?",
        ),
        (
            "input = { at = 2026-01-01 }",
            "m.toml:4: manifest 'a': input: holds an instant; write it as text: \"2026-01-01\"",
        ),
        (
            "input = { x = nan }",
            "m.toml:4: manifest 'a': input: holds the number 'nan', which JSON does not have",
        ),
        (
            "input = {}\ninput_file = \"x\"",
            "m.toml:5: manifest 'a': input_file: stands beside `input`; keep one of them",
        ),
        (
            "input_file = \"gone.json\"",
            "m.toml:4: manifest 'a': input_file: cannot read gone.json: ",
        ),
        (
            "group = \"a/b\"",
            "m.toml:4: manifest 'a': group: a name has 1 to 100 characters, without '/', '#'",
        ),
        (
            "[[manifest]]\nid = \"a\"\ntrain = \"t\"",
            "m.toml:4: manifest 'a': is stated in line 1 already; keep one of them",
        ),
        ("[[manifest]]\nid = \"b\"", "m.toml:4: manifest 'b': train: is missing; write `train = "),
        ("[[manifest]]\ntrain = \"t\"", "m.toml:4: manifest: id: is missing; write `id = "),
    ];
    for (text, expected) in cases {
        let whole = format!("[[manifest]]\nid = \"a\"\ntrain = \"t\"\n{text}");
        let fault = parsed(&whole).unwrap_err();
        assert!(fault.starts_with(expected), "{text}\nexpected {expected}\nfound    {fault}");
        assert_eq!(fault.lines().count(), 1, "{fault}");
    }
}

#[test]
fn every_fault_is_named_in_the_order_of_the_file() {
    let faults = parsed(
        "[[manifest]]\nid = \"a\"\ntrain = 1\ncolour = 2\n[scheduler]\nmax_active_jobs = 0\n",
    )
    .unwrap_err();

    let lines: Vec<_> = faults.lines().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(lines, ["m.toml:3", "m.toml:4", "m.toml:6"], "{faults}");
}

#[test]
fn an_input_file_is_found_beside_the_manifest_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manifests.toml");
    fs::write(folder.path().join("in.json"), "{\"b\":1,\"a\":2.0}").unwrap();
    fs::write(&path, "[[manifest]]\nid = 'a'\ntrain = 't'\ninput_file = 'in.json'").unwrap();

    let file = read(&path).unwrap();

    assert_eq!(file.manifests[0].input.to_string(), "{\"a\":2.0,\"b\":1}");
    fs::write(folder.path().join("in.json"), "{").unwrap();
    let fault = read(&path).unwrap_err().to_string();
    assert!(
        fault.contains("in.json is not JSON: the text ends in the middle of a value"),
        "{fault}"
    );
}

/// D14: how long answers are replayed is at least a second, or `max`.
#[test]
fn how_long_answers_are_replayed_has_a_least() {
    let read = |text: &str| {
        let text = format!("[decisions]\nreplay_answers_for = \"{text}\"\n");
        parse(Path::new("m.toml"), text).map(|file| file.decisions.replay_answers_for)
    };
    assert_eq!(read("max").unwrap(), Setting::Clear);
    assert_eq!(read("24h").unwrap(), Setting::Set(Duration::from_hours(24)));
    for wrong in ["0s", "999ms", "none", "forever"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    assert_eq!(parse(Path::new("m.toml"), String::new()).unwrap().decisions, Decisions::default());
    assert!(parse(Path::new("m.toml"), "decisions = 1".to_owned()).is_err());
}

/// W22: a train has one retention; stated twice alike it is stated once.
#[test]
fn a_train_has_one_retention() {
    let read = |trains: &str| {
        parsed(&format!("[scheduler]\nmetadata_cleanup_trains = [{trains}]"))
            .map(|file| file.scheduler.metadata_cleanup_trains.unwrap_or_default())
    };
    let two = "m.toml:2: scheduler: metadata_cleanup_trains: 'a' has two retentions; state one";
    for trains in ["\"a\", \"a=7d\"", "\"a=1d\", \"b\", \"a=7d\""] {
        assert_eq!(read(trains).unwrap_err().trim_end(), two, "{trains}");
    }
    let week = Some(Duration::from_hours(7 * 24));
    assert_eq!(read("\"a=7d\", \"a=168h\"").map(|it| it["a"]), Ok(week));
    assert_eq!(read("\"a\", \"a\"").map(|it| it["a"]), Ok(None));
}

/// W30, M1: every option has its range; what is past it is refused, all of it at once.
#[test]
fn every_option_has_its_range() {
    let ranges: [(&str, &[&str], &[&str]); 23] = [
        ("polling_interval", &["1s", "30d"], &["999ms", "31d"]),
        ("manifest_manager_polling_interval", &["1s", "30d"], &["999ms", "31d"]),
        ("job_dispatcher_polling_interval", &["1s", "30d"], &["999ms", "31d"]),
        ("metadata_cleanup_interval", &["1s", "30d"], &["999ms", "31d"]),
        ("metadata_cleanup_retention", &["1s", "3650d"], &["0s", "3651d"]),
        ("default_job_timeout", &["1s", "3650d"], &["0s", "3651d"]),
        ("failure_count_window", &["1s", "3650d"], &["0s", "3651d"]),
        ("dead_letter_retention_period", &["0s", "3650d"], &["3651d"]),
        ("log_retention", &["1s", "3650d"], &["0s", "3651d"]),
        ("retry_delay", &["0s", "3650d"], &["3651d"]),
        ("max_retry_delay", &["0s", "3650d"], &["3651d"]),
        ("default_misfire_threshold", &["0s", "3650d"], &["3651d"]),
        ("shutdown_timeout", &["0s", "30d"], &["31d"]),
        ("default_max_retries", &["0"], &["-1"]),
        ("max_active_jobs", &["1"], &["0", "-1"]),
        ("worker_count", &["1", "256"], &["0", "257"]),
        ("metadata_cleanup_batch_size", &["1", "10000"], &["0", "10001"]),
        ("stale_pending_timeout", &["1s", "3650d"], &["0s", "3651d"]),
        ("stale_in_progress_timeout", &["1s", "3650d"], &["0s", "3651d"]),
        ("stale_staged_entry_timeout", &["1s", "3650d"], &["0s", "3651d"]),
        ("liveness_timeout", &["1s", "3650d"], &["0s", "3651d"]),
        ("max_work_queue_entries_per_cycle", &["1", "none"], &["0"]),
        ("dependent_priority_boost", &["0", "31"], &["32", "-1"]),
    ];
    let stated = |key: &str, value: &str| {
        if value.ends_with(|it: char| it.is_ascii_digit()) {
            format!("{key} = {value}\n")
        } else {
            format!("{key} = \"{value}\"\n")
        }
    };
    let mut wrong = "[scheduler]\nretry_backoff_multiplier = 0.99\n".to_owned();
    for (key, inside, outside) in ranges {
        for value in inside {
            let text = format!("[scheduler]\n{}", stated(key, value));
            assert!(parsed(&text).is_ok(), "{text}: {:?}", parsed(&text));
        }
        for value in outside {
            let text = format!("[scheduler]\n{}", stated(key, value));
            assert!(parsed(&text).is_err(), "{text}");
        }
        wrong += &stated(key, outside[0]);
    }
    let faults = parsed(&wrong).unwrap_err();
    assert_eq!(faults.lines().count(), ranges.len() + 1, "{faults}");
}
