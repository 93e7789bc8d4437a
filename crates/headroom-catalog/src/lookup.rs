//! GPUs by the names that people give them: a card's number, the driver's name.

use super::typed::{Typed, squeezed};
use super::{Gpu, gpu, gpus};
use headroom_base::order::sorted;

/// How many names are suggested for an unknown one.
const MOST: usize = 3;

/// The GPUs whose names are most like a text: a number that several cards bear (`h100`) has all of those.
pub fn gpus_near(text: &str) -> Vec<&'static str> {
    let typed = Typed::new(text);
    let holds = |gpu: &&Gpu| typed.is_in(gpu.id) || typed.is_in(gpu.name);
    let meant = || gpus().iter().filter(|gpu| is_meant(gpu, text));
    let held = meant().filter(holds).map(|gpu| gpu.id);
    some(held, gpus().len()).unwrap_or_else(|| {
        let short = meant().map(Gpu::short_id);
        let mut near = alike(short.map(|id| (typed.likeness(id), id)));
        near.dedup();
        near
    })
}

/// A part of a card is meant only where a text says so.
fn is_meant(gpu: &Gpu, text: &str) -> bool {
    !gpu.is_slice() || text.to_ascii_lowercase().contains("mig")
}

/// The shortest of those that contain the typed text, if it distinguishes them at all.
fn some(held: impl Iterator<Item = &'static str>, all: usize) -> Option<Vec<&'static str>> {
    let held: Vec<&'static str> = held.collect();
    let tells = !held.is_empty() && held.len() < all;
    let held = sorted(held, |one, other| one.len().cmp(&other.len()));
    tells.then(|| held.into_iter().take(MOST).collect())
}

/// The names that are most like a text, and those that are as good as that.
fn alike(names: impl Iterator<Item = (usize, &'static str)>) -> Vec<&'static str> {
    // A third of the pairs: less is chance.
    const LEAST: usize = 333;
    let names = names.filter(|(likeness, _)| *likeness >= LEAST);
    let names = sorted(names, |(one, _), (other, _)| other.cmp(one));
    let best = names.first().map_or(0, |(likeness, _)| *likeness);
    let good = names
        .into_iter()
        .filter(|(likeness, _)| *likeness * 20 >= best * 19);
    good.take(MOST).map(|(_, id)| id).collect()
}

/// The GPU that a text means: its catalogue id or name, the name without the vendor's words (`4090`, `H100 SXM`), or the
/// driver's name (`NVIDIA H100 80GB HBM3`). If several cards have such a name, the result is `None`.
pub fn gpu_named(text: &str) -> Option<&'static Gpu> {
    let text = text.trim();
    let named = |gpu: &&Gpu| gpu.name.eq_ignore_ascii_case(text);
    if let Some(found) = gpu(text).or_else(|| gpus().iter().find(named)) {
        return Some(found);
    }
    let plain = squeezed(text);
    let driver = BY_DRIVER
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    if let Some((_, id)) = driver {
        return gpu(id);
    }
    let one = |same: &dyn Fn(&Gpu) -> bool| {
        let mut same = gpus().iter().filter(|gpu| is_meant(gpu, text) && same(gpu));
        same.next().filter(|_| same.next().is_none())
    };
    let wanted = model_number(text);
    if wanted.is_empty() {
        return None;
    }
    let spelt = |gpu: &Gpu| squeezed(gpu.short_id()) == plain || squeezed(gpu.id) == plain;
    one(&spelt)
        .or_else(|| one(&|gpu| model_number(gpu.short_id()) == wanted))
        .or_else(|| one(&|gpu| matches_words(gpu, &wanted)))
}

/// The driver's names (nvidia-smi's `name`) of cards whose variants have one more word.
const BY_DRIVER: &[(&str, &str)] = &[
    ("nvidia h100 80gb hbm3", "h100-sxm5-80gb"),
    ("nvidia h200", "h200-sxm-141gb"),
    ("nvidia gh200 480gb", "gh200-96gb"),
];

/// Whether a card has every word, including its model number: the rest may be its socket and its memory.
fn matches_words(gpu: &Gpu, wanted: &[String]) -> bool {
    let number = model_number(gpu.short_id());
    let own = model_number(gpu.id);
    // SXM means SXM5, too.
    let bears = |word: &String| {
        own.iter()
            .any(|own| own == word || word == "sxm" && own.starts_with("sxm"))
    };
    let numbered = number.first().is_some_and(|number| wanted.contains(number));
    numbered && wanted.iter().all(bears)
}

/// The words of a name without those that all cards of a vendor share.
fn model_number(name: &str) -> Vec<String> {
    const MAKERS: &[&str] = &[
        "nvidia",
        "geforce",
        "rtx",
        "gtx",
        "tesla",
        "quadro",
        "amd",
        "radeon",
        "instinct",
        "generation",
        "edition",
        "gpu",
    ];
    let name = name.to_ascii_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter(|word| !word.is_empty() && !MAKERS.contains(word))
        .map(String::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_found_by_its_number() {
        #[track_caller]
        fn check(name: &str, expected: Option<&str>) {
            assert_eq!(gpu_named(name).map(Gpu::short_id), expected, "{name}");
        }
        check("4090", Some("rtx-4090"));
        check("RTX 4090", Some("rtx-4090"));
        check("NVIDIA GeForce RTX 4090", Some("rtx-4090"));
        check("RTX4090", Some("rtx-4090"));
        check("RTX 4090 Laptop GPU", Some("rtx-4090-laptop"));
        // One with less power has a name of its own.
        check("H100 SXM5", Some("h100-sxm5"));
        // As drivers name them.
        check("NVIDIA H100 80GB HBM3", Some("h100-sxm5"));
        check("NVIDIA H100 PCIe", Some("h100-pcie"));
        check("NVIDIA H200", Some("h200-sxm"));
        check("NVIDIA GH200 480GB", Some("gh200"));
        check("NVIDIA A100-SXM4-40GB", Some("a100-sxm4"));
        check("NVIDIA A100 80GB PCIe", Some("a100-pcie"));
        check("Tesla V100-SXM2-32GB", Some("v100-sxm2"));
        check("NVIDIA RTX A6000", Some("rtx-a6000"));
        check("NVIDIA RTX 6000 Ada Generation", Some("rtx-6000-ada"));
        check("Quadro RTX 6000", Some("quadro-rtx-6000"));
        check("AMD Instinct MI300X", Some("mi300x"));
        check("h100-80gb-sxm", Some("h100-sxm5"));
        // Which of them?
        check("h100", None);
        check("a100 40gb", None);
        check("80gb", None);
        check("no such card", None);
        check("rtx", None);
        check("", None);
    }

    #[test]
    fn what_is_asked_has_the_typed_words() {
        #[track_caller]
        fn check(near: Vec<&str>, expected: &[&str]) {
            assert_eq!(near, expected);
        }
        check(
            gpus_near("h100"),
            &["h100-nvl-94gb", "h100-pcie-80gb", "h100-sxm5-80gb"],
        );
        check(
            gpus_near("a100-40gb"),
            &["a100-pcie-40gb", "a100-sxm4-40gb"],
        );
        check(gpus_near("rtx-4091"), &["rtx-4090"]);
        check(gpus_near("warp drive"), &[]);
    }
}
