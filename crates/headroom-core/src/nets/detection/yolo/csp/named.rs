//! Networks by the names of MMYOLO's configurations: `yolov5_s-v61_syncbn_fast_8xb16-300e_coco`.

use crate::nets::Sizes;

/// The architecture and the sizes of the network that a configuration's name describes, with the largest picture that it trains on;
/// `None` if these networks do not have it.
pub fn named(name: &str) -> Option<(&'static str, Sizes)> {
    let lower = name.to_ascii_lowercase();
    let (family, rest) = lower.split_once('_')?;
    let scale = rest.split(['-', '_']).next()?;
    let mut sizes = Sizes::default();
    let architecture = match family {
        "yolov5" => "mmyolo_v5",
        "yolox" => "mmyolo_x",
        _ => return None,
    };
    let [depth, width] = match (architecture, scale) {
        (_, "n") => [33, 25],
        // A width of 0.375, whose channels are those of 0.37 when they are rounded up to eights.
        ("mmyolo_x", "tiny") => [33, 37],
        (_, "s") => [33, 50],
        (_, "m") => [67, 75],
        (_, "l") => [100, 100],
        (_, "x") => [133, 125],
        _ => return None,
    };
    sizes.set("depth_percent", depth);
    sizes.set("width_percent", width);
    let four_maps = rest.contains("-p6-");
    sizes.set("four_maps", u64::from(four_maps));
    let picture = match (architecture, scale) {
        // `YOLOXBatchSyncRandomResize`: up to these.
        ("mmyolo_x", "tiny") => 640,
        ("mmyolo_x", _) => 800,
        _ if four_maps => 1280,
        _ if rest.ends_with("_voc") => 512,
        _ => 640,
    };
    sizes.set("img", picture);
    sizes.set(
        "classes",
        match rest.rsplit('_').next()? {
            "coco" => 80,
            "crowdhuman" => 1,
            "voc" => 20,
            _ => return None,
        },
    );
    Some((architecture, sizes))
}
