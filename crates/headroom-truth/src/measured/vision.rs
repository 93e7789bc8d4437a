//! Records of image classifiers and of classifiers of video frames.

use super::Record;
use headroom_catalog as catalog;
use headroom_core::network::{self as nets, Net, Sizes};

/// torchvision's with ten classes and timm's with forty-five, as the records' scripts set; mmaction2's TSN, a ResNet-50 over
/// every frame, whose `num_classes` is the data set's.
pub(super) fn network(record: &Record, name: &str) -> Option<Result<Box<dyn Net>, String>> {
    let sets = [
        ("kinetics400", 400),
        ("sthv1", 174),
        ("sthv2", 174),
        ("ucf101", 101),
        ("activitynet", 200),
    ];
    if name.starts_with("dit-xl/2") {
        let entry = catalog::model("dit-xl-2-256")?;
        let net = nets::build(entry.arch, &Sizes::from_entry(entry));
        return Some(net.map_err(|error| error.to_string()));
    }
    let (architecture, classes) = if name.contains("vit_huge") {
        ("timm:vit_huge_patch14_224", 45)
    } else if name.contains("vit_l_16") {
        ("tv:vit_l_16", 10)
    } else if name.contains("vit_b_16") {
        ("tv:vit_b_16", 10)
    } else if name.starts_with("tsn_r50") && name.ends_with("rgb") {
        let classes = sets.iter().find(|(set, _)| name.contains(set));
        ("tv:resnet50", classes.map_or(400, |(_, n)| *n))
    } else {
        return None;
    };
    let image = record.dim("img").unwrap_or(224);
    let sizes = Sizes::from([("img", image), ("classes", classes)]);
    Some(nets::build(architecture, &sizes).map_err(|error| error.to_string()))
}

/// Frames of a sample, from `clip_len 1 x num_clips 8`; an image is one.
pub(super) fn clips(record: &Record) -> u64 {
    let length = record.seq_len.text();
    let clips = length.split_once("num_clips ").map(|(_, n)| n.trim());
    clips.and_then(|n| n.parse().ok()).unwrap_or(1)
}
