"""Holds the five systems' exports to what their programs accept: systems.py HEADROOM WORK

systems.json has, for each system at its commit, the flags of its parser, the keys of its configuration, and the lines
that wiring.diff stands on; whatever else its files hold is left blank, so that line numbers stay. Here the patch is
applied to these lines with git and what comes of it compiled; launch.sh is run with programs that only note how they
were called; and the call goes through a parser of the same flags, with those that the patch adds.
"""

import argparse
import ast
import builtins
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))

# System, changes of its preset, and words that the call or a file must have.
EXPORTS = [
    ("dreams", "", "--as_given"),
    ("dreams", "mb=1 accum=2 gpus=1 precision=fp64 clip=on freeze=backbone save_every=2000 workers=1", "--accumulate_grad_batches"),
    ("dreams", "dims=peaks=80 eval_keeps=0", "--reset_val_metrics"),
    ("dreams", "epochs=50 lr=0.0001", "--max_epochs"),
    ("dreams", "limit_val_batches=0.5 val_check_interval=0.5", "--limit_val_batches"),
    ("gsa", "", "oc.env:DATA_ROOT,data}/packed"),
    ("gsa", "mb=3 accum=21 precision=amp-fp16 ckpt=none clip=off save_every=0 gpus=1", "fp16"),
    ("gsa", "sync_each=off", "no_sync"),
    ("gsa", "gpus=8 nodes=2 dims=k_max=512", "--nnodes"),
    ("rna-3e-ffi", "", "--save_every"),
    ("rna-3e-ffi", "precision=amp-fp16 accum=2 mb=1 clip=off dims=layer_norm=0,multi_hop=0,0e=16,1o=8,2e=4", "--use_amp"),
    ("rna-3e-ffi", "batch_max=300000", "--max_edges"),
    ("rna-3e-ffi", "ckpt=layers epochs=30", "--recompute_layers"),
    ("prs-med", "", "--use_amp"),
    ("prs-med", "mb=1 accum=8 ckpt=layers quant=nf4-double dims=checkpoint_encoder=1 lora_targets=q_proj,v_proj", "--load_4bit"),
    ("prs-med", "gpus=4 precision=fp32", "--find_unused_parameters"),
    ("peptrm", "", "rendered_spectra"),
    ("peptrm", "mb=32 accum=3 precision=amp-bf16 ckpt=layers dims=bins=7500,checkpoint_supervision=1 save_every=0", "supervision"),
]

# Stands in for python, python3 and torchrun.
NOTES_ITS_CALL = """#!{python}
import json, os, sys
if sys.argv[1] != "-c":
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    called = dict(argv=sys.argv[1:], env={{name: os.environ.get(name) for name in names}})
    with open(os.environ["CALLED"], "w") as file:
        json.dump(called, file)
else:
    print("export PRETRAINED=/tmp/pretrained")
"""


def main():
    headroom, work = sys.argv[1:3]
    with open(os.path.join(HERE, "systems.json"), encoding="utf-8") as file:
        systems = json.load(file)
    programs = os.path.join(work, "programs")
    os.makedirs(programs)
    for name in ("python", "python3", "torchrun"):
        path = os.path.join(programs, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(NOTES_ITS_CALL.format(python=sys.executable))
        os.chmod(path, 0o755)
    failed = 0
    for number, (name, changes, word) in enumerate(EXPORTS):
        folder = os.path.join(work, f"{number}-{name}")
        try:
            one(headroom, programs, folder, name, systems[name], changes.split(), word)
            print(f"ok    {name} {changes}")
        except (AssertionError, ValueError, SystemExit, subprocess.CalledProcessError, SyntaxError, KeyError) as problem:
            failed += 1
            print(f"FAIL  {name} {changes}: {problem}")
    for name, system in systems.items():
        try:
            job(headroom, os.path.join(work, f"job-{name}"), system["preset"])
            print(f"ok    {name} as a Kubernetes job")
        except subprocess.CalledProcessError as problem:
            failed += 1
            print(f"FAIL  {name} as a Kubernetes job: {problem.stderr or problem}")
    return 1 if failed else 0


def job(headroom, folder, preset):
    """Kubernetes' own schema takes the job that starts the system."""
    export = [headroom, "export", preset, "--starter", "kubernetes", "--out", folder]
    subprocess.run(export, check=True, capture_output=True, text=True)
    validate = os.path.join(os.path.dirname(sys.executable), "kubernetes-validate")
    path = os.path.join(folder, "job.yaml")
    subprocess.run([validate, "--strict", path], check=True, capture_output=True, text=True)


def one(headroom, programs, folder, name, system, changes, word):
    files = os.path.join(folder, "files")
    sets = [part for change in changes for part in ("--set", change)]
    command = [headroom, "export", system["preset"], "--out", files, *sets]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    code = os.path.join(folder, "code")
    skeleton(system, code)
    patch = os.path.join(files, "wiring.diff")
    wants_patch = "first apply the patch" in read(os.path.join(files, "launch.sh"))
    if wants_patch:
        refused = launch(programs, files, code)
        assert refused.returncode == 1 and "git -C" in refused.stderr, "launches without its patch"
    git(code, "apply", "--check", patch)
    if not wants_patch:
        calls(programs, files, code, name, system, word, patched=False)
    git(code, "apply", patch)
    compiled(system, code)
    calls(programs, files, code, name, system, word, patched=True)


def skeleton(system, code):
    """The lines that are known, at their places, and nothing else."""
    for path, text in system["text"].items():
        lines = [""] * text["lines"]
        for start, known in text["known"]:
            known = known.split("\n")
            lines[start - 1 : start - 1 + len(known)] = known
        path = os.path.join(code, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


def compiled(system, code):
    """What the patch makes is Python, and names nothing that is not there."""
    texts = {**system["text"], "memory_log.py": {"names": []}}
    for path, text in texts.items():
        tree = ast.parse(read(os.path.join(code, path)), path)
        bound = set(text["names"]) | set(dir(builtins)) | set(globals_of(tree))
        loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        assert loaded <= bound, f"{path} uses {sorted(loaded - bound)}"


def globals_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((name.asname or name.name).split(".")[0] for name in node.names)


def calls(programs, files, code, name, system, word, patched):
    """The launch script's call, through the program's own flags and keys."""
    called = os.path.join(files, "called.json")
    run = launch(programs, files, code)
    assert run.returncode == 0, run.stderr
    with open(called, encoding="utf-8") as file:
        called = json.load(file)
    argv = called["argv"]
    at = argv.index(system["script"])
    if at:
        nodes = argv[argv.index("--nnodes") + 1] if "--nnodes" in argv else "1"
        assert nodes.isdigit() and argv[argv.index("--nproc-per-node") + 1].isdigit()
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    own = arguments(code, system) if patched else []
    known = {flag for argument in system["arguments"] for flag in argument["flags"]}
    for argument in [*system["arguments"], *(one for one in own if not set(one["flags"]) & known)]:
        add(parser, argument)
    replaced = [one for one in own if set(one["flags"]) & known and one.get("action") == "BooleanOptionalAction"]
    for argument in replaced:
        # Its other half.
        add(parser, {"flags": ["--no-" + argument["flags"][0][2:]], "action": "store_true"})
    parsed = parser.parse_args(argv[at + 1 :])
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            parser.parse_args([*argv[at + 1 :], "--headroom_made_up", "1"])
        raise ValueError("a made-up flag is taken")
    except (SystemExit, argparse.ArgumentError):
        pass
    texts = " ".join(argv) + "".join(read(os.path.join(files, file)) for file in os.listdir(files) if file.endswith(".yaml"))
    assert word in texts, f"{word} is not in {texts}"
    if name == "gsa":
        gsa(yaml.safe_load(read(parsed.config)), system, patched)
    if name == "peptrm":
        peptrm(yaml.safe_load(read(parsed.config)), system, code)


def arguments(code, system):
    """The flags in the patched file."""
    found = []
    path = os.path.join(code, system["arguments_in"])
    if not os.path.exists(path):
        return found
    for node in ast.walk(ast.parse(read(path))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
            argument = {"flags": [ast.literal_eval(word) for word in node.args]}
            for word in node.keywords:
                value = word.value
                if isinstance(value, (ast.Name, ast.Attribute)):
                    argument[word.arg] = getattr(value, "id", None) or value.attr
                elif word.arg != "help":
                    argument[word.arg] = ast.literal_eval(value)
            found.append(argument)
    return found


def add(parser, argument):
    types = {"int": int, "float": float, "str": str, "Path": str}
    given = {key: value for key, value in argument.items() if key in ("choices", "required", "dest", "default", "nargs")}
    if "action" in argument:
        action = argument["action"]
        given["action"] = argparse.BooleanOptionalAction if action == "BooleanOptionalAction" else action
    if "type" in argument:
        given["type"] = types[argument["type"]]
    parser.add_argument(*argument["flags"], **given)


def flat(document, path=""):
    for key, value in document.items():
        yield from flat(value, f"{path}{key}.") if isinstance(value, dict) else [f"{path}{key}"]


def gsa(document, system, patched):
    keys = set(flat(document))
    assert set(system["required"]) <= keys, f"missing {sorted(set(system['required']) - keys)}"
    added = {"training.no_sync"} if patched else set()
    known = {*system["required"], *system["optional"], *system["unread"], *added}
    assert keys <= known, f"unknown {sorted(keys - known)}"
    training = document["training"]
    assert training["save_interval"] > 0 and isinstance(training["eps"], float), training


def peptrm(document, system, code):
    for section, known in system["fields"].items():
        path, name = system["fields_in"][section]
        fields = set(known)
        for node in ast.walk(ast.parse(read(os.path.join(code, path)))):
            if isinstance(node, ast.ClassDef) and node.name == name:
                fields |= {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
        unknown = set(document[section]) - fields
        assert not unknown, f"{name} takes no {sorted(unknown)}"
    charges = document["data"]["charge_distribution"]
    assert all(isinstance(charge, int) for charge in charges) and sum(charges.values()) == 1.0
    assert document["data"]["ms2pip_model"] and document["real_data_validation"]["enabled"] is True


def launch(programs, files, code):
    env = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "REPOSITORY": code,
        "CALLED": os.path.join(files, "called.json"),
        "DATA_ROOT": "data",
        "NODE_RANK": "0",
        "MASTER_ADDR": "localhost",
    }
    return subprocess.run(["bash", os.path.join(files, "launch.sh")], env=env, capture_output=True, text=True, check=False)


def git(folder, *words):
    subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    if shutil.which("git") is None:
        sys.exit("accept: please install git")
    sys.exit(main())
