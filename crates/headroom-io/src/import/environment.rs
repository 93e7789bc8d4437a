//! The allocator's settings in the environment of a command.

use super::Imported;

const VARIABLE: &str = "PYTORCH_CUDA_ALLOC_CONF";

/// Takes them from this variable, or its new name.
pub fn allocator(imported: &mut Imported, variables: &[(String, String)]) {
    let named = |name: &str| name == VARIABLE || name == "PYTORCH_ALLOC_CONF";
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
        imported.set(field, value, "the environment", VARIABLE);
    }
}
