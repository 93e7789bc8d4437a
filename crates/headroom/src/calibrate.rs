//! The command `calibrate`, which corrects a scenario by a measured run.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::{convert, doctor, what};
use headroom_advice::doctor::{Calibration, Drift, Log};
use headroom_base::units::Bytes;
use headroom_core::estimate::Prediction;
use headroom_io::import::snapshot::Snapshot;
use headroom_io::import::timeline::Timeline;
use headroom_scenario::Problem;

/// Growth between steps above this is a leak, not noise.
const LEAK: Bytes = Bytes::mib(1);

pub(super) fn calibrate(args: &Args) -> Result<Answer, Refusal> {
    let Some(scenario) = args.option("scenario") else {
        let expected = "the run that was measured, as a file, a link or a preset";
        return Err(Problem::new("--scenario", "", expected).into());
    };
    let prediction = Prediction::new(what::named(scenario, args)?);
    let predicted = prediction.estimate()?.allocated.expected;
    let bytes = doctor::bytes(args.positional(0))?;
    let text = String::from_utf8_lossy(&bytes);
    let log = Log::parse(&text);
    let by_peak = |measured| Calibration {
        measured,
        predicted,
        outside: None,
    };
    let found = match (&log, Snapshot::read(&bytes)) {
        (_, Ok(snapshot)) => snapshot.peak().map(by_peak),
        (Some(log), Err(_)) => Calibration::of_log(log, predicted),
        (None, Err(_)) => Timeline::read(&text).map(|timeline| by_peak(timeline.peak)),
    };
    let Some(found) = found else {
        let expected = "a probe log with a completed step, a memory snapshot with its history, or a memory timeline of torch.profiler";
        return Err(Problem::new("FILE", args.positional(0), expected).into());
    };
    let mut notes = vec![summary(&found)];
    if let Some(outside) = found.outside {
        notes.push(format!("{outside} in use outside PyTorch"));
    }
    if let Some(Drift::Steady(_)) = log.map(|log| log.drift(LEAK)) {
        notes.push(
            "memory grows from step to step, which a correction cannot cover: run `headroom doctor`"
                .into(),
        );
    }
    Ok(convert::shown(&found.correct(prediction.scenario()), notes))
}

/// "measured 9.00 GiB allocated, predicted 8.00 GiB: 1.00 GiB is added".
fn summary(found: &Calibration) -> String {
    let Calibration {
        measured,
        predicted,
        ..
    } = found;
    let compared = format!("measured {measured} allocated, predicted {predicted}");
    match found.kept() {
        Bytes::ZERO => format!("{compared}: no correction needed"),
        kept => format!("{compared}: {kept} is added"),
    }
}
