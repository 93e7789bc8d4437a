"""The causal language model that train.yaml describes, its loss and its batches."""

import json
import types

import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.modeling_outputs import CausalLMOutput

from prepare import AUTOCAST, WEIGHTS, prepare

DIMENSIONS = {
    "layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads",
    "kv": "num_key_value_heads", "ffn": "intermediate_size", "vocab": "vocab_size",
    "ctx": "max_position_embeddings", "tied": "tie_word_embeddings", "window": "sliding_window",
}


def build(cfg, here):
    config = AutoConfig.from_pretrained(cfg["model"])
    config.use_cache = cfg["use_cache"]
    for name, size in cfg["dims"].items():
        key = "n_inner" if name == "ffn" and hasattr(config, "n_inner") else DIMENSIONS.get(name, name)
        setattr(config, key, bool(size) if name == "tied" else size)
    kinds = dict(dtype=WEIGHTS.get(cfg["precision"], torch.float32), attn_implementation=cfg["attention"])
    if cfg["quantization"] != "none":
        from transformers import BitsAndBytesConfig

        compute = AUTOCAST.get(cfg["precision"], kinds["dtype"])
        kinds["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute,
            bnb_4bit_use_double_quant=cfg["quantization"] == "nf4-double",
        )
        kinds["device_map"] = {"": here}
    if cfg["dims"]:
        model = AutoModelForCausalLM.from_config(config, **kinds)
    else:
        model = AutoModelForCausalLM.from_pretrained(cfg["model"], config=config, **kinds)
    if cfg["kernels"] == "liger":
        from liger_kernel.transformers import _apply_liger_kernel_to_instance

        _apply_liger_kernel_to_instance(model=model, cross_entropy=False, fused_linear_cross_entropy=False)
    if cfg["loss"] != "library":
        model.forward = types.MethodType(LOSSES[cfg["loss"]](cfg), model)
    cfg["vocabulary"] = config.vocab_size
    return prepare(cfg, model, model._no_split_modules or [])


def forward(cfg, model, inputs):
    """The loss, and what else the model returns."""
    outputs = model(**inputs)
    return outputs.loss, outputs


def following(labels):
    """The label of each token is the token after it."""
    return F.pad(labels, (0, 1), value=-100)[..., 1:].contiguous().view(-1)


def hidden_states(model, input_ids, attention_mask):
    """A row for each token, before the head."""
    states = model.base_model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).last_hidden_state
    return states.view(-1, states.size(-1))


def in_chunks(cfg):
    """Cross-entropy over as many pieces as train.yaml says: of the logits, of logits made one after the other, or of logits that
    backward makes again."""
    chunks, kind = cfg["loss_chunks"], cfg["loss"]

    def forward(self, input_ids, labels, attention_mask=None, **_):
        head = self.get_output_embeddings()
        rows = hidden_states(self, input_ids, attention_mask).chunk(chunks)
        targets = following(labels).chunk(chunks)

        def logits_of(rows):
            return F.linear(rows, head.weight, head.bias)

        def loss_of(rows, targets):
            return F.cross_entropy(logits_of(rows).float(), targets, reduction="sum")

        if kind == "chunked-loss":
            logits = [logits_of(part) for part in rows]
            losses = [F.cross_entropy(part.float(), own, reduction="sum") for part, own in zip(logits, targets)]
        elif kind == "chunked-checkpoint":
            losses = [checkpoint(loss_of, part, own, use_reentrant=False) for part, own in zip(rows, targets)]
        else:
            losses = [loss_of(part, own) for part, own in zip(rows, targets)]
        return CausalLMOutput(loss=sum(losses) / (labels[..., 1:] != -100).sum())

    return forward


def liger_linear(cfg):
    """Liger's head and cross-entropy in one kernel."""
    from liger_kernel.transformers import LigerFusedLinearCrossEntropyLoss

    def forward(self, input_ids, labels, attention_mask=None, **_):
        head = self.get_output_embeddings()
        loss = LigerFusedLinearCrossEntropyLoss(softcap=getattr(self.config, "final_logit_softcapping", None))
        rows = hidden_states(self, input_ids, attention_mask)
        return CausalLMOutput(loss=loss(head.weight, rows, following(labels), head.bias))

    return forward


def liger(cfg):
    """Liger's cross-entropy over all logits."""
    from liger_kernel.transformers import LigerCrossEntropyLoss

    def forward(self, input_ids, labels, attention_mask=None, **_):
        logits = type(self).forward(self, input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits
        rows = logits.float().view(-1, logits.size(-1))
        return CausalLMOutput(loss=LigerCrossEntropyLoss()(rows, following(labels)), logits=logits)

    return forward


LOSSES = {
    "liger": liger, "liger-linear": liger_linear,
    "chunked-loss": in_chunks, "chunked-head": in_chunks, "chunked-checkpoint": in_chunks,
}


def parts(model):
    """What FSDP may shard by itself: the layers, the embedding, the head, and the norm before it."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    names = inner._no_split_modules or []
    layers = [module for module in inner.modules() if type(module).__name__ in names]
    decoder = inner.base_model
    norms = [getattr(decoder, name) for name in ("norm", "ln_f", "final_layer_norm") if hasattr(decoder, name)]
    return layers, inner.get_input_embeddings(), inner.get_output_embeddings(), norms


def batches(cfg, rank, world):
    """Micro-batches without end: input ids and, where asked for, a mask; always padded to max_seq_len."""
    rows, length = cfg["micro_batch_size"], cfg["max_seq_len"]
    random = torch.Generator().manual_seed(rank)
    texts = []
    if cfg["train_file"]:
        tokenizer = AutoTokenizer.from_pretrained(cfg["model"])
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        with open(cfg["train_file"], encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines if line.strip()][rank::world]
    while True:
        if texts:
            texts = texts[rows:] + texts[:rows] if len(texts) > rows else texts * rows
            padded = dict(padding="max_length", truncation=True, max_length=length, return_tensors="pt")
            batch = tokenizer(texts[:rows], **padded)
            ids, mask = batch["input_ids"], batch["attention_mask"]
        else:
            ids = torch.randint(cfg["vocabulary"], (rows, length), generator=random)
            mask = torch.ones_like(ids)
            if cfg["padding_mask"]:
                mask[:, length - length // 8:] = 0
        inputs = {"input_ids": ids, "labels": ids.masked_fill(mask == 0, -100)}
        if cfg["padding_mask"]:
            inputs["attention_mask"] = mask
        yield inputs
