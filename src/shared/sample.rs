//! An estimate with round numbers, for the tests of drawings and sentences.

use headroom_base::units::{Bytes, Flops};
use headroom_core::estimate::{Band, Category, Estimate, Instant, Part, Phase};

pub fn estimate() -> Estimate {
    let exactly = |bytes: Bytes| Band {
        low: bytes,
        expected: bytes,
        high: bytes,
    };
    let instant = |phase, gib: f64| Instant {
        phase,
        bytes: Bytes::gib(gib),
    };
    Estimate {
        allocated: exactly(Bytes::gib(8.0)),
        reserved: exactly(Bytes::gib(9.0)),
        device: Band {
            low: Bytes::gib(9.5),
            expected: Bytes::gib(10.0),
            high: Bytes::gib(11.0),
        },
        phase: Phase::Backward,
        phases: vec![],
        breakdown: vec![
            Part {
                what: Category::Activations,
                bytes: Bytes::gib(5.0),
            },
            Part {
                what: Category::Parameters,
                bytes: Bytes::gib(3.0),
            },
        ],
        modules: vec![],
        timeline: vec![
            instant(Phase::Forward, 3.0),
            instant(Phase::Forward, 6.0),
            instant(Phase::Backward, 8.0),
            instant(Phase::Backward, 4.0),
            instant(Phase::Optimizer, 5.0),
        ],
        between_steps: Bytes::gib(3.0),
        forward_end: Bytes::gib(6.0),
        parameters: 0,
        trainable: 0,
        flops: Flops::default(),
        usable: Some(Bytes::gib(20.0)),
        fits: Some(true),
        not_modelled: vec![],
        ..Estimate::default()
    }
}
