//! How a recorded run and its replay compare.

use std::fmt;

use serde::Serialize;

/// How a recorded run and its replay compare.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileReport {
    /// The name that the recording gives its run.
    pub id: String,
    /// Requests and frees.
    pub events: usize,
    /// Recorded training steps.
    pub steps: usize,
    /// Steps with a number that differs.
    pub wrong_steps: usize,
    /// Calls to the driver (`cudaMalloc`, `cudaFree`, map, unmap) and failures, recorded or replayed.
    pub driver_calls: usize,
    /// Those of `driver_calls` that differ between the recorded run and its replay.
    pub wrong_driver_calls: usize,
    /// Every number that differs, in the order of the file's lines.
    pub mismatches: Vec<Mismatch>,
}

/// A number that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The line of the file, from 1.
    pub line: usize,
    /// Which number or call it is, such as `driver calls`.
    pub what: String,
    /// What the file has.
    pub recorded: String,
    /// What the replay gives instead.
    pub replayed: String,
}

impl fmt::Display for FileReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mismatch in self.mismatches.iter().take(20) {
            let Mismatch {
                line,
                what,
                recorded,
                replayed,
            } = mismatch;
            writeln!(
                f,
                "line {line}: {what}: recorded {recorded}, replayed {replayed}"
            )?;
        }
        let Self {
            id,
            events,
            steps,
            wrong_steps,
            driver_calls,
            wrong_driver_calls,
            ..
        } = self;
        write!(
            f,
            "{id}  events {events}  steps {steps}  mismatches {wrong_steps}  \
             driver calls {driver_calls}  mismatches {wrong_driver_calls}"
        )
    }
}
