//! A command's flags as keys.

use headroom_base::document::Document;
use headroom_scripts::shell::{Form, Launch};

use super::keys::Keys;

/// `--per-device_batch 4` is `per_device_batch: 4`; a flag without a value is true; `a.b=c` stands under its path.
pub fn keys(launch: &Launch) -> Keys {
    let mut keys = Keys::default();
    for flag in launch.flags() {
        if matches!(flag.form, Form::Positional | Form::Removed) || flag.key.is_empty() {
            continue;
        }
        let path = flag.key.replace('-', "_");
        let values = &flag.values;
        let written: Vec<&str> = values.iter().map(|word| word.text.as_str()).collect();
        let value = match written.as_slice() {
            [] => Document::Bool(true),
            [one] => Document::Text((*one).into()),
            several => Document::List(several.iter().map(|word| Document::from(*word)).collect()),
        };
        keys.set(&path, value);
        if let Some(why) = values.iter().find_map(|word| word.unknown.as_ref()) {
            keys.set_unknown(&path, format!("`{}` depends on {why}", written.join(" ")));
        }
    }
    keys
}
