"""Makes what the accepting runs need: a tiny Llama with a tokenizer, narrow models of other kinds, and a few lines of text."""

import json
import os
import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM, BertConfig, BertForMaskedLM, LlamaConfig, PreTrainedTokenizerFast, T5Config,
    T5ForConditionalGeneration, WhisperConfig, WhisperForConditionalGeneration,
)

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
# By the catalogue's ids, with the vocabularies that the exported inputs are drawn from.
narrow = {
    "bert-base-uncased": BertForMaskedLM(BertConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2)),
    "t5-base": T5ForConditionalGeneration(T5Config(
        d_model=32, d_ff=64, d_kv=16, num_layers=2, num_decoder_layers=2, num_heads=2, decoder_start_token_id=0)),
    "whisper-tiny": WhisperForConditionalGeneration(WhisperConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=64, decoder_ffn_dim=64)),
}
for name, model in narrow.items():
    model.save_pretrained(f"{folder}/{name}")
with open(f"{folder}/data/train.jsonl", "w", encoding="utf-8") as lines:
    for line in range(64):
        text = " ".join(f"w{(line * 31 + n * 7) % 250}" for n in range(48))
        lines.write(json.dumps({"text": text}) + "\n")
# What is compared, judged or answered: a file for each kind of task.
rows = {"preference": [], "unpaired": [], "prompts": []}
for line in range(64):
    prompt, good, bad = (" ".join(f"w{(line * 13 + n * 3 + who * 5) % 250}" for n in range(8)) for who in range(3))
    rows["preference"].append({"prompt": prompt, "chosen": f" {good}", "rejected": f" {bad}"})
    rows["unpaired"].append({"prompt": prompt, "completion": f" {good}", "label": line % 2 == 0})
    rows["prompts"].append({"prompt": prompt})
for name, lines_of in rows.items():
    with open(f"{folder}/data/{name}.jsonl", "w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in lines_of)
with open(f"{folder}/data/chat.jsonl", "w", encoding="utf-8") as lines:
    for line in range(64):
        said = [" ".join(f"w{(line * 17 + n * 5 + who) % 250}" for n in range(12)) for who in (0, 1)]
        messages = [{"role": role, "content": text} for role, text in zip(("user", "assistant"), said)]
        lines.write(json.dumps({"messages": messages}) + "\n")
