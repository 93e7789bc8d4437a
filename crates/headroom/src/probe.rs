//! The command `probe`: the module that logs memory, and a record of what it logged.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::{doctor, what};
use headroom_advice::doctor::PROBE;
use headroom_base::document::{Document, json};
use headroom_scenario::{Problem, share};

/// Prints the module, or with `--record` one line for a truth file.
pub(super) fn probe(args: &Args) -> Result<Answer, Refusal> {
    match args.option("record") {
        None => {
            let document = Document::new().with("headroom_probe.py", PROBE.to_string());
            Ok(Answer::new(PROBE.into(), &document))
        }
        Some(log) => record(args, log),
    }
}

/// The run's link and its log's peaks: nothing else of the log, which can name files and people.
fn record(args: &Args, log: &str) -> Result<Answer, Refusal> {
    let Some(run) = args.option("scenario") else {
        let expected = "the run that was measured, as a file, a link or a preset";
        return Err(Problem::new("--scenario", "", expected).into());
    };
    let scenario = what::named(run, args)?;
    let bytes = doctor::bytes(log)?;
    let text = String::from_utf8_lossy(&bytes);
    let Some(peaks) = Peaks::of(&text) else {
        let expected = "a probe log with two completed training steps";
        return Err(Problem::new("--record", log, expected).into());
    };
    let id = format!(
        "{}-{}-{}",
        scenario.model.id, scenario.hardware.gpu, peaks.allocated
    );
    let document = Document::new()
        .with("id", id)
        .with("group", "reported")
        .with("link", format!("#{}", share::write(&scenario)))
        .with("software", peaks.software)
        .with("steps", peaks.steps)
        .with("peak_allocated", peaks.allocated)
        .with("peak_reserved", peaks.reserved)
        .with("static_end", peaks.between)
        .with("phase_peaks", peaks.phases)
        .with("outside", peaks.outside);
    let line = serde_json::from_str::<serde_json::Value>(&json::write(&document))
        .map(|value| format!("{value}\n"))
        .map_err(|error| Refusal(vec![format!("the record cannot be written: {error}")]))?;
    Ok(Answer::with_json(line.clone(), line))
}

/// What the completed training steps took at most, without the first, which makes the optimizer's states.
#[derive(Default)]
struct Peaks {
    steps: u64,
    allocated: u64,
    reserved: u64,
    /// At the end of the last step.
    between: u64,
    phases: Document,
    software: Document,
    outside: Option<u64>,
}

impl Peaks {
    fn of(log: &str) -> Option<Self> {
        let mut peaks = Self::default();
        for line in log
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('{'))
        {
            let Ok(read) = json::read(line) else {
                continue;
            };
            match whole(&read, "step") {
                None if read.get("headroom_probe").is_some() => peaks.start(&read),
                Some(step) if step > 0 && read.get("oom").is_none() && is_training(&read) => {
                    peaks.add(&read)?;
                }
                _ => {}
            }
        }
        (peaks.steps > 0).then_some(peaks)
    }

    /// The first line has versions.
    fn start(&mut self, line: &Document) {
        self.outside = whole(line, "outside");
        for key in ["torch", "gpu", "alloc_conf"] {
            if let Some(Document::Text(text)) = line.get(key) {
                let known = std::mem::take(&mut self.software);
                self.software = known.with(key, text.as_str());
            }
        }
    }

    fn add(&mut self, line: &Document) -> Option<()> {
        self.steps += 1;
        self.reserved = self.reserved.max(whole(line, "peak_reserved")?);
        self.between = whole(line, "allocated")?;
        let allocated = whole(line, "peak_allocated")?;
        if allocated >= self.allocated {
            self.allocated = allocated;
            self.phases = Document::new();
            for phase in ["forward", "backward", "optimizer"] {
                let peak = line.get("phase_peaks").and_then(|all| whole(all, phase));
                if let Some(peak) = peak {
                    let known = std::mem::take(&mut self.phases);
                    self.phases = known.with(phase, peak);
                }
            }
        }
        Some(())
    }
}

fn is_training(line: &Document) -> bool {
    line.get("phase") != Some(&"eval".into())
}

/// A whole number; the line before the first step counts −1, which is none.
fn whole(line: &Document, key: &str) -> Option<u64> {
    match line.get(key) {
        Some(Document::Int(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}
