//! Lists of a configuration with a number for each stage of a network.

use std::collections::BTreeMap;

use headroom_base::document::Document;
use headroom_catalog::ModelType;

/// The architecture (of a part, the model type), the key, the catalogue's name, and what the class has where the key is absent.
const LISTS: &[(&str, &str, &str, &[u64])] = &[
    ("d_fine", "decoder_n_points", "points", &[4, 4, 4]),
    (
        "hgnet_v2",
        "stage_mid_channels",
        "middles",
        &[48, 96, 192, 384],
    ),
    ("hgnet_v2", "stage_num_blocks", "depths", &[1, 1, 3, 1]),
    (
        "hgnet_v2",
        "stage_numb_of_layers",
        "block_layers",
        &[6, 6, 6, 6],
    ),
    (
        "hgnet_v2",
        "stage_out_channels",
        "dims",
        &[128, 512, 1024, 2048],
    ),
    ("hgnet_v2", "stem_channels", "stems", &[3, 32, 48]),
    ("swin", "depths", "depths", &[2, 2, 6, 2]),
    ("swin", "num_heads", "heads", &[3, 6, 12, 24]),
    ("swinv2", "depths", "depths", &[2, 2, 6, 2]),
    ("swinv2", "num_heads", "heads", &[3, 6, 12, 24]),
    ("convnext_hf", "depths", "depths", &[3, 3, 9, 3]),
    ("convnext_hf", "hidden_sizes", "dims", &[96, 192, 384, 768]),
    ("convnextv2", "depths", "depths", &[3, 3, 9, 3]),
    ("convnextv2", "hidden_sizes", "dims", &[96, 192, 384, 768]),
    ("resnet_hf", "depths", "depths", &[3, 4, 6, 3]),
    ("resnet_hf", "hidden_sizes", "dims", &[256, 512, 1024, 2048]),
    ("regnet", "depths", "depths", &[2, 6, 12, 2]),
    ("regnet", "hidden_sizes", "dims", &[128, 192, 512, 1088]),
    (
        "sam2_hiera_det_model",
        "blocks_per_stage",
        "depths",
        &[1, 2, 7, 2],
    ),
    (
        "sam2_hiera_det_model",
        "embed_dim_per_stage",
        "dims",
        &[96, 192, 384, 768],
    ),
    (
        "sam2_hiera_det_model",
        "global_attention_blocks",
        "global_blocks",
        &[5, 7, 9],
    ),
    (
        "sam2_hiera_det_model",
        "num_attention_heads_per_stage",
        "stage_heads",
        &[1, 2, 4, 8],
    ),
    (
        "sam2_hiera_det_model",
        "window_positional_embedding_background_size",
        "background",
        &[7, 7],
    ),
    (
        "sam2_hiera_det_model",
        "window_size_per_stage",
        "windows",
        &[8, 4, 14, 7],
    ),
    ("segformer", "depths", "depths", &[2, 2, 2, 2]),
    ("segformer", "hidden_sizes", "dims", &[32, 64, 160, 256]),
    ("segformer", "num_attention_heads", "heads", &[1, 2, 5, 8]),
    ("segformer", "sr_ratios", "reductions", &[8, 4, 2, 1]),
    ("rf_detr_dinov2", "out_indices", "taps", &[2, 5, 8, 11]),
    ("rt_detr_resnet", "depths", "depths", &[3, 4, 6, 3]),
    (
        "rt_detr_resnet",
        "hidden_sizes",
        "dims",
        &[256, 512, 1024, 2048],
    ),
    (
        "depth_anything",
        "neck_hidden_sizes",
        "necks",
        &[48, 96, 192, 384],
    ),
    ("dpt", "neck_hidden_sizes", "necks", &[96, 192, 384, 768]),
    ("mobilevit", "hidden_sizes", "dims", &[144, 192, 240]),
    (
        "mobilevit",
        "neck_hidden_sizes",
        "necks",
        &[16, 32, 64, 96, 128, 160, 640],
    ),
];

/// Networks that run with fewer stages than their models of the catalogue have (`stages`).
pub(super) const MAY_BE_FEWER: [&str; 2] = ["swin", "swinv2"];

/// Whether a size of this name is such a list.
pub(super) fn is_list(name: &str) -> bool {
    LISTS.iter().any(|(_, _, own, _)| *own == name)
}

/// Whether a network's stages are in this key.
pub(super) fn knows(kind: &ModelType, key: &str) -> bool {
    of(kind).any(|(_, list, ..)| *list == key)
}

fn of(
    kind: &ModelType,
) -> impl Iterator<Item = &'static (&'static str, &'static str, &'static str, &'static [u64])> {
    let own = [kind.name, kind.arch];
    LISTS
        .iter()
        .filter(move |(family, ..)| own.contains(family))
}

/// The sizes of stages, one by one.
pub(super) fn add(document: &Document, kind: &ModelType, sizes: &mut BTreeMap<String, u64>) {
    for (_, key, name, usual) in of(kind) {
        let number = |value: &Document| match value {
            Document::Int(value) => u64::try_from(*value).ok(),
            _ => None,
        };
        let stages: Vec<u64> = match document.get(key) {
            Some(Document::List(all)) => all.iter().filter_map(number).collect(),
            _ => usual.to_vec(),
        };
        sizes.remove(*name);
        for (i, size) in stages.into_iter().enumerate() {
            sizes.insert(format!("{name}_{i}"), size);
        }
    }
}

/// The list of an entry that has another number of stages than the file: its key, and both numbers.
pub(super) fn others<'a>(
    listed: &'a [(&'a str, Vec<u64>)],
    wanted: &BTreeMap<String, u64>,
) -> Option<(&'static str, usize, usize)> {
    LISTS.iter().find_map(|(_, key, name, _)| {
        let (_, all) = listed
            .iter()
            .find(|(own, all)| own == name && all.len() > 1)?;
        let count = (0..16)
            .take_while(|i| wanted.contains_key(&format!("{name}_{i}")))
            .count();
        (count > 0 && count != all.len()).then_some((*key, count, all.len()))
    })
}
