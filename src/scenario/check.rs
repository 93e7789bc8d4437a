//! Everything that is wrong with a scenario, found at once.

use super::problem::nearest;
use super::{Checkpointing, Precision, Problem, Scenario, settings};
use crate::catalog;

impl Scenario {
    /// Values out of range and combinations that cannot run; empty where the scenario can be estimated.
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
        problems.extend(self.impossible());
        problems
    }
}

/// Combinations of values that are fine by themselves.
impl Scenario {
    fn impossible(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let gpu = catalog::gpu(&self.hardware.gpu);
        if gpu.is_none() && self.hardware.memory_mib == 0 {
            let ids = catalog::gpus()
                .iter()
                .flat_map(|gpu| [gpu.short_id(), gpu.id]);
            let expected = match nearest(&self.hardware.gpu, ids) {
                Some(near) => format!("a known GPU; did you mean {near}?"),
                None => "a GPU of `headroom catalog`, or hardware.memory_mib beside it".into(),
            };
            problems.push(Problem::new("hardware.gpu", &self.hardware.gpu, expected));
        }
        if catalog::model(&self.model.id).is_none() {
            let ids = catalog::models().iter().map(|model| model.id);
            let expected = match nearest(&self.model.id, ids) {
                Some(near) => format!("a known model; did you mean {near}?"),
                None => "a model of `headroom catalog`".into(),
            };
            problems.push(Problem::new("model.id", &self.model.id, expected));
        }
        let training = &self.training;
        let bf16 = matches!(
            training.precision,
            Precision::AmpBf16 | Precision::Bf16 | Precision::AmpBf16OnBf16
        );
        if let Some(gpu) = gpu.filter(|gpu| bf16 && !gpu.bf16) {
            let expected = format!(
                "fp32, amp-fp16 or fp16: {} ({}) has no bf16",
                gpu.name, gpu.architecture
            );
            let value = training.precision.id();
            problems.push(Problem::new("training.precision", value, expected));
        }
        if training.use_cache && training.checkpointing != Checkpointing::None {
            let expected = "off: a model that computes layers again cannot fill a cache";
            problems.push(Problem::new("training.use_cache", "on", expected));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        #[track_caller]
        fn check(changes: &[(&str, &str)], expected: &[&str]) {
            let mut scenario = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            let problems: Vec<String> = scenario.check().iter().map(ToString::to_string).collect();
            assert_eq!(problems, expected);
        }
        check(&[], &[]);
        check(&[("gpu", "my own card"), ("mem", "24000")], &[]);
        check(&[("gpu", "v100-sxm2-32gb"), ("precision", "amp-fp16")], &[]);
        check(
            &[
                ("gpu", "v100-sxm2-32gb"),
                ("use_cache", "on"),
                ("ckpt", "layers"),
            ],
            &[
                "training.precision is `amp-bf16`; expected fp32, amp-fp16 or fp16: Tesla V100 SXM2 32GB (Volta) has no bf16",
                "training.use_cache is `on`; expected off: a model that computes layers again cannot fill a cache",
            ],
        );
        check(
            &[("gpu", "rtx-4091")],
            &["hardware.gpu is `rtx-4091`; expected a known GPU; did you mean rtx-4090?"],
        );
        check(
            &[("model", "gpt")],
            &["model.id is `gpt`; expected a known model; did you mean gpt2?"],
        );
    }

    #[test]
    fn values_out_of_range_are_found_however_they_got_there() {
        let mut scenario = Scenario {
            version: 9,
            ..Scenario::default()
        };
        scenario.data.micro_batch = 0;
        scenario.model.id = String::new();
        scenario.training.lora = Some(super::super::Lora {
            rank: u64::MAX,
            dropout: f64::NAN,
            ..Default::default()
        });
        let fields: Vec<String> = scenario.check().into_iter().map(|it| it.field).collect();
        let expected = [
            "model.id",
            "data.micro_batch",
            "training.lora.rank",
            "training.lora.dropout",
            "version",
            "model.id",
        ];
        assert_eq!(fields, expected);
    }
}
