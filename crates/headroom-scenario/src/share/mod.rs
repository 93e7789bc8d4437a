//! Links: a scenario in the fragment of an address, readable and made of what differs from the defaults.
//!
//! `#v=1&data=1&gpu=h100-sxm5-80gb&mb=4`: `v` names the format, `data` the catalogue and rules it was made with.
//! Published links keep their meaning: each version's defaults are frozen in `scenario::versions`.

mod percent;
mod recording;
mod squeeze;

use std::collections::BTreeMap;

use crate::network::{LONGEST_TEXT, Network};
use crate::resolve::{self, Origin, resolve};
use crate::settings;
use crate::{Draft, Problem, Scenario, versions};

/// The version of the catalogue and of the rules; a link from another one may show other numbers.
pub const DATA_VERSION: &str = "1";

/// The longest fragment that is read, in bytes.
pub const LONGEST: usize = 16_384;

/// Stands between two scenarios in one link: the present one, and the one it is compared with.
pub const VERSUS: &str = "&vs&";

/// Names the keys of the first scenario that the other does not have.
const WITHOUT: &str = "no";

/// A declared network is written as it is up to this many bytes, and squeezed beyond, under a key of its own.
const READABLE: usize = 160;
const NETWORK: &str = "network";
const SQUEEZED: &str = "net";
/// A recorded model that is short enough for a link.
const RECORDED: &str = "rec";

/// What a link held.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// What it says; the scenario is that over the defaults of the link's version.
    pub draft: Draft,
    pub scenario: Scenario,
    /// Keys and values this version does not know; everything else was kept.
    pub problems: Vec<Problem>,
    /// The catalogue's version, where it is not this program's.
    pub other_data: Option<String>,
}

/// The fragment of a link, without the `#`.
pub fn write(scenario: &Scenario) -> String {
    let defaults = Scenario::default();
    let mut link = format!("v={}&data={DATA_VERSION}", Scenario::VERSION);
    // Defaults of the software are spelled out, so that the link's meaning does not change with the catalogue.
    let defaults_of_stack = resolve::stack_defaults(scenario);
    for setting in settings::all() {
        let value = setting.get(scenario);
        let of_stack = defaults_of_stack
            .iter()
            .any(|default| default.setting == setting);
        if setting.applies(scenario) && (of_stack || value != setting.get(&defaults)) {
            link.push('&');
            let recording = scenario.model.network.as_ref().and_then(Network::recording);
            let recording = recording.filter(|_| setting.key == NETWORK);
            if let Some(packed) = recording.and_then(recording::write) {
                link.push_str(RECORDED);
                link.push('=');
                percent::encode(&packed, &mut link);
            } else if setting.key == NETWORK && value.len() > READABLE {
                link.push_str(SQUEEZED);
                link.push('=');
                percent::encode(&squeeze::write(&value), &mut link);
            } else {
                link.push_str(setting.key);
                link.push('=');
                percent::encode(&value, &mut link);
            }
        }
    }
    link
}

/// The fragment of two scenarios: of the other only what differs from the first is written.
pub fn write_both(first: &Scenario, other: &Scenario) -> String {
    let (first_link, other_link) = (write(first), write(other));
    let pairs = |link: &str| -> Vec<String> { link.split('&').map(String::from).collect() };
    let (of_first, of_other) = (pairs(&first_link), pairs(&other_link));
    let key = |pair: &str| pair.split('=').next().unwrap_or_default().to_string();
    let differs = of_other.iter().filter(|pair| !of_first.contains(pair));
    let mut parts: Vec<String> = differs.cloned().collect();
    let gone = of_first.iter().map(|pair| key(pair));
    let gone: Vec<_> = gone
        .filter(|name| of_other.iter().all(|pair| key(pair) != *name))
        .collect();
    if !gone.is_empty() {
        parts.push(format!("{WITHOUT}={}", gone.join(",")));
    }
    let short = format!("{first_link}{VERSUS}{}", parts.join("&"));
    if read_other(&short).is_some_and(|read| read.scenario == *other) {
        short
    } else {
        format!("{first_link}{VERSUS}{other_link}")
    }
}

/// What a link's first is compared with. With a version of its own it is complete; otherwise it lists
/// differences from the first.
pub fn read_other(link: &str) -> Option<Opened> {
    let fragment = link.split_once('#').map_or(link, |(_, fragment)| fragment);
    let (first, other) = fragment.split_once(VERSUS)?;
    if other.starts_with("v=") || fragment.len() > LONGEST {
        return Some(read(other));
    }
    let key = |pair: &str| pair.split('=').next().unwrap_or_default().to_string();
    let without = other
        .split('&')
        .find_map(|pair| pair.strip_prefix(WITHOUT)?.strip_prefix('='));
    let gone: Vec<&str> = without.unwrap_or_default().split(',').collect();
    let given = other
        .split('&')
        .filter(|pair| key(pair) != WITHOUT && !pair.is_empty());
    let given: Vec<&str> = given.collect();
    let stays =
        |pair: &&str| !gone.contains(&&*key(pair)) && given.iter().all(|new| key(new) != key(pair));
    let mut pairs: Vec<&str> = first.split('&').filter(stays).collect();
    pairs.extend(given);
    Some(read(&pairs.join("&")))
}

/// Reads a fragment, with or without `#`, or a whole address.
pub fn read(link: &str) -> Opened {
    const MOST_PROBLEMS: usize = 20;
    let mut problems = Vec::new();
    let fragment = link.split_once('#').map_or(link, |(_, fragment)| fragment);
    let fragment = fragment.split(VERSUS).next().unwrap_or_default();
    let fragment = if fragment.len() <= LONGEST {
        fragment.trim()
    } else {
        let expected = format!("at most {LONGEST} bytes");
        problems.push(Problem::new("link", fragment, expected));
        ""
    };
    let Pairs { mut given, unknown } = pairs(fragment, &mut problems);
    if let Some(value) = given.remove(SQUEEZED) {
        match squeeze::read(&value, LONGEST_TEXT) {
            Some(network) => {
                given.insert(NETWORK.into(), network);
            }
            None => problems.push(Problem::new(
                SQUEEZED,
                value,
                "a network as Headroom squeezes it",
            )),
        }
    }
    if let Some(value) = given.remove(RECORDED) {
        match recording::read(&value) {
            Some(network) => {
                given.insert(NETWORK.into(), network.text());
            }
            None => problems.push(Problem::new(
                RECORDED,
                value,
                "a recorded model as Headroom squeezes it",
            )),
        }
    }
    let mut draft = Draft::of_format(version(given.remove("v"), &mut problems));
    let other_data = given.remove("data").filter(|data| data != DATA_VERSION);
    for (key, value) in &given {
        if let Some(setting) = settings::by_key(key) {
            draft.read(setting, value, Origin::Link);
        }
    }
    let resolved = resolve(&draft);
    problems.extend(resolved.problems);
    let shown = MOST_PROBLEMS.saturating_sub(problems.len());
    let named = unknown.iter().take(shown);
    problems.extend(named.map(|(key, value)| settings::unknown(key, value)));
    if let Some(rest) = unknown.len().checked_sub(shown).filter(|rest| *rest > 0) {
        problems.truncate(MOST_PROBLEMS - 1);
        let all = format!("{} unknown keys", rest + shown);
        problems.push(Problem::new("link", all, "known fields"));
    }
    problems.truncate(MOST_PROBLEMS);
    Opened {
        draft,
        scenario: resolved.scenario,
        problems,
        other_data,
    }
}

/// The keys of a fragment with their decoded values.
#[derive(Default)]
struct Pairs {
    given: BTreeMap<String, String>,
    unknown: Vec<(String, String)>,
}

/// Of a key given twice the last counts, as in a form.
fn pairs(fragment: &str, problems: &mut Vec<Problem>) -> Pairs {
    let mut pairs = Pairs::default();
    for pair in fragment.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (percent::decode(key), percent::decode(value)) {
            (Some(key), Some(value)) if is_known(&key) => {
                pairs.given.insert(key, value);
            }
            (Some(key), Some(value)) => pairs.unknown.push((key, value)),
            _ => problems.push(Problem::new(key, value, "percent-encoded UTF-8")),
        }
    }
    pairs
}

fn is_known(key: &str) -> bool {
    matches!(key, "v" | "data" | SQUEEZED | RECORDED) || settings::by_key(key).is_some()
}

fn version(given: Option<String>, problems: &mut Vec<Problem>) -> u32 {
    let Some(text) = given else {
        return Scenario::VERSION;
    };
    match text.parse() {
        Ok(version) if versions::defaults(version).is_some() => version,
        _ => {
            let expected = format!("a version from 1 to {}", Scenario::VERSION);
            problems.push(Problem::new("v", &text, expected));
            Scenario::VERSION
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Recording;
    use crate::sample;
    use headroom_base::document::Document;
    use headroom_testing::{Dice, cases, slow};

    #[test]
    fn a_link_restores_the_exact_scenario() {
        let mut dice = Dice::new(1);
        for _ in 0..1000 {
            let scenario = sample::scenario(&mut dice);
            let link = write(&scenario);
            let opened = read(&format!("https://example.org/app/#{link}"));
            assert_eq!(opened.scenario, scenario, "{link}");
            assert_eq!(
                (opened.problems, opened.other_data),
                (vec![], None),
                "{link}"
            );
            let plain = |c: char| c.is_ascii_graphic() && !"<>\"'`$();|\\{}".contains(c);
            assert!(link.chars().all(plain), "{link}");
        }
    }

    #[test]
    fn mutilated_links_are_read_without_panic_and_into_valid_values() {
        const LETTERS: &[u8] = b"&=,:;+-.%#0189eEvmxyz_[]{}\"' \xc3\xa9";
        let mut dice = Dice::new(2);
        for _ in 0..cases(if slow() { 6000 } else { 600 }) {
            let mut bytes = write(&sample::scenario(&mut dice)).into_bytes();
            for _ in 0..=dice.below(6) {
                let at = dice.below(bytes.len() as u64) as usize;
                let letter = LETTERS[dice.index(LETTERS.len())];
                match dice.below(5) {
                    0 => bytes[at] = dice.roll() as u8,
                    1 => bytes[at] = letter,
                    2 => bytes.truncate(at.max(1)),
                    3 => bytes.insert(at, letter),
                    _ => {
                        let piece = bytes[at..(at + 1 + dice.index(20)).min(bytes.len())].to_vec();
                        let to = dice.index(bytes.len());
                        bytes.splice(to..to, piece);
                    }
                }
            }
            let opened = read(&String::from_utf8_lossy(&bytes));
            for setting in settings::all() {
                assert_eq!(setting.check(&opened.scenario), None);
            }
            assert_eq!(read(&write(&opened.scenario)).scenario, opened.scenario);
        }
    }

    #[test]
    fn two_scenarios_come_back_and_what_they_share_is_written_once() {
        let other = |link: &str| read_other(link).map(|opened| opened.scenario);
        let mut dice = Dice::new(3);
        for _ in 0..300 {
            let (a, b) = (sample::scenario(&mut dice), sample::scenario(&mut dice));
            let link = write_both(&a, &b);
            assert_eq!((read(&link).scenario, other(&link)), (a, Some(b)), "{link}");
        }
        let mut a = Scenario::default();
        settings::set(&mut a, "gpu", "t4").unwrap();
        settings::set(&mut a, "lora_rank", "8").unwrap();
        let mut b = a.clone();
        b.training.lora = None;
        b.data.micro_batch = 2;
        assert_eq!(
            write_both(&a, &b),
            "v=1&data=1&gpu=t4&lora=on&lora_rank=8&vs&mb=2&no=lora,lora_rank"
        );
        assert_eq!(other(&write_both(&a, &a)), Some(a.clone()));
        assert_eq!(other("v=1&mb=4"), None);
        // As links were written before.
        let old = other("v=1&mb=4&vs&v=1&gpus=8").unwrap();
        assert_eq!((old.data.micro_batch, old.hardware.gpus), (8, 8));
        // What is wrong with the second alone.
        let problems = read_other("v=1&vs&mb=x&colour=red").unwrap().problems;
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn links_hold_only_what_differs() {
        #[track_caller]
        fn check(changes: &[(&str, &str)], link: &str) {
            let mut scenario = Scenario::default();
            for (name, value) in changes {
                settings::set(&mut scenario, name, value).unwrap();
            }
            assert_eq!(write(&scenario), link);
        }
        check(&[], "v=1&data=1");
        check(
            &[("mb", "4"), ("gpu", "h100-sxm5-80gb")],
            "v=1&data=1&gpu=h100-sxm5-80gb&mb=4",
        );
        check(&[("lora", "on")], "v=1&data=1&lora=on");
        check(
            &[("lora_rank", "8"), ("lora_targets", "")],
            "v=1&data=1&lora=on&lora_rank=8&lora_targets=",
        );
        check(
            &[("dims", "layers=2,vocab=9")],
            "v=1&data=1&dims=layers=2,vocab=9",
        );
    }

    #[test]
    fn a_long_network_travels_squeezed_and_a_broken_one_is_named() {
        let layers = ";attention,heads=heads;mlp,width=4*hidden".repeat(12);
        let network = format!("sizes,heads=2,hidden=8;part,name=body{layers}");
        let mut scenario = Scenario::default();
        settings::set(&mut scenario, "network", &network).unwrap();
        let link = write(&scenario);
        assert!(link.len() < network.len() / 4, "{link}");
        assert_eq!(read(&link).scenario, scenario);
        let broken = read("mb=4&net=part~zz");
        assert_eq!(
            broken.problems[0].to_string(),
            "net is `part~zz`; expected a network as Headroom squeezes it"
        );
        assert_eq!(broken.scenario.data.micro_batch, 4);
    }

    #[test]
    fn a_short_recording_travels_whole_and_a_long_one_by_its_name() {
        #[track_caller]
        fn check(programs: usize, key: &str, problems: usize) {
            let program = |n: usize| Document::new().with("precision", format!("p{n}"));
            let programs = (0..programs).map(program).collect();
            let document = Document::new()
                .with("name", "mymodule:build~;@+=/ü")
                .with("programs", Document::List(programs));
            let mut scenario = Scenario::default();
            scenario.model.network = Some(Network::recorded(Recording::new(document)));
            let link = write(&scenario);
            assert!(link.len() <= LONGEST && link.contains(key), "{link}");
            // Another thread, which knows of no file.
            let elsewhere = std::thread::spawn(move || read(&link)).join().unwrap();
            assert_eq!(elsewhere.problems.len(), problems);
            assert_eq!(elsewhere.scenario == scenario, problems == 0);
        }
        check(1, "&rec=", 0);
        check(300, "&rec=", 0);
        check(9000, "&network=recorded:", 1);
        let broken = read("mb=4&rec=~zz");
        assert_eq!(
            broken.problems[0].to_string(),
            "rec is `~zz`; expected a recorded model as Headroom squeezes it"
        );
        assert_eq!(broken.scenario.data.micro_batch, 4);
    }

    #[test]
    fn what_is_not_known_is_reported_and_the_rest_kept() {
        #[track_caller]
        fn check(link: &str, expected: &[&str]) -> Scenario {
            let opened = read(link);
            let problems: Vec<String> = opened.problems.iter().map(ToString::to_string).collect();
            assert_eq!(problems, expected);
            opened.scenario
        }
        let scenario = check(
            "v=1&mb=3&colour=red&attn=magic&gpus=%zz",
            &[
                "gpus is `%zz`; expected percent-encoded UTF-8",
                "training.attention is `magic`; expected one of sdpa, eager, flash_attention_2",
                "colour is `red`; expected a known field; `headroom schema` lists them",
            ],
        );
        assert_eq!(scenario.data.micro_batch, 3);
        let scenario = check("mb=5", &[]);
        assert_eq!(scenario.data.micro_batch, 5);
        let scenario = check("lora_rank=4", &[]);
        assert_eq!(scenario.training.lora.unwrap().rank, 4);
        check("v=2&mb=5", &["v is `2`; expected a version from 1 to 1"]);
        let scenario = check(
            "lora=off&lora_rank=4",
            &["training.lora.rank is `4`; expected no value while training.lora is off"],
        );
        assert_eq!(scenario.training.lora, None);
        let other = read("v=1&data=0&mb=5").other_data;
        assert_eq!(other.as_deref(), Some("0"));
    }

    #[test]
    fn the_input_is_bounded() {
        let long = format!("mb=4&{}", "x=1&".repeat(LONGEST));
        let opened = read(&long);
        assert_eq!(opened.scenario, Scenario::default());
        assert_eq!(opened.problems.len(), 1);
        let many: Vec<String> = (0..1000).map(|n| format!("k{n}=1")).collect();
        let problems = read(&many.join("&")).problems;
        assert_eq!(problems.len(), 20);
        assert_eq!(
            problems[19].to_string(),
            "link is `1000 unknown keys`; expected known fields"
        );
    }
}
