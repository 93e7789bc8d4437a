use std::collections::BTreeMap;

use super::{Network, SAMPLES};

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

#[test]
fn problems_name_their_field_and_what_is_near() {
    #[track_caller]
    fn check(text: &str, field: &str, part: &str) {
        let problem = match Network::parse(text) {
            Ok(network) => network.plan(&BTreeMap::default(), 2, 16).unwrap_err(),
            Err(problem) => problem,
        };
        assert_eq!(problem.field(), format!("model.network{field}"), "{text}");
        let message = problem.to_string();
        assert!(message.contains(part), "{message}");
    }
    check("norm", ".parts", "at least one part");
    let (layer, head) = (".parts.0.layers.0", ".parts.0.layers.0.head");
    check("part,name=a;attntion,heads=2", layer, "attention?");
    check("part,name=a;attention,head=2", head, "heads?");
    check("part,name=a;attention", ".parts.0.layers.0.heads", "``");
    check("part,name=a;linear,out=4", layer, "an embedding before it");
    let values = |rest: &str, field: &str, part: &str| {
        let text = format!("input,kind=values,shape=batch:4:8;part,name=a{rest}");
        check(&text, field, part);
    };
    values(
        ";attention,heads=3",
        ".parts.0.layers.0.heads",
        "which is 8",
    );
    values(
        ";linear,out=wide",
        ".parts.0.layers.0.out",
        "batch, sequence",
    );
    let repeated = ",repeat=2;linear,out=4";
    values(repeated, ".parts.0.repeat", "[2, 4, 4] of [2, 4, 8]");
    values(
        ",passes=3,gradient=4;norm",
        ".parts.0.gradient",
        "which are 3",
    );
    values(
        ",repeat=10000,passes=10000;norm",
        ".parts.0",
        "at most 20000",
    );
    let huge = ";norm;tensor,name=t,shape=batch:1000000:10000000:100000,part=a";
    values(huge, ".tensors.0.shape", "2^50");
    let elsewhere = ";norm;tensor,name=t,shape=batch,part=b";
    values(elsewhere, ".tensors.0.part", "a part: a");
    values(";norm;part,name=a", ".parts.1.name", "no other part");
    check("sizes,batch=2;part,name=a", ".sizes.batch", "a new name");
    values(
        ";conv,out=4,groups=3",
        ".parts.0.layers.0.groups",
        "4 and 4",
    );
    check(&"x".repeat(9000), "", "at most 8192 bytes");
}

#[test]
fn every_statement_says_what_is_wrong_with_it() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = super::problems(text, &BTreeMap::default(), 2, 16);
        let fields: Vec<_> = found
            .iter()
            .map(super::super::problem::Problem::field)
            .collect();
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
