use std::collections::BTreeMap;

use super::{Network, SAMPLES};
use headroom_testing::Dice;

#[test]
fn networks_survive_text_and_documents() {
    for text in SAMPLES.iter().filter(|sample| !sample.is_empty()) {
        let network = Network::parse(text).unwrap();
        assert_eq!(network.text(), *text);
        assert_eq!(Network::parse(&network.text()).unwrap(), network);
        let document = network.document();
        assert_eq!(
            Network::from_document(&document).unwrap(),
            network,
            "{text}"
        );
    }
    let spoken = Network::parse(" part , name=a , repeat = 1 ; norm,kind=layer ; sizes,b=2,a=1 ");
    assert_eq!(spoken.unwrap().text(), "sizes,a=1,b=2;part,name=a;norm");
}

/// The problem that parsing or planning a network ends with.
fn problem(text: &str) -> Option<String> {
    let network = match Network::parse(text) {
        Ok(network) => network,
        Err(problem) => return Some(problem.to_string()),
    };
    let planned = network.plan(&BTreeMap::default(), 2, 16);
    planned.err().map(|problem| problem.to_string())
}

#[test]
fn what_is_wrong_is_named_by_its_field() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(problem(text).as_deref(), Some(expected), "{text}");
    }
    check(
        "norm",
        "model.network.parts is ``; expected at least one part, such as part,name=body",
    );
    check(
        "part,name=a;attntion,heads=2",
        "model.network.parts.0.layers.0 is `attntion`; expected a known kind; did you mean attention?",
    );
    check(
        "part,name=a;attention,head=2",
        "model.network.parts.0.layers.0.head is `2`; expected a known field; did you mean heads?",
    );
    check(
        "part,name=a;attention",
        "model.network.parts.0.layers.0.heads is ``; expected a size such as 384, hidden or 4*hidden",
    );
    check(
        "part,name=a;linear,out=4",
        "model.network.parts.0.layers.0 is `linear`; expected an embedding before it: it is given token ids",
    );
    let values = |rest: &str| format!("input,kind=values,shape=batch:4:8;part,name=a{rest}");
    check(
        &values(";attention,heads=3"),
        "model.network.parts.0.layers.0.heads is `3`; expected a divisor of the width, which is 8",
    );
    check(
        &values(";linear,out=wide"),
        "model.network.parts.0.layers.0.out is `wide`; expected a size that is named: batch, sequence",
    );
    check(
        &values(",repeat=2;linear,out=4"),
        "model.network.parts.0.repeat is `2`; expected 1: its layers make [2, 4, 4] of [2, 4, 8], which cannot go in again",
    );
    check(
        &values(",passes=3,gradient=4;norm"),
        "model.network.parts.0.gradient is `4`; expected at most the passes, which are 3",
    );
    check(
        &values(",repeat=10000,passes=10000;norm"),
        "model.network.parts.0 is `100000000`; expected at most 20000 layers in one forward pass",
    );
    check(
        &values(";norm;tensor,name=t,shape=batch:1000000:10000000:100000,part=a"),
        "model.network.tensors.0.shape is `[2, 1000000, 10000000, 100000]`; expected a tensor of at most 2^50 elements",
    );
    check(
        &values(";norm;tensor,name=t,shape=batch,part=b"),
        "model.network.tensors.0.part is `b`; expected loss or a part: a",
    );
    check(
        &values(";norm;part,name=a"),
        "model.network.parts.1.name is `a`; expected a name that no other part has, nor `loss`",
    );
    check(
        "sizes,batch=2;part,name=a",
        "model.network.sizes.batch is `2`; expected a new name and a whole number up to 10000000",
    );
    check(
        &values(";conv,out=4,groups=3"),
        "model.network.parts.0.layers.0.groups is `3`; expected a divisor of 4 and 4",
    );
    let long = "x".repeat(9000);
    assert!(problem(&long).unwrap().contains("at most 8192 bytes"));
}

#[test]
fn every_statement_says_what_is_wrong_with_it() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = super::problems(text, &BTreeMap::default(), 2, 16);
        let fields: Vec<_> = found.iter().map(|problem| problem.field()).collect();
        assert_eq!(fields, expected, "{text}");
    }
    let unread = "part,name=a,repeat=;linear;norm;conv,out=4,kernel=?;tensor,name=t";
    let expected = [
        "model.network.parts.0.repeat",
        "model.network.parts.0.layers.0.out",
        "model.network.parts.0.layers.2.kernel",
        "model.network.tensors.0.shape",
    ];
    check(unread, &expected);
    check("part,name=a;norm", &["model.network.parts.0.layers.0"]);
    check("norm", &["model.network.parts"]);
    check("input,kind=values,shape=batch:8;part,name=a;norm", &[]);
}

#[test]
fn broken_text_neither_panics_nor_runs_away() {
    let mut dice = Dice::new(7);
    for _ in 0..4000 {
        let mut bytes = dice.one_of(&SAMPLES[1..]).as_bytes().to_vec();
        for _ in 0..=dice.below(5) {
            let at = dice.below(bytes.len() as u64) as usize;
            match dice.below(3) {
                0 => bytes[at] = dice.roll() as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, b";,=:*+-/()09"[dice.below(12) as usize]),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let Ok(network) = Network::parse(&text) else {
            continue;
        };
        assert_eq!(Network::parse(&network.text()).unwrap(), network);
        let _ = network.plan(&BTreeMap::default(), 1 + dice.below(4), 8);
    }
}
