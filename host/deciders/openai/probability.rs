//! How probable a part of what a model wrote was, from the log-probabilities of its tokens.

use std::ops::Range;

use crate::deciders::openai::wire::Token;

/// What a model wrote, and the tokens that it is made of.
pub(super) struct Written<'t> {
    content: &'t str,
    /// Each token's place in the content, and its log-probability; empty when the tokens do not make up the content.
    tokens: Vec<(Range<usize>, f64)>,
}

impl<'t> Written<'t> {
    pub(super) fn new(content: &'t str, tokens: &[Token]) -> Self {
        let mut rest = content.as_bytes();
        let mut places = Vec::with_capacity(tokens.len());
        for token in tokens {
            let bytes = token.bytes.as_deref().unwrap_or(token.text.as_bytes());
            let Some(after) = rest.strip_prefix(bytes) else { break };
            let start = content.len() - rest.len();
            places.push((start..start + bytes.len(), token.logprob));
            rest = after;
        }
        if !rest.is_empty() {
            places.clear();
        }
        Self { content, tokens: places }
    }

    /// The probability of a part, which must be a slice of the content: a text in quotes. The quotes do not count.
    pub(super) fn probability(&self, part: &str) -> Option<f64> {
        let start = part.as_ptr().addr().checked_sub(self.content.as_ptr().addr())?;
        let end = (start + part.len()).checked_sub(1).filter(|end| *end <= self.content.len())?;
        let start = start + 1;
        let within = |place: &Range<usize>| place.start < end && place.end > start;
        let mut parts = self.tokens.iter().filter(|(place, _)| within(place)).peekable();
        parts.peek()?;
        let probability = parts.map(|(_, logprob)| logprob).sum::<f64>().exp();
        (0.0..=1.0).contains(&probability).then_some(probability)
    }
}
