//! A command's flags as keys.

use headroom_base::document::Document;
use headroom_scripts::shell::{Launch, Word};

use super::keys::Keys;

/// `--per-device_batch 4` is `per_device_batch: 4`; a flag without a value is true; `a.b=c` stands under its path.
pub fn keys(launch: &Launch) -> Keys {
    let mut keys = Keys::default();
    for (name, values) in flags(&launch.arguments) {
        let path = name.replace('-', "_");
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

fn flags(words: &[Word]) -> Vec<(String, Vec<Word>)> {
    let mut all: Vec<(String, Vec<Word>)> = Vec::new();
    for word in words {
        let is_number = word.text.parse::<f64>().is_ok();
        match word.text.strip_prefix('-') {
            Some(flag) if !is_number => {
                let flag = flag.trim_start_matches('-');
                match flag.split_once('=') {
                    Some((name, value)) => all.push((
                        name.into(),
                        vec![Word {
                            text: value.into(),
                            unknown: word.unknown.clone(),
                        }],
                    )),
                    None => all.push((flag.into(), Vec::new())),
                }
            }
            _ => match (word.text.split_once('='), all.last_mut()) {
                (Some((name, value)), _) if !name.contains([' ', '/', '{']) => {
                    let name = name.trim_start_matches('+').to_string();
                    all.push((
                        name,
                        vec![Word {
                            text: value.into(),
                            unknown: word.unknown.clone(),
                        }],
                    ));
                }
                (_, Some((_, values))) => values.push(word.clone()),
                _ => {}
            },
        }
    }
    all
}
