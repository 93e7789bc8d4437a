//! Every link that was ever published opens to the scenario it meant then.

use headroom_scenario::share;
use headroom_scenario::{Scenario, settings};

#[test]
fn published_links_keep_their_meaning() {
    let lines = include_str!("../links.txt").lines();
    let mut checked = 0;
    for line in lines.filter(|line| !line.starts_with('#')) {
        let (link, meaning) = line.split_once(" -> ").unwrap();
        let opened = share::read(link);
        assert_eq!(opened.problems, vec![], "{link}");
        let mut expected = Scenario::default();
        for pair in meaning.split(' ') {
            let (path, value) = pair.split_once('=').unwrap();
            settings::set(
                &mut expected,
                path,
                &value.replace("%20", " ").replace("%26", "&"),
            )
            .unwrap();
        }
        assert_eq!(opened.scenario, expected, "{link}");
        checked += 1;
    }
    assert_eq!(checked, 14);
}
