//! A PyTorch training step, run symbolically: networks on the tape, wrapped by what several GPUs need, trained by the step;
//! the events go through the CUDA caching allocator, and [`Prediction`] answers from them.
//!
//! Will it fit?
//!
//! ```
//! use headroom_core::{Prediction, Scenario};
//! use headroom_scenario::settings;
//!
//! let mut scenario = Scenario::default();
//! settings::set(&mut scenario, "model", "gpt2").unwrap();
//! settings::set(&mut scenario, "gpu", "rtx-4090").unwrap();
//! settings::set(&mut scenario, "mb", "4").unwrap();
//! let prediction = Prediction::new(scenario);
//! let estimate = prediction.estimate().unwrap();
//! assert_eq!(estimate.fits, Some(true));
//! assert!(estimate.allocated.expected < estimate.reserved.expected);
//! ```
//!
//! What is allocated over a step?
//!
//! ```
//! use headroom_core::{Phase, Prediction, Scenario};
//!
//! let prediction = Prediction::new(Scenario::default());
//! let estimate = prediction.estimate().unwrap();
//! let highest = estimate.timeline.iter().max_by_key(|instant| instant.bytes).unwrap();
//! assert_eq!(highest.phase, estimate.phase);
//! assert!(estimate.timeline.iter().any(|instant| instant.phase == Phase::Optimizer));
//! ```
//!
//! What does PyTorch's allocator reserve for these requests?
//!
//! ```
//! use headroom_base::units::Bytes;
//! use headroom_core::allocator::{Card, Request, Settings, replay};
//!
//! let malloc = |handle, mib| Request::Malloc { handle, bytes: Bytes::mib(mib), stream: 0 };
//! let requests = [malloc(1, 30), Request::Free { handle: 1 }, malloc(2, 32)];
//! let replayed = replay(&requests, &Settings::default(), Card::UNLIMITED);
//! assert_eq!(replayed.counters.allocated.peak, Bytes::mib(32));
//! // 32 MiB do not fit into the cached 30 MiB: a second segment is reserved.
//! assert!(replayed.counters.reserved.peak >= Bytes::mib(62));
//! ```

#![warn(missing_docs, unreachable_pub)]

pub mod allocator;
pub mod estimate;
mod nets;
mod parallel;
mod step;
mod tape;

pub use estimate::{Band, Category, Estimate, Phase, Prediction, Unsupported};
pub use headroom_scenario::{Draft, Problem, Scenario};
pub use nets::graph;
pub use parallel::{World, schedule};

/// What networks outside this crate are written with.
pub mod network {
    pub use crate::nets::parts;
    pub use crate::nets::{
        Build, Cx, Env, Libraries, Logits, ModelError, Net, Output, Region, Sizes, build,
        construct, count, detector, has, register, segmenter, yolo,
    };
    pub use crate::tape::ops::Conv;
    pub use crate::tape::{Folding, Machine, Tape, Tensor, rounded};
}

/// Training steps of any network, run event by event.
pub mod training {
    pub use crate::step::{Evaluated, ModelMode, Run, RunPlan, run};
}
