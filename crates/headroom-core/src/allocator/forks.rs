//! Where replays of the same requests on cards of different sizes part: until the driver gives one what it refuses another, they
//! are the same.

use super::Allocator;
use super::caching::Forks;

impl Allocator {
    /// Watches from here on where other cards would do something else.
    pub(super) fn watch_forks(&mut self, low: u64, high: u64) {
        let forks = Forks {
            low,
            high,
            given: 0,
            refused: u64::MAX,
            smaller: None,
            larger: None,
        };
        self.forks = Some(Box::new(forks));
    }

    /// The driver is about to grant or refuse `wanted` bytes in total.
    pub(super) fn note_fork(&mut self, wanted: u64, gives: bool) {
        let Some(mut forks) = self.forks.take() else {
            return;
        };
        if gives {
            if wanted > forks.low && forks.given <= forks.low {
                forks.smaller = Some(Box::new(self.clone()));
            }
            forks.given = forks.given.max(wanted);
        } else {
            if wanted <= forks.high && forks.refused > forks.high {
                forks.larger = Some(Box::new(self.clone()));
            }
            forks.refused = forks.refused.min(wanted);
        }
        self.forks = Some(forks);
    }
}
