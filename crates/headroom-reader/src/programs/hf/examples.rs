//! Example scripts around transformers' `TrainingArguments` that do not train a chat model: transformers' `examples/`, retrieval
//! (FlagEmbedding, tevatron), speech (distil-whisper, PEFT's Whisper).

use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::words::{
    Adapter, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained, Weights,
};

use super::known::Known;
use super::{adapters, precision};

const EXAMPLE: &str = "transformers' example";

const fn example(paths: &'static [&'static str], task: Task, defaults: Defaults) -> Known {
    Known {
        name: EXAMPLE,
        paths,
        flag: "",
        trainer: "transformers",
        task,
        defaults,
        apply: plain,
    }
}

type Defaults = &'static [(&'static str, &'static str)];

/// The same in JAX.
const fn flax(paths: &'static [&'static str], task: Task, defaults: Defaults) -> Known {
    Known {
        trainer: "flax",
        apply: jax,
        ..example(paths, task, defaults)
    }
}

pub const EXAMPLES: &[Known] = &[
    Known {
        name: "FlagEmbedding's embedder",
        paths: &[
            "FlagEmbedding/finetune/embedder/encoder_only/base",
            "FlagEmbedding/finetune/embedder/encoder_only/m3",
            "FlagEmbedding/baai_general_embedding/finetune/run",
            "FlagEmbedding/BGE_M3/run",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Contrastive,
        defaults: &[
            ("query_max_len", "32"),
            ("passage_max_len", "128"),
            ("optim", "adamw"),
        ],
        apply: retriever,
    },
    Known {
        name: "FlagEmbedding's decoder embedder",
        paths: &[
            "FlagEmbedding/finetune/embedder/decoder_only/base",
            "FlagEmbedding/finetune/embedder/decoder_only/icl",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Contrastive,
        defaults: &[
            ("query_max_len", "32"),
            ("passage_max_len", "128"),
            ("optim", "adamw"),
            ("use_lora", "True"),
            ("lora_rank", "64"),
            (
                "target_modules",
                "v_proj,q_proj,k_proj,gate_proj,down_proj,o_proj,up_proj",
            ),
        ],
        apply: retriever,
    },
    Known {
        name: "FlagEmbedding's reranker",
        paths: &[
            "FlagEmbedding/finetune/reranker/encoder_only/base",
            "FlagEmbedding/reranker/run",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Contrastive,
        defaults: &[
            ("query_max_len", "32"),
            ("passage_max_len", "128"),
            ("optim", "adamw"),
        ],
        apply: pairs,
    },
    Known {
        name: "FlagEmbedding's decoder reranker",
        paths: &[
            "FlagEmbedding/finetune/reranker/decoder_only/base",
            "FlagEmbedding/finetune/reranker/decoder_only/layerwise",
            "FlagEmbedding/llm_reranker/finetune_for_instruction/run",
            "FlagEmbedding/llm_reranker/finetune_for_layerwise/run",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Contrastive,
        defaults: &[
            ("query_max_len", "32"),
            ("passage_max_len", "128"),
            ("optim", "adamw"),
            ("use_lora", "True"),
            ("lora_rank", "64"),
            (
                "target_modules",
                "v_proj,q_proj,k_proj,gate_proj,down_proj,o_proj,up_proj",
            ),
        ],
        apply: pairs,
    },
    Known {
        name: "tevatron's retriever",
        paths: &[
            "tevatron/retriever/driver/train",
            "tevatron/retriever/driver/train_mm",
            "tevatron/retriever/driver/train_distil",
            "tevatron/driver/train",
            "dse/train.py",
            "dse/qwen/train.py",
            "repllama/train.py",
            "train_unicoil.py",
            "train_splade.py",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Contrastive,
        defaults: &[
            ("query_max_len", "32"),
            ("passage_max_len", "128"),
            ("optim", "adamw"),
            ("lora_r", "16"),
            (
                "lora_target_modules",
                "q_proj,k_proj,v_proj,o_proj,down_proj,up_proj,gate_proj",
            ),
            ("lora", "False"),
        ],
        apply: tevatron,
    },
    Known {
        name: "tevatron's example",
        paths: &["train.py", "train_retriever.py"],
        flag: "passage_max_len",
        trainer: "transformers",
        task: Task::Contrastive,
        defaults: &[
            ("query_max_len", "32"),
            ("optim", "adamw"),
            ("lora", "False"),
        ],
        apply: tevatron,
    },
    Known {
        name: "tevatron's reranker",
        paths: &[
            "tevatron/reranker/driver/train",
            "reranker/reranker_train.py",
            "reranker_train.py",
        ],
        flag: "",
        trainer: "transformers",
        task: Task::Reranking,
        defaults: &[
            ("rerank_max_len", "512"),
            ("optim", "adamw"),
            ("lora_r", "8"),
            (
                "lora_target_modules",
                "q_proj,k_proj,v_proj,o_proj,down_proj,up_proj,gate_proj",
            ),
            ("lora", "False"),
        ],
        apply: reranker,
    },
    Known {
        name: "PEFT's Whisper example",
        paths: &["peft_adalora_whisper_large_training.py"],
        flag: "",
        trainer: "torch",
        task: Task::Seq2Seq,
        defaults: &[
            ("per_device_train_batch_size", "8"),
            ("init_r", "12"),
            ("r", "8"),
        ],
        apply: whisper_int8,
    },
    Known {
        name: "distil-whisper's Flax run_distillation.py",
        paths: &["run_distillation.py", "flax/run_distillation.py"],
        flag: "use_scan",
        trainer: "flax",
        task: Task::Seq2Seq,
        defaults: &[("precision", "half_mixed"), ("optim", "adamw")],
        apply: distilled_flax,
    },
    Known {
        name: "distil-whisper's Flax run_finetuning.py",
        paths: &["run_finetuning.py"],
        flag: "use_scan",
        trainer: "flax",
        task: Task::Seq2Seq,
        defaults: &[("precision", "half_mixed"), ("optim", "adamw")],
        apply: distilled_flax,
    },
    Known {
        name: "distil-whisper's run_distillation.py",
        paths: &["run_distillation.py", "run_distillation_pt.py"],
        flag: "teacher_model_name_or_path",
        trainer: "transformers",
        task: Task::Seq2Seq,
        defaults: &[("dtype", "float32"), ("optim", "adamw")],
        apply: distilled,
    },
    example(
        &[
            "run_speech_recognition_seq2seq.py",
            "run_speech_recognition_seq2seq_streaming.py",
        ],
        Task::Seq2Seq,
        &[("max_source_length", "448")],
    ),
    example(
        &[
            "run_speech_recognition_ctc.py",
            "run_speech_recognition_ctc_streaming.py",
            "run_speech_recognition_ctc_adapter.py",
        ],
        Task::Ctc,
        &[],
    ),
    example(
        &["run_wav2vec2_pretraining_no_trainer.py"],
        Task::Pretraining,
        &[("max_length", "1000")],
    ),
    example(
        &["run_audio_classification.py"],
        Task::Classification,
        &[("max_length", "1000")],
    ),
    example(
        &[
            "run_image_classification.py",
            "run_image_classification_no_trainer.py",
        ],
        Task::Classification,
        &[("image_size", "224")],
    ),
    example(
        &["run_mim.py", "run_mae.py", "run_mim_no_trainer.py"],
        Task::MaskedLm,
        &[("image_size", "224")],
    ),
    example(
        &[
            "run_semantic_segmentation.py",
            "run_semantic_segmentation_no_trainer.py",
        ],
        Task::Segmentation,
        &[("image_size", "512")],
    ),
    example(
        &[
            "run_instance_segmentation.py",
            "run_instance_segmentation_no_trainer.py",
        ],
        Task::Segmentation,
        &[("image_height", "384")],
    ),
    example(
        &[
            "run_object_detection.py",
            "run_object_detection_no_trainer.py",
        ],
        Task::Detection,
        &[("image_square_size", "600")],
    ),
    example(
        &[
            "run_clm.py",
            "run_clm_no_trainer.py",
            "run_fim.py",
            "run_fim_no_trainer.py",
        ],
        Task::Pretraining,
        &[("block_size", "1024")],
    ),
    example(
        &[
            "run_mlm.py",
            "run_mlm_no_trainer.py",
            "run_mlm_wwm.py",
            "run_plm.py",
        ],
        Task::MaskedLm,
        &[("max_seq_length", "512")],
    ),
    example(
        &[
            "run_glue.py",
            "run_glue_no_trainer.py",
            "run_classification.py",
            "run_text_classification.py",
            "run_xnli.py",
            "run_swag.py",
            "run_multiple_choice.py",
            "run_swag_no_trainer.py",
        ],
        Task::Classification,
        &[("max_seq_length", "128")],
    ),
    example(
        &[
            "run_ner.py",
            "run_ner_no_trainer.py",
            "run_pos.py",
            "run_token_classification.py",
        ],
        Task::TokenClassification,
        &[("max_seq_length", "512")],
    ),
    example(
        &[
            "run_qa.py",
            "run_qa_no_trainer.py",
            "run_qa_beam_search.py",
            "run_qa_beam_search_no_trainer.py",
            "run_squad.py",
        ],
        Task::QuestionAnswering,
        &[("max_seq_length", "384")],
    ),
    example(
        &["run_seq2seq_qa.py"],
        Task::Seq2Seq,
        &[("max_seq_length", "384")],
    ),
    example(
        &[
            "run_summarization.py",
            "run_summarization_no_trainer.py",
            "run_translation.py",
            "run_translation_no_trainer.py",
            "finetune_trainer.py",
        ],
        Task::Seq2Seq,
        &[("max_source_length", "1024")],
    ),
    flax(
        &["run_clm_flax.py"],
        Task::Pretraining,
        &[("block_size", "1024")],
    ),
    flax(
        &["run_mlm_flax.py", "run_bart_dlm_flax.py"],
        Task::MaskedLm,
        &[("max_seq_length", "512")],
    ),
    flax(
        &["run_t5_mlm_flax.py"],
        Task::Seq2Seq,
        &[("max_seq_length", "512")],
    ),
    flax(
        &["run_flax_glue.py"],
        Task::Classification,
        &[("max_seq_length", "128")],
    ),
    flax(
        &["run_flax_ner.py"],
        Task::TokenClassification,
        &[("max_seq_length", "512")],
    ),
    flax(
        &["run_summarization_flax.py"],
        Task::Seq2Seq,
        &[("max_source_length", "1024")],
    ),
    flax(
        &["run_flax_speech_recognition_seq2seq.py"],
        Task::Seq2Seq,
        &[("max_source_length", "448")],
    ),
    flax(
        &["run_image_classification_flax.py"],
        Task::Classification,
        &[("image_size", "224")],
    ),
];

fn on(flags: &Keys, key: &str) -> bool {
    flags.switch(key).value() == Some(&true)
}

/// Weights as `from_pretrained` leaves them, and the sizes of images.
fn plain(flags: &Keys, facts: &mut Facts) {
    let size = ["image_size", "image_square_size", "image_height"]
        .iter()
        .fold(Fact::Unsaid, |fact: Fact<u64>, key| {
            fact.or(flags.whole(key))
        });
    if size.is_known() {
        facts.height = size.clone();
        facts.width = size;
    }
    if on(flags, "freeze_feature_encoder") || on(flags, "freeze_encoder") {
        let part = "all but the frozen encoder";
        facts.trained = Fact::read(Trained::Part(part.into()), "freeze_encoder");
    }
    facts.packing = std::mem::take(&mut facts.packing)
        .or_default(facts.task.value() == Some(&Task::Pretraining), EXAMPLE);
}

/// One copy on each device, whatever their number; weights stay fp32.
fn jax(flags: &Keys, facts: &mut Facts) {
    plain(flags, facts);
    facts.gpus = Fact::Unsaid;
    facts.strategy = Fact::default_of(Strategy::from(DataParallel::Ddp), "JAX's pmap");
    facts.weights = Fact::default_of(Weights::Fp32, "Flax");
    let short = flags
        .text("dtype")
        .value()
        .is_some_and(|name| name == "bfloat16");
    let compute = if short { Compute::Bf16 } else { Compute::Fp32 };
    facts.compute = Fact::default_of(compute, "Flax's dtype");
    facts
        .notes
        .push("it is a script of JAX; memory is estimated as PyTorch's".into());
}

fn texts(flags: &Keys, pair: bool) -> Fact<u64> {
    let query = flags.whole("query_max_len");
    let passage = flags.whole("passage_max_len");
    match (query.value(), passage.value()) {
        (Some(query), Some(passage)) => {
            let length = if pair {
                query.saturating_add(*passage)
            } else {
                *query.max(passage)
            };
            Fact::follows(length, "query_max_len and passage_max_len")
        }
        _ => Fact::Unsaid,
    }
}

fn group(flags: &Keys, facts: &mut Facts) {
    let size = flags
        .whole("train_group_size")
        .or_default(8, "train_group_size");
    if let Some(size) = size.value() {
        facts.not_modelled.push(format!(
            "train_group_size {size}: each query of the batch has {size} passages"
        ));
    }
    facts.packing = Fact::follows(false, "pairs are not packed");
    if on(flags, "grad_cache") {
        let what = "grad_cache: a batch is encoded in parts of gc_q_chunk_size and gc_p_chunk_size";
        facts.not_modelled.push(what.into());
    }
}

/// Queries and passages are encoded apart.
fn retriever(flags: &Keys, facts: &mut Facts) {
    facts.sequence = texts(flags, false);
    group(flags, facts);
    by_engine(facts);
}

/// Each query stands in one sequence with each of its passages.
fn pairs(flags: &Keys, facts: &mut Facts) {
    facts.sequence = texts(flags, true);
    group(flags, facts);
    by_engine(facts);
}

fn by_engine(facts: &mut Facts) {
    let sharded = facts
        .strategy
        .value()
        .is_some_and(|strategy| strategy.data >= DataParallel::Zero0);
    if sharded {
        precision::settle(facts, "DeepSpeed");
    }
}

fn tevatron(flags: &Keys, facts: &mut Facts) {
    retriever(flags, facts);
    // `torch_dtype` follows `bf16` and `fp16` (`driver/train.py`).
    let weights = match facts.compute.value() {
        Some(Compute::Bf16 | Compute::Bf16Autocast) => Weights::Bf16,
        Some(Compute::Fp16 | Compute::Fp16Autocast) => Weights::Fp16,
        _ => Weights::Fp32,
    };
    facts.weights = std::mem::take(&mut facts.weights).or_default(weights, "tevatron's driver");
    lora(flags, facts);
}

fn reranker(flags: &Keys, facts: &mut Facts) {
    facts.sequence = flags.whole("rerank_max_len");
    group(flags, facts);
    by_engine(facts);
    lora(flags, facts);
}

fn lora(flags: &Keys, facts: &mut Facts) {
    if on(flags, "lora") || flags.text("lora_name_or_path").is_known() {
        adapters::lora(flags, facts, &["lora_r"], 8, "tevatron's lora_r");
        facts.trained = Fact::follows(Trained::Adapters, "lora");
    } else {
        facts.adapter = Fact::follows(None, "no lora");
        facts.trained = Fact::follows(Trained::All, "no lora");
    }
}

/// Whisper hears 30 seconds at a time, and writes at most 448 tokens.
fn whisper(facts: &mut Facts) {
    facts.sequence = std::mem::take(&mut facts.sequence)
        .or_follows(448, "Whisper's decoder; its encoder hears 30 s");
}

fn whisper_int8(flags: &Keys, facts: &mut Facts) {
    const NAME: &str = "PEFT's Whisper example";
    whisper(facts);
    facts.weights = Fact::default_of(Weights::Int8, NAME);
    facts.base_dtype = facts.weights.clone();
    facts.optimizer = Fact::default_of("torch AdamW".into(), NAME);
    // `prepare_model_for_kbit_training` turns it on.
    facts.checkpointing = Fact::default_of(Checkpointing::On, NAME);
    facts.evaluation = Fact::default_of(true, NAME);
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    if on(flags, "use_adalora") {
        facts.adapter = Fact::read(Some(Adapter::Adalora), "use_adalora");
        facts.rank = flags.whole("init_r");
        let all = ["k_proj", "q_proj", "v_proj", "out_proj", "fc1", "fc2"];
        facts.targets = Fact::default_of(owned(&all), NAME);
    } else {
        facts.adapter = Fact::default_of(Some(Adapter::Lora), NAME);
        facts.rank = flags.whole("r");
        facts.targets = Fact::default_of(owned(&["q_proj", "v_proj"]), NAME);
    }
    facts.trained = Fact::follows(Trained::Adapters, "use_peft");
}

fn frozen(flags: &Keys, facts: &mut Facts) {
    facts.adapter = Fact::follows(None, "no adapter");
    let part = if on(flags, "freeze_encoder") {
        Trained::Part("decoder (encoder frozen)".into())
    } else if on(flags, "freeze_decoder") {
        Trained::Part("encoder (decoder frozen)".into())
    } else {
        Trained::All
    };
    facts.trained = Fact::read(part, "freeze_encoder");
    if let Some(teacher) = flags.text("teacher_model_name_or_path").value() {
        facts
            .not_modelled
            .push(format!("the teacher {teacher}, frozen, is on each GPU"));
    }
    facts.packing = Fact::follows(false, "each row is one piece of audio");
}

fn distilled(flags: &Keys, facts: &mut Facts) {
    whisper(facts);
    frozen(flags, facts);
    // The student is loaded without a type; the script turns autocast on for its own `--dtype`.
    facts.weights = Fact::default_of(Weights::Fp32, "run_distillation.py");
    let compute = match flags.text("dtype").value().map(String::as_str) {
        Some("bfloat16") => Compute::Bf16Autocast,
        Some("float16") => Compute::Fp16Autocast,
        _ => Compute::Fp32,
    };
    facts.compute = Fact::read(compute, "dtype");
}

fn distilled_flax(flags: &Keys, facts: &mut Facts) {
    whisper(facts);
    jax(flags, facts);
    frozen(flags, facts);
    facts.offload = Fact::default_of(Offload::None, "JAX's pmap");
    let full = flags
        .text("precision")
        .value()
        .is_some_and(|precision| precision == "full");
    if !full {
        facts.compute = Fact::read(Compute::Bf16, "precision");
    }
    if flags
        .text("precision")
        .value()
        .is_some_and(|precision| precision == "full_mixed")
    {
        facts
            .not_modelled
            .push("precision full_mixed: gradients and Adam's state are in bf16".into());
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::testing::check;

    #[test]
    fn a_reranker_reads_query_and_passage_together() {
        let text = "torchrun --nproc_per_node 4 -m FlagEmbedding.finetune.reranker.encoder_only.base \\
          --model_name_or_path BAAI/bge-reranker-base --query_max_len 64 --passage_max_len 192 --fp16 \\
          --per_device_train_batch_size 4 --output_dir o --deepspeed ds_stage1.json\n";
        check(
            "run.sh",
            text,
            &[
                ("sequence", "256"),
                ("strategy", "zero1"),
                ("weights", "fp16"),
                ("compute", "fp16"),
                ("task", "contrastive"),
                ("gpus", "4"),
            ],
        );
        let apart = text.replace("reranker.encoder_only", "embedder.encoder_only");
        check("run.sh", &apart, &[("sequence", "192")]);
    }

    #[test]
    fn examples_have_the_lengths_of_their_parsers() {
        check(
            "run.sh",
            "python run_glue.py --model_name_or_path bert-base-cased --task_name mrpc --do_train --output_dir o\n",
            &[
                ("outcome", "estimate"),
                ("task", "classification"),
                ("sequence", "128"),
                ("micro_batch", "8"),
                ("weights", "fp32"),
                ("strategy", "none"),
            ],
        );
        check(
            "run.sh",
            "torchrun --nproc_per_node 2 run_qa.py --model_name_or_path bert-base-cased --do_train --fp16\n",
            &[
                ("task", "question-answering"),
                ("sequence", "384"),
                ("compute", "fp16 autocast"),
            ],
        );
    }

    #[test]
    fn a_distilled_student_is_fp32_under_autocast() {
        check(
            "run.sh",
            "accelerate launch --num_processes 2 run_distillation.py --model_name_or_path a/b \\
              --teacher_model_name_or_path openai/whisper-large-v3 --dtype bfloat16 --freeze_encoder \\
              --per_device_train_batch_size 16 --gradient_checkpointing\n",
            &[
                ("outcome", "estimate"),
                ("weights", "fp32"),
                ("compute", "bf16 autocast"),
                ("trained", "decoder (encoder frozen)"),
                ("strategy", "ddp"),
            ],
        );
    }
}
