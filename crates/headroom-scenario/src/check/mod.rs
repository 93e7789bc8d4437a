//! All problems of a scenario, reported at once.

mod hardware;
mod layout;
mod model;
mod task;
mod training;

use super::{Case, NameKind, Problem, Scenario, settings};

impl Scenario {
    /// Values out of range and combinations that cannot run; empty if the scenario can be estimated.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems: Vec<Problem> = settings::all()
            .iter()
            .filter(|setting| setting.applies(self))
            .filter_map(|setting| setting.check(self))
            .collect();
        if self.version != Self::VERSION {
            let expected = format!("{}, the version this program knows", Self::VERSION);
            problems.push(Problem::new("version", self.version.to_string(), expected));
        }
        problems.extend(self.problems().refused);
        problems
    }

    /// Settings that run but were probably not intended.
    pub fn warnings(&self) -> Vec<Problem> {
        self.problems().warned
    }

    fn problems(&self) -> Problems<'_> {
        let case = Case::of(self);
        let mut problems = Problems {
            scenario: self,
            refused: Vec::new(),
            warned: Vec::new(),
        };
        hardware::check(&case, &mut problems);
        training::check(&case, &mut problems);
        task::check(&case, &mut problems);
        layout::check(&case, &mut problems);
        problems
    }
}

impl Case<'_> {
    /// The degrees by which one copy of a model is divided, each with its field.
    fn within_a_model(&self) -> [(&'static str, u32); 4] {
        let layout = &self.scenario.parallel;
        [
            ("parallel.tp", layout.tp),
            ("parallel.pp", layout.pp),
            ("parallel.cp", layout.cp),
            ("parallel.ep", layout.ep),
        ]
    }

    fn card(&self) -> String {
        let capability = self
            .capability()
            .map(|(major, minor)| format!("{major}.{minor}"));
        match (self.gpu, capability) {
            (Some(gpu), _) if self.scenario.hardware.capability.is_none() => {
                format!("{} ({})", gpu.name, gpu.architecture)
            }
            (_, Some(capability)) => format!("a GPU of compute capability {capability}"),
            _ => "the GPU".into(),
        }
    }

    /// A dimension of the model as the scenario has it.
    fn size(&self, name: &str) -> Option<u64> {
        let changed = self.scenario.model.dims.get(name).copied();
        changed.or_else(|| self.listed_model()?.size(name))
    }
}

/// The problems found so far, in the order of the checks.
struct Problems<'a> {
    scenario: &'a Scenario,
    refused: Vec<Problem>,
    warned: Vec<Problem>,
}

impl Problems<'_> {
    fn refuse(&mut self, path: &str, expected: impl Into<String>) {
        let problem = self.problem(path, expected.into());
        self.refused.push(problem);
    }

    fn warn(&mut self, path: &str, expected: impl Into<String>) {
        let problem = self.problem(path, expected.into());
        self.warned.push(problem);
    }

    fn unknown(&mut self, kind: NameKind, path: &str, name: &str) {
        self.refused
            .push(Problem::unknown_name(kind, path, name, []));
    }

    fn problem(&self, path: &str, expected: String) -> Problem {
        let value = settings::find(path).map(|setting| setting.get(self.scenario));
        Problem::new(path, value.unwrap_or_default(), expected)
    }
}

#[cfg(test)]
mod tests;
