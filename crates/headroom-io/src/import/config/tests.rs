use super::*;
use headroom_base::document::json;
use headroom_core::estimate::quick_peak;
use headroom_scenario::Scenario;

/// Configurations as transformers 5.23's own classes write them (`AutoConfig.for_model(...).to_json_string()`) from the
/// arguments with which the catalogue's counts were verified; the first key says of which model.
const CONFIGS: &str = include_str!("../../../../../tests/data/configs.jsonl");

#[test]
fn real_configurations_import_to_the_estimate_of_the_catalogues_model() {
    let (mut count, mut types) = (0, std::collections::BTreeSet::new());
    for line in CONFIGS.lines() {
        let mut document = json::read(line).unwrap();
        let Document::Map(entries) = &mut document else {
            panic!("{line}")
        };
        let id = match entries.remove(0).value {
            Document::Text(id) => id,
            other => panic!("{other:?}"),
        };
        let Some(model) = catalog::model(&id).filter(|model| model.runs) else {
            continue;
        };
        types.insert(text(&document, "model_type").unwrap().to_string());
        let imported = read(&document);
        assert_eq!(imported.problems, vec![], "{id}");
        assert_eq!(imported.unused_keys, Vec::<String>::new(), "{id}");
        assert_eq!(
            imported.scenario.model.dims,
            BTreeMap::new(),
            "{id} as {}",
            imported.scenario.model.id
        );
        let mut scenario = imported.scenario;
        let mut preset = Scenario::of_model(model);
        for scenario in [&mut scenario, &mut preset] {
            scenario.data.micro_batch = 1;
            scenario.data.sequence = scenario.data.sequence.min(128);
        }
        // Without dropout in the file there is none in the run.
        preset.training.dropout = scenario.training.dropout;
        assert_eq!(quick_peak(&scenario), quick_peak(&preset), "{id}");
        count += 1;
    }
    assert!(
        count >= 120 && types.len() >= 30,
        "{count} files, {types:?}"
    );
}

/// The most downloaded types, and how each is answered.
const TYPES: &str = include_str!("../../../../../docs/model-types.md");

#[test]
fn the_model_types_that_are_downloaded_most_answer_as_the_table_says() {
    let files: Vec<Document> = CONFIGS
        .lines()
        .map(|line| json::read(line).unwrap())
        .collect();
    let mut counts = BTreeMap::<String, u32>::new();
    for line in TYPES.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [kind, example, how] = cells[..] else {
            panic!("{line}")
        };
        assert!(example.contains('/'), "{line}");
        let of_kind = |file: &&Document| text(file, "model_type") == Some(kind);
        let file = files.iter().find(of_kind).cloned();
        // An empty file is the class's default model.
        let file = file.unwrap_or_else(|| Document::new().with("model_type", kind));
        let imported = read(&file);
        let entry = catalog::model(&imported.scenario.model.id).unwrap();
        let (how, models) = how.split_once(": ").unwrap_or((how, ""));
        let found = if !imported.problems.is_empty() {
            "refused"
        } else if entry.graph.is_empty() {
            "forward function"
        } else {
            assert!(models.split(", ").any(|id| id == entry.id), "{line}");
            "recorded graph"
        };
        assert_eq!(found, how, "{line}: {:?}", imported.problems);
        if found != "refused" {
            assert_eq!(imported.scenario.check(), vec![], "{line}");
        }
        let count = counts.get(how).copied().unwrap_or(0);
        counts.insert(how.into(), count + 1);
    }
    let of = |how: &str| counts.get(how).copied().unwrap_or(0);
    let answered = of("forward function") + of("recorded graph");
    assert!(answered >= 100, "{counts:?}");
    let listed = |how: &str, word: &str| TYPES.contains(&format!("{} {word}", of(how)));
    assert!(
        listed("forward function", "types by a forward"),
        "{counts:?}"
    );
    assert!(listed("recorded graph", "by recorded graphs"), "{counts:?}");
}

#[test]
fn every_model_type_has_valid_defaults() {
    for kind in catalog::model_types() {
        for (name, _) in kind.sizes {
            let known = SIZES.iter().any(|(size, _)| size == name)
                || keys::TOLD_OTHERWISE.contains(name)
                || own::has(name);
            assert!(known, "{} {name}", kind.name);
        }
        // An empty configuration is the class's default model, whose sizes are accepted.
        let imported = read(&Document::new().with("model_type", kind.name));
        if !kind.arch.is_empty() && nets::has(kind.arch) {
            assert_eq!(imported.problems, vec![], "{}", kind.name);
            assert_eq!(imported.scenario.check(), vec![], "{}", kind.name);
        }
    }
}

#[track_caller]
fn check(text: &str, problems: &[&str], unused_keys: &[&str]) -> Scenario {
    let imported = read(&json::read(text).unwrap());
    let found: Vec<String> = imported.problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, problems);
    assert_eq!(imported.unused_keys, unused_keys);
    imported.scenario
}

#[test]
fn what_is_not_covered_is_refused_by_name_and_what_is_not_known_is_listed() {
    check(
        r#"{"model_type": "lama", "hidden_size": 8}"#,
        &[
            "model_type is `lama`; expected an architecture that Headroom has a network for; did you mean llama?",
        ],
        &[],
    );
    check(
        r#"{"model_type": "llama", "hidden_size": 64, "num_attention_heads": "4", "vocab_size": 0, "hidden_act": "relu", "mlp_bias": true}"#,
        &[
            "hidden_act is `relu`; expected silu",
            "mlp_bias is `true`; expected false for this network",
            "num_attention_heads is `\"4\"`; expected a whole number from 1 to 10000000",
            "vocab_size is `0`; expected a whole number from 1 to 10000000",
        ],
        &[],
    );
    check(
        r#"{"model_type": "bart", "encoder_ffn_dim": 4096, "decoder_ffn_dim": 1024}"#,
        &["decoder_ffn_dim is `1024`; expected 4096, as encoder_ffn_dim"],
        &[],
    );
    check(
        r#"{"model_type": "llava", "text_config": {"model_type": "opt2"}, "vision_config": {"hidden_act": "relu", "swirl": 1}}"#,
        &[
            "text_config.model_type is `opt2`; expected an architecture that Headroom has a network for; did you mean gpt2?",
            "vision_config.hidden_act is `relu`; expected quick_gelu",
        ],
        &["vision_config.swirl"],
    );
}

#[test]
fn what_contradicts_another_value_is_refused() {
    check(
        r#"{"model_type": "rt_detr", "encoder_in_channels": [128, 256, 512], "decoder_in_channels": [384, 384, 384]}"#,
        &[
            "encoder_in_channels is `128,256,512`; expected 512,1024,2048, as the backbone's hidden_sizes",
            "decoder_in_channels is `384,384,384`; expected 256,256,256, as encoder_hidden_dim",
        ],
        &[],
    );
    check(
        r#"{"model_type": "depth_anything", "reassemble_hidden_size": 384, "backbone_config": {"model_type": "dinov2", "hidden_size": 768}}"#,
        &["reassemble_hidden_size is `384`; expected 768, as the backbone's hidden_size"],
        &[],
    );
    check(
        r#"{"model_type": "dpt", "backbone_config": {"model_type": "beit"}}"#,
        &[
            "backbone_config is `a backbone`; expected no backbone: this network has a ViT of its own",
        ],
        &[],
    );
}

#[test]
fn points_that_decoders_look_at_are_sizes() {
    let found = check(
        r#"{"model_type": "rt_detr", "num_labels": 80, "decoder_n_points": 8, "encoder_in_channels": [512, 1024, 2048],
            "decoder_in_channels": [256, 256, 256]}"#,
        &[],
        &[],
    );
    assert_eq!(found.model.dims.get("points"), Some(&8));
    let dino = r#"{"model_type": "grounding-dino", "decoder_n_points": 8}"#;
    let found = check(dino, &[], &[]);
    assert_eq!(found.model.dims.get("decoder_points"), Some(&8));
    assert_eq!(found.model.dims.get("points"), None);
}

#[test]
fn what_a_file_leaves_out_is_as_its_class_has_it() {
    let scenario = check(
        r#"{"model_type": "gpt2", "n_layer": 3, "n_embd": 768, "n_head": 12, "vocab_size": 1000, "n_positions": 1024,
            "n_inner": null, "embd_pdrop": 0.0, "attn_pdrop": 0, "resid_pdrop": 0, "swirl": 3}"#,
        &[],
        &["swirl"],
    );
    assert_eq!(scenario.model.dims.get("layers"), Some(&3));
    assert!(!scenario.training.dropout);
    // As the file of LLaVA-1.5 7B: its text model is Llama's default but for two sizes.
    let scenario = check(
        r#"{"model_type": "llava", "text_config": {"model_type": "llama", "max_position_embeddings": 4096, "vocab_size": 32064},
            "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
            "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768, "vocab_size": 32000}}"#,
        &[],
        &[],
    );
    assert_eq!(scenario.model.id, "llava-1.5-7b");
    // As the file of Gemma 3 4B.
    let scenario = check(
        r#"{"model_type": "gemma3", "boi_token_index": 255999, "mm_tokens_per_image": 256,
            "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024},
            "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
            "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false}}"#,
        &[],
        &[],
    );
    assert_eq!(scenario.model.id, "gemma-3-4b");
    assert!(scenario.model.dims.is_empty());
    // As the file of Qwen2-VL 7B, which has its text model's sizes among the others.
    let scenario = check(
        r#"{"model_type": "qwen2_vl", "hidden_act": "silu", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
            "num_hidden_layers": 28, "num_key_value_heads": 4, "max_position_embeddings": 32768, "vocab_size": 152064,
            "use_sliding_window": false, "sliding_window": 32768, "tie_word_embeddings": false, "vision_token_id": 151654,
            "vision_config": {"depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "hidden_size": 3584,
            "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2, "model_type": "qwen2_vl"}}"#,
        &[],
        &[],
    );
    assert_eq!(scenario.model.id, "qwen2-vl-7b");
    assert!(scenario.model.dims.is_empty());
    let scenario = check(
        r#"{"model_type": "mistral", "sliding_window": null, "max_position_embeddings": 32768}"#,
        &[],
        &[],
    );
    let window = catalog::model(&scenario.model.id).and_then(|model| model.size("window"));
    assert_eq!(
        scenario
            .model
            .dims
            .get("window")
            .copied()
            .or(window)
            .unwrap_or(0),
        0
    );
    let scenario = check(r#"{"model_type": "bert"}"#, &[], &[]);
    assert_eq!(
        (scenario.model.id.as_str(), scenario.data.sequence),
        ("bert-base-uncased", 512)
    );
}

#[test]
fn a_file_of_timm_names_its_architecture() {
    let read = |text: &str| timm::read(&json::read(text).unwrap());
    let imported = read(
        r#"{"architecture": "resnet50", "num_classes": 37, "num_features": 2048, "global_pool": "avg",
            "pretrained_cfg": {"tag": "a1_in1k", "input_size": [3, 176, 176]}, "model_args": {}}"#,
    );
    assert_eq!(imported.problems, vec![]);
    assert_eq!(imported.unused_keys, ["model_args"]);
    assert_eq!(imported.scenario.model.id, "resnet-50");
    let dims = [("classes".to_string(), 37), ("img".to_string(), 176)];
    assert_eq!(imported.scenario.model.dims, dims.into());
    let refused = read(r#"{"architecture": "resnet51", "num_classes": 10}"#);
    assert_eq!(
        refused.problems[0].to_string(),
        "architecture is `resnet51`; expected an architecture that Headroom has a network for; did you mean resnet50?"
    );
}
