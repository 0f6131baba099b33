//! Numbers compared exactly, as they are written: no value passes through a float on its way to a bound.

use std::cmp::Ordering;

/// Whether the text of a JSON number is an integer in its one spelling: digits, perhaps a minus, no negative zero.
///
/// JSON Schema also calls `1.0` and `1e3` integers; here equal values have equal text, and no reader of integers in
/// any of the guest languages accepts those.
pub(super) fn is_integer(text: &str) -> bool {
    text != "-0" && text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// Compares two JSON numbers. Exponents beyond 64 bits count as the greatest that fit.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    if let (Ok(left), Ok(right)) = (left.parse::<i64>(), right.parse::<i64>()) {
        return left.cmp(&right);
    }
    let (left, right) = (Decimal::read(left), Decimal::read(right));
    match (left.sign(), right.sign()) {
        (1, 1) => left.compare_magnitude(&right),
        (-1, -1) => right.compare_magnitude(&left),
        (left, right) => left.cmp(&right),
    }
}

/// A number's digits without zeros at either end, and how many of them stand before the point.
struct Decimal<'a> {
    is_negative: bool,
    /// Digits before and after the point as written, the zeros at the ends of the whole left out.
    digits: (&'a str, &'a str),
    before_point: i64,
}

impl<'a> Decimal<'a> {
    fn read(text: &'a str) -> Self {
        let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent = exponent.parse().unwrap_or(if exponent.starts_with('-') {
            i64::MIN / 2
        } else {
            i64::MAX / 2
        });
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let (digits, shift) = if whole.is_empty() {
            let digits = fraction.trim_start_matches('0');
            (("", digits), -length(&fraction[..fraction.len() - digits.len()]))
        } else if fraction.is_empty() {
            ((whole.trim_end_matches('0'), ""), length(whole))
        } else {
            ((whole, fraction), length(whole))
        };
        Self { is_negative, digits, before_point: shift.saturating_add(exponent) }
    }

    fn sign(&self) -> i8 {
        match (self.digits, self.is_negative) {
            (("", ""), _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        let digits = |number: &Self| number.digits.0.bytes().chain(number.digits.1.bytes());
        let (mine, theirs) = (digits(self), digits(other));
        self.before_point.cmp(&other.before_point).then_with(|| mine.cmp(theirs))
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_compare_as_written() {
        let ascending = [
            "-1e999999999999999999999",
            "-123456789012345678901234567891",
            "-123456789012345678901234567890",
            "-9223372036854775809",
            "-9223372036854775808",
            "-10",
            "-1.5",
            "-1",
            "-1e-9",
            "0",
            "1e-400",
            "0.001",
            "0.0100",
            "0.1",
            "0.10000000000000000000000000000000000001",
            "1",
            "1.5",
            "9.99",
            "10",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "123456789012345678901234567890",
            "123456789012345678901234567890.5",
            "123456789012345678901234567891",
            "1e400",
            "1e401",
        ];
        for (i, left) in ascending.iter().enumerate() {
            for (j, right) in ascending.iter().enumerate() {
                assert_eq!(compare(left, right), i.cmp(&j), "{left} and {right}");
            }
        }
        let equal = ["100", "1e2", "1E+2", "100.0", "0.1e3", "10000e-2", "0.00100e5"];
        for (left, right) in equal.iter().flat_map(|l| equal.iter().map(move |r| (l, r))) {
            assert_eq!(compare(left, right), Ordering::Equal, "{left} and {right}");
        }
        for (left, right) in [("0", "-0"), ("0.0", "-0e5"), ("0e9", "0")] {
            assert_eq!(compare(left, right), Ordering::Equal, "{left} and {right}");
        }
    }

    #[test]
    fn integers_have_one_spelling() {
        for (text, expected) in [
            ("0", true),
            ("-1", true),
            ("123456789012345678901234567890", true),
            ("-0", false),
            ("1.0", false),
            ("1e3", false),
            ("1E3", false),
        ] {
            assert_eq!(is_integer(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn wide_integers_compare_as_integers(left: i128, right: i128, shift in 0_u32..90) {
            let (left, right) = (left >> shift, right >> shift);
            prop_assert_eq!(compare(&left.to_string(), &right.to_string()), left.cmp(&right));
        }

        #[test]
        fn fractions_compare_as_integers_of_a_smaller_unit(
            left: i32,
            right: i32,
            places in 0_usize..12,
        ) {
            let text = |number: i32| {
                let digits = format!("{:0width$}", number.unsigned_abs(), width = places + 1);
                let (whole, fraction) = digits.split_at(digits.len() - places);
                let sign = if number < 0 { "-" } else { "" };
                let point = if places > 0 { "." } else { "" };
                format!("{sign}{whole}{point}{fraction}")
            };
            prop_assert_eq!(compare(&text(left), &text(right)), left.cmp(&right));
            let scaled = format!("{right}e-{places}");
            prop_assert_eq!(compare(&text(left), &scaled), left.cmp(&right));
        }
    }
}
