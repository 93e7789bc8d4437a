//! The defaults of a version of the format.

use super::{Origin, Values};
use crate::{Scenario, settings, versions};

/// Every setting's default. An unknown version has the newest.
pub(super) fn values(version: Option<u32>) -> Values {
    let version = version.unwrap_or(Scenario::VERSION);
    let frozen = versions::defaults(version).unwrap_or_default();
    let value = |(key, text): &(&str, &str)| {
        let setting = settings::by_key(key)?;
        // A test holds every frozen default to be readable.
        Some((
            setting,
            (setting.parse(text).ok()?, Origin::Format(version)),
        ))
    };
    frozen.iter().filter_map(value).collect()
}
