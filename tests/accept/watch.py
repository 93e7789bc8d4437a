"""Two steps of each trainer that `gpu_headroom.check` takes, on the CPU: watch.py FIXTURES OUT"""

import sys

import gpu_headroom as headroom
import lightning.pytorch as pl
import torch
from datasets import Dataset, load_dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments
from trl import (
    DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, KTOConfig, KTOTrainer, RewardConfig, RewardTrainer, RLOOConfig, RLOOTrainer, SFTConfig,
    SFTTrainer,
)
from trl.experimental.cpo import CPOConfig, CPOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

FIXTURES, OUT = sys.argv[1:]
SHORT = {"output_dir": OUT, "max_steps": 2, "per_device_train_batch_size": 2, "use_cpu": True, "report_to": [], "save_strategy": "no"}


def model(dtype=torch.float32):
    return AutoModelForCausalLM.from_pretrained(f"{FIXTURES}/model", dtype=dtype)


def rows():
    return [{"input_ids": torch.arange(at, at + 32), "labels": torch.arange(at, at + 32)} for at in range(8)]


def of_transformers():
    trainer = Trainer(model=model(), args=TrainingArguments(**SHORT, gradient_checkpointing=True), train_dataset=rows())
    return trainer, trainer.train, ["trainer=transformers", "mb=2", "seq=32", "ckpt=layers", "precision=fp32"]


def of_transformers_with_adapters():
    adapted = get_peft_model(model(torch.bfloat16), LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
    trainer = Trainer(model=adapted, args=TrainingArguments(**SHORT, bf16=True), train_dataset=rows())
    return trainer, trainer.train, ["lora_rank=4", "lora_targets=q_proj,v_proj", "precision=amp-bf16-on-bf16"]


def with_frozen_layers():
    partly = model()
    partly.model.embed_tokens.requires_grad_(False)
    partly.model.layers[0].requires_grad_(False)
    trainer = Trainer(model=partly, args=TrainingArguments(**SHORT), train_dataset=rows())
    return trainer, trainer.train, ["freeze="]


def of_trl():
    texts = Dataset.from_list([{"text": " ".join(f"w{at + word}" for word in range(40))} for at in range(8)])
    arguments = SFTConfig(**SHORT, max_length=64, bf16=False)
    tokenizer = AutoTokenizer.from_pretrained(f"{FIXTURES}/model")
    trainer = SFTTrainer(model=model(), args=arguments, train_dataset=texts, processing_class=tokenizer)
    return trainer, trainer.train, ["trainer=trl", "mb=2"]


def tokenizer():
    return AutoTokenizer.from_pretrained(f"{FIXTURES}/model")


def data(name):
    return load_dataset("json", data_files=f"{FIXTURES}/data/{name}.jsonl", split="train", cache_dir=f"{OUT}/data")


def of_dpo():
    arguments = DPOConfig(**SHORT, max_length=64, bf16=False)
    trainer = DPOTrainer(model(), ref_model=model(), args=arguments, train_dataset=data("preference"), processing_class=tokenizer())
    return trainer, trainer.train, ["trainer=trl", "task=dpo", "mb=2", "reference=copy"]


def of_dpo_with_adapters():
    arguments = DPOConfig(**SHORT, max_length=64, bf16=False)
    adapters = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    trainer = DPOTrainer(model(), args=arguments, train_dataset=data("preference"), processing_class=tokenizer(), peft_config=adapters)
    return trainer, trainer.train, ["task=dpo", "mb=2", "lora_rank=4", "reference=adapters-off"]


def of_kto():
    arguments = KTOConfig(**SHORT, max_length=64, bf16=False)
    trainer = KTOTrainer(model(), ref_model=model(), args=arguments, train_dataset=data("unpaired"), processing_class=tokenizer())
    return trainer, trainer.train, ["task=kto", "mb=2", "reference=copy"]


def of_orpo():
    trainer = ORPOTrainer(model(), args=ORPOConfig(**SHORT, max_length=64, bf16=False), train_dataset=data("preference"), processing_class=tokenizer())
    return trainer, trainer.train, ["task=orpo", "mb=2", "task_head=logits"]


def of_simpo():
    arguments = CPOConfig(**SHORT, max_length=64, bf16=False, loss_type="simpo", cpo_alpha=0.0)
    trainer = CPOTrainer(model(), args=arguments, train_dataset=data("preference"), processing_class=tokenizer())
    return trainer, trainer.train, ["task=simpo", "mb=2"]


def of_reward():
    scored = AutoModelForSequenceClassification.from_pretrained(f"{FIXTURES}/model", num_labels=1, dtype=torch.float32)
    trainer = RewardTrainer(scored, args=RewardConfig(**SHORT, max_length=64, bf16=False), train_dataset=data("preference"), processing_class=tokenizer())
    return trainer, trainer.train, ["task=reward", "mb=2"]


SAMPLED = {"num_generations": 2, "max_completion_length": 8, "bf16": False}


def by_length(completions, **_):
    return [float(len(completion)) for completion in completions]


def of_grpo():
    arguments = GRPOConfig(**SHORT, **SAMPLED, beta=0.0)
    trainer = GRPOTrainer(model(), by_length, args=arguments, train_dataset=data("prompts"), processing_class=tokenizer())
    return trainer, trainer.train, ["task=grpo", "mb=2", "generations=2", "completion=8"]


def of_rloo():
    arguments = RLOOConfig(**SHORT, **SAMPLED)
    trainer = RLOOTrainer(model(), by_length, args=arguments, train_dataset=data("prompts"), processing_class=tokenizer())
    return trainer, trainer.train, ["task=rloo", "mb=2", "generations=2"]


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = model()

    def training_step(self, batch, index):
        return self.model(input_ids=batch["input_ids"], labels=batch["labels"]).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


def of_lightning():
    trainer = pl.Trainer(
        accelerator="cpu", max_steps=2, precision="bf16-mixed", accumulate_grad_batches=2, logger=False, barebones=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, default_root_dir=OUT,
    )
    loader = torch.utils.data.DataLoader(rows(), batch_size=2)
    return trainer, lambda: trainer.fit(Module(), loader), ["trainer=lightning", "mb=2", "seq=32", "accum=2", "precision=amp-bf16"]


TRL = (of_trl, of_dpo, of_dpo_with_adapters, of_kto, of_orpo, of_simpo, of_reward, of_grpo, of_rloo)
for make in (of_transformers, of_transformers_with_adapters, with_frozen_layers, *TRL, of_lightning):
    trainer, train, expected = make()
    said = []
    callback = headroom.check(trainer, say=said.append)
    train()
    print(make.__name__, callback.link, *said, sep="\n  ")
    assert callback.problem is None, callback.problem
    assert callback.estimate["fits"] is True
    assert not [part for part in expected if f"&{part}" not in f"{callback.link}&"], callback.link
    assert any("needs" in line for line in said) and not any("not taken" in line for line in said), said
    assert torch.cuda.is_available() or said[-1].startswith("headroom: nothing was measured"), said
print("watched")
