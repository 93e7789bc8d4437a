"""Makes what the accepting runs need: a tiny Llama with a tokenizer, and a few lines of text."""

import json
import os
import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedTokenizerFast

folder = sys.argv[1]
os.makedirs(f"{folder}/data", exist_ok=True)

words = ["<pad>", "<eos>", "<unk>"] + [f"w{n}" for n in range(250)]
tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>")
config = LlamaConfig(
    hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    vocab_size=len(words), max_position_embeddings=256, pad_token_id=0, eos_token_id=1, bos_token_id=1,
)
AutoModelForCausalLM.from_config(config).save_pretrained(f"{folder}/model")
fast.save_pretrained(f"{folder}/model")
with open(f"{folder}/data/train.jsonl", "w", encoding="utf-8") as lines:
    for line in range(64):
        text = " ".join(f"w{(line * 31 + n * 7) % 250}" for n in range(48))
        lines.write(json.dumps({"text": text}) + "\n")
with open(f"{folder}/data/chat.jsonl", "w", encoding="utf-8") as lines:
    for line in range(64):
        said = [" ".join(f"w{(line * 17 + n * 5 + who) % 250}" for n in range(12)) for who in (0, 1)]
        messages = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), said)]
        lines.write(json.dumps({"messages": messages}) + "\n")
