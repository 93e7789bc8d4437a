//! Predictions of declared networks.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_base::units::Bytes;
use headroom_core::estimate::{Category, Estimate, Phase, estimate, quick_peak};
use headroom_scenario::network::{Network, SAMPLES};
use headroom_scenario::{Scenario, settings};
use headroom_testing::Dice;
use std::collections::BTreeMap;

#[test]
fn broken_text_is_answered_or_refused() {
    let mut dice = Dice::new(7);
    for _ in 0..4000 {
        let mut bytes = dice.one_of(&SAMPLES[1..]).as_bytes().to_vec();
        for _ in 0..=dice.below(5) {
            let at = dice.index(bytes.len());
            match dice.below(3) {
                0 => bytes[at] = dice.roll() as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, b";,=:*+-/()09"[dice.index(12)]),
            }
        }
        let Ok(network) = Network::parse(&String::from_utf8_lossy(&bytes)) else {
            continue;
        };
        assert_eq!(Network::parse(&network.text()).unwrap(), network);
        let Ok(plan) = network.plan(&BTreeMap::default(), 1 + dice.below(4), 8) else {
            continue;
        };
        let runs = plan.parts.iter().map(|part| part.repeat * part.passes);
        if runs.sum::<u64>() < 20 {
            let mut scenario = Scenario::default();
            scenario.model.network = Some(network);
            let _ = quick_peak(&scenario);
        }
    }
}

#[test]
fn passes_without_gradients_before_checkpointed_ones_are_answered() {
    // The weights that autocast keeps from the first pass ask for no gradient, so that the segment run again saves more
    // than the segment had: PyTorch stops there, and here nothing may.
    let text = "input,kind=values,shape=batch:8:16;part,name=core,repeat=2,passes=2,gradient=1,segments=pass;attention,heads=2;mlp,width=32";
    for checkpointing in ["none", "layers", "keep-attention", "keep-matmuls"] {
        let changes = [("precision", "amp-bf16"), ("ckpt", checkpointing)];
        assert!(run(text, &changes).allocated.expected > Bytes::ZERO);
    }
}

fn run(network: &str, changes: &[(&str, &str)]) -> Estimate {
    let mut scenario = Scenario::default();
    let base = [("precision", "fp32"), ("expandable", "on"), ("mb", "4")];
    let declared = [("network", network)];
    let all = base.iter().chain(changes).chain(&declared);
    for (name, value) in all {
        settings::set(&mut scenario, name, value).unwrap();
    }
    assert_eq!(scenario.check(), vec![]);
    estimate(&scenario).unwrap()
}

const CORE: &str = "sizes,hidden=256;input,kind=values,shape=batch:64:hidden;part,name=core,passes=8;attention,heads=4;mlp,width=4*hidden;loss,kind=mse";

#[test]
fn parameters_are_counted_once_however_often_they_run() {
    // Four projections and two norms of the block, and the two layers of the MLP.
    let block = 4 * (256 * 256 + 256) + 2 * 512 + 256 * 1024 + 1024 + 1024 * 256 + 256;
    assert_eq!(run(CORE, &[]).parameters, block);
    let stacked = CORE.replace("passes=8", "repeat=8");
    assert_eq!(run(&stacked, &[]).parameters, 8 * block);
    let frozen = CORE.replace("loss", "part,name=head;linear,out=hidden;loss");
    let frozen = frozen.replace("name=core", "name=core,frozen=on");
    let frozen = run(&frozen, &[]);
    assert_eq!(frozen.trainable, 256 * 256 + 256);
    let paths: Vec<&str> = frozen
        .modules
        .iter()
        .map(|module| module.what.as_str())
        .collect();
    assert!(
        paths
            .iter()
            .any(|path| path.starts_with("core.layers.0.mlp.1.")),
        "{paths:?}"
    );
}

#[test]
fn horizon_and_checkpoints_bound_what_passes_keep() {
    let end = |text: &str, changes: &[(&str, &str)]| run(text, changes).forward_end.get();
    let all = end(CORE, &[]);
    let two = end(&CORE.replace("passes=8", "passes=8,gradient=2"), &[]);
    let longer = end(&CORE.replace("passes=8", "passes=80,gradient=2"), &[]);
    assert!(two * 2 < all, "{two} {all}");
    assert_eq!(two, longer);
    let layers = end(CORE, &[("ckpt", "layers")]);
    let passes = CORE.replace("passes=8", "passes=8,repeat=2");
    let by_layer = end(&passes, &[("ckpt", "layers")]);
    let whole = passes.replace("repeat=2", "repeat=2,segments=pass");
    let by_pass = end(&whole, &[("ckpt", "layers")]);
    assert!(
        layers * 2 < all && by_pass < by_layer,
        "{layers} {by_pass} {by_layer}"
    );
    // The moving average is one more copy of the weights, once for all passes.
    let average = run(CORE, &[("ema", "on")]);
    let part = average
        .breakdown
        .iter()
        .find(|part| part.what == Category::Ema);
    assert!(part.unwrap().bytes.get() >= average.parameters * 4);
}

#[test]
fn declared_tensors_live_as_long_as_they_say() {
    let with = |lifetime: &str| {
        let tensor =
            format!(";tensor,name=grid,shape=batch:128:20000,count=2,lifetime={lifetime};loss");
        run(&CORE.replace(";loss", &tensor), &[])
    };
    let without = run(CORE, &[]);
    let bytes = Bytes::new(2 * 4 * 128 * 20_000 * 4);
    let grown = |a: Bytes, b: Bytes| a.saturating_sub(b);
    let saved = with("saved");
    assert_eq!(grown(saved.forward_end, without.forward_end), bytes);
    assert_eq!(saved.between_steps, without.between_steps);
    let forward = with("forward");
    assert_eq!(forward.forward_end, without.forward_end);
    assert_eq!(forward.phase, Phase::Forward);
    let backward = with("backward");
    assert_eq!(backward.forward_end, without.forward_end);
    assert_eq!(backward.phase, Phase::Backward);
    let persistent = with("persistent");
    assert_eq!(
        grown(persistent.between_steps, without.between_steps),
        bytes
    );
    assert_eq!(
        grown(persistent.allocated.expected, without.allocated.expected),
        bytes
    );
}

#[test]
fn sizes_of_a_network_can_be_varied() {
    let wider = run(CORE, &[("dims", "hidden=512")]);
    assert!(wider.parameters > 3 * run(CORE, &[]).parameters);
    let mut scenario = Scenario::default();
    settings::set(&mut scenario, "network", CORE).unwrap();
    settings::set(&mut scenario, "dims", "layers=2").unwrap();
    let warnings: Vec<String> = scenario
        .warnings()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        warnings.contains(
            &"model.dims is `layers=2`; expected sizes that the network names, which layers is not"
                .into()
        ),
        "{warnings:?}"
    );
}
