//! Groups of manifests that wait for each other.

use std::collections::BTreeSet;

/// The names that lie on a circle or between two of them, in order; none if the arrows make no circle.
pub fn in_cycle<'n>(arrows: &[(&'n str, &'n str)]) -> Vec<&'n str> {
    let mut left: Vec<(&str, &str)> = arrows.to_vec();
    loop {
        let starts: BTreeSet<&str> = left.iter().map(|(from, _)| *from).collect();
        let ends: BTreeSet<&str> = left.iter().map(|(_, to)| *to).collect();
        let before = left.len();
        left.retain(|(from, to)| ends.contains(from) && starts.contains(to));
        if left.len() == before {
            return starts.into_iter().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M30: the groups that wait for each other are found among many that do not.
    #[test]
    fn circles_are_found() {
        let chain = [("a", "b"), ("b", "c"), ("a", "c")];
        assert!(in_cycle(&chain).is_empty());
        let circle = [("x", "b"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")];
        assert_eq!(in_cycle(&circle), ["a", "b", "c"]);
        assert_eq!(in_cycle(&[("a", "a")]), ["a"]);
        assert!(in_cycle(&[]).is_empty());
    }
}
