//! What makes two askings of a question the same.

use sha2::{Digest, Sha256};

use crate::model::question::{Criterion, Question, QuestionKind};

/// Identifies an asking: 64 lowercase hex digits of SHA-256. A recorded answer is replayed only to an asking with the
/// same fingerprint. `step` is the id of the node that asks, `state_type` the name of the state's type; the state
/// itself has no part in it, and neither has whether the question is sensitive.
///
/// The hashed bytes, in this order:
///
/// | field | bytes |
/// |---|---|
/// | layout | `trax question 1` and a line feed; another layout takes another number |
/// | step, state's type, kind (`choice`, `score`, `yes_no`), key, instructions | text each |
/// | options or levels | how many as 8 bytes, then per criterion its name as text and its description as perhaps-text |
/// | yes, no | perhaps-text each, in place of options or levels |
///
/// Text is its length in bytes as 8 bytes, most significant first, and its UTF-8 bytes. Perhaps-text is the byte 0 for
/// none, or the byte 1 and the text. As every field says where it ends, different askings have different bytes.
pub fn fingerprint(step: &str, state_type: &str, question: &Question) -> String {
    let mut bytes = Bytes(Sha256::new_with_prefix(b"trax question 1\n"));
    bytes.text(step);
    bytes.text(state_type);
    bytes.text(question.kind.as_str());
    bytes.text(&question.key);
    bytes.text(&question.instructions);
    match &question.kind {
        QuestionKind::Choice(criteria) | QuestionKind::Score(criteria) => bytes.criteria(criteria),
        QuestionKind::YesNo { yes, no } => {
            bytes.perhaps(yes.as_deref());
            bytes.perhaps(no.as_deref());
        }
    }
    hex::encode(bytes.0.finalize())
}

struct Bytes(Sha256);

impl Bytes {
    fn count(&mut self, count: usize) {
        self.0.update((count as u64).to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.update(text);
    }

    fn perhaps(&mut self, text: Option<&str>) {
        match text {
            None => self.0.update([0]),
            Some(text) => {
                self.0.update([1]);
                self.text(text);
            }
        }
    }

    fn criteria(&mut self, criteria: &[Criterion]) {
        self.count(criteria.len());
        for criterion in criteria {
            self.text(&criterion.name);
            self.perhaps(criterion.description.as_deref());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn criterion(name: &str, description: Option<&str>) -> Criterion {
        Criterion { name: name.to_owned(), description: description.map(str::to_owned) }
    }

    fn team() -> Question {
        Question {
            key: "Team".to_owned(),
            instructions: "Which team?".to_owned(),
            kind: QuestionKind::Choice(vec![
                criterion("Billing", Some("Invoices")),
                criterion("Refunds", None),
            ]),
            sensitive: false,
        }
    }

    /// Q22: the layout is stored with decisions, so it never changes under the same number.
    #[test]
    fn the_layout_is_fixed() {
        let yes_no = QuestionKind::YesNo { yes: Some("It is".to_owned()), no: None };
        let score = QuestionKind::Score(vec![criterion("Low", None), criterion("High", None)]);
        for (question, expected) in [
            (team(), "61f7b608fc971acc4569dce7e1e04f1711450ddf2d24d5e4d7e2d277d171dd73"),
            (
                Question { kind: score, ..team() },
                "03d39858fbe345f8737dbd42c7c1efe00fd4ad2d5194e6e94d1193ccb2a3af67",
            ),
            (
                Question { kind: yes_no, ..team() },
                "aa24835d70c90f116c22c703c374be3fa01314d69fd123001b8b657cc64ed11e",
            ),
        ] {
            assert_eq!(fingerprint("Switch<Team>#0", "Ticket", &question), expected);
        }
    }

    /// Q22: each thing that an asking is made of changes the fingerprint; the question's sensitivity does not.
    #[test]
    fn everything_asked_has_a_part_in_it() {
        let of = |question: &Question| fingerprint("Switch<Team>#0", "Ticket", question);
        let options = |options: &[(&str, Option<&str>)]| {
            let criteria = options.iter().map(|(n, d)| criterion(n, *d)).collect();
            Question { kind: QuestionKind::Choice(criteria), ..team() }
        };
        let mut all = vec![
            of(&team()),
            fingerprint("Switch<Team>#1", "Ticket", &team()),
            fingerprint("Switch<Team>#0", "Order", &team()),
            of(&Question { key: "Lane".to_owned(), ..team() }),
            of(&Question { instructions: "Which one?".to_owned(), ..team() }),
            of(&options(&[("Billing", Some("Invoices"))])),
            of(&options(&[("Refunds", None), ("Billing", Some("Invoices"))])),
            of(&options(&[("Billing", Some("Money")), ("Refunds", None)])),
            of(&options(&[("Billing", None), ("Refunds", None)])),
            of(&options(&[("Billing", Some("Invoices")), ("Refunds", Some(""))])),
            of(&Question {
                kind: QuestionKind::Score(vec![
                    criterion("Billing", Some("Invoices")),
                    criterion("Refunds", None),
                ]),
                ..team()
            }),
            of(&Question { kind: QuestionKind::YesNo { yes: None, no: None }, ..team() }),
            of(&Question {
                kind: QuestionKind::YesNo { yes: Some("x".to_owned()), no: None },
                ..team()
            }),
            of(&Question {
                kind: QuestionKind::YesNo { yes: None, no: Some("x".to_owned()) },
                ..team()
            }),
        ];
        assert_eq!(of(&Question { sensitive: true, ..team() }), all[0]);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    /// Texts that run into each other when lengths are left out.
    fn any_text() -> impl Strategy<Value = String> {
        "[ab\\x00\\x01]{0,3}"
    }

    fn any_question() -> impl Strategy<Value = Question> {
        let criteria = || {
            let criterion = (any_text(), prop::option::of(any_text()))
                .prop_map(|(name, description)| Criterion { name, description });
            prop::collection::vec(criterion, 0..3)
        };
        let kind = prop_oneof![
            criteria().prop_map(QuestionKind::Choice),
            criteria().prop_map(QuestionKind::Score),
            (prop::option::of(any_text()), prop::option::of(any_text()))
                .prop_map(|(yes, no)| QuestionKind::YesNo { yes, no }),
        ];
        (any_text(), any_text(), kind).prop_map(|(key, instructions, kind)| Question {
            key,
            instructions,
            kind,
            sensitive: false,
        })
    }

    proptest! {
        /// Q22: askings have equal fingerprints exactly when they are equal.
        #[test]
        fn equal_exactly_when_the_asking_is(
            left in (any_text(), any_text(), any_question()),
            right in (any_text(), any_text(), any_question()),
        ) {
            let of = |asking: &(String, String, Question)| {
                fingerprint(&asking.0, &asking.1, &asking.2)
            };
            prop_assert_eq!(of(&left) == of(&right), left == right);
        }
    }
}
