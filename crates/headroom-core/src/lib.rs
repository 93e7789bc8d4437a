//! A PyTorch training step, run symbolically: `nets` on the `tape`, wrapped by `parallel`, trained by `step`; the events go
//! through the `allocator`, and `estimate` answers from them.

pub mod allocator;
pub mod estimate;
pub mod nets;
pub mod parallel;
pub mod step;
pub mod tape;
