//! Networks by the names of configurations: MMDetection's `mask_rcnn_x101_32x4d_fpn_1x_coco`, detectron2's `faster_rcnn_R_50_FPN_1x`.

use crate::nets::Sizes;

/// The architecture and the sizes of the network that a configuration's name describes; `None` if the name says a part that these
/// networks do not have. Its picture is set beside.
pub fn named(name: &str) -> Option<(&'static str, Sizes)> {
    let lower = name.to_ascii_lowercase();
    if name.contains("_R_") || name.contains("_X_") {
        detectron2(&lower)
    } else {
        mmdetection(&lower)
    }
}

/// The depths of a ResNet.
fn depths(sizes: &mut Sizes, depth: &str) -> Option<()> {
    let all = match depth {
        "50" => [3, 4, 6, 3],
        "101" => [3, 4, 23, 3],
        "152" => [3, 8, 36, 3],
        _ => return None,
    };
    sizes.set_list("depths", all.to_vec());
    Some(())
}

/// `32x4d`: groups, and channels of each.
fn grouped(sizes: &mut Sizes, form: &str) -> Option<()> {
    let (groups, width) = form.strip_suffix('d')?.split_once('x')?;
    sizes.set("groups", groups.parse().ok()?);
    sizes.set("width", width.parse().ok()?);
    Some(())
}

/// RegNetX by its operations (mmdet/models/backbones/regnet.py).
fn regnet(sizes: &mut Sizes, size: &str) -> Option<()> {
    let (depths, widths, group) = match size {
        "1.6gf" => ([2, 4, 10, 2], [72, 168, 408, 912], 24),
        "3.2gf" => ([2, 6, 15, 2], [96, 192, 432, 1008], 48),
        "6.4gf" => ([2, 4, 10, 1], [168, 392, 784, 1624], 56),
        "12gf" => ([2, 5, 11, 1], [224, 448, 896, 2240], 112),
        _ => return None,
    };
    sizes.set_list("depths", depths.to_vec());
    sizes.set_list("widths", widths.to_vec());
    sizes.set("group", group);
    Some(())
}

/// A name's beginning, its architecture, and the sizes that are on.
type Beginning = (&'static str, &'static str, &'static [(&'static str, u64)]);

/// What a name begins with: its architecture, and the sizes that are on.
const MM: [Beginning; 6] = [
    ("faster_rcnn_", "mmdet_rcnn", &[]),
    ("mask_rcnn_", "mmdet_rcnn", &[("masks", 1)]),
    ("cascade_rcnn_", "mmdet_rcnn", &[("cascade", 3)]),
    (
        "cascade_mask_rcnn_",
        "mmdet_rcnn",
        &[("cascade", 3), ("masks", 1)],
    ),
    ("retinanet_", "mmdet_retinanet", &[]),
    ("fcos_", "mmdet_fcos", &[]),
];

fn mmdetection(name: &str) -> Option<(&'static str, Sizes)> {
    let (begins, architecture, on) = MM
        .into_iter()
        .find(|(begins, ..)| name.starts_with(begins))?;
    let mut sizes = Sizes::default();
    for (name, value) in on {
        sizes.set(name, *value);
    }
    let mut parts = name.strip_prefix(begins)?.split('_').peekable();
    let trunk = parts.next()?;
    if trunk == "hrnetv2p" {
        let width = parts.next()?.strip_prefix('w')?;
        sizes.set("branch", width.parse().ok()?);
    } else if let Some(size) = trunk.strip_prefix("regnetx-") {
        regnet(&mut sizes, size)?;
    } else {
        depths(&mut sizes, trunk.strip_prefix(['r', 'x'])?)?;
        if trunk.starts_with('x') {
            grouped(&mut sizes, parts.next()?)?;
        }
    }
    for part in parts {
        match part {
            "fpn" | "1x" | "2x" | "3x" | "20e" | "coco" | "mstrain" | "mstrain-poly" | "4x4"
            | "640-800" | "cityscapes" | "voc0712" | "fp16" | "c3-c5" | "gn-head" | "gcb" => {}
            "caffe" => sizes.set("steps_first", 1),
            "dconv" => sizes.set("deformable", 1),
            "mdconv" => sizes.set("deformable", 2),
            "r4" => sizes.set("context", 4),
            "r16" => sizes.set("context", 16),
            "syncbn-backbone" => sizes.set("batch_norm", 1),
            "gn-all" | "contrib" => {
                sizes.set("group_norm", 1);
                sizes.set("normed_heads", 1);
            }
            _ => return None,
        }
    }
    if name.ends_with("voc0712") {
        sizes.set("classes", 20);
    } else if name.ends_with("cityscapes") {
        sizes.set("classes", 8);
    }
    Some((architecture, sizes))
}

fn detectron2(name: &str) -> Option<(&'static str, Sizes)> {
    let all: [Beginning; 5] = [
        ("faster_rcnn_", "d2_rcnn", &[]),
        ("mask_rcnn_", "d2_rcnn", &[("masks", 1)]),
        (
            "cascade_mask_rcnn_",
            "d2_rcnn",
            &[("cascade", 3), ("masks", 1)],
        ),
        ("retinanet_", "d2_retinanet", &[]),
        ("rpn_", "d2_rpn", &[]),
    ];
    let (begins, architecture, on) = all
        .into_iter()
        .find(|(begins, ..)| name.starts_with(begins))?;
    let mut sizes = Sizes::default();
    for (name, value) in on {
        sizes.set(name, *value);
    }
    let mut parts = name.strip_prefix(begins)?.split('_');
    let is_grouped = parts.next()? == "x";
    depths(&mut sizes, parts.next()?)?;
    if is_grouped {
        grouped(&mut sizes, parts.next()?)?;
    } else {
        sizes.set("steps_first", 1);
    }
    for part in parts {
        match part {
            "fpn" | "1x" | "3x" | "c3-c5" => {}
            "c4" => sizes.set("c4", 1),
            "dc5" => sizes.set("dc5", 1),
            "dconv" => sizes.set("deformable", 1),
            "gn" => {
                sizes.set("group_norm", 1);
                sizes.set("normed_heads", 1);
                sizes.set("steps_first", 0);
            }
            "syncbn" => {
                sizes.set("batch_norm", 1);
                sizes.set("normed_heads", 1);
                sizes.set("steps_first", 0);
            }
            _ => return None,
        }
    }
    Some((architecture, sizes))
}
