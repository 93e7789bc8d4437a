//! Networks by the names of MMSegmentation's configurations: `pspnet_r50-d8`, `fcn_hr18s`, `upernet_r101`, `fcn_unet_s5-d16`.

use crate::nets::Sizes;

/// What a configuration's name begins with, its architecture, and whether its networks have an auxiliary head and maps of an eighth
/// of the side.
const HEADS: [(&str, &str, bool); 22] = [
    ("ann", "mmseg_ann", true),
    ("apcnet", "mmseg_apc", true),
    ("ccnet", "mmseg_cc", true),
    ("cgnet", "mmseg_fcn", false),
    ("danet", "mmseg_da", true),
    ("deeplabv3", "mmseg_aspp", true),
    ("deeplabv3plus", "mmseg_sep_aspp", true),
    ("dmnet", "mmseg_dm", true),
    ("dnl", "mmseg_dnl", true),
    ("emanet", "mmseg_ema", true),
    ("encnet", "mmseg_enc", true),
    ("fcn", "mmseg_fcn", true),
    ("fpn", "mmseg_fpn", false),
    ("gcnet", "mmseg_gc", true),
    ("lraspp", "mmseg_lraspp", false),
    ("nonlocal", "mmseg_nl", true),
    ("ocrnet", "mmseg_ocr", false),
    ("pointrend", "mmseg_point", false),
    ("psanet", "mmseg_psa", true),
    ("pspnet", "mmseg_psp", true),
    ("upernet", "mmseg_uper", true),
    ("sem-fpn", "mmseg_fpn", false),
];

/// The architecture and the sizes of the network that a configuration's name begins with. Its classes and crop are set beside.
pub fn named(name: &str) -> Option<(&'static str, Sizes)> {
    let (head, rest) = name.split_once(['_', '-']).unwrap_or((name, ""));
    let (_, architecture, has_auxiliary) = HEADS.into_iter().find(|(known, ..)| *known == head)?;
    let mut sizes = if head == "cgnet" {
        Sizes::from([("cgnet", 1)])
    } else {
        backbone(rest)?
    };
    let small = sizes.is_set("small");
    let channels = match (head, sizes.get("base").is_some()) {
        ("fcn", true) => 64,
        (_, true) => 16,
        ("emanet", false) => 256,
        ("lraspp", false) => 128,
        _ if small => 128,
        _ => 512,
    };
    sizes.set("channels", channels);
    if has_auxiliary && sizes.get("branch").is_none() {
        let few = small || sizes.get("base").is_some();
        sizes.set("aux_channels", if few { 64 } else { 256 });
    }
    Some((architecture, sizes))
}

/// `r50-d8`, `r18b-d8`, `r101-d16-mg124`, `s101-d8`, `r50`, `hr18s`, `m-v2-d8`, `m-v3s-d8`, `unet_s5-d16`.
fn backbone(rest: &str) -> Option<Sizes> {
    let name = rest.split('_').next()?;
    if name == "unet" {
        return Some(Sizes::from([("base", 64)]));
    }
    if let Some(version) = name.strip_prefix("m-v") {
        return Some(match version.split('-').next()? {
            "2" => Sizes::from([("mobilenet-v2", 1)]),
            "3" => Sizes::from([("mobilenet-v3", 1)]),
            "3s" => Sizes::from([("mobilenet-v3-small", 1)]),
            _ => return None,
        });
    }
    if let Some(width) = name.strip_prefix("hr") {
        let less = width.strip_suffix('s');
        let mut sizes = Sizes::from([("branch", less.unwrap_or(width).parse().ok()?)]);
        if less.is_some() {
            sizes.set("blocks", 2);
            sizes.set_list("modules", vec![1, 3, 2]);
        }
        return Some(sizes);
    }
    let (name, stride) = name.split_once("-d").unwrap_or((name, "32"));
    let stride = stride.split('-').next()?.parse().ok()?;
    let is_split = name.starts_with('s');
    let plain = name.strip_suffix('b');
    let depth: u64 = plain
        .unwrap_or(name)
        .strip_prefix(['r', 's'])?
        .parse()
        .ok()?;
    let depths = match depth {
        18 => [2, 2, 2, 2],
        34 | 50 => [3, 4, 6, 3],
        101 => [3, 4, 23, 3],
        152 => [3, 8, 36, 3],
        _ => return None,
    };
    let mut sizes = Sizes::from([("stride", stride)]);
    sizes.set_list("depths", depths.to_vec());
    sizes.set(if depth < 50 { "small" } else { "bottleneck" }, 1);
    if is_split {
        sizes.set("split-attention", 1);
    } else if plain.is_none() {
        sizes.set("deep_stem", 1);
    }
    Some(sizes)
}
