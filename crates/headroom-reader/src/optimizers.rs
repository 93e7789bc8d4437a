//! Optimizers by the names that programs have for them.

/// The setting's value for a name such as `adamw_bnb_8bit`, `FusedAdam`, `torch.optim.AdamW`.
pub fn setting(name: &str) -> Option<&'static str> {
    let plain = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let plain = plain.replace('-', "_");
    let named = NAMES
        .iter()
        .find(|(_, names)| names.contains(&plain.as_str()));
    named.map(|(id, _)| *id)
}

/// The same for a program that means another implementation by a common name.
pub fn of_program(program: &str, name: &str) -> Option<&'static str> {
    let own = PROGRAMS.iter().find(|(own, _)| own.contains(&program));
    let meant = own.and_then(|(_, names)| {
        let named = names.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
        named.map(|(_, id)| *id)
    });
    meant.or_else(|| setting(name))
}

/// A name, and the setting's value that it means.
type Meaning = (&'static str, &'static str);

/// What programs mean by a name.
const PROGRAMS: &[(&[&str], &[Meaning])] = &[
    (
        // `build_optimizer` in ultralytics/engine/trainer.py: SGD has momentum, AdamW runs fused, MuSGD has as many states.
        &["ultralytics"],
        &[
            ("auto", "adamw-fused"),
            ("adam", "adamw-fused"),
            ("adamw", "adamw-fused"),
            ("musgd", "adamw-fused"),
            ("sgd", "sgd-momentum"),
        ],
    ),
    // timm's factory and train.py, and the schedules of OpenMMLab: momentum 0.9.
    (&["timm", "mmengine"], &[("sgd", "sgd-momentum")]),
];

/// By setting: the names of transformers' `OptimizerNames`, and those of programs with names of their own.
const NAMES: &[(&str, &[&str])] = &[
    (
        "adamw",
        &[
            "torch_adamw",
            "adamw_torch",
            "adamw",
            "adam",
            "adamw_hf",
            "decoupled_adamw",
            "decoupledadamw",
            "adamw_32bit",
        ],
    ),
    (
        "adamw-fused",
        &[
            "adamw_torch_fused",
            "fusedadam",
            "fused_adam",
            "adamw_fused",
            "adam (deepspeed fusedadam)",
            "torch adamw fused",
        ],
    ),
    ("sgd-momentum", &["sgd_momentum"]),
    ("sgd", &["sgd"]),
    ("adafactor-hf", &["adafactor"]),
    ("adagrad", &["adagrad"]),
    ("rmsprop", &["rmsprop"]),
    ("lion", &["lion", "decoupled_lionw", "decoupledlionw"]),
    ("muon-adamw", &["muon", "muon + adamw"]),
    (
        "adamw-8bit",
        &[
            "bnb_adamw8bit",
            "adamw_bnb_8bit",
            "adamw_8bit",
            "adamw8bit",
            "adamw_8bit_bnb",
            "adam8bit",
            "adamw8bit kahan",
        ],
    ),
    (
        "adamw-paged",
        &[
            "bnb_adamw_paged",
            "paged_adamw_32bit",
            "paged_adamw",
            "pagedadamw",
            "pagedadamw32bit",
        ],
    ),
    (
        "adamw-paged-8bit",
        &["bnb_adamw8bit_paged", "paged_adamw_8bit", "pagedadamw8bit"],
    ),
    ("adamw-8bit-ao", &["ao_adamw8bit", "adamw_torch_8bit"]),
    ("adamw-4bit-ao", &["ao_adamw4bit", "adamw_torch_4bit"]),
    ("adamw-bnb", &["adamw_bnb", "adamw_bnb_32bit"]),
    ("ademamix", &["ademamix"]),
    ("ademamix-8bit", &["ademamix_8bit"]),
    ("ademamix-paged", &["paged_ademamix_32bit"]),
    ("ademamix-paged-8bit", &["paged_ademamix_8bit"]),
    ("lion-bnb", &["lion_32bit"]),
    ("lion-8bit", &["bnb_lion8bit", "lion_8bit", "lion8bit"]),
    ("lion-paged", &["paged_lion_32bit"]),
    (
        "lion-paged-8bit",
        &["bnb_lion8bit_paged", "paged_lion_8bit", "pagedlion8bit"],
    ),
    ("rmsprop-bnb", &["rmsprop_bnb", "rmsprop_bnb_32bit"]),
    ("rmsprop-8bit", &["rmsprop_bnb_8bit"]),
    (
        "schedule-free",
        &["schedule_free_adamw", "adamwschedulefree"],
    ),
    ("schedule-free-radam", &["schedule_free_radam"]),
    ("schedule-free-sgd", &["schedule_free_sgd"]),
    (
        "stable-adamw",
        &["stable_adamw", "stableadamw", "adamw_optimi"],
    ),
    ("grokadamw", &["grokadamw"]),
    ("adamw-anyprecision", &["adamw_anyprecision", "adamw_bf16"]),
    ("galore", &["galore_adamw", "galore_adamw_layerwise"]),
    (
        "galore-8bit",
        &["galore_adamw_8bit", "galore_adamw_8bit_layerwise"],
    ),
    (
        "galore-adafactor",
        &["galore_adafactor", "galore_adafactor_layerwise"],
    ),
    ("apollo-128", &["apollo_adamw", "apollo_adamw_layerwise"]),
    ("lomo", &["lomo"]),
    ("adalomo", &["adalomo"]),
    ("came", &["came", "came_pytorch"]),
    ("lamb", &["lamb"]),
    ("soap", &["soap"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::settings;

    #[test]
    fn every_value_is_one_of_the_setting() {
        let optimizer = settings::find("training.optimizer").unwrap();
        for (id, names) in NAMES {
            assert!(optimizer.parse(id).is_ok(), "{id}");
            assert!(names.iter().all(|name| setting(name) == Some(id)), "{id}");
        }
    }

    #[test]
    fn names_are_found_however_they_are_written() {
        #[track_caller]
        fn check(name: &str, expected: Option<&str>) {
            assert_eq!(setting(name), expected, "{name}");
        }
        check("torch.optim.AdamW", Some("adamw"));
        check("AdamW8bit", Some("adamw-8bit"));
        check("decoupled_lionw", Some("lion"));
        check("nonsense", None);
    }
}
