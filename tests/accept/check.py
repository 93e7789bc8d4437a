"""Asks a tool's own parser whether it takes a file, and whether it would notice a key that it does not know.

    check.py TOOL=FILE...

All files of one environment go through one process: starting a tool takes longer than reading a file.

Many of these parsers pass over keys that they do not know. So the keys are compared with the ones the tool has, and
each check is made once more with a made-up key, which must be refused.
"""

import contextlib
import copy
import io
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import traceback

MADE_UP = "headroom_made_up"


def load(path):
    with open(path, encoding="utf-8") as file:
        if path.endswith(".json"):
            return json.load(file)
        import yaml

        return yaml.safe_load(file)


def refuse(unknown):
    if unknown:
        raise ValueError(f"unknown keys {sorted(unknown)}")


def accelerate(document, path):
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.commands.launch import launch_command_parser

    config = load_config_from_file(path)
    known = {action.dest for action in launch_command_parser()._actions}
    refuse({*config.fsdp_config, *config.deepspeed_config, *config.parallelism_config} - known)


def deepspeed(document, path):
    os.environ["DS_ACCELERATOR"] = "cpu"
    from deepspeed.runtime import config, constants
    from deepspeed.runtime.zero import config as zero

    class Ranks:
        def get_data_parallel_world_size(self):
            return 2

        def get_model_parallel_world_size(self):
            return 1

    known = {value for module in (config, constants, zero) for value in vars(module).values() if isinstance(value, str)}
    refuse(document.keys() - known)
    read = config.DeepSpeedConfig(document, mpu=Ranks())
    assert read.zero_config.stage == document["zero_optimization"]["stage"]


@contextlib.contextmanager
def beside(path):
    """In the file's folder, whose modules are not those of another file's folder."""
    folder, before = os.path.dirname(os.path.abspath(path)), os.getcwd()
    sys.modules.pop("train", None)
    sys.path.insert(0, folder)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(folder)


def trainer(document, path):
    from transformers import HfArgumentParser, TrainingArguments

    with beside(path):
        import train

    HfArgumentParser((train.Ours, TrainingArguments)).parse_dict(dict(document, use_cpu=True))


def trl(document, path):
    from trl import DistillationConfig, ModelConfig, ScriptArguments, SFTConfig
    from transformers import HfArgumentParser

    config = DistillationConfig if path.endswith("distillation.yaml") else SFTConfig
    HfArgumentParser((ScriptArguments, config, ModelConfig)).parse_dict(dict(document, use_cpu=True))


def axolotl(document, path):
    os.environ["AXOLOTL_DO_NOT_TRACK"] = "1"
    from axolotl.cli.config import prepare_plugins
    from axolotl.utils.config import validate_config
    from axolotl.utils.dict import DictDefault

    config = DictDefault(document)
    prepare_plugins(config)
    with open(os.path.join(os.path.dirname(path), "launch.sh"), encoding="utf-8") as script:
        processes = re.search(r"--nproc[-_]per[-_]node[= ](\d+)|--num[-_]processes[= ](\d+)", script.read())
    gpus = int(next(filter(None, processes.groups()))) if processes else 1
    gpu = {"bf16": True, "fp8": False, "n_gpu": gpus, "n_node": 1, "compute_capability": "sm_90", "tf32": True}
    read = validate_config(config, capabilities=gpu, env_capabilities={"torch_version": "2.14.1"})
    refuse({key for key in document if key not in read})


def llama_factory(document, path):
    from llamafactory.hparams import parser

    # Asked of the GPU that is not here.
    parser.is_torch_bf16_gpu_available = lambda: True
    parser.get_train_args(dict(document, use_cpu=True))


def swift(document, path):
    from dataclasses import fields

    from swift.arguments import SftArguments

    refuse(document.keys() - {field.name for field in fields(SftArguments)})


def swift_rlhf(document, path):
    from dataclasses import fields

    from swift.arguments import RLHFArguments

    refuse(document.keys() - {field.name for field in fields(RLHFArguments)})


def verl(document, path):
    """Hydra composes the file over verl's own configuration, which refuses keys that it lacks, and OmegaConf resolves it."""
    from importlib.util import find_spec

    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    trainer = os.path.join(find_spec("verl").submodule_search_locations[0], "trainer", "config")
    with initialize_config_dir(trainer, version_base=None):
        known = compose("ppo_trainer")
    folder = os.path.dirname(os.path.abspath(path))
    with initialize_config_dir(folder, version_base=None):
        read = compose(os.path.basename(path)[:-5], overrides=[f"hydra.searchpath=[file://{trainer}]"])

    def compare(ours, theirs, at):
        for key, value in ours.items():
            if key != "defaults" or at:
                place = f"{at}{key}"
                # `in` denies keys that only lack a value.
                if key not in theirs.keys():
                    refuse({place})
                if isinstance(value, dict) and OmegaConf.is_config(theirs[key]):
                    compare(value, theirs[key], f"{place}.")

    compare(document, known, "")
    for section in ("actor_rollout_ref", "data", "algorithm", "trainer"):
        OmegaConf.to_container(read[section], resolve=True)


def torchtune(document, path):
    """`tune validate` looks at components only; the recipes' own keys are the ones that they read."""
    import re
    from importlib.util import find_spec

    subprocess.run([os.path.join(os.path.dirname(sys.executable), "tune"), "validate", path], check=True, stdout=subprocess.DEVNULL)
    folder, known = find_spec("recipes").submodule_search_locations[0], set()
    for name in ("full_finetune_single_device", "full_finetune_distributed", "lora_finetune_single_device", "lora_finetune_distributed"):
        with open(os.path.join(folder, f"{name}.py"), encoding="utf-8") as source:
            text = source.read()
        known.update(re.findall(r"cfg\.(\w+)", text), re.findall(r"cfg\.get\(\s*\"(\w+)\"", text))
    refuse(document.keys() - known)


def lightning(document, path):
    said, words = io.StringIO(), sys.argv
    sys.argv = ["cli.py", "fit", "--config", os.path.basename(path), "--print_config"]
    try:
        with beside(path), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            runpy.run_path("cli.py", run_name="__main__")
    except SystemExit as left:
        if left.code:
            raise ValueError(said.getvalue()[-300:]) from None
    finally:
        sys.argv = words


def unsloth(document, path):
    """Its configuration class alone: the program needs a GPU before it reads anything."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    path = os.path.join(find_spec("unsloth_cli").submodule_search_locations[0], "config.py")
    spec = spec_from_file_location("unsloth_config", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.Config(**document)


def skypilot(document, path):
    from sky import Task

    Task.from_yaml(path)


def kubernetes(document, path):
    done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "kubernetes-validate"), "--strict", path], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stdout + done.stderr)


def trainjob(document, path):
    """Unknown keys are dropped on reading, so what is written again is compared."""
    from kubeflow_trainer_api.models import TrainerV1alpha1TrainJob

    again = TrainerV1alpha1TrainJob.from_dict(copy.deepcopy(document)).to_dict()
    if again != document:
        raise ValueError(f"read as something else: {again}")


def flags(path, module):
    """The words behind a module's or a script's name in the last command of a script."""
    import shlex

    with open(path, encoding="utf-8") as file:
        words = shlex.split(file.read().replace("\\\n", " ").rsplit("exec ", 1)[1])
    return words[words.index(module) + 1:-1]


def torchtitan(document, path):
    from torchtitan.config import ConfigManager

    ConfigManager().parse_args(document)


def megatron(document, path):
    import argparse

    from megatron.training.arguments import add_megatron_arguments

    parser = argparse.ArgumentParser(allow_abbrev=False)
    (add_megatron_arguments(parser) or parser).parse_args(document)


def allocator(document, path):
    """Every value that the script gives the allocator is one that it reads."""
    import torch

    for settings in document:
        torch._C._accelerator_setAllocatorSettings(settings)


def settings_of(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.split("=", 1)[1].strip() for line in file if line.startswith("export PYTORCH_ALLOC_CONF=")]
    return [line.strip("'") for line in lines]


def broken(document):
    """The same with something in it that no tool knows."""
    document = copy.deepcopy(document)
    if isinstance(document, list):
        return document + ([f"--{MADE_UP}=1"] if document[:1] != ["expandable_segments:True"] else [f"{MADE_UP}:1"])
    inner = document.get("spec", document)
    inner[MADE_UP] = 1
    return document


READERS = {
    "torchtitan": lambda path: flags(path, "torchtitan.train"), "megatron": lambda path: flags(path, "pretrain_gpt.py"),
    "allocator": settings_of,
}


def asked(tool, path):
    check = globals()[tool.replace("-", "_")]
    document = READERS.get(tool, load)(path)
    check(document, path)
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(os.path.abspath(path)), suffix=os.path.splitext(path)[1]) as file:
        bad = broken(document)
        # JSON is YAML.
        json.dump(bad, file)
        file.flush()
        try:
            check(bad, file.name)
        except (Exception, SystemExit):
            print(f"{tool} took {path} and refused a made-up key", flush=True)
            return True
    print(f"{tool} takes {path} with the key {MADE_UP} in it: its word means nothing", flush=True)
    return False


def main():
    good = True
    for word in sys.argv[1:]:
        tool, path = word.split("=", 1)
        try:
            good &= asked(tool, path)
        except (Exception, SystemExit):
            print(f"{tool} does not take {path}: {traceback.format_exc()[-1500:]}", flush=True)
            good = False
    sys.exit(not good)


if __name__ == "__main__":
    main()
