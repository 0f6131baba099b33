//! The decider of the trains with a script.

use trax_sdk::questions::{
    Answer, AnswerKind, ChoiceAnswer, DecisionRequest, QuestionKind, ScoreAnswer,
};
use trax_sdk::{Failure, json};

use crate::deed::do_steps;
use crate::script::{Script, ScriptedAnswer};

/// Answers what the script says, or is certain of the first option, the middle level and yes.
pub(crate) fn answer(request: &DecisionRequest) -> Result<Vec<Answer>, Failure> {
    if request.state.type_name == "Script" {
        let script: Script = json::from_str(&request.state.json)?;
        do_steps(script.decider.unwrap_or_default(), &mut Vec::new())?;
        if let Some(answers) = script.answers {
            return Ok(answers.into_iter().map(scripted).collect());
        }
    }
    let certain = request.questions.iter().map(|question| Answer {
        key: question.key.clone(),
        kind: certain(&question.kind),
        model: None,
    });
    Ok(certain.collect())
}

fn certain(kind: &QuestionKind) -> AnswerKind {
    match kind {
        QuestionKind::Choice(options) => AnswerKind::Choice(ChoiceAnswer {
            choice: options.first().map(|option| option.name.clone()).unwrap_or_default(),
            confidence: 1.0,
            probabilities: Vec::new(),
        }),
        QuestionKind::Score(_) => AnswerKind::Score(ScoreAnswer {
            score: 1.0,
            confidence: 1.0,
            probabilities: Vec::new(),
        }),
        QuestionKind::YesNo(_) => AnswerKind::YesNo(1.0),
    }
}

fn scripted(answer: ScriptedAnswer) -> Answer {
    let confidence = answer.confidence.unwrap_or(1.0);
    let probabilities = Vec::new();
    let kind = if let Some(choice) = answer.choice {
        AnswerKind::Choice(ChoiceAnswer { choice, confidence, probabilities })
    } else if let Some(score) = answer.score {
        AnswerKind::Score(ScoreAnswer { score, confidence, probabilities: Vec::new() })
    } else {
        AnswerKind::YesNo(answer.probability.unwrap_or_default())
    };
    Answer { key: answer.key, kind, model: answer.model }
}
