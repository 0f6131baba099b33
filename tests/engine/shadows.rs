//! Shadows are asked beside the live decider, are recorded with what they say of it, and change nothing.

use std::sync::Arc;

use serde_json::Value;
use trax::deciders::Decider;
use trax::deciders::host::HostDeciders;
use trax::deciders::scripted::ScriptedDecider;

use crate::engine::replay::{FAILS_ONCE, LEFT, retry};
use crate::engine::world::{TestHost, World};

/// Answers both questions of `probe-decides`.
const BOTH: &str = r#"{"Level":{"score":1.4,"confidence":0.9},"Ready":{"probability":0.9}}"#;

/// A host whose live decider answers so, and whose shadows are asked these questions. `probe-decider` is the train's
/// own.
async fn shadowed(
    w: &World,
    name: &str,
    live: &str,
    keys: &[&str],
    shadows: &[(&str, &str)],
) -> (TestHost, Arc<HostDeciders>) {
    let scripted =
        |script: &str| Arc::new(Decider::Scripted(ScriptedDecider::from_json(script).unwrap()));
    let mut deciders = HostDeciders { default: Some("live".to_owned()), ..HostDeciders::default() };
    deciders.by_name.insert("live".to_owned(), scripted(live));
    for (name, script) in shadows.iter().filter(|(_, script)| !script.is_empty()) {
        deciders.by_name.insert((*name).to_owned(), scripted(script));
    }
    let names: Vec<String> = shadows.iter().map(|(name, _)| (*name).to_owned()).collect();
    for key in keys {
        deciders.shadows.insert((*key).to_owned(), names.clone());
    }
    // They are waited for: a machine that stalls is no reason to miss what they answer.
    deciders.wait_for_shadows = Some(std::time::Duration::from_mins(10));
    let deciders = Arc::new(deciders);
    let given = Arc::clone(&deciders);
    (w.host_with(name, |config| config.deciders = given).await, deciders)
}

fn times_asked(deciders: &HostDeciders, name: &str, key: &str) -> usize {
    let Decider::Scripted(scripted) = &*deciders.by_name[name] else { panic!("it is scripted") };
    scripted.times_asked(key)
}

impl World {
    /// What shadows said of each decision: `name agreed`, `name differed` or `name: error`.
    async fn shadows(&self) -> Vec<String> {
        let told = |row: &String| match serde_json::from_str::<Value>(row) {
            Ok(Value::Array(shadows)) => shadows.iter().map(said).collect::<Vec<_>>().join(", "),
            _ => row.clone(),
        };
        self.store.rows("SELECT shadows FROM decision ORDER BY id").await.iter().map(told).collect()
    }
}

fn said(shadow: &Value) -> String {
    let name = shadow["decider"].as_str().unwrap();
    match (shadow["error"].as_str(), &shadow["agreed"]) {
        (Some(error), Value::Bool(false)) => format!("{name}: {error}"),
        (None, Value::Bool(true)) => format!("{name} agreed"),
        (None, Value::Bool(false)) => format!("{name} differed"),
        _ => panic!("{shadow}"),
    }
}

/// Q21, D6: each shadow is recorded with its answer and whether it takes the same track, and the run follows the live
/// one.
async fn shadows_are_recorded_with_their_agreement(w: Arc<World>) {
    w.deploy("probe").await;
    let shadows = [
        ("differs", r#"{"Lane":{"choice":"Right","confidence":0.9}}"#),
        ("fails", r#"{"Lane":{"throws":"the model is away","class":"permanent"}}"#),
        ("probe-decider", ""),
        ("same", r#"{"Lane":{"choice":"Left","confidence":0.5}}"#),
        ("silent", "{}"),
        ("unfit", r#"{"Lane":{"choice":"Up"}}"#),
        ("unsure", r#"{"Lane":{"choice":"Left","confidence":0.4}}"#),
    ];
    let (mut host, _) = shadowed(&w, "one", LEFT, &["Lane"], &shadows).await;
    w.manifest("nightly", "probe-replays", r#"{"decider":["trap"]}"#, 0).await;
    host.pass().await;

    assert_eq!(w.states().await, "completed");
    let told = w.shadows().await;
    let told: Vec<&str> = told[0].split(", ").collect();
    assert_eq!(told[..2], ["differs differed", "fails: the model is away"]);
    assert!(told[2].starts_with("probe-decider: "), "{told:?}");
    let rest = [
        "same agreed",
        "silent: it was not answered",
        "unfit: the choice is not one of the options offered",
        "unsure differed",
    ];
    assert_eq!(told[3..], rest);
    let rows = w.store.rows("SELECT decider, answer FROM decision").await;
    assert_eq!(rows, [r#"live {"choice":"Left","confidence":0.9}"#]);
    let routes = w.store.rows("SELECT routes FROM decision").await;
    assert_eq!(routes, [r#"[{"fallback_reason":null,"track":"Left"}]"#]);
}

/// Q21: what answers several questions agrees by the nearest level and by the side of 0.5, and is asked only its own.
async fn shadows_of_a_decide_agree_by_what_they_say(w: Arc<World>) {
    w.deploy("probe").await;
    let shadows = [
        ("near", r#"{"Level":{"score":0.5,"confidence":0.1},"Ready":{"probability":0.5}}"#),
        ("off", r#"{"Level":{"score":1.5},"Ready":{"probability":0.49}}"#),
    ];
    let (mut host, deciders) = shadowed(&w, "one", BOTH, &["Level", "Ready"], &shadows).await;
    w.manifest("nightly", "probe-decides", "{}", 0).await;
    host.pass().await;
    assert_eq!(w.states().await, "completed");
    assert_eq!(w.shadows().await, ["near agreed, off differed"; 2]);

    let (mut other, only) = shadowed(&w, "two", BOTH, &["Ready"], &shadows).await;
    w.advance(3_600).await;
    other.pass().await;
    assert_eq!(w.shadows().await[2..], ["-", "near agreed, off differed"]);
    assert_eq!((times_asked(&only, "near", "Level"), times_asked(&only, "near", "Ready")), (0, 1));
    assert_eq!(times_asked(&deciders, "near", "Level"), 1);
}

/// Q21: a shadow that never answers is waited for as long as is said and no longer.
async fn a_shadow_that_hangs_is_stopped(w: Arc<World>) {
    w.deploy("probe").await;
    let (_, deciders) = shadowed(&w, "one", LEFT, &["Lane"], &[("probe-decider", "")]).await;
    let mut deciders = (*deciders).clone();
    deciders.wait_for_shadows = Some(std::time::Duration::ZERO);
    let mut host = w.host_with("two", |config| config.deciders = Arc::new(deciders)).await;
    w.manifest("nightly", "probe-replays", r#"{"decider":["loop_forever"]}"#, 0).await;
    host.pass().await;
    assert_eq!(w.states().await, "completed");
    assert!(w.shadows().await[0].starts_with("probe-decider: "));
}

/// Q21: a replayed question is put to no shadow, and a retry is not told what shadows said.
async fn replayed_questions_have_no_shadows(w: Arc<World>) {
    w.deploy("probe").await;
    let (mut host, deciders) = shadowed(&w, "one", LEFT, &["Lane"], &[("judge", LEFT)]).await;
    w.manifest("nightly", "probe-replays", FAILS_ONCE, 9).await;
    host.pass().await;
    retry(&w, &mut host).await;

    assert_eq!(w.states().await, "failed completed");
    assert_eq!(w.decided().await, ["1 Lane live", "2 Lane replayed"]);
    assert_eq!(w.shadows().await, ["judge agreed", "-"]);
    let asked = |name| times_asked(&deciders, name, "Lane");
    assert_eq!((asked("live"), asked("judge")), (1, 1));
}

/// Q21, Q14: a shadow that nobody supplies is a fault of the declaration, found before anybody is asked.
async fn a_shadow_nobody_supplies_fails_the_run(w: Arc<World>) {
    w.deploy("probe").await;
    let (mut host, deciders) = shadowed(&w, "one", LEFT, &["Lane"], &[("nobody", "")]).await;
    w.manifest("nightly", "probe-replays", "{}", 0).await;
    host.pass().await;
    let failures = w.store.rows("SELECT train_state, failure_class, failure_reason FROM metadata");
    assert_eq!(
        failures.await,
        [
            "failed permanent there is no shadow 'nobody'; there is live, probe-decider; set it up in trax.toml, or name another"
        ]
    );
    assert_eq!(times_asked(&deciders, "live", "Lane"), 0);
}

/// Q21, D4: none agrees with a live answer that is refused, and what they answered is recorded beside it.
async fn none_agrees_with_a_refused_answer(w: Arc<World>) {
    w.deploy("probe").await;
    let unfit = r#"{"Lane":{"choice":"Up"}}"#;
    let (mut host, _) =
        shadowed(&w, "one", unfit, &["Lane"], &[("judge", LEFT), ("same", unfit)]).await;
    w.manifest("nightly", "probe-replays", "{}", 0).await;
    host.pass().await;
    assert_eq!(w.states().await, "failed");
    let not_offered = "the choice is not one of the options offered";
    assert_eq!(w.shadows().await, [format!("judge differed, same: {not_offered}")]);
    assert_eq!(w.store.rows("SELECT refused FROM decision").await, [not_offered]);
}

engine_cases!(
    shadows_are_recorded_with_their_agreement,
    shadows_of_a_decide_agree_by_what_they_say,
    a_shadow_that_hangs_is_stopped,
    replayed_questions_have_no_shadows,
    a_shadow_nobody_supplies_fails_the_run,
    none_agrees_with_a_refused_answer,
);
