//! Who answers questions: deciders by name, and which of them a question goes to.
//!
//! A train may ship rule deciders of its own; all others are set up on the host. A step names its decider, or else its
//! train does. An operator can put others in their place: for a question, for all steps that name none, or for
//! everything. Shadows are asked the same beside whoever is acted on.

pub mod cascade;
pub mod host;
pub mod model_client;
pub mod openai;
pub mod rules;
pub mod scripted;
pub mod system_one;
pub mod vetting;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::deciders::cascade::Cascade;
use crate::deciders::host::HostDeciders;
use crate::deciders::openai::OpenAi;
use crate::deciders::rules::RuleDecider;
use crate::deciders::scripted::ScriptedDecider;
use crate::deciders::system_one::SystemOne;
use crate::model::answer::Answer;
use crate::model::failure::Failure;
use crate::model::question::Question;
use crate::model::value::Value;

/// Questions about one state, asked in one call.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The train's name.
    pub train: &'a str,
    /// What the questions are about.
    pub state: &'a Value,
    /// The questions, in the words of the step that asks.
    pub questions: &'a [&'a Question],
}

/// Answers questions.
pub enum Decider {
    /// Rules that the train's own component ships.
    Rules(RuleDecider),
    /// Answers from a file.
    Scripted(ScriptedDecider),
    /// A model that is asked in the System One format.
    SystemOne(SystemOne),
    /// A model behind a chat endpoint.
    OpenAi(OpenAi),
    /// A fast one first, and a slower one for what it was unsure of.
    Cascade(Cascade),
}

impl Decider {
    /// Answers what it can. The answers have not been checked; questions it cannot answer are left out.
    ///
    /// # Errors
    /// The decider's own failure, with its own class.
    pub async fn decide(&self, request: Request<'_>) -> Result<Vec<Answer>, Failure> {
        match self {
            Self::Rules(rules) => rules.decide(request).await,
            Self::Scripted(scripted) => scripted.decide(request),
            Self::SystemOne(model) => model.decide(request).await,
            Self::OpenAi(model) => model.decide(request).await,
            Self::Cascade(cascade) => Box::pin(cascade.decide(request)).await,
        }
    }

    /// Why it cannot be asked these questions in one call; `None` when it can.
    pub fn vet(&self, questions: &[&Question]) -> Option<String> {
        match self {
            Self::Rules(_) | Self::Scripted(_) => None,
            Self::SystemOne(model) => vetting::problem(questions, model.settings()),
            Self::OpenAi(model) => vetting::problem(questions, model.settings()),
            Self::Cascade(cascade) => {
                cascade.first.vet(questions).or_else(|| cascade.then.vet(questions))
            }
        }
    }
}

impl fmt::Debug for Decider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rules(_) => "rules",
            Self::Scripted(_) => "scripted",
            Self::SystemOne(_) => "system-one",
            Self::OpenAi(_) => "openai",
            Self::Cascade(_) => "cascade",
        })
    }
}

/// How long a run waits for shadows, where neither its step nor its host says.
const WAIT_FOR_SHADOWS: Duration = Duration::from_secs(5);

/// A decider that is asked beside the one that is acted on.
#[derive(Debug, Clone)]
pub struct Shadow {
    /// Its name.
    pub name: String,
    /// The decider.
    pub decider: Arc<Decider>,
    /// Which of the questions it is asked.
    pub questions: Vec<usize>,
}

/// The deciders that one train can be answered by.
#[derive(Debug, Default)]
pub struct Deciders {
    by_name: BTreeMap<String, Arc<Decider>>,
    train_default: Option<String>,
    host_default: Option<String>,
    by_question: BTreeMap<String, String>,
    shadows: BTreeMap<String, Vec<String>>,
    wait_for_shadows: Option<Duration>,
    in_place_of_all: Option<String>,
}

impl Deciders {
    /// None yet; questions that name none go to the train's default.
    pub fn new(train_default: Option<String>) -> Self {
        Self { train_default, ..Self::default() }
    }

    /// Adds a decider. A later one of the same name takes the earlier one's place.
    pub fn add(&mut self, name: impl Into<String>, decider: impl Into<Arc<Decider>>) {
        self.by_name.insert(name.into(), decider.into());
    }

    /// Adds those that an operator has set up, and who is asked what.
    pub fn add_host(&mut self, host: &HostDeciders) {
        self.by_name.extend(host.by_name.clone());
        self.host_default.clone_from(&host.default);
        self.by_question.clone_from(&host.by_question);
        self.shadows.clone_from(&host.shadows);
        self.wait_for_shadows = host.wait_for_shadows;
    }

    /// Adds a decider that answers everything, whatever a step or the train names.
    pub fn add_in_place_of_all(&mut self, name: impl Into<String>, decider: Decider) {
        let name = name.into();
        self.in_place_of_all = Some(name.clone());
        self.by_name.insert(name, decider.into());
    }

    /// The decider of a step that names this one, or none, and asks these questions. Where an operator has chosen for
    /// several of them, the first one's choice holds for all, because they are asked in one call.
    ///
    /// # Errors
    /// A permanent failure when nobody is named, or nobody has that name.
    pub fn of_step(
        &self,
        named: Option<&str>,
        questions: &[&Question],
    ) -> Result<(&str, &Arc<Decider>), Failure> {
        let chosen = questions.iter().find_map(|question| self.by_question.get(&question.key));
        let wanted = self
            .in_place_of_all
            .as_deref()
            .or(chosen.map(String::as_str))
            .or(named)
            .or(self.host_default.as_deref())
            .or(self.train_default.as_deref());
        let Some(wanted) = wanted else {
            return Err(Failure::permanent(
                "NoDecider",
                "the step names no decider and its train has no default; name one in the train, or \
                 as the default of [decisions] in trax.toml, or give answers with --answers",
            ));
        };
        match self.by_name.get_key_value(wanted) {
            Some((name, decider)) => Ok((name, decider)),
            None => Err(Failure::permanent("UnknownDecider", self.unknown("decider", wanted))),
        }
    }

    /// Who is asked beside the live decider: those that the step names about all its questions, and those that the
    /// operator names about theirs. The live one is no shadow of itself, and one in place of all has none.
    ///
    /// # Errors
    /// A permanent failure when nobody has the name.
    pub fn shadows(
        &self,
        named: &[String],
        live: &str,
        questions: &[&Question],
    ) -> Result<Vec<Shadow>, Failure> {
        if self.in_place_of_all.is_some() {
            return Ok(Vec::new());
        }
        let mut asked: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, question) in questions.iter().enumerate() {
            let stated = self.shadows.get(&question.key);
            for name in named.iter().chain(stated.into_iter().flatten()) {
                let questions = asked.entry(name).or_default();
                if questions.last() != Some(&index) {
                    questions.push(index);
                }
            }
        }
        asked.remove(live);
        asked
            .into_iter()
            .map(|(name, questions)| match self.by_name.get(name) {
                Some(decider) => {
                    Ok(Shadow { name: name.to_owned(), decider: Arc::clone(decider), questions })
                }
                None => Err(Failure::permanent("UnknownDecider", self.unknown("shadow", name))),
            })
            .collect()
    }

    /// How long a run waits for shadows after the live decider has answered.
    pub fn wait_for_shadows(&self, step: Option<Duration>) -> Duration {
        step.or(self.wait_for_shadows).unwrap_or(WAIT_FOR_SHADOWS)
    }

    fn unknown(&self, what: &str, wanted: &str) -> String {
        let known: Vec<_> = self.by_name.keys().map(String::as_str).collect();
        match known.as_slice() {
            [] => format!("there is no {what} '{wanted}', and no other; set it up in trax.toml"),
            known => format!(
                "there is no {what} '{wanted}'; there is {}; set it up in trax.toml, or name another",
                known.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::failure::FailureClass;
    use crate::model::question::QuestionKind;

    fn scripted() -> Decider {
        Decider::Scripted(ScriptedDecider::from_json("{}").unwrap())
    }

    /// Q16: found by name, the step's before the host's and the train's, and an operator's choice before all.
    #[test]
    fn the_step_comes_before_the_host_and_the_train_and_one_in_place_of_all_before_both() {
        let mut deciders = Deciders::new(Some("train".to_owned()));
        let named = |deciders: &Deciders, step| match deciders.of_step(step, &[]) {
            Ok((name, _)) => name.to_owned(),
            Err(failure) => failure.message,
        };
        assert_eq!(
            named(&deciders, None),
            "there is no decider 'train', and no other; set it up in trax.toml"
        );

        deciders.add("train", scripted());
        deciders.add("step", scripted());
        assert_eq!(named(&deciders, None), "train");
        assert_eq!(named(&deciders, Some("step")), "step");
        assert_eq!(
            named(&deciders, Some("gone")),
            "there is no decider 'gone'; there is step, train; set it up in trax.toml, or name another"
        );

        let mut host = HostDeciders { default: Some("host".to_owned()), ..HostDeciders::default() };
        host.by_name.insert("host".to_owned(), scripted().into());
        host.by_question.insert("Team".to_owned(), "train".to_owned());
        deciders.add_host(&host);
        assert_eq!(named(&deciders, None), "host");
        assert_eq!(named(&deciders, Some("step")), "step");
        let team = Question {
            key: "Team".to_owned(),
            instructions: "?".to_owned(),
            kind: QuestionKind::YesNo { yes: None, no: None },
            sensitive: false,
        };
        assert_eq!(deciders.of_step(Some("step"), &[&team]).unwrap().0, "train");

        deciders.add_in_place_of_all("answers", scripted());
        assert_eq!(named(&deciders, Some("step")), "answers");
        let nobody = Deciders::new(None).of_step(None, &[]).unwrap_err();
        assert_eq!(nobody.name, "NoDecider");
    }

    /// Q5, Q21: the step's shadows are asked everything, the operator's what they are for, and nobody is missing.
    #[test]
    fn shadows_are_the_steps_and_the_operators() {
        let question = |key: &str| Question {
            key: key.to_owned(),
            instructions: "?".to_owned(),
            kind: QuestionKind::YesNo { yes: None, no: None },
            sensitive: false,
        };
        let (team, spam) = (question("Team"), question("Spam"));
        let asked = [&team, &spam];
        let mut deciders = Deciders::new(Some("train".to_owned()));
        let mut host = HostDeciders::default();
        for name in ["live", "one", "two"] {
            host.by_name.insert(name.to_owned(), scripted().into());
        }
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        host.shadows.insert("Spam".to_owned(), names(&["one", "two", "live"]));
        host.wait_for_shadows = Some(Duration::from_secs(1));
        assert_eq!(deciders.wait_for_shadows(None), Duration::from_secs(5));
        deciders.add_host(&host);
        let told = |deciders: &Deciders, named: &[&str]| {
            deciders.shadows(&names(named), "live", &asked).map(|shadows| {
                shadows.into_iter().map(|it| (it.name, it.questions)).collect::<Vec<_>>()
            })
        };

        let both = [("one".to_owned(), vec![0, 1]), ("two".to_owned(), vec![1])];
        assert_eq!(told(&deciders, &["one"]).unwrap(), both);
        assert_eq!(deciders.wait_for_shadows(None), Duration::from_secs(1));
        assert_eq!(deciders.wait_for_shadows(Some(Duration::ZERO)), Duration::ZERO);
        let missing = told(&deciders, &["gone"]).unwrap_err();
        assert_eq!(
            (missing.class, missing.message.as_str()),
            (
                FailureClass::Permanent,
                "there is no shadow 'gone'; there is live, one, two; set it up in trax.toml, or name another"
            )
        );
        deciders.add_in_place_of_all("answers", scripted());
        assert!(told(&deciders, &["gone"]).unwrap().is_empty());
    }
}
