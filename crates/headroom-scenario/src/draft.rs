//! `Draft`: what a person or a file said about a run, and nothing else.

use std::collections::BTreeMap;

use super::resolve::{self, Origin};
use super::settings::{self, SettingId, Value};
use super::{Problem, Scenario};

const GPU: &str = "hardware.gpu";
/// Measured or told of one GPU.
const OF_GPU: [&str; 4] = [
    "hardware.memory_mib",
    "hardware.capability",
    "hardware.bandwidth",
    "hardware.tflops",
];

/// Values by setting, each with its origin. The order in which they were said does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The version of the format whose defaults fill a link or a file; forms and flags take today's.
    format: Option<u32>,
    values: BTreeMap<SettingId, (Value, Origin)>,
    /// Texts that are no value of their setting.
    refused: BTreeMap<SettingId, Problem>,
    /// Defaults that were spelled out have been dropped.
    released: bool,
    /// What nobody said is as people start with the model.
    usual: bool,
}

impl Draft {
    /// A link's or a file's draft, filled with the defaults of the version it was written for.
    pub fn of_format(version: u32) -> Self {
        Self {
            format: Some(version),
            ..Self::default()
        }
    }

    /// What has to be said to get this scenario.
    pub fn of(scenario: &Scenario) -> Self {
        Self::needed(None, false, scenario, &Origin::User)
    }

    /// The same for a file that changes this run.
    pub fn of_run(run: &Scenario) -> Self {
        Self::needed(Some(Scenario::VERSION), false, run, &Origin::Link)
    }

    fn needed(format: Option<u32>, usual: bool, scenario: &Scenario, origin: &Origin) -> Self {
        let usual_run = usual.then(|| resolve::needed_of_adapters(scenario));
        let defaults = resolve::defaults(format, usual_run, scenario);
        let mut draft = Self {
            format,
            usual,
            ..Self::default()
        };
        for setting in settings::all() {
            let value = setting.value(scenario);
            let is_default = defaults
                .get(setting)
                .is_some_and(|(known, _)| *known == value);
            if !setting.applies(scenario) {
                continue;
            }
            if !is_default {
                draft.set_value(setting, value, origin.clone());
            } else if format.is_none() && resolve::follows_row(setting, scenario) {
                // What it would be otherwise depends on what else is said.
                draft.set_value(setting, value, origin.clone());
            }
        }
        draft
    }

    /// What has to be said to get from here to this scenario: what it still has keeps its origin.
    pub fn moved_to(&self, scenario: &Scenario) -> Self {
        let mut draft = Self::needed(None, self.usual, scenario, &Origin::User);
        for (setting, (value, origin)) in &self.values {
            if setting.applies(scenario) && setting.value(scenario) == *value {
                let kept = (value.clone(), origin.clone());
                draft.values.insert(setting, kept);
            }
        }
        draft
    }

    /// Takes a value back: the setting has its default again.
    pub fn forget(&mut self, setting: SettingId) {
        self.values.remove(setting);
    }

    /// From here on what nobody said is as people start with the model that is named: its usual method, batch and length
    /// instead of the format's defaults.
    pub fn bring_usual_run(&mut self) {
        if self.format.is_some() && !self.released {
            self.release();
        }
        self.usual = true;
    }

    pub(super) fn has_usual_run(&self) -> bool {
        self.usual
    }

    pub fn format(&self) -> Option<u32> {
        self.format
    }

    pub fn get(&self, setting: SettingId) -> Option<&(Value, Origin)> {
        self.values.get(setting)
    }

    pub(super) fn refused(&self, setting: SettingId) -> Option<&Problem> {
        self.refused.get(setting)
    }

    /// Whether the setting was given a value, readable or not.
    pub(super) fn mentions(&self, setting: SettingId) -> bool {
        self.values.contains_key(setting) || self.refused.contains_key(setting)
    }

    /// Notes a value. What a stronger source said stays; of one source the last word counts.
    pub fn set_value(&mut self, setting: SettingId, value: Value, origin: Origin) {
        let known = self.values.get(setting);
        if known.is_none_or(|(_, known)| known.rank() <= origin.rank()) {
            self.values.insert(setting, (value, origin));
        }
    }

    /// Notes the value that a text means; resolving reports a text that means none.
    pub fn read(&mut self, setting: SettingId, text: &str, origin: Origin) {
        match setting.parse(text) {
            Ok(value) => self.set_value(setting, value, origin),
            Err(problem) => {
                self.refused.insert(setting, problem);
            }
        }
    }

    /// Takes a person's change, as forms and `--set` do. A text that is refused changes nothing.
    pub fn change(&mut self, setting: SettingId, text: &str) -> Result<(), Problem> {
        let value = setting.parse(text)?;
        if setting.brings_defaults() && !self.released {
            self.release();
        }
        if setting.path == GPU
            && self
                .values
                .get(setting)
                .is_none_or(|known| known.0 != value)
        {
            self.forget_gpu();
        }
        self.set_value(setting, value, Origin::User);
        Ok(())
    }

    /// Forgets what a preset, a link or a file said of its GPU's figures: another GPU has its own.
    fn forget_gpu(&mut self) {
        for path in OF_GPU {
            if let Some(setting) = settings::find(path)
                && self
                    .values
                    .get(setting)
                    .is_some_and(|(_, origin)| *origin != Origin::User)
            {
                self.forget(setting);
            }
        }
    }

    /// Keeps what the person said and what differs from the defaults. Presets, links and files spell out defaults too: these
    /// follow the software and the method from here on. Only once, or the order of changes would matter.
    fn release(&mut self) {
        let minimal = Self::needed(
            None,
            self.usual,
            &resolve::resolve(self).scenario,
            &Origin::User,
        );
        self.values.retain(|setting, (_, origin)| {
            *origin == Origin::User || minimal.values.contains_key(setting)
        });
        self.released = true;
        let version = self.format.take();
        for (setting, (value, _)) in minimal.values {
            let pinned = version.map_or(Origin::User, Origin::Format);
            self.values.entry(setting).or_insert((value, pinned));
        }
    }
}
