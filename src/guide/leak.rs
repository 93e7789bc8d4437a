//! Memory that grows with every validation, and the epoch in which the card is full.

use crate::units::Bytes;

/// What metrics that nobody resets keep of every validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leak {
    pub per_validation: Bytes,
    pub validations_per_epoch: u64,
}

impl Leak {
    /// What is kept after so many epochs.
    pub fn after(self, epochs: u64) -> Bytes {
        self.per_validation * self.validations_per_epoch.saturating_mul(epochs)
    }

    /// The epoch in which this room is used up; none where nothing grows.
    pub fn runs_out(self, room: Bytes) -> Option<u64> {
        let each = self.after(1).get();
        room.get().checked_div(each).map(|whole| whole + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leak_ends_a_run_in_the_epoch_that_lacks_room() {
        #[track_caller]
        fn check(per_validation: u64, validations: u64, room: u64, expected: Option<u64>) {
            let leak = Leak {
                per_validation: Bytes::new(per_validation),
                validations_per_epoch: validations,
            };
            assert_eq!(leak.runs_out(Bytes::new(room)), expected);
        }
        check(10, 10, 599, Some(6));
        check(10, 10, 600, Some(7));
        check(10, 4, 599, Some(15));
        check(0, 10, 599, None);
        check(10, 10, 0, Some(1));
    }
}
