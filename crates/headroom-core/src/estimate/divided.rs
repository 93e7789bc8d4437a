//! Parallelism that the estimate ignores or does not divide, by setting.

use crate::step::Run;
use headroom_scenario::{Parallelism, Scenario};

/// Mechanisms of the wrappers that are approximated.
pub(super) fn not_modelled(scenario: &Scenario) -> Vec<String> {
    let layout = &scenario.parallel;
    let mut notes = Vec::new();
    let several = scenario.replicas() > 1;
    let divides_weights = match layout.strategy {
        Parallelism::None
        | Parallelism::Ddp
        | Parallelism::DataParallel
        | Parallelism::Zero0
        | Parallelism::Zero1
        | Parallelism::Zero2 => false,
        Parallelism::Fsdp1 | Parallelism::Fsdp2 | Parallelism::Hsdp | Parallelism::Zero3 => true,
    };
    if !several || !divides_weights {
        return notes;
    }
    if layout.strategy == Parallelism::Zero3 && layout.zero_subgroup > 0 {
        notes.push(format!(
            "parallel.zero_subgroup {}: the optimizer is counted as updating all parameters of a rank at once",
            layout.zero_subgroup
        ));
    }
    let by_number = matches!(
        layout.strategy,
        Parallelism::Fsdp2 | Parallelism::Hsdp | Parallelism::Zero3
    );
    if layout.reshard_to > 0 && !by_number {
        notes.push(format!(
            "parallel.reshard_to {}: only FSDP2 and ZeRO-3 can reshard to fewer GPUs; weights are counted as sharded over all",
            layout.reshard_to
        ));
    }
    notes
}

/// Degrees that split one replica of the model but are not modelled.
pub(super) fn not_split(run: &Run, scenario: &Scenario) -> Option<String> {
    let layout = &scenario.parallel;
    let tensor = if run.tensor_parallel > 1 {
        1
    } else {
        layout.tp
    };
    let degrees = [
        ("parallel.tp", tensor),
        (
            "parallel.pp",
            if run.pipeline_parallel > 1 {
                1
            } else {
                layout.pp
            },
        ),
        (
            "parallel.cp",
            if run.context_parallel > 1 {
                1
            } else {
                layout.cp
            },
        ),
        (
            "parallel.ep",
            if run.expert_parallel > 1 {
                1
            } else {
                layout.ep
            },
        ),
    ];
    let asked = degrees.iter().filter(|(_, degree)| *degree > 1);
    let asked: Vec<String> = asked
        .map(|(name, degree)| format!("{name} {degree}"))
        .collect();
    (!asked.is_empty()).then(|| {
        format!(
            "{}: not modelled for this model, which is counted whole on each GPU; each holds less",
            asked.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::estimate;
    use super::*;
    use headroom_scenario::settings;

    /// What is noted to be left out, by its beginning.
    #[track_caller]
    fn check(run: &str, expected: &str) {
        let mut scenario = Scenario::default();
        for word in run.split(' ') {
            let (name, value) = word.split_once('=').unwrap();
            settings::set(&mut scenario, name, value).unwrap();
        }
        let notes = estimate(&scenario).unwrap().not_modelled;
        let noted = notes.iter().any(|note| note.starts_with(expected));
        assert!(noted, "{notes:?}");
    }

    #[test]
    fn unmodelled_parallelism_is_listed() {
        let run = |more: &str| format!("gpus=4 mb=1 seq=64 {more}");
        check(&run("par=fsdp1 reshard_to=2"), "parallel.reshard_to 2: ");
        check(&run("tp=2 pp=2"), "parallel.tp 2, parallel.pp 2: ");
    }
}
