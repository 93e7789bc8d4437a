//! What the names of the bases say that MMPretrain, MMDetection and MMSegmentation ship (`configs/_base_/`): the network,
//! the batch of a GPU, the size of its images, the optimizer. A file's own name says them as well: `resnet50_8xb32_in1k`.

/// Data sets whose name does not say the batch or the size of images, in pixels: height, width.
const DATA: &[(&str, u64, (u64, u64))] = &[
    ("imagenet_bs128_revvit_224", 256, (224, 224)),
    ("imagenet_bs256_davit_224", 64, (224, 224)),
    ("coco_detection", 2, (800, 1333)),
    ("coco_instance", 2, (800, 1333)),
    ("coco_instance_semantic", 2, (800, 1333)),
    ("coco_panoptic", 2, (800, 1333)),
    ("lvis_v1_instance", 2, (800, 1333)),
    ("lvis_v0.5_instance", 2, (800, 1333)),
    ("cityscapes_detection", 1, (1024, 2048)),
    ("cityscapes_instance", 1, (1024, 2048)),
    ("voc0712", 2, (600, 1000)),
    ("openimages_detection", 2, (800, 1024)),
    ("objects365v1_detection", 2, (800, 1333)),
    ("cityscapes", 2, (512, 1024)),
    ("cityscapes_769x769", 2, (769, 769)),
    ("cityscapes_768x768", 2, (768, 768)),
    ("cityscapes_832x832", 2, (832, 832)),
    ("cityscapes_1024x1024", 2, (1024, 1024)),
    ("ade20k", 4, (512, 512)),
    ("ade20k_640x640", 4, (640, 640)),
    ("pascal_voc12", 4, (512, 512)),
    ("pascal_voc12_aug", 4, (512, 512)),
    ("pascal_context", 4, (480, 480)),
    ("coco-stuff10k", 4, (512, 512)),
    ("coco-stuff164k", 4, (512, 512)),
    ("loveda", 4, (512, 512)),
    ("potsdam", 4, (512, 512)),
    ("vaihingen", 4, (512, 512)),
    ("isaid", 4, (896, 896)),
    ("drive", 4, (64, 64)),
    ("stare", 4, (128, 128)),
    ("hrf", 4, (256, 256)),
    ("chase_db1", 4, (128, 128)),
];

/// What a base or a file is about, by its path without `.py`.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub model: Option<String>,
    pub batch: Option<u64>,
    pub size: Option<(u64, u64)>,
    pub optimizer: Option<&'static str>,
}

pub fn said(path: &str) -> Said {
    let path = path.trim_end_matches(".py");
    let name = path.rsplit('/').next().unwrap_or(path);
    if path.contains("models/") {
        let below = path.split_once("models/").map_or(name, |(_, below)| below);
        return Said {
            model: Some(model(&below.replace('/', "-"))),
            ..Said::default()
        };
    }
    if path.contains("schedules/") {
        return Said {
            optimizer: optimizer(name),
            ..Said::default()
        };
    }
    if path.contains("datasets/") {
        let known = DATA.iter().find(|(known, ..)| *known == name);
        return match known {
            Some((_, batch, size)) => Said {
                batch: Some(*batch),
                size: Some(*size),
                ..Said::default()
            },
            None => Said {
                batch: after(name, "bs"),
                size: size(name),
                ..Said::default()
            },
        };
    }
    if path.contains("default_runtime") {
        return Said::default();
    }
    of_file(name)
}

/// `{model}_{GPUs}xb{batch}[-…]_{data}[-{size}px]`.
pub fn of_file(name: &str) -> Said {
    let name = name.trim_end_matches(".py");
    let mut parts = name.split('_').peekable();
    let mut network = Vec::new();
    let is_batch = |part: &str| {
        let mut halves = part.splitn(2, "xb");
        let number = |half: Option<&str>| {
            half.is_some_and(|half| half.starts_with(|c: char| c.is_ascii_digit()))
        };
        number(halves.next()) && number(halves.next())
    };
    while let Some(part) = parts.next_if(|part| !is_batch(part)) {
        network.push(part);
    }
    let Some(batch) = parts.next() else {
        return Said::default();
    };
    let data = parts.last().unwrap_or_default();
    let sized = data
        .rsplit('-')
        .find_map(|part| part.strip_suffix("px")?.parse().ok());
    let network = network.join("_");
    // Networks of convolutions are trained as in their papers.
    let convolutions = [
        "resnet",
        "resnext",
        "vgg",
        "res2net",
        "seresne",
        "regnet",
        "densenet",
        "mobilenet-v2",
        "shufflenet",
    ];
    let sgd = convolutions.iter().any(|kind| network.starts_with(kind)) && !batch.contains("rsb");
    Said {
        batch: after(batch, "xb"),
        size: sized.map(|edge| (edge, edge)).or_else(|| size(data)),
        optimizer: if batch.contains("rsb") {
            Some("lamb")
        } else {
            sgd.then_some("sgd")
        },
        model: Some(model(&if data.starts_with("cifar") {
            format!("{network}_cifar")
        } else {
            network
        })),
    }
}

/// The number behind a mark: `bs32`, `8xb256-rsb`.
fn after(name: &str, mark: &str) -> Option<u64> {
    let (_, rest) = name.split_once(mark)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn size(name: &str) -> Option<(u64, u64)> {
    if name.starts_with("cifar") {
        return Some((32, 32));
    }
    let last = name.rsplit('_').next()?;
    let edge = last.parse().ok().filter(|edge| (64..=1024).contains(edge));
    let usual = name.starts_with("imagenet")
        || name.starts_with("in1k")
        || name.starts_with("in21k")
        || name.starts_with("voc_");
    edge.or(usual.then_some(224)).map(|edge| (edge, edge))
}

fn optimizer(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let has = |part: &str| lower.contains(part);
    if has("adamw") {
        Some("adamw")
    } else if has("rsb") {
        Some("lamb")
    } else if has("lars") {
        Some("lars")
    } else if has("imagenet") || has("cifar") || has("cub") || has("sgd") || has("schedule_") {
        Some("sgd")
    } else {
        None
    }
}

/// As people write it: `resnet50_mixup` is ResNet-50, trained in its own way.
fn model(name: &str) -> String {
    let ways = [
        "_mixup",
        "_cutmix",
        "_label_smooth",
        "_lbs-mixup",
        "_in1k",
        "_imagenet",
    ];
    let plain = ways
        .iter()
        .fold(name.to_string(), |name, way| name.replace(way, ""));
    let plain = match plain.strip_suffix("_cifar") {
        Some(network) => return format!("{} (CIFAR)", model(network)),
        None => plain,
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for (family, written) in [
        ("resnet", "ResNet-"),
        ("resnetv1c", "ResNetV1c-"),
        ("resnetv1d", "ResNetV1d-"),
        ("seresnet", "SE-ResNet-"),
        ("resnest", "ResNeSt-"),
        ("wide-resnet", "Wide-ResNet-"),
        ("densenet", "DenseNet-"),
        ("vgg", "VGG-"),
    ] {
        if let Some(depth) = plain.strip_prefix(family)
            && digits(depth)
        {
            return format!("{written}{depth}");
        }
    }
    plain
}
