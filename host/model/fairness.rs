//! Fairness between tenants: deficit round robin, by weight.
//!
//! Tenants take turns in the order of their ids. A turn is worth as many entries as the tenant's weight; a turn that
//! was cut short for lack of room goes on in the next pass, so that one free worker at a time is shared as fairly as a
//! hundred are.

use std::collections::BTreeMap;

use crate::model::ids::TenantId;

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    next: TenantId,
    /// What is left of that tenant's turn; 0: it has not begun.
    left: usize,
}

impl Default for Turns {
    fn default() -> Self {
        Self { next: TenantId(i64::MIN), left: 0 }
    }
}

impl Turns {
    /// How many entries each of the waiting tenants may take of the room, none left out that has a turn in it.
    pub fn shares(
        &mut self,
        waiting: &BTreeMap<TenantId, usize>,
        room: usize,
    ) -> BTreeMap<TenantId, usize> {
        let mut shares = BTreeMap::new();
        let mut room = room;
        if waiting.is_empty() {
            return shares;
        }
        let from_next = waiting.range(self.next..).chain(waiting.range(..self.next));
        let order: Vec<(TenantId, usize)> = from_next.map(|(id, weight)| (*id, *weight)).collect();
        // A tenant that no longer waits gives up what was left of its turn.
        let mut left = if order[0].0 == self.next { self.left } else { 0 };
        for (tenant, weight) in order.iter().copied().cycle() {
            if left == 0 {
                left = weight.max(1);
            }
            let taken = left.min(room);
            if taken > 0 {
                *shares.entry(tenant).or_default() += taken;
            }
            left -= taken;
            room -= taken;
            if room == 0 {
                self.next = if left > 0 { tenant } else { TenantId(tenant.0.saturating_add(1)) };
                self.left = left;
                break;
            }
        }
        shares
    }

    /// Notes that a tenant had less to take than it might: its turn is over.
    pub fn end(&mut self, tenant: TenantId) {
        if self.next == tenant {
            *self = Self { next: TenantId(tenant.0.saturating_add(1)), left: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waiting(weights: &[(i64, usize)]) -> BTreeMap<TenantId, usize> {
        weights.iter().map(|(id, weight)| (TenantId(*id), *weight)).collect()
    }

    #[test]
    fn one_place_at_a_time_goes_round_by_weight() {
        let (mut turns, waiting) = (Turns::default(), waiting(&[(1, 2), (2, 1), (7, 1)]));

        let order: Vec<i64> = (0..8)
            .flat_map(|_| turns.shares(&waiting, 1).into_keys().map(|tenant| tenant.0))
            .collect();

        assert_eq!(order, [1, 1, 2, 7, 1, 1, 2, 7]);
    }

    #[test]
    fn a_tenant_with_nothing_left_gives_its_turn_up() {
        let (mut turns, both) = (Turns::default(), waiting(&[(1, 3), (2, 1)]));
        assert_eq!(turns.shares(&both, 1), waiting(&[(1, 1)]));
        turns.end(TenantId(1));

        assert_eq!(turns.shares(&both, 1), waiting(&[(2, 1)]));
        assert_eq!(turns.shares(&both, 2), waiting(&[(1, 2)]));
        // The first one does not wait this time.
        assert_eq!(turns.shares(&waiting(&[(2, 1)]), 1), waiting(&[(2, 1)]));
        assert_eq!(turns.shares(&both, 1), waiting(&[(1, 1)]));
        assert_eq!(turns.shares(&BTreeMap::new(), 5), BTreeMap::new());
    }

    proptest! {
        #[test]
        fn shares_fill_the_room_and_follow_the_weights(
            weights in prop::collection::btree_map(0_i64..50, 1_usize..9, 1..8),
            rooms in prop::collection::vec(0_usize..40, 1..60),
        ) {
            let waiting: BTreeMap<_, _> =
                weights.into_iter().map(|(id, weight)| (TenantId(id), weight)).collect();
            let mut turns = Turns::default();
            let mut taken: BTreeMap<TenantId, usize> = BTreeMap::new();
            for room in &rooms {
                let shares = turns.shares(&waiting, *room);
                prop_assert_eq!(shares.values().sum::<usize>(), *room);
                for (tenant, share) in shares {
                    *taken.entry(tenant).or_default() += share;
                }
            }
            // Nobody is more than one turn ahead of anybody.
            let of = |tenant: &TenantId| taken.get(tenant).copied().unwrap_or(0);
            for (one, weight) in &waiting {
                for (other, its_weight) in &waiting {
                    prop_assert!(of(one) * its_weight <= (of(other) + its_weight) * weight, "{:?}", taken);
                }
            }
        }
    }
}
