//! Whose turn it is when more manifests are due than one pass queues.

/// How many of each group are taken, given how many are due and the groups in the order of their priority: an equal
/// share each, and what is left over to the first groups that have more.
pub fn shares(due: &[usize], limit: usize) -> Vec<usize> {
    let each = limit.checked_div(due.len()).unwrap_or(0);
    let mut shares: Vec<usize> = due.iter().map(|due| each.min(*due)).collect();
    let mut left = limit - shares.iter().sum::<usize>();
    for (share, due) in shares.iter_mut().zip(due) {
        let more = left.min(due - *share);
        *share += more;
        left -= more;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// M22: each group gets an equal share, and the rest goes to groups in order.
    #[test]
    fn groups_share_and_the_first_ones_take_what_is_left() {
        let cases: [(&[usize], usize, &[usize]); 8] = [
            (&[], 200, &[]),
            (&[1, 1], 200, &[1, 1]),
            (&[300, 300], 200, &[100, 100]),
            (&[300, 10], 200, &[190, 10]),
            (&[10, 300], 200, &[10, 190]),
            (&[5, 5, 5], 11, &[5, 3, 3]),
            (&[5, 5, 5], 2, &[2, 0, 0]),
            (&[5, 5], 0, &[0, 0]),
        ];
        for (due, limit, expected) in cases {
            assert_eq!(shares(due, limit), expected, "{due:?} {limit}");
        }
    }

    proptest! {
        /// M22: nothing due is left while there is room, and nobody gets less than an equal share of it.
        #[test]
        fn no_room_is_wasted_and_no_group_is_left_out(
            due in prop::collection::vec(1_usize..50, 1..20), limit in 0_usize..400,
        ) {
            let shares = shares(&due, limit);
            prop_assert_eq!(shares.iter().sum::<usize>(), limit.min(due.iter().sum()));
            for (share, due) in shares.iter().zip(&due) {
                prop_assert!(share <= due && *share >= (limit / shares.len()).min(*due));
            }
        }
    }
}
