//! Which of its flags do anything.

use super::super::{Knob, Wiring};

pub const KNOBS: &[Knob] = &[
    Knob {
        flag: "--use_amp, --no-use_amp",
        wiring: Wiring::Exists,
        note: "On unless turned off.",
        patch: "",
        source: "train_prs_med.py: set_defaults(use_amp=True)",
    },
    Knob {
        flag: "--gradient_checkpointing",
        wiring: Wiring::Breaks,
        note: "Silently stops the language model's adapters from learning: re-entrant checkpoints over a frozen base get no gradient (0 of 42 adapters in three layers, 42 of 42 without re-entry). The encoder is never checkpointed.",
        patch: "--- a/train_prs_med.py\n+++ b/train_prs_med.py\n@@\n-            model.mllm.model.gradient_checkpointing_enable()\n+            model.mllm.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={\"use_reentrant\": False})\n@@\n-            if hasattr(model.vision_backbone.encoder, 'use_checkpoint'):\n-                model.vision_backbone.encoder.use_checkpoint = True\n+            for layer in model.vision_backbone.encoder.layers:\n+                layer.use_checkpoint = True\n",
        source: "train_prs_med.py; transformers 4.57.1 with PEFT 0.17.1",
    },
    Knob {
        flag: "--gradient_accumulation_steps",
        wiring: Wiring::Exists,
        note: "Without no_sync: gradients are reduced at every micro-batch. The losses it logs are multiplied by the steps.",
        patch: "",
        source: "train_prs_med.py",
    },
    Knob {
        flag: "--compile_model",
        wiring: Wiring::Exists,
        note: "mode='reduce-overhead': pools for CUDA graphs, and graph breaks at the processor on the host.",
        patch: "",
        source: "train_prs_med.py",
    },
    Knob {
        flag: "--image_size",
        wiring: Wiring::Breaks,
        note: "Anything but 1024 ends at an assertion.",
        patch: "",
        source: "tiny_vit_sam.py",
    },
    Knob {
        flag: "--learning_rate",
        wiring: Wiring::Clamped,
        note: "Multiplied by the number of processes.",
        patch: "--- a/train_prs_med.py\n+++ b/train_prs_med.py\n@@\n-    effective_lr = args.learning_rate * (args.world_size if is_distributed else 1)\n+    effective_lr = args.learning_rate\n",
        source: "train_prs_med.py",
    },
    Knob {
        flag: "torchrun",
        wiring: Wiring::Breaks,
        note: "find_unused_parameters=False, but to_seg_channels and the adapters of the last CLIP layer get no gradient: DDP ends in its second iteration.",
        patch: "--- a/train_prs_med.py\n+++ b/train_prs_med.py\n@@\n-            find_unused_parameters=False,\n+            find_unused_parameters=True,\n",
        source: "train_prs_med.py: DistributedDataParallel",
    },
    Knob {
        flag: "--load_4bit",
        wiring: Wiring::NeedsPatch,
        note: "use_8bit and use_4bit exist in the class and not on the command line.",
        patch: "--- a/train_prs_med.py\n+++ b/train_prs_med.py\n@@\n+    parser.add_argument('--load_4bit', action='store_true')\n@@ class PRSMedModel\n             freeze_llm=True,\n+            use_4bit=args.load_4bit,\n--- a/models/mllm/llava_med_lora_adapter.py\n+++ b/models/mllm/llava_med_lora_adapter.py\n@@\n         freeze_llm: bool = True,\n+        use_4bit: bool = False,\n@@\n             freeze_llm=freeze_llm,\n+            use_4bit=use_4bit,\n",
        source: "models/mllm/llava_med_mllm.py",
    },
    Knob {
        flag: "--lora_rank, --lora_alpha, --lora_dropout",
        wiring: Wiring::Exists,
        note: "Suffixes match the projections of CLIP too: 44.3 million weights, 2.4 million of them there.",
        patch: "",
        source: "models/mllm/llava_med_lora_adapter.py",
    },
    Knob {
        flag: "to_seg_channels",
        wiring: Wiring::Ignored,
        note: "4.5 million trained weights whose output no loss uses.",
        patch: "",
        source: "models/mllm/llava_med_mllm.py",
    },
    Knob {
        flag: "saving",
        wiring: Wiring::Exists,
        note: "The whole state of 7.6 billion parameters each time, 15 GB on the disk.",
        patch: "",
        source: "train_prs_med.py: torch.save",
    },
];
