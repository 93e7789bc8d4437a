//! Memory that grows from validation to validation, and when it is all.

use super::Lab;
use super::lab::{Changes, decimal};
use crate::estimate::Unsupported;
use crate::units::Bytes;

/// What a metric keeps of every validation and never lets go.
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

    /// The room that a run leaves on its card.
    pub fn room(lab: &Lab, changes: Changes) -> Result<Bytes, Unsupported> {
        let found = lab.estimate(changes)?;
        let usable = found.usable.unwrap_or(Bytes::ZERO);
        Ok(usable.saturating_sub(found.device.expected))
    }

    /// How it grows and when it ends, in words.
    pub fn in_words(self, room: Bytes) -> String {
        let per_epoch = decimal(self.after(1));
        match self.runs_out(room) {
            Some(epoch) => format!(
                "{per_epoch} more after each epoch, {} after 60; {room} are left: out of memory in epoch {epoch}",
                decimal(self.after(60))
            ),
            None => "nothing grows".into(),
        }
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
