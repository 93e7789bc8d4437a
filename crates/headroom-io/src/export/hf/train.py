"""Trains a causal language model with transformers' Trainer: torchrun train.py train.yaml, or any other launcher.

Started as one process that sees several GPUs, it trains under DataParallel.
"""

import sys
from dataclasses import dataclass, field
from itertools import chain
import json

import torch
from transformers import (
    AutoModelForCausalLM, AutoTokenizer, DataCollatorForLanguageModeling, HfArgumentParser, Trainer, TrainingArguments,
)


@dataclass
class Ours:
    model_name_or_path: str = ""
    train_file: str = ""
    max_seq_len: int = 1024
    join_texts: bool = True
    dtype: str = "float32"
    attn_implementation: str = "sdpa"
    lora_method: str = "lora"
    lora_r: int = 0
    lora_block: int = 0
    lora_dropout: float = 0.0
    lora_target_modules: list[str] = field(default_factory=list)
    lora_exclude_modules: list[str] = field(default_factory=list)
    lora_modules_to_save: list[str] = field(default_factory=list)
    lora_fp32: bool = True
    load_in_4bit: bool = False
    bnb_4bit_use_double_quant: bool = False


class Texts(torch.utils.data.Dataset):
    """Token ids of each text, or of all texts joined and cut into equal pieces."""

    def __init__(self, ours, tokenizer):
        with open(ours.train_file, encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines if line.strip()]
        rows = [tokenizer(text)["input_ids"] for text in texts]
        length = ours.max_seq_len
        if ours.join_texts:
            ids = list(chain.from_iterable(row + [tokenizer.eos_token_id] for row in rows))
            rows = [ids[at:at + length] for at in range(0, len(ids) - length + 1, length)]
        self.rows = [row[:length] for row in rows]
        if not self.rows:
            sys.exit(f"{ours.train_file} holds fewer than {length} tokens")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return {"input_ids": self.rows[at]}


def whole(rows):
    """A batch of rows of equal length, without a mask: attention may take its fastest kernel."""
    ids = torch.tensor([row["input_ids"] for row in rows])
    return {"input_ids": ids, "labels": ids.clone()}


def main():
    ours, arguments = HfArgumentParser((Ours, TrainingArguments)).parse_yaml_file(sys.argv[1])
    tokenizer = AutoTokenizer.from_pretrained(ours.model_name_or_path)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    dtype, four_bits = getattr(torch, ours.dtype), None
    if ours.load_in_4bit:
        from transformers import BitsAndBytesConfig

        four_bits = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=ours.bnb_4bit_use_double_quant,
            bnb_4bit_compute_dtype=torch.bfloat16 if arguments.bf16 else torch.float16 if arguments.fp16 else dtype,
        )
    model = AutoModelForCausalLM.from_pretrained(
        ours.model_name_or_path, dtype=dtype, attn_implementation=ours.attn_implementation,
        quantization_config=four_bits,
    )
    model.config.use_cache = False
    if ours.lora_r:
        from adapters import configuration
        from peft import get_peft_model

        adapters = configuration(
            ours.lora_method, ours.lora_r, ours.lora_dropout, ours.lora_block, ours.lora_target_modules, "CAUSAL_LM",
            model.config.vocab_size, exclude_modules=ours.lora_exclude_modules, modules_to_save=ours.lora_modules_to_save,
        )
        model.enable_input_require_grads()
        model = get_peft_model(model, adapters, autocast_adapter_dtype=ours.lora_fp32)
    collate = DataCollatorForLanguageModeling(tokenizer, mlm=False, pad_to_multiple_of=ours.max_seq_len)
    if ours.join_texts:
        collate = whole
    Trainer(model=model, args=arguments, train_dataset=Texts(ours, tokenizer), data_collator=collate).train()
    if torch.cuda.is_available() and arguments.process_index == 0:
        print(json.dumps({
            "max_memory_allocated": torch.cuda.max_memory_allocated(),
            "max_memory_reserved": torch.cuda.max_memory_reserved(),
        }))


if __name__ == "__main__":
    main()
