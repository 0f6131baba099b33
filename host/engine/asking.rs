//! Asking: from questions about a state to recorded answers that fit them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::chain::Chain;
use crate::chain::step::Routing;
use crate::decide::check;
use crate::decide::fingerprint::fingerprint;
use crate::decide::state_hash::StateHasher;
use crate::deciders::{Deciders, Request};
use crate::engine::journal::{Asking, Decided, Event, Journal, Shadowed};
use crate::engine::shadows::Shadows;
use crate::guest::context::{Ask, BoxFuture};
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::question::Question;
use crate::model::value::Value;

/// The most types that are remembered of which the log has told that their states have no hash.
const TOLD_MAX: usize = 1_000;

/// Asks the questions of one run.
pub struct Asker {
    /// The train.
    pub chain: Arc<Chain>,
    /// Who answers.
    pub deciders: Arc<Deciders>,
    /// Where answers are recorded.
    pub journal: Arc<dyn Journal>,
    /// Hashes states.
    pub hasher: StateHasher,
}

/// One asking of a question.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The question, in the words of the step that asks.
    pub question: Question,
    /// The n-th asking of this question in the run and branch, from 0.
    pub occurrence: u32,
}

/// Where questions are asked.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The node that asks.
    pub node: &'a str,
    /// The branch it is in, or empty.
    pub branch: &'a str,
    /// Whether a junction asks while it runs.
    pub is_inside_junction: bool,
    /// What the node routes by the answer, where it does.
    pub routing: Option<Routing<'a>>,
    /// Set when the run, or this branch of it, is cancelled.
    pub cancel: &'a CancellationToken,
}

/// Who is asked, as far as the step says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Whom<'a> {
    /// The decider that is acted on.
    pub decider: Option<&'a str>,
    /// Deciders asked the same, recorded and never acted on.
    pub shadows: &'a [String],
    /// How long to wait for those.
    pub wait_for_shadows: Option<Duration>,
}

/// An asking as it is recorded.
#[derive(Clone)]
struct Recorded {
    fingerprint: String,
    state_hash: Option<String>,
    /// Why the answer of an earlier run is not given again.
    replay_refused: Option<String>,
}

impl Place<'_> {
    fn asking<'a>(&'a self, asked: &'a Asked) -> Asking<'a> {
        Asking {
            branch: self.branch,
            key: &asked.question.key,
            asked_by: if self.is_inside_junction { self.node } else { "" },
            occurrence: asked.occurrence,
        }
    }
}

impl Asker {
    /// Asks questions about a state in one call. Every answer has been recorded when this returns, also one that does
    /// not fit and fails the node.
    ///
    /// # Errors
    /// The decider's failure; a transient one that names every answer that is missing or does not fit; a permanent one
    /// when there is no such decider.
    pub async fn ask(
        &self,
        place: Place<'_>,
        state: &Value,
        asked: &[Asked],
        whom: Whom<'_>,
    ) -> Result<Vec<Answer>, Failure> {
        let mut recorded: Vec<Recorded> = asked
            .iter()
            .map(|asked| Recorded {
                fingerprint: fingerprint(place.node, &state.type_name, &asked.question),
                state_hash: self.state_hash(state, &asked.question),
                replay_refused: None,
            })
            .collect();
        let mut answers = self.recall(place, asked, &recorded)?;
        self.replay(place, asked, &mut recorded, &mut answers).await?;
        let open: Vec<usize> = (0..asked.len()).filter(|index| answers[*index].is_none()).collect();
        if !open.is_empty() {
            let fresh = self.ask_afresh(place, state, asked, recorded, &open, whom).await?;
            for (index, answer) in open.into_iter().zip(fresh) {
                answers[index] = Some(answer);
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// The answers that this run recorded before it stopped and continued.
    fn recall(
        &self,
        place: Place<'_>,
        asked: &[Asked],
        recorded: &[Recorded],
    ) -> Result<Vec<Option<Answer>>, Failure> {
        let recall = |(asked, now): (&Asked, &Recorded)| {
            let Some(before) = self.journal.recall(place.asking(asked)) else { return Ok(None) };
            let is_same =
                before.fingerprint == now.fingerprint && before.state_hash == now.state_hash;
            match before.answer {
                Some(answer) if is_same => Ok(Some(answer)),
                Some(_) => Err(Failure::permanent(
                    "NotDeterministic",
                    format!(
                        "'{}' asked '{}' about something else before the run stopped and continued; what a \
                         junction asks may depend on its inputs and on earlier answers only",
                        place.node, asked.question.key
                    ),
                )),
                None => Err(Failure::transient(
                    check::UNFIT_ANSWER,
                    format!("the answer to '{}' did not fit", asked.question.key),
                )),
            }
        };
        asked.iter().zip(recorded).map(recall).collect()
    }

    /// Gives the answers again that an earlier run recorded for the same askings, one by one: those that are not given
    /// are noted with the reason, and asked afresh.
    async fn replay(
        &self,
        place: Place<'_>,
        asked: &[Asked],
        recorded: &mut [Recorded],
        answers: &mut [Option<Answer>],
    ) -> Result<(), Failure> {
        for ((asked, now), answer) in asked.iter().zip(recorded).zip(answers) {
            let earlier = self.journal.earlier(place.asking(asked)).filter(|_| answer.is_none());
            let Some(earlier) = earlier else { continue };
            let state_hash = now.state_hash.as_deref();
            match earlier.check(&asked.question, &now.fingerprint, &self.hasher, state_hash) {
                Ok(()) => {
                    *answer = Some(earlier.answer.clone());
                    let replayed = Decided {
                        answer: answer.clone(),
                        ..decided(place, asked, now.clone(), None)
                    };
                    self.journal.record(Event::Decided(Box::new(replayed))).await?;
                }
                Err(reason) => now.replay_refused = Some(reason),
            }
        }
        Ok(())
    }

    /// The hash of a state. The log says once of each type that its states have none for want of a key.
    fn state_hash(&self, state: &Value, question: &Question) -> Option<String> {
        let types = self.chain.types();
        let hash = self.hasher.hash_for(types, state, question);
        let is_sensitive = question.sensitive || types.is_sensitive(&state.type_name);
        if hash.is_none() && is_sensitive && !self.hasher.is_keyed() && is_first(&state.type_name) {
            tracing::warn!(
                state_type = &*state.type_name,
                "answers about sensitive states are recorded without a hash of the state, so that none is replayed; \
                 give the host a state hash key"
            );
        }
        hash
    }

    /// Asks the decider those of the questions that are open, and its shadows beside it, and records what they answer.
    async fn ask_afresh(
        &self,
        place: Place<'_>,
        state: &Value,
        asked: &[Asked],
        recorded: Vec<Recorded>,
        open: &[usize],
        whom: Whom<'_>,
    ) -> Result<Vec<Answer>, Failure> {
        let questions: Vec<&Question> = open.iter().map(|index| &asked[*index].question).collect();
        let (name, decider) = self.deciders.of_step(whom.decider, &questions)?;
        let shadows = self.deciders.shadows(whom.shadows, name, &questions)?;
        let train = &self.chain.train().name;
        let shadows = Shadows::ask(shadows, train, state, &questions);
        let request = Request { train, state, questions: &questions };
        let given = decider.decide(request).await?;
        let checked = check::check(&questions, given);
        let mut recorded: Vec<Option<Recorded>> = recorded.into_iter().map(Some).collect();
        let mut live = Vec::new();
        for (position, index) in open.iter().enumerate() {
            let asked = &asked[*index];
            let (answer, refused) = match &checked {
                Ok(answers) => (answers.get(position).cloned(), None),
                Err(unfit) => {
                    let fault = unfit.faults.iter().find(|fault| fault.key == asked.question.key);
                    let Some(fault) = fault else { continue };
                    (fault.answer.clone(), Some(fault.problem.clone()))
                }
            };
            let Some(recorded) = recorded[*index].take() else { continue };
            live.push((position, asked, answer.clone()));
            let decided =
                Decided { answer, refused, ..decided(place, asked, recorded, Some(name)) };
            self.journal.record(Event::Decided(Box::new(decided))).await?;
        }
        if !shadows.is_empty() {
            let wait = self.deciders.wait_for_shadows(whom.wait_for_shadows);
            self.record_shadows(place, shadows, wait, live).await;
        }
        checked.map_err(Failure::from)
    }

    /// Waits for shadows and records what they answered beside live answers, which are durable by now. That it cannot
    /// be recorded is told, and nothing else comes of it.
    async fn record_shadows(
        &self,
        place: Place<'_>,
        shadows: Shadows,
        wait: Duration,
        live: Vec<(usize, &Asked, Option<Answer>)>,
    ) {
        let heard = shadows.hear(wait, place.cancel).await;
        for (position, asked, answer) in live {
            let question = &asked.question;
            let answers = heard.to(position, question, place.routing, answer.as_ref());
            if answers.is_empty() {
                continue;
            }
            let shadowed = Shadowed {
                node: place.node.to_owned(),
                branch: place.branch.to_owned(),
                key: question.key.clone(),
                is_sensitive: question.sensitive,
                is_inside_junction: place.is_inside_junction,
                occurrence: asked.occurrence,
                answers,
            };
            let recorded = self.journal.record(Event::Shadowed(Box::new(shadowed))).await;
            if let Err(failure) = recorded {
                tracing::warn!(
                    question = question.key,
                    "what shadows answered is not recorded: {failure:?}"
                );
            }
        }
    }
}

/// An asking that was answered, as it is recorded, but for the answer.
fn decided(place: Place<'_>, asked: &Asked, recorded: Recorded, decider: Option<&str>) -> Decided {
    Decided {
        node: place.node.to_owned(),
        branch: place.branch.to_owned(),
        question: asked.question.clone(),
        is_inside_junction: place.is_inside_junction,
        occurrence: asked.occurrence,
        fingerprint: recorded.fingerprint,
        state_hash: recorded.state_hash,
        decider: decider.map(str::to_owned),
        replay_refused: recorded.replay_refused,
        answer: None,
        refused: None,
    }
}

/// Whether nobody has been told of this type yet. Types past the most that are remembered are told of again.
fn is_first(type_name: &str) -> bool {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() >= TOLD_MAX {
        told.clear();
    }
    told.insert(type_name.to_owned())
}

/// Asks for one junction, which may ask only what it has declared.
pub struct JunctionAsker {
    /// Asks for the run.
    pub asker: Arc<Asker>,
    /// The junction's node.
    pub node: String,
    /// The branch it is in, or empty.
    pub branch: String,
    /// The keys it has declared.
    pub keys: Vec<String>,
    /// Set when the junction is to stop.
    pub cancel: CancellationToken,
    /// How often each question was asked by this node.
    pub asked: Mutex<BTreeMap<String, u32>>,
}

impl JunctionAsker {
    fn next_occurrence(&self, key: &str) -> u32 {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry(key.to_owned()).or_default();
        *count += 1;
        *count - 1
    }

    fn asked(&self, key: &str) -> Result<Asked, Failure> {
        let declared = self.keys.iter().any(|k| k == key);
        match self.asker.chain.question(key).filter(|_| declared) {
            Some(question) => {
                Ok(Asked { question: question.clone(), occurrence: self.next_occurrence(key) })
            }
            None => Err(Failure::permanent(
                "UndeclaredQuestion",
                format!(
                    "'{}' asked '{key}', which its junction does not declare; add the key to its \
                     declaration",
                    self.node
                ),
            )),
        }
    }

    async fn answer(&self, state: Value, keys: Vec<String>) -> Result<Vec<Answer>, Failure> {
        let types = self.asker.chain.types();
        let state = types.admit(&state.type_name, &state.json).map_err(|fault| {
            Failure::permanent(
                "BadState",
                format!("'{}' asked about a state that {fault}", self.node),
            )
        })?;
        if let Some(key) = repeated(&keys) {
            let message = format!("'{}' asked '{key}' twice in one call; ask it once", self.node);
            return Err(Failure::permanent("RepeatedQuestion", message));
        }
        let asked = keys.iter().map(|key| self.asked(key)).collect::<Result<Vec<_>, _>>()?;
        let place = Place {
            node: &self.node,
            branch: &self.branch,
            is_inside_junction: true,
            routing: None,
            cancel: &self.cancel,
        };
        self.asker.ask(place, &state, &asked, Whom::default()).await
    }
}

impl Ask for JunctionAsker {
    fn ask(&self, state: Value, keys: Vec<String>) -> BoxFuture<'_, Result<Vec<Answer>, Failure>> {
        Box::pin(self.answer(state, keys))
    }

    fn stalled(&self) -> Duration {
        self.asker.journal.stalled()
    }
}

fn repeated(keys: &[String]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    keys.iter().find(|key| !seen.insert(*key))
}
