"""The model that train.yaml describes, its loss and its batches: an encoder, a translator, a classifier, a denoiser, a graph."""

import torch
from torch.nn import functional as F

from prepare import WEIGHTS, prepare


def from_transformers(cfg, dtype):
    """Published weights, or where train.yaml changes sizes, new ones."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(cfg["model"])
    config.use_cache = cfg["use_cache"]
    for path, size in cfg["dims"].items():
        *outer, name = path.split(".")
        part = getattr(config, outer[0]) if outer else config
        setattr(part, name, size)
    kinds, make = dict(dtype=dtype, attn_implementation=cfg["attention"]), getattr(transformers, cfg["class"])
    if cfg["dims"]:
        return make.from_config(config, **kinds)
    return make.from_pretrained(cfg["model"], config=config, **kinds)


def from_diffusers(cfg, dtype):
    import diffusers

    make = getattr(diffusers, cfg["class"])
    return make.from_pretrained(cfg["model"], subfolder=cfg["subfolder"], torch_dtype=dtype)


def from_timm(cfg, dtype):
    import timm

    return timm.create_model(cfg["class"], pretrained=cfg["pretrained"], num_classes=cfg["classes"]).to(dtype)


class Graph(torch.nn.Module):
    """Layers of PyTorch Geometric over the edges as they are: no loops are added, nothing is normalised."""

    def __init__(self, kind, features, hidden, heads, layers, classes):
        super().__init__()
        from torch_geometric import nn

        make = {
            "gcn": lambda width, out, heads: nn.GCNConv(width, out, normalize=False, add_self_loops=False),
            "gat": lambda width, out, heads: nn.GATConv(width, out, heads=heads, add_self_loops=False),
            "sage": lambda width, out, heads: nn.SAGEConv(width, out),
        }[kind]
        self.c, width = torch.nn.ModuleList(), features
        for layer in range(layers):
            last = layer + 1 == layers
            self.c.append(make(width, classes if last else hidden, 1 if last else heads))
            width = hidden * (heads if kind == "gat" else 1)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x, edge_index, edge_weight=None):
        weights = () if edge_weight is None else (edge_weight,)
        for layer, convolution in enumerate(self.c):
            x = convolution(x, edge_index, *weights)
            if layer + 1 < len(self.c):
                x = self.dropout(F.relu(x))
        return x


class Recurrent(torch.nn.Module):
    """The word language model of PyTorch's examples, untied."""

    def __init__(self, kind, vocab, embed, hidden, layers):
        super().__init__()
        self.emb = torch.nn.Embedding(vocab, embed)
        make = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[kind]
        self.rnn = make(embed, hidden, layers, batch_first=True)
        self.head = torch.nn.Linear(hidden, vocab)

    def forward(self, input_ids):
        states, _ = self.rnn(self.emb(input_ids))
        return self.head(states)


def written_here(cfg, dtype):
    make = {"Graph": Graph, "Recurrent": Recurrent}[cfg["class"]]
    return make(**cfg["sizes"]).to(dtype)


LIBRARIES = {
    "transformers": from_transformers, "diffusers": from_diffusers, "timm": from_timm, "model.py": written_here,
}


def build(cfg, here):
    model = LIBRARIES[cfg["library"]](cfg, WEIGHTS.get(cfg["precision"], torch.float32))
    return prepare(cfg, model, cfg["layers"], cfg["blocks"])


def own(model, inputs):
    """The model computes its loss itself."""
    outputs = model(**inputs)
    return outputs.loss, outputs


def contrastive(model, inputs):
    outputs = model(**inputs, return_loss=True)
    return outputs.loss, outputs


def classes(model, inputs):
    labels = inputs.pop("labels")
    logits = model(*inputs.values())
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten()), logits


def denoised(model, inputs):
    """The mean squared error to the noise, or to the velocity, of a U-Net."""
    target = inputs.pop("target")
    added = {name: inputs.pop(name) for name in ("text_embeds", "time_ids") if name in inputs}
    predicted = model(**inputs, **({"added_cond_kwargs": added} if added else {})).sample
    return F.mse_loss(predicted.float(), target.float()), predicted


def flow(model, inputs):
    """The same of FLUX, whose texts and pixels have places."""
    target, places = inputs.pop("target"), inputs.pop("ids")
    words = inputs["encoder_hidden_states"].shape[1]
    predicted = model(**inputs, txt_ids=places[:words], img_ids=places[words:]).sample
    return F.mse_loss(predicted.float(), target.float()), predicted


LOSSES = {"own": own, "contrastive": contrastive, "classes": classes, "denoised": denoised, "flow": flow}


def forward(cfg, model, inputs):
    """The loss, and what else the model returns."""
    return LOSSES[cfg["objective"]](model, dict(inputs))


def made(form, dtype, random):
    """A random tensor of this form: numbers, indices below a limit, positions, or a mask whose last eighth is padding."""
    shape, kind = form["shape"], form["of"]
    if kind == "numbers":
        return torch.randn(shape, generator=random).to(dtype)
    if kind == "positions":
        return torch.arange(shape[-1]).expand(shape).contiguous()
    if kind == "mask":
        mask = torch.ones(shape, dtype=torch.long)
        mask[:, shape[-1] - shape[-1] // 8:] = 0
        return mask
    return torch.randint(kind, shape, generator=random)


def batches(cfg, rank, world):
    """Micro-batches without end, from the file that torch.save wrote, a list of such batches, or random ones."""
    random, dtype = torch.Generator().manual_seed(rank), WEIGHTS.get(cfg["precision"], torch.float32)
    known = torch.load(cfg["train_file"])[rank::world] if cfg["train_file"] else []
    while True:
        for batch in known or [{name: made(form, dtype, random) for name, form in cfg["inputs"].items()}]:
            if cfg["channels_last"]:
                images = {name for name, tensor in batch.items() if tensor.dim() == 4}
                batch = {
                    name: tensor.contiguous(memory_format=torch.channels_last) if name in images else tensor
                    for name, tensor in batch.items()
                }
            yield batch
