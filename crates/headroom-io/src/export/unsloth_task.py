"""Trains with Unsloth what the file says: python train.py unsloth.yaml"""

import sys

import yaml
from unsloth import FastLanguageModel  # before TRL, whose trainers it patches

import trl
from datasets import load_dataset

TRAINERS = {
    "dpo": (trl.DPOConfig, trl.DPOTrainer),
    "kto": (trl.KTOConfig, trl.KTOTrainer),
    "grpo": (trl.GRPOConfig, trl.GRPOTrainer),
}


def reward(prompts, completions, **columns):
    """Scores completions, the better the higher: put your own reward here."""
    texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
    return [float(len(set(text.split()))) for text in texts]


def main(path):
    with open(path, encoding="utf-8") as file:
        asked = yaml.safe_load(file)
    config, trainer = TRAINERS[asked["task"]]
    model, tokenizer = FastLanguageModel.from_pretrained(**asked["model"])
    model = FastLanguageModel.get_peft_model(model, **asked["adapters"])
    data = load_dataset("json", data_files=asked["data"], split="train")
    judged = {"reward_funcs": [reward]} if asked["task"] == "grpo" else {}
    trainer(model=model, args=config(**asked["training"]), train_dataset=data, processing_class=tokenizer, **judged).train()


if __name__ == "__main__":
    main(sys.argv[1])
