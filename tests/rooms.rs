//! A newcomer finds any room in one step: `ARCHITECTURE.md` links to each, and to nothing that is not there.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs;
use std::path::Path;

fn map() -> String {
    fs::read_to_string("ARCHITECTURE.md").unwrap()
}

#[test]
fn every_room_is_on_the_map() {
    let map = map();
    for entry in fs::read_dir("src").unwrap() {
        let path = entry.unwrap().path();
        let link = format!("]({})", path.display());
        assert!(map.contains(&link), "ARCHITECTURE.md lacks {link}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    for file in ["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(file).unwrap();
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap();
            assert!(Path::new(target).exists(), "{file} links to {target}");
        }
    }
}

#[test]
fn the_map_stays_one_page() {
    assert!(map().lines().count() <= 200);
}
