//! Commands about the allocator: `replay`.

use std::path::Path;

use super::answer::{Answer, Refusal};
use super::args::Args;
use headroom_core::allocator::file;

/// Replays a recorded run; the exit code is 1 if a step differs.
pub(super) fn replay(args: &Args) -> Result<Answer, Refusal> {
    let report =
        file::replay(Path::new(args.positional(0))).map_err(|error| Refusal(vec![error]))?;
    let json = serde_json::to_string(&report)
        .map_err(|error| Refusal(vec![format!("the report cannot be written: {error}")]))?;
    let mut answer = Answer::with_json(format!("{report}\n"), format!("{json}\n"));
    answer.fits = report.wrong_steps + report.wrong_driver_calls == 0;
    Ok(answer)
}
