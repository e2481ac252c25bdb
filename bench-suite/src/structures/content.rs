//! Floor 3, bench-suite. Owns what says whether a structure's content at the end is what the operations left. Touches
//! nothing else.

/// How many values, and a sum over them that depends on each: two multisets that differ have the same by chance only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    sum: u64,
}

impl Sum {
    /// One more value.
    #[inline(always)]
    pub(super) fn add(&mut self, value: u64) {
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(mixed(value));
    }

    /// All of another's values more.
    pub(super) fn with(self, other: Sum) -> Sum {
        Sum {
            count: self.count.wrapping_add(other.count),
            sum: self.sum.wrapping_add(other.sum),
        }
    }

    /// All of another's values less.
    pub(super) fn without(self, other: Sum) -> Sum {
        Sum {
            count: self.count.wrapping_sub(other.count),
            sum: self.sum.wrapping_sub(other.sum),
        }
    }
}

/// Values that differ in little give sums that differ in much.
#[inline(always)]
fn mixed(value: u64) -> u64 {
    let product = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
    product ^ (product >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(values: &[u64]) -> Sum {
        let mut sum = Sum::default();
        values.iter().for_each(|&value| sum.add(value));
        sum
    }

    #[test]
    fn the_same_values_have_the_same_sum_in_any_order() {
        assert_eq!(sum(&[1, 2, 3]), sum(&[3, 1, 2]));
        assert_eq!(
            sum(&[1, 2]).with(sum(&[3])).without(sum(&[2])),
            sum(&[3, 1])
        );
        assert_eq!(
            sum(&[1]).without(sum(&[1, 5])).with(sum(&[5])),
            Sum::default()
        );
    }

    #[test]
    fn others_have_another() {
        for others in [
            &[1, 2][..],
            &[1, 2, 4],
            &[1, 1, 4],
            &[0, 2, 4],
            &[1, 2, 3, 3],
        ] {
            assert_ne!(sum(others), sum(&[1, 2, 3]), "{others:?}");
        }
        // The same plain sum.
        assert_ne!(sum(&[2, 2]), sum(&[1, 3]));
    }
}
