"""Holds exports to the trainers of images and videos to what these accept: diffusion.py HEADROOM WORK

They are checkouts of repositories that are not here. diffusion.json has, for each at its commit, the flags of its scripts'
parsers and the keys of its files. Here launch.sh is run with programs that only note how they were called; the calls go through
parsers of the same flags, and every key of a file must be one that the program reads.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
UNET = "to_q,to_k,to_v,to_out.0,net.0.proj,net.2,proj_in,proj_out"
JOINT = "to_q,to_k,to_v,to_out.0,add_q_proj,add_k_proj,add_v_proj,to_add_out,net.0.proj,net.2"
FLUX = f"{JOINT},proj_mlp,proj_out"
WAN = "to_q,to_k,to_v,to_out.0,net.0.proj,net.2"

# Program, preset, its changes.
EXPORTS = [
    ("kohya", "sdxl-lora-16gb", "save_every=100 workers=2"),
    ("kohya", "sdxl-lora-16gb", "quant=fp8 lora_fp32=off lora_dropout=0.1 height=1216 width=832"),
    ("kohya", "sd-1.5-lora-8gb", f"lora_targets={UNET} optim=adamw-8bit clip=on"),
    ("kohya", "sd-1.5-lora-8gb", f"model=sd-2.1-unet lora_targets={UNET} gpus=2 par=ddp"),
    ("kohya", "sd-1.5-full-24gb", ""),
    ("kohya", "sd-1.5-full-24gb", "model=sdxl-unet precision=amp-bf16-on-bf16 optim=adafactor-hf"),
    ("kohya", "sd-1.5-full-24gb", "model=flux.1-dev precision=amp-bf16-on-bf16 optim=adafactor-hf"),
    ("kohya", "sd-1.5-full-24gb", "model=sd3.5-medium precision=amp-bf16-on-bf16 optim=adafactor-hf"),
    ("kohya", "flux-lora-48gb", f"lora_targets={FLUX} block_swap=10 quant=fp8"),
    ("kohya", "flux-lora-48gb", f"model=sd3.5-medium lora_targets={JOINT}"),
    ("diffusers", "sdxl-lora-16gb", "lora_targets=to_q,to_k,to_v,to_out.0 optim=adamw lora_fp32=off save_every=100 save_keep=2"),
    ("diffusers", "sd-1.5-lora-8gb", "optim=adamw-8bit precision=amp-fp16-on-fp16"),
    ("diffusers", "sd-1.5-full-24gb", "ema=on ema_on_host=on clip=on"),
    ("diffusers", "sd-1.5-full-24gb", "model=sdxl-unet"),
    ("diffusers", "sd-1.5-full-24gb", "model=flux.1-dev precision=amp-bf16"),
    ("diffusers", "sd-1.5-full-24gb", "model=sd3.5-medium precision=amp-bf16"),
    *(
        ("diffusers", "flux-lora-48gb", f"model={model} optim=adamw lora_fp32=off")
        for model in ("flux.1-dev", "flux.2-dev", "flux.2-klein-base-4b", "qwen-image", "sd3.5-medium", "z-image", "lumina-image-2.0", "sana-1.6b")
    ),
    ("musubi", "flux-lora-48gb", f"model=wan2.1-t2v-1.3b lora_targets={WAN} frames=33 block_swap=5 clip=on"),
    ("musubi", "flux-lora-48gb", f"model=wan2.1-i2v-14b lora_targets={JOINT} frames=17 optim=adamw-8bit"),
    ("musubi", "flux-lora-48gb", f"model=qwen-image lora_targets={JOINT} quant=fp8 lora_dropout=0.1"),
    ("musubi", "flux-lora-48gb", f"model=flux.1-kontext-dev lora_targets={FLUX}"),
    ("musubi", "flux-lora-48gb", f"model=hunyuanvideo lora_targets={FLUX} frames=33 save_every=50"),
    ("musubi", "flux-lora-48gb", "model=z-image lora_targets=to_q,to_k,to_v,to_out.0,w1,w2,w3"),
    ("ai-toolkit", "sdxl-lora-16gb", "save_every=100 save_keep=2"),
    ("ai-toolkit", "flux-lora-48gb", "quant=fp8 optim=adamw-8bit lora_dropout=0.1"),
    ("ai-toolkit", "flux-lora-48gb", f"model=wan2.1-t2v-1.3b lora_targets={WAN} frames=33 height=480 width=480"),
    ("ai-toolkit", "sd-1.5-full-24gb", "precision=amp-bf16-on-bf16"),
    ("simpletuner", "sdxl-lora-16gb", "precision=bf16 optim=adamw lora_fp32=off save_every=100 save_keep=2"),
    ("simpletuner", "flux-lora-48gb", "model=wan2.1-t2v-1.3b precision=bf16 optim=adamw-8bit lora_fp32=off frames=33 height=480 width=480 block_swap=4"),
    ("simpletuner", "sd-1.5-full-24gb", "precision=bf16 optim=adamw"),
    ("diffusion-pipe", "flux-lora-48gb", f"lora_targets={FLUX} precision=bf16 lora_dropout=0.1 quant=fp8 block_swap=8"),
    ("diffusion-pipe", "flux-lora-48gb", f"model=wan2.1-t2v-1.3b lora_targets={WAN} frames=33 precision=bf16 lora_fp32=off"),
    ("diffusion-pipe", "flux-lora-48gb", f"model=hunyuanvideo lora_targets={FLUX} frames=33 precision=bf16 lora_fp32=off"),
    ("onetrainer", "sdxl-lora-16gb", "quant=nf4 optim=adamw-8bit save_every=100"),
    ("onetrainer", "sd-1.5-full-24gb", "epochs=7 clip=on"),
    ("onetrainer", "flux-lora-48gb", "model=hunyuanvideo lora_targets=to_q,to_k,to_v,to_out.0 frames=33 height=512 width=512"),
]

# Stands in for accelerate, deepspeed and python.
NOTES_ITS_CALL = """#!{python}
import json, os, sys
with open(os.environ["CALLED"], "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
"""


def main():
    headroom, work = sys.argv[1:3]
    with open(os.path.join(HERE, "diffusion.json"), encoding="utf-8") as file:
        programs = json.load(file)
    stand_ins = os.path.join(work, "programs")
    os.makedirs(stand_ins)
    for name in ("accelerate", "deepspeed", "python", "simpletuner"):
        path = os.path.join(stand_ins, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(NOTES_ITS_CALL.format(python=sys.executable))
        os.chmod(path, 0o755)
    failed = 0
    for number, (name, preset, changes) in enumerate(EXPORTS):
        folder = os.path.join(work, f"{number}-{name}")
        try:
            words = [headroom, "export", preset, "--target", name, "--out", folder]
            for change in changes.split():
                words += ["--set", change]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            calls = called(stand_ins, folder)
            CHECKS[name](programs[name], folder, calls)
            print(f"ok    {name} {preset} {changes}")
        except (AssertionError, ValueError, SystemExit, subprocess.CalledProcessError, KeyError) as problem:
            failed += 1
            print(f"FAIL  {name} {preset} {changes}: {problem}")
    sys.exit(1 if failed else 0)


def called(stand_ins, folder):
    """The words of every call of launch.sh."""
    notes = os.path.join(folder, "called")
    environment = dict(os.environ, PATH=f"{stand_ins}:{os.environ['PATH']}", CALLED=notes)
    subprocess.run(["bash", os.path.join(folder, "launch.sh")], check=True, env=environment)
    with open(notes, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def script_and_words(call):
    """The name of the script among a launcher's words, and the words after it."""
    at = next(at for at, word in enumerate(call) if word.endswith(".py"))
    return os.path.basename(call[at]).removesuffix(".py"), call[at + 1 :]


def merged(parts):
    flags = {"values": set(), "switches": set(), "choices": {}}
    for part in parts:
        flags["values"] |= set(part["values"])
        flags["switches"] |= set(part["switches"])
        flags["choices"].update(part["choices"])
    return flags


def parse(flags, words):
    """The words through a parser of these flags: an unknown one ends the program."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    for name in sorted(flags["values"] - set(flags["choices"])):
        parser.add_argument(f"--{name}")
    for name in sorted(flags["switches"]):
        parser.add_argument(f"--{name}", action="store_true")
    for name, choices in flags["choices"].items():
        parser.add_argument(f"--{name}", choices=choices)
    parsed, unknown = parser.parse_known_args(words)
    assert not unknown, f"unknown words {unknown}"
    return parsed


def known(keys, allowed, where):
    unknown = sorted(set(keys) - set(allowed))
    assert not unknown, f"{where}: unknown keys {unknown}"


def toml(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return tomllib.load(file)


def of_flags(flags, settings, where):
    """Settings in a file that are a parser's flags."""
    known(settings, flags["values"] | flags["switches"] | set(flags["choices"]), where)
    for key, value in settings.items():
        if key in flags["choices"]:
            assert value in flags["choices"][key], f"{key}: {value}"
        assert (key in flags["switches"]) == isinstance(value, bool), f"{key}: {value}"


def kohya(program, folder, calls):
    for call in calls:
        script, words = script_and_words(call)
        own = program["scripts"][script]
        flags = merged([own] if "cache" in script else [program["common"], own])
        parsed = parse(flags, words)
        if getattr(parsed, "config_file", None):
            of_flags(flags, toml(folder, parsed.config_file), "config.toml")
    data = toml(folder, "dataset.toml")
    known(data, program["dataset"], "dataset.toml")
    for part in [data["general"], *data["datasets"]]:
        known(part, program["dataset"], "dataset.toml")
        for subset in part.get("subsets", []):
            known(subset, program["dataset"], "subsets")


def diffusers(program, folder, calls):
    for call in calls:
        script, words = script_and_words(call)
        parse(merged([program["scripts"][script]]), words)


def ai_toolkit(program, folder, calls):
    keys = program["keys"]
    with open(os.path.join(folder, "job.yaml"), encoding="utf-8") as file:
        job = yaml.safe_load(file)
    (process,) = job["config"]["process"]
    known(process, keys[""], "process")
    for part in ("network", "train", "model", "save"):
        known(process.get(part, {}), keys[part], part)
    known(process.get("network", {}).get("network_kwargs", {}), keys["network.network_kwargs"], "network_kwargs")
    for data in process["datasets"]:
        known(data, keys["datasets"], "datasets")
    assert calls[0][1:] == ["job.yaml"]


def simpletuner(program, folder, calls):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        known(json.load(file), program["keys"], "config.json")
    with open(os.path.join(folder, "multidatabackend.json"), encoding="utf-8") as file:
        assert [data["dataset_type"] for data in json.load(file)][-1] == "text_embeds"
    assert calls == [["train"]]


def diffusion_pipe(program, folder, calls):
    config = toml(folder, "config.toml")
    known(config, program["keys"][""], "config.toml")
    known(config["model"], program["keys"]["model"] + ["type"], "model")
    known(config.get("adapter", {}), program["keys"]["adapter"], "adapter")
    known(toml(folder, "dataset.toml"), program["dataset"], "dataset.toml")
    assert calls[0][-3:] == ["--deepspeed", "--config", "config.toml"]


def onetrainer(program, folder, calls):
    keys = program["keys"]
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    known(config, keys[""] + ["__version"], "config.json")
    for part in ("unet", "transformer", "text_encoder", "text_encoder_2", "text_encoder_3"):
        known(config.get(part, {}), keys["part"], part)
    known(config["optimizer"], keys["optimizer"], "optimizer")
    for concept in config["concepts"]:
        known(concept, keys["concept"], "concepts")
    assert calls[0][1:] == ["--config-path", "config.json"]


CHECKS = {
    "kohya": kohya,
    "musubi": kohya,
    "diffusers": diffusers,
    "ai-toolkit": ai_toolkit,
    "simpletuner": simpletuner,
    "diffusion-pipe": diffusion_pipe,
    "onetrainer": onetrainer,
}

if __name__ == "__main__":
    main()
