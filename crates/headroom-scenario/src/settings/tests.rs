use super::*;

#[test]
fn an_unknown_field_is_asked_about() {
    #[track_caller]
    fn check(name: &str, expected: &str) {
        assert_eq!(
            unknown(name, "2").to_string(),
            format!("{name} is `2`; expected {expected}")
        );
    }
    check("strategy", "a known field; did you mean parallel.strategy?");
    check("data.seq", "a known field; did you mean data.sequence?");
    check(
        "batch",
        "a known field; did you mean data.batch_max, data.micro_batch or data.global_batch?",
    );
    check("seqence", "a known field; did you mean data.sequence?");
    check("colour", "a known field; `headroom schema` lists them");
}

#[test]
fn a_name_becomes_the_catalogues_id() {
    #[track_caller]
    fn check(setting: &str, given: &str, expected: &str) {
        let mut scenario = Scenario::default();
        set(&mut scenario, setting, given).unwrap();
        assert_eq!(find(setting).unwrap().get(&scenario), expected);
    }
    check("hardware.gpu", "NVIDIA H100 80GB HBM3", "h100-sxm5-80gb");
    check("hardware.gpu", "4090", "rtx-4090-24gb");
    check("hardware.gpu", "rtx-4090", "rtx-4090");
    check("hardware.gpu", "a card of my own", "a card of my own");
    check(
        "model.id",
        "meta-llama/Llama-3.1-8B-Instruct",
        "llama-3.1-8b",
    );
    check("model.id", "my own", "my own");
}

#[test]
fn every_setting_reads_what_it_writes() {
    let scenario = Scenario::default();
    for setting in all() {
        let mut copy = scenario.clone();
        let text = setting.get(&scenario);
        setting.set(&mut copy, &text).unwrap();
        let parent_opened = setting.parent.is_some();
        assert!(parent_opened || copy == scenario, "{}", setting.path);
        assert_eq!(setting.get(&copy), text, "{}", setting.path);
        assert_eq!(setting.check(&scenario), None);
    }
}

#[test]
fn the_table_is_sound() {
    let mut names = std::collections::BTreeSet::new();
    for setting in all() {
        assert!(names.insert(setting.path), "{} twice", setting.path);
        assert!(names.insert(setting.key), "{} twice", setting.key);
        let section = |(id, _): &(&str, &str)| *id == setting.section();
        assert!(SECTIONS.iter().any(section), "{}", setting.path);
        let parent_exists = setting.parent.is_none_or(|parent| find(parent).is_some());
        assert!(parent_exists, "{}'s parent is no setting", setting.path);
    }
}

#[test]
fn a_choice_can_be_set_to_each_of_its_entries_and_a_number_to_its_ends() {
    for setting in all() {
        let mut scenario = Scenario::default();
        let texts = match setting.value_type {
            ValueType::Choice(choices) => {
                choices.iter().map(|choice| choice.id.to_string()).collect()
            }
            ValueType::Whole { low, high } => vec![low.to_string(), high.to_string()],
            ValueType::Number { low, high } => vec![low.to_string(), high.to_string()],
            ValueType::Switch => vec!["on".into(), "off".into()],
            _ => vec![],
        };
        for text in texts {
            setting.set(&mut scenario, &text).unwrap();
            assert_eq!(setting.get(&scenario), text);
            assert_eq!(setting.check(&scenario), None);
        }
    }
}

#[test]
fn a_value_out_of_range_is_refused_on_entry() {
    let mut scenario = Scenario::default();
    for (name, text) in [
        ("mb", "0"),
        ("mb", "1000001"),
        ("lora_dropout", "1.5"),
        ("lora_dropout", "NaN"),
    ] {
        assert!(set(&mut scenario, name, text).is_err(), "{name}={text}");
    }
    assert_eq!(scenario, Scenario::default());
}

#[test]
fn a_year_as_a_version_goes_without_its_century() {
    let mut scenario = Scenario::default();
    for text in ["2026.10", "26.10", "2026.10.9"] {
        set(&mut scenario, "trainer_version", text).unwrap();
        assert_eq!(scenario.stack.trainer_version, Some((26, 10)));
    }
    assert!(set(&mut scenario, "trainer_version", "3000.1").is_err());
}
