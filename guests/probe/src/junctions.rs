//! The junctions: each plays its part of the script.

use trax_sdk::prelude::*;

use crate::deed::play;
use crate::report::{First, LeftNotes, Notes as _, Report, RightNotes, Routed, Scripted, Second};
use crate::script::Script;
use crate::{Lane, Level, Ready, Token, Topic};

type Act<T> = Result<Scripted<T>, Failure>;

pub(crate) fn act(script: Script, _: Ask<(Lane, Level, Ready), Topic>) -> Act<Report> {
    act_alone(script)
}

pub(crate) fn act_alone(script: Script) -> Act<Report> {
    Ok(play(script, "Act", Vec::new())?.into())
}

pub(crate) fn act1(script: Script) -> Act<First> {
    Ok(play(script, "Act1", Vec::new())?.into())
}

pub(crate) fn act2(script: Script, first: First) -> Act<Second> {
    Ok(play(script, "Act2", first.into_notes())?.into())
}

pub(crate) fn act3(script: Script, second: Second) -> Act<Report> {
    Ok(play(script, "Act3", second.into_notes())?.into())
}

pub(crate) fn last_act2(script: Script, first: First) -> Act<Report> {
    Ok(play(script, "Act2", first.into_notes())?.into())
}

pub(crate) fn act_after_route(script: Script, routed: Routed) -> Act<Report> {
    Ok(play(script, "Act", routed.into_notes())?.into())
}

pub(crate) fn act_after_branches(
    script: Script,
    left: LeftNotes,
    right: RightNotes,
) -> Act<Report> {
    let notes = left.into_notes().into_iter().chain(right.into_notes());
    Ok(play(script, "Act", notes.collect())?.into())
}

pub(crate) fn left(script: Script) -> Act<LeftNotes> {
    Ok(play(script, "ActLeft", Vec::new())?.into())
}

pub(crate) fn left2(script: Script, left: LeftNotes) -> Act<Second> {
    Ok(play(script, "ActLeft2", left.into_notes())?.into())
}

pub(crate) fn right(script: Script) -> Act<RightNotes> {
    Ok(play(script, "ActRight", Vec::new())?.into())
}

pub(crate) fn shortcut(script: Script) -> Act<Report> {
    Ok(play(script, "Shortcut", Vec::new())?.into())
}

pub(crate) fn go_left(script: Script, lane: ChoiceDecision<Lane>) -> Act<Routed> {
    Ok(play(script, "GoLeft", vec![format!("left, {} sure", lane.confidence)])?.into())
}

pub(crate) fn go_right(script: Script, lane: ChoiceDecision<Lane>) -> Act<Routed> {
    Ok(play(script, "GoRight", vec![format!("right, {} sure", lane.confidence)])?.into())
}

pub(crate) fn go_nowhere(script: Script, lane: TrackTaken<Lane>) -> Act<Routed> {
    let reason = lane.fallback_reason.unwrap_or_default();
    Ok(play(script, "GoNowhere", vec![format!("{}: {reason}", lane.track)])?.into())
}

pub(crate) fn yes(script: Script, ready: YesNoDecision<Ready>) -> Act<Routed> {
    Ok(play(script, "GoYes", vec![format!("yes: {}", ready.probability)])?.into())
}

pub(crate) fn no(script: Script, ready: YesNoDecision<Ready>) -> Act<Routed> {
    Ok(play(script, "GoNo", vec![format!("no: {}", ready.probability)])?.into())
}

pub(crate) fn unsure(script: Script, level: ScoreDecision<Level>) -> Act<Routed> {
    Ok(play(script, "GoUnsure", vec![format!("unsure, level {}", level.score)])?.into())
}

pub(crate) fn pass(token: Token) -> Token {
    token
}
