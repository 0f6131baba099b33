//! How long to wait before a model is asked again.

use std::time::Duration;

use crate::deciders::model_client::settings::Settings;

/// The most that is added to the time which a model asks for, so that not everybody comes back at once.
const JITTER_MAX: Duration = Duration::from_secs(1);

/// The wait after this attempt, the first being 1; `None` when the model asks for more time than is waited for.
/// `random` is from 0 to 1.
pub(super) fn before_retry(
    settings: &Settings,
    attempt: u32,
    retry_after: Option<Duration>,
    random: f64,
) -> Option<Duration> {
    let most = settings.max_retry_delay;
    if let Some(asked) = retry_after {
        let jitter = (asked / 10).min(JITTER_MAX).mul_f64(random);
        return (asked <= most).then(|| (asked + jitter).min(most));
    }
    let doublings = 2_u32.saturating_pow(attempt.saturating_sub(1));
    let half = settings.retry_delay.saturating_mul(doublings).min(most) / 2;
    Some(half + half.mul_f64(random))
}

/// What a `Retry-After` header asks for: seconds, or an instant. `now` is in microseconds since 1970.
pub(super) fn retry_after(header: &str, now: i64) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than fit are more than anybody waits for.
        return Some(Duration::from_secs(header.parse().unwrap_or(u64::from(u32::MAX))));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(header).ok()?;
    let micros = at.as_microsecond().saturating_sub(now).max(0);
    Some(Duration::from_micros(micros.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new("https://example.com", "judge-2")
    }

    /// Q38: half of the doubled delay, and up to half more by chance, within the longest.
    #[test]
    fn without_a_header_the_wait_doubles() {
        let millis = |attempt, random| {
            before_retry(&settings(), attempt, None, random).map(|wait| wait.as_millis())
        };
        assert_eq!([millis(1, 0.0), millis(1, 1.0)], [Some(250), Some(500)]);
        assert_eq!([millis(2, 0.0), millis(2, 0.5)], [Some(500), Some(750)]);
        assert_eq!(millis(4, 1.0), Some(4_000));
        assert_eq!([millis(20, 0.0), millis(20, 1.0)], [Some(15_000), Some(30_000)]);
        assert_eq!(millis(u32::MAX, 1.0), Some(30_000));
    }

    /// Q38: what the model asks for, and a little more by chance; more than the longest wait is not waited for.
    #[test]
    fn a_header_is_honoured() {
        let wait = |asked, random| {
            let asked = Duration::from_millis(asked);
            before_retry(&settings(), 1, Some(asked), random).map(|wait| wait.as_millis())
        };
        assert_eq!([wait(2_000, 0.0), wait(2_000, 1.0)], [Some(2_000), Some(2_200)]);
        assert_eq!(wait(20_000, 1.0), Some(21_000));
        assert_eq!([wait(29_900, 1.0), wait(30_000, 1.0)], [Some(30_000), Some(30_000)]);
        assert_eq!(wait(30_001, 0.0), None);
        assert_eq!(wait(0, 1.0), Some(0));
    }

    /// Q38: the header has seconds or an instant; anything else is as if there were none.
    #[test]
    fn headers_are_read() {
        let now = 1_445_412_470_000_000;
        let read = |header| retry_after(header, now).map(|asked| asked.as_secs());
        assert_eq!(read("120"), Some(120));
        assert_eq!(read(" 0 "), Some(0));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(10));
        assert_eq!(read("Wed, 21 Oct 2015 07:27:00 GMT"), Some(0));
        assert_eq!(read("99999999999999999999999"), Some(4_294_967_295));
        for none in ["", "soon", "-1", "1.5"] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
