//! YAML of the two systems that read one: the complete file, or a section as their guides print it.

use super::Builder;
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_io::import::Imported;
use headroom_io::import::take::KeyReader;
use headroom_scenario::settings;

/// Whether the document is such a file.
pub fn recognises(document: &Document) -> bool {
    is_gsa(document) || is_peptrm(document)
}

/// The author's run with the file's values.
pub fn read(document: &Document) -> Imported {
    if is_gsa(document) {
        gsa(document)
    } else {
        peptrm(document)
    }
}

fn has(document: &Document, section: &str, keys: &[&str]) -> bool {
    let section = match section {
        "" => Some(document),
        section => document.get(section),
    };
    section.is_some_and(|section| keys.iter().any(|key| section.get(key).is_some()))
}

fn is_gsa(document: &Document) -> bool {
    // The guide prints excerpts without their section.
    let piece = has(document, "", &["micro_batch_size"]) && has(document, "", &["max_seq_len"]);
    // What names a model trains another one.
    let named = [
        "base_model",
        "model",
        "model_name",
        "model_name_or_path",
        "model_id",
        "kind",
        "checkpoint_dir",
    ];
    has(document, "model", &["gsa", "d_ffn", "n_kv_heads"])
        || has(document, "gsa", &["k_base", "k_max"])
        || has(document, "training", &["indexer_lr_multiplier"])
        || piece && !has(document, "", &named)
}

fn is_peptrm(document: &Document) -> bool {
    let training = &[
        "ce_weight",
        "spectrum_weight",
        "use_curriculum",
        "use_ema",
        "use_compile",
    ];
    let other = &[
        "training_type",
        "max_seq_length",
        "optimizer",
        "micro_batch_size",
    ];
    let batch = has(document, "training", &["batch_size"])
        && has(document, "training", &["gradient_accumulation_steps"]);
    has(
        document,
        "model",
        &["num_supervision_steps", "num_latent_steps"],
    ) || has(document, "training", training)
        || batch && !has(document, "training", other)
}

fn gsa(document: &Document) -> Imported {
    const SIZES: &[(&str, &str)] = &[
        ("d_model", "hidden"),
        ("n_layers", "layers"),
        ("n_heads", "heads"),
        ("n_kv_heads", "kv"),
        ("d_ffn", "ffn"),
        ("vocab_size", "vocab"),
        ("max_position_embeddings", "ctx"),
    ];
    const GATES: &[(&str, &str)] = &[
        ("d_indexer", "indexer"),
        ("n_indexer_heads", "indexer_heads"),
        ("k_base", "k_base"),
        ("k_min", "k_min"),
        ("k_max", "k_max"),
    ];
    const SWITCHES: &[(&str, &str)] = &[
        ("use_value_gate", "value_gate"),
        ("use_output_gate", "output_gate"),
        ("use_adaptive_k", "adaptive"),
    ];
    let mut take = taking("gsa-512m", document);
    let width = document.get("model").and_then(|model| model.get("d_model"));
    let whole = |document: Option<&Document>| match document {
        Some(Document::Int(whole)) => u64::try_from(*whole).ok(),
        _ => None,
    };
    let named = ["gsa-512m", "gsa-512m-copy", "gsa-1b"]
        .into_iter()
        .find(|id| {
            let model = catalog::model(id).and_then(|model| model.size("hidden"));
            model.is_some() && model == whole(width)
        });
    if let Some(id) = named {
        take.set("model.id", id);
    }
    for (key, size) in SIZES {
        size_of(&mut take, &format!("model.{key}"), size);
    }
    if take.switch("model.tie_word_embeddings") == Some(true) {
        take.size("tied", 1);
    }
    for section in ["model.gsa.", "gsa."] {
        for (key, size) in GATES {
            size_of(&mut take, &format!("{section}{key}"), size);
        }
        for (key, size) in SWITCHES {
            if let Some(on) = take.switch(&format!("{section}{key}")) {
                take.size(size, u64::from(on));
            }
        }
    }
    for section in ["training.", ""] {
        let at = |key: &str| format!("{section}{key}");
        take.copy(&at("micro_batch_size"), "data.micro_batch");
        take.copy(&at("gradient_accumulation_steps"), "training.accumulation");
        take.copy(&at("max_seq_len"), "data.sequence");
        take.checkpointing(&at("gradient_checkpointing"));
        take.clip(&at("grad_clip"));
        take.copy(&at("learning_rate"), "training.learning_rate");
        take.copy(&at("max_steps"), "runtime.max_steps");
        if take.switch(&at("no_sync")) == Some(true) {
            take.set("parallel.sync_each", "off");
        }
        // The trainer reads it here, not under `logging`.
        take.copy(&at("save_interval"), "runtime.save_every");
        if let Some(name) = take.text(&at("precision")) {
            take.set(
                "training.precision",
                match name {
                    "bf16" => "amp-bf16",
                    "fp16" => "amp-fp16",
                    _ => "fp32",
                },
            );
        }
    }
    take.copy("data.num_workers", "runtime.workers");
    take.finish(&[
        "training",
        "data",
        "logging",
        "global_batch_size",
        "optimizer",
        "lr_scheduler",
    ])
}

fn peptrm(document: &Document) -> Imported {
    const SIZES: &[(&str, &str)] = &[
        ("hidden_dim", "hidden"),
        ("num_encoder_layers", "encoder_layers"),
        ("num_decoder_layers", "decoder_layers"),
        ("num_heads", "heads"),
        ("max_peaks", "peaks"),
        ("max_seq_len", "places"),
        ("vocab_size", "vocab"),
        ("num_supervision_steps", "supervision_steps"),
        ("num_latent_steps", "latent_steps"),
    ];
    let mut take = taking("peptrm", document);
    for (key, size) in SIZES {
        size_of(&mut take, &format!("model.{key}"), size);
    }
    if let Some(rate) = take.value("model.dropout") {
        let off = matches!(rate, Document::Int(0) | Document::Number(0.0));
        take.set("training.dropout", if off { "off" } else { "on" });
    }
    match take.text("model.recompute") {
        Some("latent") => take.set("training.checkpointing", "layers"),
        Some("supervision") => {
            take.set("training.checkpointing", "layers");
            take.size("checkpoint_supervision", 1);
        }
        _ => {}
    }
    take.copy("training.batch_size", "data.micro_batch");
    take.copy(
        "training.gradient_accumulation_steps",
        "training.accumulation",
    );
    let named = take.switch("training.autocast_as_named") == Some(true);
    let half = take.text("training.amp_dtype");
    match take.switch("training.use_amp") {
        Some(false) => take.set("training.precision", "fp32"),
        // Without the patch's key it is float16, whatever amp_dtype says.
        Some(true) if named && half == Some("bfloat16") => {
            take.set("training.precision", "amp-bf16");
        }
        _ => {}
    }
    if let Some(on) = take.switch("training.use_ema") {
        take.set("training.ema", if on { "on" } else { "off" });
    }
    let accumulation = take.imported.scenario.training.accumulation.max(1);
    if let Some(Document::Int(every)) = take.value("training.save_interval") {
        // Micro-batches are counted.
        let every = u64::try_from(*every).unwrap_or_default() / accumulation;
        take.set("runtime.save_every", &every.to_string());
    }
    if let Some(Document::Int(steps)) = take.value("training.max_steps") {
        // Of these, too.
        let updates = u64::try_from(*steps).unwrap_or_default() / accumulation;
        take.set("runtime.max_steps", &updates.to_string());
    }
    take.copy("training.learning_rate", "training.learning_rate");
    let mode = take.text("training.compile_mode");
    if take.switch("training.use_compile") == Some(true) {
        take.set("training.compile", "model");
        if mode == Some("reduce-overhead") {
            take.set("training.compile_mode", "reduce-overhead");
        }
    }
    take.finish(&[
        "training.weight_decay",
        "training.warmup_steps",
        "training.ce_weight",
        "training.spectrum_weight",
        "training.iteration_weights",
        "training.label_smoothing",
        "training.use_curriculum",
        "training.ema_decay",
        "training.log_interval",
        "training.eval_interval",
        "training.checkpoint_dir",
        "training.device",
        "training.ms2pip_model",
        "training.rendered_spectra",
        "training.count_updates",
        "data",
        "real_data_validation",
        "curriculum",
    ])
}

/// The size of a dimension.
fn size_of(take: &mut KeyReader, path: &str, name: &str) {
    match take.value(path) {
        None => {}
        Some(Document::Int(size)) => match u64::try_from(*size) {
            Ok(size) if size <= settings::LARGEST_SIZE => {
                take.size(name, size);
            }
            _ => take.mark_unused(path),
        },
        Some(_) => take.mark_unused(path),
    }
}

/// The author's run, to be changed by the document's values.
fn taking<'a>(preset: &str, document: &'a Document) -> KeyReader<'a> {
    let mut take = KeyReader::new(document);
    take.imported = Builder::of(preset).imported;
    take
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_base::document::yaml;

    #[track_caller]
    fn check(text: &str, changes: &[(&str, &str)], unused_keys: &[&str]) {
        crate::install();
        let document = yaml::read(text).unwrap();
        assert!(recognises(&document), "{text}");
        let imported = read(&document);
        let preset = if is_gsa(&document) {
            "gsa-512m"
        } else {
            "peptrm"
        };
        let mut expected = Builder::of(preset).imported.scenario;
        for (name, value) in changes {
            assert_eq!(settings::set(&mut expected, name, value), Ok(()));
        }
        assert_eq!(imported.problems, vec![]);
        assert_eq!(imported.scenario, expected, "{text}");
        assert_eq!(imported.unused_keys, unused_keys, "{text}");
    }

    #[test]
    fn the_guides_yaml_is_the_run_that_it_describes() {
        check(
            "micro_batch_size: 3\ngradient_accumulation_steps: 21  # 252\nmax_seq_len: 1024\n",
            &[("mb", "3"), ("accum", "21")],
            &[],
        );
        check(
            "model:\n  n_layers: 6\n  d_ffn: 1024\n",
            &[("dims", "layers=6,ffn=1024")],
            &[],
        );
        check(
            "gsa:\n  k_base: 256\n  k_max: 512\n",
            &[("dims", "k_base=256,k_max=512")],
            &[],
        );
        check(
            "model: {d_model: 768, n_layers: 12, d_ffn: 2048, gsa: {k_max: 1024, use_adaptive_k: true}}\n\
             training: {micro_batch_size: 1, max_seq_len: 2048, precision: fp16, gradient_checkpointing: true, grad_clip: 0.0}\n\
             logging: {save_interval: 7}\n",
            &[
                ("model", "gsa-512m-copy"),
                ("mb", "1"),
                ("seq", "2048"),
                ("precision", "amp-fp16"),
                ("clip", "off"),
            ],
            &[],
        );
        check(
            "training:\n  batch_size: 32  # or 24\n  gradient_accumulation_steps: 3\n",
            &[("mb", "32"), ("accum", "3")],
            &[],
        );
        check(
            "model: {num_latent_steps: 4, max_peaks: 80, dropout: 0.1}\n\
             training: {batch_size: 80, gradient_accumulation_steps: 1, use_amp: true, amp_dtype: bfloat16, use_compile: true,\n  \
             compile_mode: reduce-overhead, use_ema: true, save_interval: 5000, ce_weight: 1.0}",
            &[
                ("mb", "80"),
                ("accum", "1"),
                ("dims", "latent_steps=4,peaks=80"),
                ("save_every", "5000"),
                ("compile", "model"),
                ("compile_mode", "reduce-overhead"),
            ],
            &[],
        );
        check(
            "model: {num_latent_steps: 6}\ntraining: {batch_size: 48, gradient_accumulation_steps: 2, max_steps: 60000, learning_rate: 0.0003}",
            &[
                ("mb", "48"),
                ("accum", "2"),
                ("max_steps", "30000"),
                ("lr", "0.0003"),
            ],
            &[],
        );
        check(
            "micro_batch_size: 2\nmax_seq_len: 1024\nmax_steps: 5000\nlearning_rate: 0.0006\nno_sync: true\n",
            &[
                ("max_steps", "5000"),
                ("lr", "0.0006"),
                ("sync_each", "off"),
            ],
            &[],
        );
    }
}
