//! Shadows: deciders that are asked beside the one that is acted on. Whatever they do, the run does not fail of it, and
//! it waits for them no longer than it is told.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value as JsonValue, json};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::chain::decision::stored_answer;
use crate::chain::step::Routing;
use crate::clock::Clock;
use crate::decide::agreement::agrees;
use crate::decide::check;
use crate::deciders::{Request, Shadow};
use crate::guest::context::BoxFuture;
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::question::Question;
use crate::model::value::Value;

/// What a shadow answered to one question.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowAnswer {
    /// Its name.
    pub decider: String,
    /// What it answered, also when that does not fit.
    pub answer: Option<Answer>,
    /// Whether its answer would have had the same effect as the live one.
    pub has_agreed: bool,
    /// Why it has no answer, or none that fits.
    pub error: Option<String>,
}

impl ShadowAnswer {
    /// As it is stored.
    pub fn to_json(&self) -> JsonValue {
        let stored = self.answer.as_ref().map(|answer| stored_answer(&answer.kind, None));
        let stored = stored.and_then(|text| serde_json::from_str::<JsonValue>(&text).ok());
        let model = self.answer.as_ref().and_then(|answer| answer.model.as_deref());
        json!({
            "decider": self.decider, "answer": stored, "model": model, "agreed": self.has_agreed,
            "error": self.error,
        })
    }
}

type Given = Result<Vec<Answer>, Failure>;

/// Shadows that have been asked. Dropped, all of them are stopped.
#[derive(Debug)]
pub struct Shadows {
    asked: Vec<Asked>,
    tasks: JoinSet<Given>,
    by_task: HashMap<Id, usize>,
}

#[derive(Debug)]
struct Asked {
    name: String,
    /// Which of the questions it was asked.
    questions: Vec<usize>,
    given: Option<Result<Vec<Answer>, String>>,
}

/// What became of all shadows.
#[derive(Debug)]
pub struct Heard {
    asked: Vec<Asked>,
    /// Why those that have not answered have not.
    unanswered: String,
}

impl Shadows {
    /// Asks them, each with a copy of the state and of its questions, in a task of its own.
    pub fn ask(shadows: Vec<Shadow>, train: &str, state: &Value, questions: &[&Question]) -> Self {
        let asking = shadows.into_iter().map(|shadow| {
            let Shadow { name, decider, questions: asked } = shadow;
            let own: Vec<Question> = asked.iter().map(|index| questions[*index].clone()).collect();
            let (train, state) = (train.to_owned(), Value::new(&*state.type_name, &*state.json));
            let answering = async move {
                let questions: Vec<&Question> = own.iter().collect();
                let request = Request { train: &train, state: &state, questions: &questions };
                decider.decide(request).await
            };
            (name, asked, Box::pin(answering) as BoxFuture<'static, Given>)
        });
        Self::begin(asking)
    }

    fn begin(
        asking: impl Iterator<Item = (String, Vec<usize>, BoxFuture<'static, Given>)>,
    ) -> Self {
        let mut shadows =
            Self { asked: Vec::new(), tasks: JoinSet::new(), by_task: HashMap::new() };
        for (name, questions, answering) in asking {
            let task = shadows.tasks.spawn(answering).id();
            shadows.by_task.insert(task, shadows.asked.len());
            shadows.asked.push(Asked { name, questions, given: None });
        }
        shadows
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Waits for all of them, at most this long and until the run is cancelled, and stops those that go on. With no
    /// time to wait, those count that have answered already.
    pub async fn hear(mut self, wait: Duration, cancel: &CancellationToken) -> Heard {
        let over = Clock.sleep(wait);
        tokio::pin!(over);
        let unanswered = loop {
            tokio::select! {
                biased;
                joined = self.tasks.join_next_with_id() => match joined {
                    Some(joined) => self.note(joined),
                    None => break String::new(),
                },
                () = &mut over => break format!("it took longer than {wait:?}"),
                () = cancel.cancelled() => break "the run was cancelled first".to_owned(),
            }
        };
        self.tasks.abort_all();
        Heard { asked: self.asked, unanswered }
    }

    fn note(&mut self, joined: Result<(Id, Given), JoinError>) {
        let (task, given) = match joined {
            Ok((task, given)) => (task, given.map_err(|failure| failure.message)),
            Err(error) => {
                let what = if error.is_panic() { "it panicked" } else { "it was stopped" };
                (error.id(), Err(what.to_owned()))
            }
        };
        let asked = self.by_task.get(&task).and_then(|index| self.asked.get_mut(*index));
        if let Some(asked) = asked {
            asked.given = Some(given);
        }
    }
}

impl Heard {
    /// What they answered to the question at this place, beside a live answer to it.
    pub fn to(
        &self,
        index: usize,
        question: &Question,
        routing: Option<Routing<'_>>,
        live: Option<&Answer>,
    ) -> Vec<ShadowAnswer> {
        let asked = self.asked.iter().filter(|asked| asked.questions.contains(&index));
        asked
            .map(|asked| {
                let (answer, error) = self.answer(asked, question);
                let has_agreed = match (&answer, live) {
                    (Some(answer), Some(live)) if error.is_none() => {
                        agrees(routing, question, &live.kind, &answer.kind)
                    }
                    _ => false,
                };
                ShadowAnswer { decider: asked.name.clone(), answer, has_agreed, error }
            })
            .collect()
    }

    fn answer(&self, asked: &Asked, question: &Question) -> (Option<Answer>, Option<String>) {
        let given = match &asked.given {
            None => return (None, Some(self.unanswered.clone())),
            Some(Err(error)) => return (None, Some(error.clone())),
            Some(Ok(given)) => given,
        };
        let given = given.iter().filter(|answer| answer.key == question.key).cloned().collect();
        match check::check(&[question], given) {
            Ok(fit) => (fit.into_iter().next(), None),
            Err(unfit) => match unfit.faults.into_iter().next() {
                Some(fault) => (fault.answer, Some(fault.problem)),
                None => (None, None),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::oneshot;

    use super::*;
    use crate::model::answer::AnswerKind;
    use crate::model::question::QuestionKind;

    const LONG: Duration = Duration::from_hours(1);

    fn ready_question() -> Question {
        let kind = QuestionKind::YesNo { yes: None, no: None };
        Question { key: "Ready".to_owned(), instructions: "?".to_owned(), kind, sensitive: false }
    }

    fn yes(probability: f64) -> Answer {
        let kind = AnswerKind::YesNo { probability };
        Answer { key: "Ready".to_owned(), kind, model: None }
    }

    fn shadow(
        name: &str,
        answering: impl Future<Output = Given> + Send + 'static,
    ) -> (String, Vec<usize>, BoxFuture<'static, Given>) {
        (name.to_owned(), vec![0], Box::pin(answering))
    }

    fn told(heard: &Heard) -> Vec<(String, bool, Option<String>)> {
        let answers = heard.to(0, &ready_question(), None, Some(&yes(0.9)));
        answers.into_iter().map(|it| (it.decider, it.has_agreed, it.error)).collect()
    }

    fn expected(
        name: &str,
        has_agreed: bool,
        error: Option<&str>,
    ) -> (String, bool, Option<String>) {
        (name.to_owned(), has_agreed, error.map(str::to_owned))
    }

    /// Q21: a shadow that fails, panics, answers nothing or answers badly is told apart, and never agrees.
    #[tokio::test]
    async fn whatever_a_shadow_does_is_told() {
        let failure = Failure::transient("Away", "the model is away");
        let shadows = Shadows::begin(
            [
                shadow("agrees", ready(Ok(vec![yes(0.5)]))),
                shadow("bad", ready(Ok(vec![yes(9.0)]))),
                shadow("differs", ready(Ok(vec![yes(0.4)]))),
                shadow("fails", ready(Err(failure))),
                shadow("panics", async { panic!("a shadow") }),
                shadow("silent", ready(Ok(vec![]))),
            ]
            .into_iter(),
        );
        let heard = shadows.hear(LONG, &CancellationToken::new()).await;
        assert_eq!(
            told(&heard),
            [
                expected("agrees", true, None),
                expected("bad", false, Some("the probability is not from 0 to 1")),
                expected("differs", false, None),
                expected("fails", false, Some("the model is away")),
                expected("panics", false, Some("it panicked")),
                expected("silent", false, Some("it was not answered")),
            ]
        );
        assert!(heard.to(1, &ready_question(), None, None).is_empty());
    }

    /// Q21: after the wait those that go on are stopped; those that have answered count, also with no time to wait.
    #[tokio::test]
    async fn after_the_wait_shadows_are_stopped() {
        let (held, dropped) = oneshot::channel::<()>();
        let (answered, has_answered) = oneshot::channel::<()>();
        let hangs = async move {
            let _held = held;
            pending().await
        };
        let answers = async move {
            answered.send(()).ok();
            Ok(vec![yes(1.0)])
        };
        let shadows =
            Shadows::begin([shadow("answers", answers), shadow("hangs", hangs)].into_iter());
        has_answered.await.unwrap();
        let heard = shadows.hear(Duration::ZERO, &CancellationToken::new()).await;
        assert_eq!(
            told(&heard),
            [
                expected("answers", true, None),
                expected("hangs", false, Some("it took longer than 0ns")),
            ]
        );
        assert!(dropped.await.is_err());
    }

    /// Q21: a cancelled run waits for no shadow, and one that is dropped takes its shadows with it.
    #[tokio::test]
    async fn shadows_end_with_their_run() {
        let (held, dropped) = oneshot::channel::<()>();
        let hang = |held: oneshot::Sender<()>| async move {
            let _held = held;
            pending().await
        };
        let cancel = CancellationToken::new();
        cancel.cancel();
        let shadows = Shadows::begin([shadow("hangs", hang(held))].into_iter());
        let heard = shadows.hear(LONG, &cancel).await;
        assert_eq!(told(&heard), [expected("hangs", false, Some("the run was cancelled first"))]);
        assert!(dropped.await.is_err());

        let (held, dropped) = oneshot::channel::<()>();
        drop(Shadows::begin([shadow("hangs", hang(held))].into_iter()));
        assert!(dropped.await.is_err());
    }

    /// D6: numbers that JSON does not have are texts in what is stored of a shadow.
    #[test]
    fn every_shadow_answer_can_be_stored() {
        let shadow = ShadowAnswer {
            decider: "judge".to_owned(),
            answer: Some(yes(f64::NAN)),
            has_agreed: false,
            error: Some("bad".to_owned()),
        };
        assert_eq!(
            shadow.to_json().to_string(),
            r#"{"agreed":false,"answer":{"probability":"NaN"},"decider":"judge","error":"bad","model":null}"#
        );
    }
}
