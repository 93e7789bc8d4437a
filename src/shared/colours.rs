//! The drawing order and colours of the parts of memory.

use headroom_core::estimate::Category;

/// All categories in drawing order: persistent, saved for backward, temporary, overhead.
pub const CATEGORIES: [Category; 13] = [
    Category::Parameters,
    Category::OptimizerStates,
    Category::Gradients,
    Category::Ema,
    Category::Buffers,
    Category::Sampler,
    Category::Inputs,
    Category::Activations,
    Category::AutocastCopies,
    Category::BackwardTemporaries,
    Category::OptimizerTemporaries,
    Category::Workspace,
    Category::Rounding,
];

/// The light theme's colours of the parts, for files, which have no style sheets.
pub const COLOURS: [(&str, &str); 15] = [
    ("parameters", "#1f56a3"),
    ("gradients", "#338ab8"),
    ("optimizer-states", "#3c3b8e"),
    ("ema", "#62a9b3"),
    ("buffers", "#9dacbb"),
    ("sampler", "#7d62b0"),
    ("inputs", "#4a8a57"),
    ("activations", "#d0923a"),
    ("autocast-copies", "#d9c680"),
    ("backward-temporaries", "#b85a33"),
    ("optimizer-temporaries", "#a14370"),
    ("workspace", "#8a8178"),
    ("rounding", "#b3b1ab"),
    ("cached", "#9aa0a6"),
    ("context", "#646b73"),
];
