//! Which questions a model can be asked: looked at when a train is put in service, and again before each request.

use crate::deciders::Request;
use crate::deciders::model_client::settings::Settings;
use crate::deciders::model_client::{self, MODEL_FAILED};
use crate::model::failure::Failure;
use crate::model::question::{Criterion, Question, QuestionKind};

/// Why these questions cannot be asked in one request; `None` when they can.
pub fn problem(questions: &[&Question], settings: &Settings) -> Option<String> {
    let (count, most) = (questions.len(), settings.max_questions);
    if count > most {
        return Some(format!(
            "{count} questions are asked at once, and it is asked at most {most}"
        ));
    }
    for (index, question) in questions.iter().enumerate() {
        let key = &question.key;
        if questions[..index].iter().any(|earlier| earlier.key == *key) {
            return Some(format!("'{key}' is asked twice at once"));
        }
        if question.instructions.trim().is_empty() {
            return Some(format!("'{key}' has no instructions"));
        }
        let criteria = match &question.kind {
            QuestionKind::Choice(criteria) | QuestionKind::Score(criteria) => criteria,
            QuestionKind::YesNo { .. } => continue,
        };
        if let Some(problem) = of_criteria(key, criteria, settings.max_options) {
            return Some(problem);
        }
    }
    None
}

fn of_criteria(key: &str, criteria: &[Criterion], most: usize) -> Option<String> {
    let count = criteria.len();
    if !(2..=most).contains(&count) {
        return Some(format!("'{key}' has {count} options, and it is asked for 2 to {most}"));
    }
    let mut names: Vec<&str> = criteria.iter().map(|criterion| criterion.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(format!("'{key}' has the option '{}' twice", twice[0]))
}

/// Why a state of this JSON cannot be sent to a model: it must be a text, an object or a list.
fn of_state(json: &str) -> Option<String> {
    let first = json.trim_start().bytes().next();
    let what = match first {
        Some(b'"' | b'{' | b'[') => return None,
        Some(b'n') => "null",
        Some(b't' | b'f') => "true or false",
        _ => "a number",
    };
    Some(format!("the state is {what}, and only a text, an object or a list can be asked about"))
}

/// Looks at a request before it is made.
///
/// # Errors
/// A permanent failure: asking again would not help.
pub fn check(request: &Request<'_>, settings: &Settings) -> Result<(), Failure> {
    let problem = problem(request.questions, settings).or_else(|| of_state(&request.state.json));
    problem.map_or(Ok(()), |problem| {
        Err(Failure::permanent(MODEL_FAILED, model_client::told(request.train, &problem, 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criteria(names: &[&str]) -> Vec<Criterion> {
        let criterion = |name: &&str| Criterion { name: (*name).to_owned(), description: None };
        names.iter().map(criterion).collect()
    }

    fn question(key: &str, instructions: &str, kind: QuestionKind) -> Question {
        let (key, instructions) = (key.to_owned(), instructions.to_owned());
        Question { key, instructions, kind, sensitive: false }
    }

    /// Q17, Q41: what cannot be asked is refused, and said.
    #[test]
    fn questions_that_cannot_be_asked_are_refused() {
        let mut settings = Settings::new("https://example.com", "judge-2");
        settings.max_questions = 2;
        settings.max_options = 3;
        let yes_no = || QuestionKind::YesNo { yes: None, no: None };
        let team = question("Team", "?", QuestionKind::Choice(criteria(&["a", "b", "c"])));
        let spam = question("Spam", "?", yes_no());
        let told = |questions: &[&Question]| problem(questions, &settings).unwrap_or_default();

        assert_eq!(told(&[&team, &spam]), "");
        assert!(told(&[&team, &spam, &spam]).starts_with("3 questions"));
        assert_eq!(told(&[&spam, &spam]), "'Spam' is asked twice at once");
        let blank = question("Blank", " \n", yes_no());
        assert_eq!(told(&[&blank]), "'Blank' has no instructions");
        for names in [&["a"][..], &["a", "b", "c", "d"]] {
            let few = question("Few", "?", QuestionKind::Choice(criteria(names)));
            assert!(told(&[&few]).contains("options, and it is asked for 2 to 3"));
        }
        let twice = question("Level", "?", QuestionKind::Score(criteria(&["x", "y", "x"])));
        assert_eq!(told(&[&twice]), "'Level' has the option 'x' twice");
    }

    /// Q39, Q41: a state that is a bare number, truth or nothing cannot be asked about.
    #[test]
    fn bare_states_are_refused() {
        for (json, expected) in
            [("null", "null"), ("true", "true"), ("1", "number"), ("-2", "number")]
        {
            assert!(of_state(json).is_some_and(|problem| problem.contains(expected)), "{json}");
        }
        for json in ["\"text\"", "{}", "[1]"] {
            assert_eq!(of_state(json), None);
        }
    }
}
