//! The allocator's settings in the environment of a command.

use super::Imported;
use headroom_scenario::settings;

/// Takes them from `PYTORCH_CUDA_ALLOC_CONF`, or its new name.
pub fn allocator(imported: &mut Imported, variables: &[(String, String)]) {
    let named = |name: &str| name == "PYTORCH_CUDA_ALLOC_CONF" || name == "PYTORCH_ALLOC_CONF";
    let set = variables.iter().filter(|(name, _)| named(name));
    for part in set.flat_map(|(_, value)| value.split(',')) {
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        let value = value.trim();
        let (field, value) = match name.trim() {
            "expandable_segments" => {
                let on = value.eq_ignore_ascii_case("true");
                ("runtime.expandable_segments", if on { "on" } else { "off" })
            }
            "max_split_size_mb" => ("runtime.max_split_size_mb", value),
            other => {
                imported.unused_keys.push(other.into());
                continue;
            }
        };
        let result = settings::set(&mut imported.scenario, field, value);
        imported.problems.extend(result.err());
    }
}
