#!/usr/bin/env python3
"""Compares networks written by hand with the same networks recorded from their libraries.

    python scripts/by_hand.py [WORD...]     # only networks whose id or class holds one of the words

For each architecture of the catalogue the smallest model is built by its library at few layers, recorded by `headroom record`'s
module, and predicted twice: from the recording, and from the model's `config.json` alone; segments are expandable, for which blocks are not
rounded by what lies beside them. Needs torch, transformers and timm, no
GPU. HEADROOM names the program (default target/debug/headroom). Prints a line for each, and the share that is within 0.1 %.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADROOM = os.environ.get("HEADROOM", os.path.join(ROOT, "target", "debug", "headroom"))
LAYERS = 3
SIZES = [(2, 128), (4, 256)]
# A picture of LLaVA's is 576 tokens.
LONGER = [(2, 640), (4, 768)]
PRECISIONS = {"fp32": "fp32", "amp": "amp-bf16", "half": "bf16"}
WITHIN = 0.001


def headroom(*words):
    done = subprocess.run([HEADROOM, *words], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1][:200])
    return done.stdout


def catalogue():
    """Each catalogue model: its id, architecture, class and parameters."""
    entry = re.compile(r"  - id: (\S+)(.*?)(?=\n  - id: |\Z)", re.S)
    for name in sorted(os.listdir(os.path.join(ROOT, "catalog", "models"))):
        text = open(os.path.join(ROOT, "catalog", "models", name)).read()
        for found in entry.finditer(text):
            of = lambda key: (re.search(rf"\n    {key}: '?([^'\n]+)'?", found[2]) or [None, ""])[1]
            if of("class"):
                yield found[1], of("arch"), of("class"), int(of("parameters") or 0)


def configurations():
    """`config.json` of catalogue models as transformers' own classes write them."""
    with open(os.path.join(ROOT, "tests", "data", "configs.jsonl")) as lines:
        for line in lines:
            values = json.loads(line)
            yield values.pop("model"), values


def shortened(values):
    """The same configuration with few layers."""
    kept = dict(values)
    periods = [int(kept.get(key) or 1) for key in ("sliding_window_pattern", "_sliding_window_pattern", "no_rope_layer_interval", "global_attn_every_n_layers")]
    count = max([LAYERS, *(period + 1 for period in periods)])
    for key, value in values.items():
        if key in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "num_decoder_layers", "depth"):
            kept[key] = min(int(value or count), count)
        elif isinstance(value, list) and key in ("layer_types", "no_rope_layers", "attention_layers"):
            kept[key] = value[:count]
        elif isinstance(value, dict) and key.endswith("_config"):
            kept[key] = shortened(value)
    kept.pop("attention_layers", None)
    if "attention_types" in kept:
        kept["attention_types"] = [[["global", "local"], count // 2 or 1]]
        kept["num_layers"] = 2 * (count // 2 or 1)
    return kept


def batch_of(name, config):
    """The batch of a model class: a function of the batch size and the length."""
    import torch

    def tokens(b, s, top=100):
        return torch.arange(b * s).reshape(b, s) % top

    def image(b):
        vision = getattr(config, "vision_config", config)
        side = getattr(vision, "image_size", 224)
        return torch.zeros(b, 3, side, side)

    def text(b, s):
        batch = {"input_ids": tokens(b, s), "labels": tokens(b, s)}
        if config.model_type in ("bert", "roberta", "electra", "albert", "distilbert", "camembert", "xlm-roberta"):
            batch["position_ids"] = tokens(b, s)
        return batch

    # An encoder's text is four times as long as what the decoder writes.
    translated = lambda b, s: {"input_ids": tokens(b, s), "labels": tokens(b, max(1, s // 4))}
    pictures = lambda b, s: {"pixel_values": image(b), "labels": torch.zeros(b, dtype=torch.long)}
    if config.model_type in ("t5", "mt5", "umt5", "bart"):
        return translated
    if config.model_type == "whisper":
        frames = lambda b: torch.zeros(b, config.num_mel_bins, 2 * config.max_source_positions)
        return lambda b, s: {"labels": tokens(b, s), "input_features": frames(b)}
    if config.model_type == "llava":
        vision = config.vision_config
        count = (vision.image_size // vision.patch_size) ** 2

        def seen(b, s):
            ids = tokens(b, s)
            ids[:, :count] = config.image_token_index
            return {"input_ids": ids, "labels": tokens(b, s), "pixel_values": image(b)}

        return seen
    if config.model_type == "vit_mae":
        return lambda b, s: {"pixel_values": image(b)}
    if name.endswith("ForImageClassification"):
        return pictures
    if config.model_type in ("clip", "siglip"):
        places = config.text_config.max_position_embeddings
        return lambda b, s: {"input_ids": tokens(b, places), "pixel_values": image(b), "return_loss": True}
    return text


def of_transformers(identity, name, values, folder):
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(**shortened(values))
    config.use_cache = False
    path = os.path.join(folder, "config.json")
    config.to_json_file(path, use_diff=False)
    if getattr(config, "decoder_start_token_id", 0) is None or config.model_type in ("t5", "mt5"):
        config.decoder_start_token_id = 0
    # An encoder that the catalogue counts without a head is trained with one.
    kind = getattr(transformers, name.replace("Model", "ForMaskedLM"), None) or getattr(transformers, name)
    with torch.device("meta"):
        model = kind(config)
    return model.train(), batch_of(kind.__name__, config), None, headroom("import", path)


def of_timm(identity, name, folder):
    import timm
    import torch

    with torch.device("meta"):
        model = timm.create_model(name, pretrained=False).train()
    side = model.default_cfg["input_size"][-1]

    def batch(b, s):
        return {"x": torch.zeros(b, 3, side, side), "y": torch.zeros(b, dtype=torch.long)}

    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"])

    return model, batch, loss, None


def compared(record, identity, built, folder):
    """The peaks by hand and recorded, for each precision."""
    model, batch, loss, scenario = built
    recorded = os.path.join(folder, "recorded.json")
    sizes = LONGER if "llava" in identity else SIZES
    subject = record.Subject(model, lambda b, s, device: batch(b, s), loss or record.own_loss, sizes, identity, "library")
    record.write(subject.document(), recorded)
    what = identity
    if scenario:
        what = os.path.join(folder, "scenario.yaml")
        open(what, "w").write(scenario)
    b, s = sizes[0]
    common = ["training.optimizer=sgd", f"data.micro_batch={b}", f"data.sequence={s}", "hardware.gpu=a100-sxm4-80gb", "runtime.expandable_segments=on"]
    for precision in PRECISIONS.values():
        changes = [word for change in [*common, f"training.precision={precision}"] for word in ("--set", change)]
        peaks = [json.loads(headroom("estimate", of, *changes, "--json"))["allocated"]["expected"] for of in (what, recorded)]
        yield precision, *peaks


def main():
    warnings.filterwarnings("ignore")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    words = sys.argv[1:]
    offered = {model["id"] for model in json.loads(headroom("catalog", "models", "--json"))["models"]}
    configs = dict(configurations())
    smallest = {}
    for identity, architecture, name, parameters in catalogue():
        library = "timm" if name.startswith("timm:") else "transformers" if identity in configs else None
        if identity in offered and library and parameters < smallest.get((architecture, library), (1 << 62,))[0]:
            smallest[architecture, library] = (parameters, identity, name)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "headroom_record.py")
        open(path, "w").write(headroom("record"))
        sys.path.insert(0, folder)
        import headroom_record as record

        near = total = 0
        for (architecture, library), (_, identity, name) in sorted(smallest.items()):
            if words and not any(word in f"{identity} {architecture} {name}" for word in words):
                continue
            try:
                if library == "timm":
                    built = of_timm(identity, name[len("timm:"):], folder)
                else:
                    built = of_transformers(identity, name, configs[identity], folder)
                rows = list(compared(record, identity, built, folder))
            except Exception as problem:  # one network's trouble is a line of the table
                total += 1
                print(f"{architecture:<18} {identity:<28} {type(problem).__name__}: {str(problem)[:140]}", flush=True)
                if os.environ.get("TRACE"):
                    traceback.print_exc()
                continue
            errors = [(peak - hand) / hand for _, hand, peak in rows]
            worst = max(errors, key=abs)
            total += 1
            near += abs(worst) <= WITHIN
            shown = "  ".join(f"{precision} {error:+.4%}" for (precision, *_), error in zip(rows, errors))
            print(f"{architecture:<18} {identity:<28} {shown}", flush=True)
    print(f"{near} of {total} networks within {WITHIN:.1%}", flush=True)
    # Triton's bindings would list what they leak.
    os._exit(0)


if __name__ == "__main__":
    main()
