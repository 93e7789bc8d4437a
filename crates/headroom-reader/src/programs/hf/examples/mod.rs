//! Example scripts around transformers' `TrainingArguments` that do not train a chat model: transformers' `examples/`, retrieval
//! (FlagEmbedding, tevatron), speech (distil-whisper, PEFT's Whisper).

mod rules;

use crate::words::Task;

use crate::programs::hf::known::Known;

const EXAMPLE: &str = "transformers' example";

const fn example(paths: &'static [&'static str], task: Task, defaults: Defaults) -> Known {
    Known {
        name: EXAMPLE,
        paths,
        flag: "",
        trainer: "transformers",
        task,
        defaults,
        apply: rules::plain,
    }
}

type Defaults = &'static [(&'static str, &'static str)];

/// The same in JAX.
const fn flax(paths: &'static [&'static str], task: Task, defaults: Defaults) -> Known {
    Known {
        trainer: "flax",
        apply: rules::jax,
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
        apply: rules::retriever,
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
        apply: rules::retriever,
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
        apply: rules::pairs,
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
        apply: rules::pairs,
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
        apply: rules::tevatron,
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
        apply: rules::tevatron,
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
        apply: rules::reranker,
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
        apply: rules::whisper_int8,
    },
    Known {
        name: "distil-whisper's Flax run_distillation.py",
        paths: &["run_distillation.py", "flax/run_distillation.py"],
        flag: "use_scan",
        trainer: "flax",
        task: Task::Seq2Seq,
        defaults: &[("precision", "half_mixed"), ("optim", "adamw")],
        apply: rules::distilled_flax,
    },
    Known {
        name: "distil-whisper's Flax run_finetuning.py",
        paths: &["run_finetuning.py"],
        flag: "use_scan",
        trainer: "flax",
        task: Task::Seq2Seq,
        defaults: &[("precision", "half_mixed"), ("optim", "adamw")],
        apply: rules::distilled_flax,
    },
    Known {
        name: "distil-whisper's run_distillation.py",
        paths: &["run_distillation.py", "run_distillation_pt.py"],
        flag: "teacher_model_name_or_path",
        trainer: "transformers",
        task: Task::Seq2Seq,
        defaults: &[("dtype", "float32"), ("optim", "adamw")],
        apply: rules::distilled,
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
