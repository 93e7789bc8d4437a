//! Research systems whose memory guides people follow, each written after its own repository's forward function.

mod dreams;

use super::Build;

pub(super) const FAMILIES: &[(&str, Build)] = &[("dreams", dreams::build)];
