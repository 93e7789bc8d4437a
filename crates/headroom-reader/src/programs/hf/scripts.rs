//! Scripts behind a launcher that parse `TrainingArguments`.

use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::Source;
use headroom_scripts::shell::Launch;

pub fn read(_source: &Source, _launch: &Launch, _flags: &Keys) -> Option<Facts> {
    None
}
