//! Hosts that are killed in the middle of whatever they do, hundreds of times.

use std::time::Duration;

use rustix::process::Signal;

use crate::cli_store::Desk;
use crate::processes::host::HostProcess;
use crate::processes::random::{Random, say};
use crate::processes::site::Site;

/// How often hosts are killed, unless `TRAX_TEST_KILLS` says otherwise.
const KILLS: usize = 200;

/// The same work, ever so often: each run notes which attempt it is.
fn manifests(every: &str) -> String {
    let manifest = |id: &str, train: &str, max_retries: u32, acts: &str| {
        format!(
            "[[manifest]]\nid = '{id}'\ntrain = '{train}'\nevery = '{every}'\nmax_retries = {max_retries}\n\
             input = {{ acts = {{ {acts} }} }}\n"
        )
    };
    let chain =
        "Act1 = [{ spin_ms = 8 }], Act2 = [{ spin_ms = 8 }], Act3 = [{ spin_ms = 8 }, 'info']";
    let fails = "Act = [{ spin_ms = 5 }, 'info', { only_up_to_attempt = 2 }, { fail = {} }]";
    [
        "[scheduler]\npolling_interval = '1s'\nretry_delay = '0s'\nhost_lease = '200ms'\n"
            .to_owned(),
        manifest("chain", "probe-chain", 10_000, chain),
        manifest(
            "routes",
            "probe-routes",
            10_000,
            "GoLeft = [{ spin_ms = 8 }], Act = [{ spin_ms = 8 }, 'info']",
        ),
        manifest(
            "asks",
            "probe",
            10_000,
            "Act = [{ ask = { keys = ['Lane'] } }, { spin_ms = 15 }, 'info']",
        ),
        manifest(
            "branches",
            "probe-parallel",
            10_000,
            "ActLeft = [{ spin_ms = 8 }], Act = [{ spin_ms = 8 }, 'info']",
        ),
        manifest("fails", "probe", 10_000, fails),
        manifest("brittle", "probe-chain", 1, chain),
    ]
    .concat()
}

/// R1, R2, T5: kills at any moment lose no work, and count each failure once.
fn killed_hosts_lose_nothing(site: &Site) {
    let mut random = Random::of_this_run();
    let stated = std::env::var("TRAX_TEST_KILLS").ok();
    let kills = stated.map_or(KILLS, |kills| kills.parse().unwrap());
    // A second host lives on when the first is killed, and takes up what that leaves.
    let desk = |_| site.desk(&manifests("1s"));
    let desks: Vec<Desk> = (0..if site.is_postgres() { 2 } else { 1 }).map(desk).collect();
    let mut hosts: Vec<HostProcess> = desks.iter().map(HostProcess::start).collect();
    let mut acknowledged = 0;
    for kill in 0..kills {
        if random.below(3) == 0 {
            site.enqueue("probe-chain", r#"{"acts":{"Act2":[{"spin_ms":10}]}}"#);
        }
        let which = random.below(hosts.len());
        let host = &mut hosts[which];
        // Some are killed while they start.
        for _ in 0..random.below(8) {
            host.line_within(Duration::from_millis(700));
        }
        std::thread::sleep(random.micros(5_000..150_000));
        hosts.swap_remove(which).kill();
        hosts.push(HostProcess::start(&desks[which]));
        let last = hosts.len() - 1;
        hosts.swap(which, last);
        if kill % 8 == 0 {
            acknowledged += site.acknowledge_all();
            site.hold();
        }
    }
    hosts.into_iter().for_each(HostProcess::kill);
    end(site);
    say(format_args!("{acknowledged} dead letters"));
    every_end_is_counted_once(site);
}

/// A host that has started: a signal drains it.
fn up(desk: &Desk) -> HostProcess {
    let mut host = HostProcess::start(desk);
    host.wait_for("what it deployed", |line| line["manifests"].is_array());
    host
}

/// Lets whatever is left come to its end.
fn end(site: &Site) {
    let last = site.rows("SELECT CAST(COALESCE(MAX(id), 0) AS TEXT) FROM metadata").remove(0);
    let desk = site.desk(&manifests("1s"));
    let host = up(&desk);
    let still = format!(
        "SELECT m.external_id FROM manifest m WHERE NOT EXISTS (SELECT 1 FROM metadata r
            WHERE r.manifest_id = m.id AND r.train_state = 'completed' AND r.id > {last})
         AND NOT EXISTS (SELECT 1 FROM dead_letter d
            WHERE d.manifest_id = m.id AND d.status = 'awaiting_intervention')"
    );
    site.wait_for_rows(&still, &[]);
    host.signal(Signal::INT);
    assert_eq!(host.ended(), Some(0));
    let desk = site.desk(&manifests("1h"));
    let host = up(&desk);
    let open = "SELECT 'run ' || CAST(id AS TEXT) FROM metadata WHERE train_state IN ('pending', 'in_progress')
        UNION ALL SELECT 'entry ' || CAST(id AS TEXT) FROM work_queue WHERE status = 'queued'";
    site.wait_for_rows(open, &[]);
    host.signal(Signal::INT);
    assert_eq!(host.ended(), Some(0));
}

fn every_end_is_counted_once(site: &Site) {
    for (what, sql) in [
        (
            "occurrences that succeeded twice",
            "SELECT occurrence_id FROM metadata WHERE train_state = 'completed'
             GROUP BY occurrence_id HAVING COUNT(*) > 1",
        ),
        (
            "attempts after a success",
            "SELECT CAST(r.id AS TEXT) FROM metadata r JOIN metadata s ON s.occurrence_id = r.occurrence_id
             AND s.id < r.id AND s.train_state = 'completed'",
        ),
        (
            "entries that are neither done nor waiting",
            "SELECT CAST(id AS TEXT) FROM work_queue WHERE status <> 'dispatched' OR metadata_id IS NULL",
        ),
        (
            "runs of one entry",
            "SELECT external_id FROM metadata GROUP BY external_id HAVING COUNT(*) > 1",
        ),
        (
            "failures of another kind",
            "SELECT CAST(id AS TEXT), failure_exception, failure_reason FROM metadata WHERE train_state = 'failed'
             AND failure_exception NOT IN ('HostLost', 'ProbeFailed')",
        ),
        (
            "completed runs whose steps are not those of one life",
            "SELECT CAST(r.id AS TEXT) FROM metadata r WHERE r.train_state = 'completed' AND (
                EXISTS (SELECT 1 FROM junction_run j WHERE j.metadata_id = r.id AND j.state <> 'completed')
                OR (SELECT COUNT(*) FROM junction_run j WHERE j.metadata_id = r.id AND j.kind = 'junction')
                    <> CASE r.name WHEN 'probe' THEN 1 WHEN 'probe-routes'
                        THEN CASE WHEN r.resume_from IS NULL THEN 2 ELSE 1 END ELSE 3 END)",
        ),
        (
            "completed runs without exactly one answer, or resumed ones with one",
            "SELECT CAST(r.id AS TEXT) FROM metadata r JOIN manifest m ON m.id = r.manifest_id
             WHERE r.train_state = 'completed' AND m.external_id IN ('routes', 'asks')
             AND CASE WHEN r.resume_from IS NULL THEN 1 ELSE 0 END
                <> (SELECT COUNT(*) FROM decision d WHERE d.metadata_id = r.id)",
        ),
    ] {
        assert_eq!(site.rows(sql), [""; 0], "{what}");
    }
    // What a run was told of the attempts before it is what there were.
    let attempts = "SELECT p.output, CAST((SELECT COUNT(*) FROM metadata e
            WHERE e.occurrence_id = r.occurrence_id AND e.id <= r.id) AS TEXT)
        FROM metadata r JOIN metadata_payload p ON p.metadata_id = r.id
        WHERE r.train_state = 'completed' AND r.manifest_id IS NOT NULL ORDER BY r.id";
    let attempts = site.rows(attempts);
    for row in &attempts {
        let (output, count) = row.rsplit_once(' ').unwrap();
        assert!(output.contains(&format!(" attempt={count} ")), "not attempt {count}: {output}");
    }
    let states = "SELECT train_state || ' ' || COALESCE(failure_exception, ''), CAST(COUNT(*) AS TEXT) FROM metadata
        GROUP BY train_state || ' ' || COALESCE(failure_exception, '') ORDER BY 1";
    say(site.rows(states).join(", "));
    assert!(attempts.len() > 20, "the hosts got nowhere");
}

process_cases!(killed_hosts_lose_nothing);
