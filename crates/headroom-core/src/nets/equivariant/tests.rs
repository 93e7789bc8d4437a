//! The pocket encoder compared with real runs of its own code, and with an audit of it on stand-in tensors.

use crate::estimate::Phase;
use crate::nets::recorded::Case;
use crate::nets::{Sizes, build};
use headroom_scenario::{Precision, Training};

/// Two graphs, each with 1,000 nodes, 2,100 bonded and 20,000 non-bonded edges unless the changes say otherwise.
fn case(changes: &[(&str, u64)], precision: Precision, stand_in: bool) -> Case {
    let training = Training {
        precision,
        clip: true,
        ..Training::default()
    };
    Case::of_catalog("rna-3e-ffi", changes)
        .with(&[("sums_apart", stand_in.into())])
        .batch(2, 0)
        .trained(&training)
}

const SMALL: &[(&str, u64)] = &[("0e", 16), ("1o", 8), ("2e", 4)];

#[track_caller]
fn near(found: u64, gib: f64, tolerance: f64) {
    let found = found as f64 / f64::from(1 << 30);
    assert!(
        (found / gib - 1.0).abs() <= tolerance,
        "{found:.3} GiB, not {gib}"
    );
}

#[test]
fn counts_are_those_the_author_logged() {
    #[track_caller]
    fn check(changes: &[(&str, u64)], expected: u64) {
        let run = case(changes, Precision::Fp32, false).run();
        assert_eq!(run.parameters, expected);
    }
    check(&[], 2_732_820);
    check(&[("layers", 6)], 4_056_596);
    check(SMALL, 784_228);
}

#[test]
fn peaks_are_those_of_the_real_code() {
    #[track_caller]
    fn check(changes: &[(&str, u64)], precision: Precision, gib: f64) {
        let (bytes, phase) = case(changes, precision, false).peak();
        near(bytes, gib, 0.01);
        assert_eq!(phase, Phase::Backward);
    }
    // The repository's model with e3nn 0.6 and PyTorch 2.15 on a bookkeeping GPU.
    check(&[], Precision::Fp32, 5.337);
    check(&[("layers", 3)], Precision::Fp32, 4.397);
    check(SMALL, Precision::Fp32, 1.631);
    check(&[], Precision::AmpFp16, 2.729);
    check(&[("nonbonded", 0)], Precision::Fp32, 0.627);
    check(&[("multi_hop", 0)], Precision::Fp32, 5.231);
}

#[test]
fn on_stand_in_tensors_peaks_are_those_of_the_audit() {
    #[track_caller]
    fn check(changes: &[(&str, u64)], precision: Precision, gib: f64) {
        let (bytes, phase) = case(changes, precision, true).peak();
        near(bytes, gib, 0.03);
        assert_eq!(phase, Phase::Backward);
    }
    // The audit of the guide ran the code on FakeTensors, whose gradients are never summed in place: one more
    // gradient of all edge weights is alive at its peaks than on a GPU.
    check(&[], Precision::Fp32, 5.93);
    check(&[("layer_norm", 0)], Precision::Fp32, 5.92);
    check(&[("layers", 3)], Precision::Fp32, 4.99);
    check(&[("out", 1024)], Precision::Fp32, 5.93);
    check(SMALL, Precision::Fp32, 1.79);
    check(&[("multi_hop", 0)], Precision::Fp32, 5.82);
    check(&[("nonbonded", 0)], Precision::Fp32, 0.69);
    check(&[], Precision::AmpFp16, 3.03);
    check(&[("layers", 6)], Precision::Fp32, 7.81);
    // Batches that ran out of memory, by the edges their failed requests were for.
    check(&large(364_625, 4), Precision::Fp32, 53.8);
    check(&large(364_625, 4), Precision::AmpFp16, 27.3);
    check(&large(232_085, 6), Precision::Fp32, 45.1);
    check(&large(251_099, 6), Precision::Fp32, 48.8);
}

/// Two graphs with this many non-bonded edges together, all else in proportion.
fn large(edges: u64, layers: u64) -> [(&'static str, u64); 6] {
    let scaled = |each: u64| each * edges / 40_000;
    [
        ("layers", layers),
        ("nonbonded", edges / 2),
        ("nodes", scaled(1_000)),
        ("bonded", scaled(2_100)),
        ("angles", scaled(4_000)),
        ("dihedrals", scaled(6_000)),
    ]
}

#[test]
fn the_logged_requests_fit_the_predicted_peaks() {
    // The log of 30 October: 40.86 GiB allocated when backward requested 6.52 GiB, the weights of 364,625 edges.
    let (bytes, phase) = case(&large(364_625, 4), Precision::Fp32, false).peak();
    near(bytes, 40.86 + 6.52, 0.03);
    assert_eq!(phase, Phase::Backward);
    // And of a run with six layers: 36.80 GiB and 4.15 GiB.
    let (bytes, _) = case(&large(232_085, 6), Precision::Fp32, false).peak();
    near(bytes, 36.80 + 4.15, 0.03);
}

#[test]
fn effects_have_the_signs_and_sizes_they_have_in_reality() {
    let peak = |changes: &[(&str, u64)]| case(changes, Precision::Fp32, false).peak().0 as f64;
    let base = peak(&[]);
    let effect = |changes| peak(changes) / base - 1.0;
    assert!(effect(&[("out", 1024)]).abs() < 0.001);
    assert!((-0.01..0.0).contains(&effect(&[("layer_norm", 0)])));
    assert!((-0.72..-0.68).contains(&effect(SMALL)));
    assert!((-0.90..-0.86).contains(&effect(&[("nonbonded", 0)])));
}

#[test]
fn sizes_nobody_means_are_refused_or_harmless() {
    let built = |changes: &[(&str, u64)]| {
        let mut sizes = Sizes::from_entry(headroom_catalog::model("rna-3e-ffi").unwrap());
        for (name, value) in changes {
            sizes.set(name, *value);
        }
        build("e3-pocket", &sizes)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let large = 10_000_000;
    assert!(built(&[("layers", large)]).starts_with("layers is 10000000"));
    assert!(built(&[("1o", large)]).starts_with("the number of features"));
    assert!(built(&[("0e", 0)]).contains("needs scalars"));
    for name in ["nodes", "bonded", "nonbonded", "radial", "bessel", "out"] {
        for value in [0, large] {
            let changes = [("layers", 1), (name, value)];
            let (peak, _) = case(&changes, Precision::Fp32, false).peak();
            assert!(peak > 0, "{name}={value}");
        }
    }
}
