//! Advice preferences: locked settings, the target program, the price of a GPU hour.

use leptos::prelude::*;

use crate::text;
use headroom_advice::planner::Accepts;
use headroom_advice::{Group, Locks, Move, Results};
use headroom_core::estimate::Estimate;
use headroom_io::export::{self, Startable, Target};
use headroom_scenario::{Scenario, settings};

/// The page's state of these.
#[derive(Clone, Copy, Debug)]
pub struct AdvicePreferences {
    pub keep: RwSignal<Keep>,
    /// `None` until a program has been chosen.
    pub program: RwSignal<Option<&'static Target>>,
    /// The price of a GPU hour, as typed.
    pub hourly: RwSignal<String>,
}

impl Default for AdvicePreferences {
    fn default() -> Self {
        Self {
            keep: RwSignal::default(),
            program: RwSignal::new(None),
            hourly: RwSignal::default(),
        }
    }
}

impl AdvicePreferences {
    /// The preferences of the page that a component is part of.
    pub fn current() -> Self {
        expect_context()
    }

    /// The part that the worker needs.
    pub fn limits(self) -> Limits {
        Limits {
            keep: self.keep.get(),
            program: self.program.get(),
        }
    }
}

/// A lockable setting: its label, and whether a move changes it.
pub type Kept = (&'static str, fn(&Move) -> bool);

/// The locked settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep([bool; Keep::ALL.len()]);

impl Default for Keep {
    fn default() -> Self {
        Self([true; Self::ALL.len()])
    }
}

impl Keep {
    pub const ALL: [Kept; 4] = [
        ("sequence or input size", |change| {
            matches!(change.group, Group::Length | Group::Size)
        }),
        ("adapter rank", |change| change.group == Group::AdapterRank),
        ("precision", |change| change.group == Group::Precision),
        ("method (full training, LoRA, QLoRA)", |change| {
            matches!(change.id, "lora" | "qlora")
        }),
    ];

    /// The settings that each of these keeps.
    const SETTINGS: [&'static [&'static str]; Keep::ALL.len()] = [
        &["data.sequence", "model.dims"],
        &["training.lora.rank"],
        &["training.precision"],
        &["training.lora", "training.quantization"],
    ];

    pub fn has(self, at: usize) -> bool {
        self.0.get(at).copied().unwrap_or_default()
    }

    pub fn toggle(&mut self, at: usize) {
        if let Some(kept) = self.0.get_mut(at) {
            *kept = !*kept;
        }
    }

    pub fn allows(self, change: &Move) -> bool {
        let mut kept = Self::ALL.iter().zip(self.0).filter(|(_, kept)| *kept);
        !kept.any(|((_, changes), _)| changes(change))
    }
}

/// The limits on the moves of advice; sent to the worker as text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    pub keep: Keep,
    pub program: Option<&'static Target>,
}

impl Limits {
    pub fn write(self) -> String {
        let kept: String = self
            .keep
            .0
            .map(|kept| if kept { '1' } else { '0' })
            .iter()
            .collect();
        format!("{kept} {}", self.program.map_or("", |target| target.id))
    }

    pub fn read(text: &str) -> Self {
        let (kept, program) = text.split_once(' ').unwrap_or_default();
        let mut keep = Keep::default();
        for (kept, c) in keep.0.iter_mut().zip(kept.chars()) {
            *kept = c == '1';
        }
        Self {
            keep,
            program: export::target(program),
        }
    }

    /// The run as the chosen program can start it; else what that cannot express.
    pub fn startable(self, run: &Scenario) -> Result<Startable, String> {
        let Some(target) = self.program else {
            return Ok(run.clone().into());
        };
        target.startable(run).ok_or_else(|| {
            let problems = target.problems(run);
            let lines: Vec<String> = problems.iter().map(text::problem).collect();
            format!("{} {}", text::cannot_run(target.title), lines.join("; "))
        })
    }

    /// What plans may change: results only if something is unlocked.
    pub fn locks(self) -> Locks {
        let most = if self.keep.0.contains(&false) {
            Results::Changes
        } else {
            Results::SameBatch
        };
        // With everything locked nothing that changes training is proposed; what to unlock is still looked for.
        let all_kept = most != Results::Changes;
        let kept = Keep::SETTINGS.iter().zip(self.keep.0);
        let kept = kept.filter(|(_, kept)| *kept && !all_kept);
        let kept = kept.flat_map(|(paths, _)| paths.iter().filter_map(|path| settings::find(path)));
        Locks {
            most,
            kept: kept.collect(),
            accepts: Some(match self.program {
                Some(target) => Accepts::strictly(move |run| problems(target, run) == 0),
                None => Accepts::mostly(|run| {
                    let mut targets = export::targets().iter();
                    targets.any(|target| problems(target, run) == 0)
                }),
            }),
            ..Locks::default()
        }
    }
}

/// The number of a run's fields that a program cannot express.
fn problems(target: &Target, scenario: &Scenario) -> usize {
    let written = (target.write)(scenario, &Estimate::default());
    written.err().map_or(0, |problems| problems.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_advice::find_move;

    #[test]
    fn locked_moves_are_not_allowed() {
        let check = |limits: &str, expected: &[(&str, bool)]| {
            let limits = Limits::read(limits);
            assert_eq!(Limits::read(&limits.write()).write(), limits.write());
            for (id, is_allowed) in expected {
                let change = find_move(id).unwrap();
                assert_eq!(limits.keep.allows(change), *is_allowed, "{id}");
            }
        };
        check(
            "",
            &[
                ("half-sequence", false),
                ("half-rank", false),
                ("qlora", false),
            ],
        );
        check(
            "0000 ",
            &[
                ("half-sequence", true),
                ("half-rank", true),
                ("qlora", true),
            ],
        );
        check(
            "1111 trl",
            &[("half-sequence", false), ("adamw-8bit", true)],
        );
    }
}
