//! The defaults of a version of the format.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{Origin, Values};
use crate::{Scenario, settings, versions};

thread_local! {
    /// Parsing all defaults takes longer than the rest of reading a link.
    static KNOWN: RefCell<BTreeMap<u32, Values>> = const { RefCell::new(BTreeMap::new()) };
}

/// Every setting's default; none for an unknown version.
pub(super) fn values(version: Option<u32>) -> Values {
    let version = version.unwrap_or(Scenario::VERSION);
    let Some(frozen) = versions::defaults(version) else {
        return Values::new();
    };
    KNOWN.with_borrow_mut(|known| {
        let values = known.entry(version);
        values.or_insert_with(|| parsed(version, frozen)).clone()
    })
}

fn parsed(version: u32, frozen: &[(&str, &str)]) -> Values {
    let value = |(key, text): &(&str, &str)| {
        let setting = settings::by_key(key)?;
        // A test holds every frozen default to be readable.
        let value = setting.parse(text).ok()?;
        Some((setting, (value, Origin::Format(version))))
    };
    frozen.iter().filter_map(value).collect()
}
