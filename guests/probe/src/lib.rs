//! The guest of the tests: its junctions do what the input says.
//!
//! # The script
//!
//! The input of every train but `probe-noop` and `probe-three` is a `Script`; every member may be left out:
//!
//! ```json
//! {
//!   "acts": { "Act": [{ "note": "hello" }, "count", { "fail": { "name": "Lost", "message": "no route" } }] },
//!   "decider": ["trap"],
//!   "answers": [{ "key": "Lane", "choice": "Right", "confidence": 0.9 }]
//! }
//! ```
//!
//! - `acts`: what each junction does, by its name. A junction that is not named does nothing.
//! - `decider`: what the train's decider `probe-decider` does before it answers.
//! - `answers`: what it answers, fit or not: each has a `key` and one of `choice`, `score`, `probability`, and may have
//!   `confidence` (1 when absent) and `model`. Without `answers` it is certain of `Left`, `Middle` and yes.
//!
//! A junction plays its steps in order, until one ends it. [`script::Step`] has them all. What steps read, they note in
//! the result, `{"notes": ["count: 1", ...]}`, one text per step, after the notes of the junctions before it.
//!
//! # The trains
//!
//! | train | chain |
//! |---|---|
//! | `probe` | `Act`, which may ask `Lane`, `Level` and `Ready` about a `Topic` |
//! | `probe-chain` | `Act1`, `Act2`, `Act3` |
//! | `probe-per-run` | `Act1`, `Act2` in one instance per run |
//! | `probe-routes` | switch on `Lane` (bar 0.5; `GoLeft`, `GoRight`, otherwise `GoNowhere`), checkpoint, `Act` |
//! | `probe-replays` | the same without the checkpoint |
//! | `probe-decides` | decide `Level` and `Ready`, gate (yes from 0.8, no below 0.2, unsure), scale, `Act` |
//! | `probe-parallel` | branches `left` (`ActLeft`) and `right` (`ActRight`), then `Act` |
//! | `probe-resumes` | `Act1`, checkpoint, branches `left` (`ActLeft`, checkpoint, `ActLeft2`), `right`, gate, `Act` |
//! | `probe-short` | short circuit `Shortcut`, then `Act` |
//! | `probe-noop` | one junction that does nothing, from `Token` `{"number":0}` to `Token` |
//! | `probe-three` | `First`, gate on `Ready` (always yes) with `Second`, `Third`: all do nothing |

mod decider;
mod deed;
mod junctions;
mod report;
mod script;

use trax_sdk::prelude::*;

use crate::junctions::{
    act, act_after_branches, act_after_route, act1, act2, act3, go_left, go_nowhere, go_right,
    last_act2, left, left2, no, pass, right, shortcut, unsure, yes,
};
use crate::report::{First, LeftNotes, Report, Routed};
use crate::script::Script;

trax_sdk::export!(
    probe,
    probe_chain,
    probe_per_run,
    probe_routes,
    probe_replays,
    probe_decides,
    probe_parallel,
    probe_resumes,
    probe_short,
    probe_noop,
    probe_three
);

/// The lane that a run takes.
#[derive(Choice)]
#[asks("Which lane?")]
enum Lane {
    Left,
    Right,
    /// Has no track anywhere.
    #[describe("No lane at all.")]
    Nowhere,
}

/// A scale.
#[derive(Score)]
#[asks("How much?")]
enum Level {
    Low,
    Middle,
    High,
}

/// A question for gates.
#[derive(YesNo)]
#[asks("Is it ready?", yes = "It is.", no = "It is not.")]
struct Ready;

/// What junctions ask about while they run.
#[derive(Value)]
struct Topic {
    text: String,
}

/// What the benchmarks carry through.
#[derive(Value)]
struct Token {
    number: u64,
}

fn probe(train: NewTrain) -> Train {
    scripted(train, "probe", "Does what its input says.")
        .wants(|wants| {
            wants
                .config("greeting")
                .secret("token")
                .directory("shared")
                .writable_directory("out")
                .http("https://probe.example")
        })
        .chain(|chain| chain.junction("Act", act))
}

fn probe_chain(train: NewTrain) -> Train {
    scripted(train, "probe-chain", "Does what its input says, three times.")
        .chain(|chain| chain.junction("Act1", act1).junction("Act2", act2).junction("Act3", act3))
}

fn probe_per_run(train: NewTrain) -> Train {
    scripted(train, "probe-per-run", "Does what its input says, twice in one instance.")
        .isolated_per_run()
        .chain(|chain| chain.junction("Act1", act1).junction("Act2", last_act2))
}

fn probe_routes(train: NewTrain) -> Train {
    scripted(train, "probe-routes", "Takes the lane that its input says.").chain(|chain| {
        chain
            .switch::<Lane>(|lane| {
                lane.asking_about::<Script>()
                    .require_confidence(0.5)
                    .when(Lane::Left, |track| track.junction("GoLeft", go_left))
                    .when(Lane::Right, |track| track.junction("GoRight", go_right))
                    .otherwise("Otherwise", |track| track.junction("GoNowhere", go_nowhere))
            })
            .checkpoint::<Routed>()
            .junction("Act", act_after_route)
    })
}

fn probe_replays(train: NewTrain) -> Train {
    scripted(train, "probe-replays", "Takes the lane that its input says, and keeps nothing.")
        .chain(|chain| {
            chain
                .switch::<Lane>(|lane| {
                    lane.asking_about::<Script>()
                        .require_confidence(0.5)
                        .when(Lane::Left, |track| track.junction("GoLeft", go_left))
                        .when(Lane::Right, |track| track.junction("GoRight", go_right))
                        .otherwise("Otherwise", |track| track.junction("GoNowhere", go_nowhere))
                })
                .junction("Act", act_after_route)
        })
}

fn probe_decides(train: NewTrain) -> Train {
    scripted(train, "probe-decides", "Asks two questions and routes by both.").chain(|chain| {
        chain
            .decide::<Script>(|decide| decide.question::<Level>().question::<Ready>())
            .gate::<Ready>(|ready| {
                ready
                    .yes_at_least(0.8, |track| track.junction("GoYes", yes))
                    .no_below(0.2, |track| track.junction("GoNo", no))
                    .unsure(|track| track.junction("GoUnsure", unsure))
            })
            .scale::<Level>(|level| {
                level
                    .at_least(Level::Low, |track| track)
                    .at_least(Level::Middle, |track| track)
                    .at_least(Level::High, |track| track)
            })
            .junction("Act", act_after_route)
    })
}

fn probe_parallel(train: NewTrain) -> Train {
    scripted(train, "probe-parallel", "Does what its input says, in two branches.").chain(|chain| {
        chain
            .parallel(|branches| {
                branches
                    .branch("left", |branch| branch.junction("ActLeft", left))
                    .branch("right", |branch| branch.junction("ActRight", right))
            })
            .junction("Act", act_after_branches)
    })
}

fn probe_resumes(train: NewTrain) -> Train {
    scripted(train, "probe-resumes", "Does what its input says, with checkpoints.").chain(|chain| {
        chain
            .junction("Act1", act1)
            .checkpoint::<First>()
            .parallel(|branches| {
                branches
                    .branch("left", |branch| {
                        branch
                            .junction("ActLeft", left)
                            .checkpoint::<LeftNotes>()
                            .junction("ActLeft2", left2)
                    })
                    .branch("right", |branch| branch.junction("ActRight", right))
            })
            .gate::<Ready>(|ready| {
                ready
                    .asking_about::<Script>()
                    .yes(|track| track.junction("GoYes", yes))
                    .no(|track| track.junction("GoNo", no))
            })
            .junction("Act", act_after_branches)
    })
}

fn probe_short(train: NewTrain) -> Train {
    scripted(train, "probe-short", "May have its result early.").chain(|chain| {
        chain.short_circuit("Shortcut", shortcut).junction("Act", junctions::act_alone)
    })
}

fn probe_noop(train: NewTrain) -> Train {
    train
        .named::<Token, Token>("probe-noop", "Does nothing.")
        .chain(|chain| chain.junction("Pass", pass))
}

fn probe_three(train: NewTrain) -> Train {
    train
        .named::<Token, Token>("probe-three", "Does nothing, three times, with one question.")
        .rules("probe-rules", |rules| rules.rule(|_: &Token| YesNoDecision::<Ready>::certain(true)))
        .default_decider("probe-rules")
        .chain(|chain| {
            chain
                .junction("First", pass)
                .gate::<Ready>(|ready| {
                    ready
                        .asking_about::<Token>()
                        .yes(|track| track.junction("Second", pass))
                        .no(|track| track.junction("Second", pass))
                })
                .junction("Third", pass)
        })
}

/// What the trains with a script have in common.
fn scripted(train: NewTrain, name: &str, description: &str) -> Train {
    train
        .named::<Script, Report>(name, description)
        .decider("probe-decider", decider::answer)
        .default_decider("probe-decider")
}
