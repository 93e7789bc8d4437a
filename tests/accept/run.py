"""Runs what Headroom exports with the real tools: run.py HEADROOM ENVIRONMENTS WORK [--all] [--parse] [WORD]

A run takes the exported files and their launch.sh as they are, but for these overrides, which a machine without a GPU
and without a hub needs; everything else that a line below changes is part of the scenario:

    every tool        the model and the data are the fixtures', two steps, each step's loss is printed
    transformers etc. use_cpu: true
    Accelerate        use_cpu: true, MULTI_GPU is MULTI_CPU
    DeepSpeed         DS_ACCELERATOR=cpu
    Lightning         accelerator: cpu
    Axolotl           --launcher python --bf16 false
"""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time

HEADROOM, ENVIRONMENTS, WORK = sys.argv[1:4]
FIXTURES = os.path.join(WORK, "fixtures")
HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = ["mb=2", "seq=32", "accum=2"]

# Two steps: environment, target, changes of the scenario.
RUNS = [
    ("core", "plain", "precision=amp-bf16 clip=on ema=on eval_mb=2 save_every=1 save_keep=1 workers=1"),
    ("core", "plain", "gpus=2 precision=fp32 optim=adamw-fused ckpt=layers mask=on"),
    ("core", "plain", "precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj quant=nf4-double optim=adamw-8bit"),
    ("core", "plain", "gpus=2 par=fsdp2 precision=amp-bf16 optim=adamw-fused clip=on ckpt=layers save_every=1"),
    ("core", "plain", "gpus=4 par=fsdp2 precision=amp-bf16 wrap=layers-ends prefetch_bwd=2 reshard=off"),
    ("core", "plain", "gpus=2 partition_optimizer=on precision=fp32 save_every=1"),
    ("core", "plain", "precision=fp32 ckpt=keep-half loss=chunked-checkpoint accum=1 optim_in_backward=on"),
    ("core", "plain", "precision=amp-bf16 ckpt=layers ckpt_every=2 loss=chunked-loss lora=on lora_targets=q_proj mask=on"),
    ("core", "plain", "precision=amp-bf16 ckpt=offload loss=chunked-head dropout=off"),
    ("core", "plain", "model=bert-base-uncased precision=amp-bf16 mask=on ckpt=layers ckpt_every=2"),
    ("core", "plain", "gpus=2 model=t5-base precision=fp32 ckpt=keep-half"),
    ("core", "plain", "model=whisper-tiny precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj"),
    ("core", "plain", "precision=amp-bf16-on-bf16 lora=on lora_method=dora lora_targets=q_proj lora_save=lm_head,embed_tokens"),
    ("core", "plain", "precision=amp-bf16 lora=on lora_method=ia3 lora_targets=k_proj,v_proj,down_proj"),
    ("core", "plain", "model=lstm-wikitext2 precision=fp32 clip=on dims=hidden=16,embed=16,vocab=100"),
    ("core", "plain", "precision=fp32 compile=model"),
    ("core", "plain", "precision=fp32 compile=layers ckpt=none"),
    ("core", "hf", "precision=fp32 compile=model"),
    ("core", "hf", "precision=amp-bf16 clip=on save_every=2"),
    ("core", "hf", "gpus=2 precision=fp32 optim=adamw-fused ckpt=layers mask=on"),
    ("core", "hf", "precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj lora_fp32=off quant=nf4"),
    ("core", "hf", "precision=amp-bf16-on-bf16 lora=on lora_method=ln lora_save=lm_head"),
    ("core", "hf", "precision=amp-bf16-on-bf16 lora=on lora_method=oft lora_block=16 lora_targets=q_proj,v_proj"),
    ("core", "accelerate", "precision=bf16 optim=adafactor-hf"),
    ("core", "accelerate", "gpus=2 par=zero2 precision=amp-bf16 clip=on"),
    ("core", "deepspeed", "gpus=2 par=zero2 precision=amp-bf16"),
    ("core", "deepspeed", "gpus=2 par=zero3 precision=amp-bf16 clip=on offload=optimizer"),
    ("core", "trl", "precision=amp-bf16 ckpt=layers"),
    ("core", "trl", "precision=amp-bf16-on-bf16 lora=on lora_fp32=off quant=nf4-double mask=on"),
    ("core", "trl", "precision=amp-bf16-on-bf16 lora=on lora_method=dora lora_targets=q_proj lora_save=lm_head mask=on"),
    ("core", "trl", "gpus=2 precision=fp32 optim=sgd"),
    ("core", "trl", "task=dpo precision=amp-bf16 ckpt=layers mask=on"),
    ("core", "trl", "task=dpo precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj reference=precomputed-by-itself"),
    ("core", "trl", "gpus=2 par=fsdp2 task=dpo precision=amp-bf16 mask=on"),
    ("core", "trl", "gpus=2 par=zero3 task=dpo precision=bf16 mask=on reference=copy"),
    ("core", "trl", "task=kto precision=fp32"),
    ("core", "trl", "task=reward precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj mask=on"),
    ("core", "trl", "task=grpo precision=amp-bf16 reference=copy generations=2 prompt=8 completion=8"),
    ("core", "trl", "task=rloo precision=bf16 lora=on lora_targets=q_proj,v_proj lora_fp32=on generations=4 prompt=8 completion=8"),
    ("core", "lightning", "precision=amp-bf16 clip=on save_every=1"),
    ("core", "lightning", "gpus=2 precision=fp32 ckpt=layers bucket_view=on"),
]
# The same, for environments that only `--all` makes.
MORE_RUNS = [
    ("axolotl", "axolotl", "precision=fp32 clip=on"),
    ("axolotl", "axolotl", "precision=fp32 lora=on lora_targets=q_proj,v_proj"),
    ("llama-factory", "llama-factory", "precision=amp-bf16 ckpt=layers"),
    ("llama-factory", "llama-factory", "precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj mask=on"),
    ("llama-factory", "llama-factory", "precision=amp-bf16-on-bf16 lora=on lora_method=dora lora_targets=q_proj lora_save=lm_head mask=on"),
    ("llama-factory", "llama-factory", "precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj quant=nf4-double mask=on"),
    ("swift", "swift", "precision=amp-bf16-on-bf16 lora=on mask=on"),
]
# The tool's own parser: environment, its check, the files, target, changes.
PARSES = [
    ("core", "accelerate", "accelerate.yaml", "accelerate", "gpus=4 par=fsdp2 ckpt=layers"),
    ("core", "accelerate", "accelerate.yaml", "accelerate", "gpus=4 par=zero3 offload=parameters clip=on"),
    ("core", "accelerate", "accelerate.yaml", "accelerate", "gpus=8 par=fsdp2 cp=2"),
    ("core", "accelerate", "accelerate.yaml", "trl", "gpus=2 par=fsdp2 reshard=off"),
    ("core", "trainer", "train.yaml", "accelerate", "gpus=4 par=fsdp2 kernels=liger loss=liger-linear workers=2 save_every=5 save_keep=2"),
    ("core", "trainer", "train.yaml", "hf", "kernels=liger loss=library"),
    ("core", "trl", "sft.yaml", "trl", "gpus=2 par=zero2 precision=amp-fp16 lora=on"),
    ("core", "trl", "distillation.yaml", "trl",
     "model=qwen2.5-0.5b task.objective=distillation teacher=qwen2.5-1.5b sampler=generate prompt=16 completion=16 precision=amp-bf16"),
    ("core", "deepspeed", "deepspeed.json", "deepspeed", "gpus=2 par=zero1"),
    ("core", "deepspeed", "deepspeed.json", "deepspeed", "gpus=2 par=zero3 offload=parameters precision=amp-fp16"),
    ("core", "deepspeed", "deepspeed.json", "deepspeed", "gpus=4 par=zero3 reshard_to=2 precision=amp-bf16"),
    ("core", "lightning", "lightning.yaml", "lightning", "gpus=2 par=zero3 offload=optimizer"),
    ("core", "lightning", "lightning.yaml", "lightning", "gpus=2 par=fsdp1 reshard=off precision=bf16"),
    ("core", "kubernetes", "job.yaml", "kubernetes", "gpus=8 expandable=on"),
    ("core", "trainjob", "trainjob.yaml", "trainjob", "gpus=16 nodes=2 expandable=on max_split=128"),
    ("core", "allocator", "launch.sh", "plain", "expandable=on gc=0.8 max_split=128 roundup=4"),
]
# The Python package, with what it is used with.
PACKAGES = [("core", "python", "the wheel in a clean environment, trainers that are watched")]
FULL = "clip=on precision=amp-bf16 optim=adamw-fused"
MORE_PARSES = [
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl", "gpus=2 par=fsdp2 ckpt=layers precision=bf16"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl", "gpus=2 par=zero3 precision=amp-bf16-on-bf16 lora=on"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl", "precision=amp-bf16-on-bf16 lora=on quant=nf4 optim=adamw-paged-8bit"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl", "precision=bf16 kernels=liger loss=liger-linear"),
    ("llama-factory", "llama-factory", "train.yaml", "llama-factory", "kernels=liger loss=liger-linear optim=adamw-8bit"),
    ("swift", "swift", "swift.yaml", "swift", "mask=on lora=on precision=amp-bf16-on-bf16 quant=nf4-double"),
    ("torchtune", "torchtune", "torchtune.yaml", "torchtune", "model=llama-3.2-1b precision=bf16 optim=adamw-fused loss=chunked-loss"),
    ("torchtune", "torchtune", "torchtune.yaml", "torchtune", "model=qwen2.5-7b precision=bf16 lora=on lora_fp32=off quant=nf4-double ckpt=layers"),
    ("torchtune", "torchtune", "torchtune.yaml", "torchtune", "model=llama-3.1-8b precision=bf16 gpus=4 par=fsdp2 offload=parameters"),
    ("torchtitan", "torchtitan", "launch.sh", "torchtitan", f"model=llama-3.1-8b loss=chunked-checkpoint ckpt=layers gpus=8 par=fsdp2 tp=2 loss_parallel=on {FULL}"),
    ("torchtitan", "torchtitan", "launch.sh", "torchtitan", f"model=qwen3-0.6b loss=liger-linear ckpt=keep-half gpus=2 par=fsdp2 compile=layers {FULL}"),
    ("torchtitan", "megatron", "launch.sh", "megatron", f"model=llama-3.1-8b gpus=16 nodes=2 tp=2 pp=2 loss_parallel=on par=zero1 ckpt=layers {FULL}"),
    ("torchtitan", "megatron", "launch.sh", "megatron", f"model=gpt2 {FULL}"),
    ("skypilot", "skypilot", "task.yaml", "skypilot", "gpu=h100-sxm5 gpus=16 nodes=2 expandable=on"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl", "task=dpo precision=bf16 reference=precomputed mask=on"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl", "task=kto precision=amp-bf16-on-bf16 lora=on reference=auto mask=on"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl", "task=orpo precision=bf16 mask=on"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl",
     "task=grpo generations=4 completion=64 precision=amp-bf16-on-bf16 lora=on reference=adapters-off sampler=vllm"),
    ("llama-factory", "llama-factory", "train.yaml", "llama-factory", "task=dpo task_head=log-softmax precision=bf16 mask=on"),
    ("llama-factory", "llama-factory", "train.yaml", "llama-factory",
     "task=kto task_head=log-softmax precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj mask=on"),
    ("swift", "swift-rlhf", "swift.yaml", "swift", "task=dpo task_head=logits precision=bf16 mask=on"),
    ("swift", "swift-rlhf", "swift.yaml", "swift", "task=reward precision=bf16 mask=on"),
    ("swift", "swift-rlhf", "swift.yaml", "swift",
     "task=grpo task_head=logits reference=none sampler=vllm vllm_sleep=on generations=4 completion=64 precision=bf16"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl", "task=simpo precision=amp-bf16-on-bf16 lora=on mask=on reference=none"),
    ("axolotl", "axolotl", "axolotl.yaml", "axolotl",
     "task=grpo generations=2 gpus=2 par=ddp completion=64 precision=amp-bf16-on-bf16 lora=on reference=none sampler=generate"),
    ("llama-factory", "llama-factory", "train.yaml", "llama-factory", "task=orpo task_head=log-softmax precision=bf16 mask=on reference=none"),
    ("llama-factory", "llama-factory", "train.yaml", "llama-factory", "task=simpo task_head=log-softmax precision=bf16 mask=on reference=none"),
    ("swift", "swift-rlhf", "swift.yaml", "swift", "task=kto task_head=logits precision=bf16 mask=on"),
    ("swift", "swift-rlhf", "swift.yaml", "swift", "task=orpo task_head=logits precision=bf16 mask=on reference=none"),
    ("swift", "swift-rlhf", "swift.yaml", "swift", "task=cpo task_head=logits precision=bf16 mask=on reference=none"),
    ("verl", "verl", "verl.yaml", "verl",
     "task=grpo sampler=vllm generations=4 clip=on precision=amp-bf16-on-bf16 lora=on lora_targets=q_proj,v_proj gpus=2 par=ddp"),
    ("verl", "verl", "verl.yaml", "verl",
     "task=rloo sampler=vllm vllm_sleep=on generations=2 clip=on precision=amp-bf16 optim=adamw-8bit reference=copy"),
    ("unsloth", "unsloth", "unsloth.yaml", "unsloth",
     "optim=adamw-8bit kernels=fused-norms loss=liger clip=on lora=on precision=amp-bf16-on-bf16 quant=nf4-double mask=on ckpt=layers"),
]


def export(target, changes, folder, model="llama-3.2-1b"):
    words = [HEADROOM, "export", "gpt2-small", "--target", target, "--out", folder, "--set", f"model={model}"]
    for change in [*SMALL, *changes.split()]:
        words += ["--set", change]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def python(environment):
    return os.path.join(ENVIRONMENTS, environment, "bin", "python")


def override(path, key, value):
    """Sets a top-level key, whether it is there or not."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    line = f"{key}: {json.dumps(value)}"
    found = re.compile(rf"^{key}:.*$", re.M)
    text = found.sub(lambda _: line, text) if found.search(text) else f"{text}{line}\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def replace(path, old, new):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def name_of(changes):
    """The fixture that stands in for the scenario's model: its own, or the language model."""
    named = re.search(r"model=(\S+)", changes)
    own = named and os.path.isdir(os.path.join(FIXTURES, named.group(1)))
    return named.group(1) if own else "model"


def prepare(target, folder, changes):
    """The overrides of the list above; the words and variables that go with the command."""
    model, words, variables = os.path.join(FIXTURES, name_of(changes)), [], {}
    shutil.copytree(os.path.join(FIXTURES, "data"), os.path.join(folder, "data"))
    shutil.copy(os.path.join(FIXTURES, "data", "train.jsonl"), folder)
    task = re.search(r"task=(\S+)", changes)
    rows = {"dpo": "preference", "reward": "preference", "kto": "unpaired", "grpo": "prompts", "rloo": "prompts"}
    if task:
        for place in (folder, os.path.join(folder, "data")):
            shutil.copy(os.path.join(FIXTURES, "data", f"{rows[task.group(1)]}.jsonl"), os.path.join(place, "train.jsonl"))
    of_tasks = [f"{name}.yaml" for name in rows]
    for name in ("train.yaml", "sft.yaml", "swift.yaml", "axolotl.yaml", *of_tasks):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            continue
        override(path, "max_steps", 2)
        if target in ("plain", "lightning", "swift"):
            override(path, "model", model)
        else:
            override(path, "base_model" if target == "axolotl" else "model_name_or_path", model)
        if target not in ("plain", "lightning", "axolotl"):
            override(path, "use_cpu", True)
        if target not in ("plain", "lightning"):
            override(path, "logging_steps", 1)
    path = os.path.join(folder, "accelerate.yaml")
    if os.path.exists(path):
        override(path, "use_cpu", True)
        replace(path, "distributed_type: MULTI_GPU", "distributed_type: MULTI_CPU")
        variables["DS_ACCELERATOR"] = "cpu"
    if target == "lightning":
        replace(os.path.join(folder, "lightning.yaml"), "accelerator: gpu", "accelerator: cpu")
        replace(os.path.join(folder, "lightning.yaml"), "max_steps: 100", "max_steps: 2")
    if target == "axolotl":
        variables["AXOLOTL_DO_NOT_TRACK"] = "1"
        words = ["--launcher", "python", "--bf16", "false"]
    if target == "swift":
        # The fixture's model is no model of a hub: its kind and its chat's form must be said.
        override(os.path.join(folder, "swift.yaml"), "model_type", "llama")
        override(os.path.join(folder, "swift.yaml"), "template", "dummy")
        shutil.copy(os.path.join(FIXTURES, "data", "chat.jsonl"), os.path.join(folder, "train.jsonl"))
        variables["MODELSCOPE_CACHE"] = os.path.join(folder, "hub")
    return words, variables


def fixtures():
    done = subprocess.run([python("core"), os.path.join(HERE, "fixtures.py"), FIXTURES], text=True,
                          env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(f"no fixtures: {done.stdout[-3000:]}")


def run(number, environment, target, changes):
    """Two steps, as a line of RUNS has them."""
    folder = os.path.join(WORK, f"run{number}")
    export(target, changes, folder)
    words, variables = prepare(target, folder, changes)
    path = os.path.dirname(python(environment)) + os.pathsep + os.environ["PATH"]
    variables.update(PATH=path, HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
    done = subprocess.run(["bash", "launch.sh", *words], cwd=folder, env={**os.environ, **variables}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    losses = re.findall(r"['\"](?:train_)?loss['\"]: ['\"]?([-+0-9.e]+)", done.stdout)
    steps = 1 if target == "lightning" else 2
    # A mean of advantages times ratios is about nothing; other losses are above it.
    lowest = -1 if "generations=" in changes else 0
    good = done.returncode == 0 and len(losses) >= steps and all(lowest < float(loss) < 20 for loss in losses)
    if good and target == "plain" and "par=fsdp2" in changes:
        # What one process holds of the weights, as it says itself; the last shards are padded.
        whole, held = map(int, re.search(r'"parameters": (\d+), "held": (\d+)', done.stdout).groups())
        world = int(re.search(r"gpus=(\d+)", changes).group(1))
        good = held <= 1.05 * whole / world
    return good, f"losses {' '.join(losses[:4])}" if good else done.stdout[-3000:]


def parse(number, environment, lines):
    """All files for one environment in one process."""
    words = []
    for at, (check, name, target, changes) in enumerate(lines):
        folder = os.path.join(WORK, f"parse{number}-{at}")
        export(target, changes, folder)
        words.append(f"{check}={os.path.join(folder, name)}")
    variables = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore", "DS_ACCELERATOR": "cpu"}
    done = subprocess.run([python(environment), os.path.join(HERE, "check.py"), *words],
                          env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    taken = ["{} took {}".format(*word.split("=", 1)) in done.stdout for word in words]
    return [(good, line[1] if good else done.stdout[-3000:]) for good, line in zip(taken, lines)]


def package(number, environment, target, about):
    """The wheel is built and installed without a network; its command answers; then its environment is lent the trainers."""
    folder = os.path.join(WORK, f"package{number}")
    site, command = os.path.join(folder, "venv"), os.path.join(folder, "venv", "bin", "headroom")
    build = os.path.join(os.path.dirname(os.path.dirname(HERE)), "scripts", "python", "wheel.py")
    uv = os.path.join(ENVIRONMENTS, "uv", "bin", "uv")
    run = lambda *words, **variables: subprocess.run(words, env={**os.environ, **variables}, text=True, timeout=1800,
                                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wheel = run(python(environment), build, HEADROOM, folder).stdout.strip()
    run(uv, "venv", "-q", "--python", python(environment), site)
    installed = run(uv, "pip", "install", "-q", "--offline", "--no-index", "--python", os.path.join(site, "bin", "python"), wheel)
    if installed.returncode:
        return False, installed.stdout[-3000:]
    answer = run(command, "estimate", "gpt2-small", "--json")
    if answer.stdout != run(HEADROOM, "estimate", "gpt2-small", "--json").stdout:
        return False, answer.stdout[-3000:]
    packages = run(python(environment), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    watched = run(os.path.join(site, "bin", "python"), os.path.join(HERE, "watch.py"), FIXTURES, folder, PYTHONPATH=packages,
                  HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
    good = watched.returncode == 0 and watched.stdout.rstrip().endswith("watched")
    return good, os.path.basename(wheel) if good else watched.stdout[-3000:]


def main():
    everything = "--all" in sys.argv
    more_runs = MORE_RUNS if everything else []
    only = [word for word in sys.argv[4:] if not word.startswith("--")]
    wanted = lambda environment, target: not only or environment in only or target in only
    runs = [line for line in RUNS + more_runs if wanted(line[0], line[1]) and "--parse" not in sys.argv]
    parses = {}
    for environment, *line in PARSES + (MORE_PARSES if everything else []):
        if wanted(environment, line[2]):
            parses.setdefault(environment, []).append(line)
    # Two processes' runs take longest; while the fixtures are made, files are parsed.
    runs.sort(key=lambda line: "gpus=2" not in line[2])
    packages = [line for line in PACKAGES if wanted(line[0], line[1]) and "--parse" not in sys.argv]
    jobs = [(parse, line) for line in parses.items()] + [(package, line) for line in packages] + [(run, line) for line in runs]
    passed = failed = 0

    # A third worker keeps two cores busy while a launcher waits for its processes.
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        made = pool.submit(fixtures) if runs or packages else None

        def do(number):
            kind, line = jobs[number]
            lines = line[1] if kind is parse else [line]
            started = time.monotonic()
            try:
                if kind is not parse:
                    made.result()
                    started = time.monotonic()
                results = kind(number, *line)
            except Exception as problem:
                results = [(False, repr(problem)) for _ in lines]
            return zip(lines, results if isinstance(results, list) else [results]), time.monotonic() - started

        for (kind, _), (results, seconds) in zip(jobs, pool.map(do, range(len(jobs)))):
            for line, (good, said) in results:
                passed, failed = passed + good, failed + (not good)
                what = "FAILED" if not good else "parsed" if kind is parse else "ran   "
                print(f"accept: {what} {line[-2]:13} {line[-1]}: {said} ({seconds:.0f} s)", flush=True)
    print(f"accept: {passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
