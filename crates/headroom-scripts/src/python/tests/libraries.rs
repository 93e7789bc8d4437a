use super::*;

#[track_caller]
fn check(text: &str, arguments: &str, files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(calls(&run(text, arguments, files)), expected, "{text}");
}

#[test]
fn argparse_gives_defaults_and_arguments() {
    let text = "import argparse, a\np = argparse.ArgumentParser()\np.add_argument('--lr', '-l', type=float, default=1)\np.add_argument('--model-name', required=True)\np.add_argument('--flag', action='store_true')\np.add_argument('--mods', nargs='+', default=['q'])\np.add_argument('--none')\nargs = p.parse_args()\na.f(**vars(args))\na.g(args.none is None)";
    let given = "--model_name x --mods k v --flag -l 0.5";
    check(
        text,
        given,
        &[],
        &[
            "a.f(lr=0.5, model_name='x', flag=True, mods=['k', 'v'], none=None)",
            "a.g(True)",
        ],
    );
    check(
        text,
        "--model-name=$MODEL",
        &[],
        &[
            "a.f(lr=1, model_name=?--model-name is $MODEL, flag=False, mods=['q'], none=None)",
            "a.g(True)",
        ],
    );
    assert_eq!(run(text, "", &[]).missing, ["--model-name"]);
}

#[test]
fn options_without_default_are_missing_where_a_model_needs_them() {
    let text = "import argparse\nfrom transformers import AutoModel\np = argparse.ArgumentParser()\np.add_argument('--model')\np.add_argument('--revision')\na = p.parse_args()\nAutoModel.from_pretrained(a.model, revision=a.revision)";
    let module = run(text, "", &[]);
    assert_eq!(module.missing, ["--model"]);
    let expected =
        ["transformers.AutoModel.from_pretrained(?--model was not given, revision=None)"];
    assert_eq!(calls(&module), expected);
}

#[test]
fn dataclasses_are_filled_from_the_command_line() {
    let text = "from dataclasses import dataclass, field\nfrom typing import Optional\nfrom transformers import HfArgumentParser, TrainingArguments\nimport a\n@dataclass\nclass Args:\n    model: str\n    rank: Optional[int] = field(default=8, metadata={'help': 'r'})\n    mods: list[str] = field(default_factory=lambda: ['q'])\n@dataclass\nclass Own(TrainingArguments):\n    optim: str = 'adamw_torch'\nargs, own = HfArgumentParser((Args, Own)).parse_args_into_dataclasses()\na.f(args.model, args.rank, args.mods, own.bf16, own.optim)";
    check(
        text,
        "--model m --rank 4 --bf16 --learning_rate 1e-5",
        &[],
        &[
            "transformers.TrainingArguments(optim='adamw_torch', bf16=True, learning_rate=1e-5)",
            "a.f('m', 4, ['q'], True, 'adamw_torch')",
        ],
    );
    let text = "from trl import TrlParser, SFTConfig, ModelConfig\np = TrlParser((SFTConfig, ModelConfig))\ns, m = p.parse_args_and_config()";
    check(
        text,
        "--config c.yaml --bf16 false",
        &[("c.yaml", "bf16: true\nmodel_name_or_path: m\n")],
        &[
            "trl.SFTConfig(bf16=False, model_name_or_path='m')",
            "trl.ModelConfig(bf16=False, model_name_or_path='m')",
        ],
    );
    let text = "import tyro, a\nfrom dataclasses import dataclass, field\n@dataclass\nclass O:\n    lr: float = 0.1\n@dataclass\nclass C:\n    o: O = field(default_factory=O)\n    n: int = 1\nc = tyro.cli(C)\na.f(c.o.lr, c.n)";
    check(text, "--o.lr 0.5", &[], &["a.f(0.5, 1)"]);
}

#[test]
fn functions_are_entered_by_command_line_libraries() {
    check(
        "import fire, a\ndef train(m='x', n: int = 1):\n    a.f(m, n)\nfire.Fire(train)",
        "--n 3",
        &[],
        &["a.f('x', 3)"],
    );
    check(
        "import typer, a\napp = typer.Typer()\n@app.command()\ndef main(n: int = typer.Option(8), m: str = 'x'):\n    a.f(n, m)\napp()",
        "--m y",
        &[],
        &["typer.Typer()", "#0.command()", "a.f(8, 'y')"],
    );
    check(
        "import click, a\n@click.command()\n@click.option('--lr', default=0.1)\n@click.option('--name', required=True)\ndef main(lr, name):\n    a.f(lr, name)\nmain()",
        "--name n",
        &[],
        &["a.f(0.1, 'n')"],
    );
    check(
        "import hydra, a\n@hydra.main(config_path='conf', config_name='c')\ndef main(cfg):\n    a.f(cfg.opt.lr, cfg.name, cfg.model.size)\nmain()",
        "opt.lr=0.5",
        &[
            (
                "conf/c.yaml",
                "defaults:\n- model: small\n- _self_\nopt:\n  lr: 0.1\nname: run-${opt.lr}\n",
            ),
            ("conf/model/small.yaml", "size: 7\n"),
        ],
        &["a.f(0.5, 'run-0.5', 7)"],
    );
}

#[test]
fn configurations_beside_are_read() {
    check(
        "import yaml, a\nwith open('c.yaml') as f:\n    c = yaml.safe_load(f)\na.f(c['m']['lr'], c.get('none', 3))",
        "",
        &[("c.yaml", "m:\n  lr: 0.1\n")],
        &["a.f(0.1, 3)"],
    );
    check(
        "from omegaconf import OmegaConf as O\nimport a\nc = O.merge(O.load('c.yaml'), O.from_cli())\na.f(c.m.lr, c.n)",
        "m.lr=2",
        &[("c.yaml", "m: {lr: 1}\nn: ${m.lr}\n")],
        &["a.f(2, 2)"],
    );
    let module = run(
        "import yaml, a\nc = yaml.safe_load(open('c.yaml'))\na.f(c['x'])",
        "",
        &[],
    );
    assert_eq!(calls(&module), ["a.f(?c.yaml is not there)"]);
    assert_eq!(module.absent, ["a.py", "c.yaml"]);
    check(
        "from conf import lr, model as m\nimport lib.make as k\nk.go(lr, m)",
        "",
        &[
            ("conf.py", "lr = 1e-4\nmodel = 'x'\n"),
            (
                "lib/make.py",
                "import torch\ndef go(lr, m):\n    torch.f(lr, m)\n",
            ),
        ],
        &["torch.f(0.0001, 'x')"],
    );
}

#[test]
fn configuration_modules_inherit_from_their_bases() {
    let module = run(
        "_base_ = ['../base.py']\nmodel = dict(head=dict(n=2))\nlr = 1",
        "",
        &[(
            "base.py",
            "model = dict(type='R', head=dict(n=1, k=3))\nbatch = 8\n",
        )],
    );
    let expected = [
        "_base_ = ['../base.py']",
        "batch = 8",
        "lr = 1",
        "model = {'type': 'R', 'head': {'n': 2, 'k': 3}}",
    ];
    assert_eq!(names(&module), expected);
}

#[test]
fn notebooks_are_code_commands_and_files() {
    let text = r#"{"cells": [
        {"cell_type": "markdown", "source": ["x = 1"]},
        {"cell_type": "code", "source": ["!pip install -q \"trl==0.14\" peft\n", "import peft\n", "r = 4\n", "peft.LoraConfig(r=r)"]},
        {"cell_type": "code", "source": ["%%writefile c.yaml\n", "lr: 1\n"]},
        {"cell_type": "code", "source": "%%bash\naccelerate launch t.py"},
        {"cell_type": "code", "source": "%matplotlib inline\n!python t.py --r {r}"}
    ]}"#;
    let module = run(text, "", &[]);
    assert_eq!(calls(&module), ["peft.LoraConfig(r=4)"]);
    let commands = [
        "pip install -q \"trl==0.14\" peft",
        "accelerate launch t.py",
        "python t.py --r 4",
    ];
    assert_eq!(module.commands, commands);
    assert_eq!(
        module.files,
        [("c.yaml".to_string(), "lr: 1\n".to_string())]
    );
    assert_eq!(module.pins, [("trl".to_string(), "0.14".to_string())]);
}

#[test]
fn programs_are_entered_through_trainers_and_launchers() {
    check(
        "import lightning as L, torch\nclass M(L.LightningModule):\n    def __init__(self, lr):\n        super().__init__()\n        self.lr = lr\n    def configure_optimizers(self):\n        return torch.optim.AdamW(self.parameters(), lr=self.lr)\nL.Trainer(devices=2).fit(M(0.1))",
        "",
        &[],
        &[
            "lightning.Trainer(devices=2)",
            "lightning.LightningModule()",
            "#0.fit(#1)",
            "#1.parameters()",
            "torch.optim.AdamW(#3, lr=0.1)",
        ],
    );
    check(
        "import lightning as L\nfabric = L.Fabric()\ndef main(fabric, n):\n    fabric.setup(n)\nfabric.launch(main, 3)",
        "",
        &[],
        &["lightning.Fabric()", "#0.launch(main, 3)", "#0.setup(3)"],
    );
    check(
        "from transformers import Trainer, AutoModel\ndef init():\n    return AutoModel.from_pretrained('m')\nTrainer(model_init=init)",
        "",
        &[],
        &[
            "transformers.AutoModel.from_pretrained('m')",
            "transformers.Trainer(model_init=#0)",
        ],
    );
    check(
        "from dataclasses import dataclass\nfrom trl import SFTTrainer\n@dataclass\nclass C:\n    n: int = 3\ndef train_all(c: C, more):\n    SFTTrainer(c.n)",
        "",
        &[],
        &["trl.SFTTrainer(3)"],
    );
    check(
        "import wandb, torch\nwandb.init(config={'lr': 0.1})\nc = wandb.config\ntorch.optim.SGD(lr=c.lr)",
        "",
        &[],
        &["wandb.init(config={'lr': 0.1})", "torch.optim.SGD(lr=0.1)"],
    );
    check(
        "from absl import app, flags\nimport torch\nflags.DEFINE_float('lr', 0.1, 'x')\nFLAGS = flags.FLAGS\ndef main(argv):\n    torch.optim.SGD(lr=FLAGS.lr)\napp.run(main)",
        "--lr=0.5",
        &[],
        &["torch.optim.SGD(lr=0.5)"],
    );
    check(
        "import torch, model\nlr = 1\nbatch = 8\nexec(open('configurator.py').read())\ntorch.optim.SGD(lr=lr, b=batch)",
        "config/x.py --lr=3",
        &[("x.py", "batch = 2\n")],
        &["torch.optim.SGD(lr=3, b=2)"],
    );
}

#[test]
fn options_of_several_classes_reach_a_namespace() {
    let text = "import argparse, transformers\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n@dataclass\nclass T(transformers.TrainingArguments):\n    bits: int = 4\na, t = transformers.HfArgumentParser((A, T)).parse_args_into_dataclasses()\nargs = argparse.Namespace(**vars(a), **vars(t))\ntransformers.f(args.x, args.bits, args.gradient_checkpointing, args.learning_rate)";
    check(
        text,
        "--learning_rate 0.5",
        &[],
        &[
            "transformers.TrainingArguments(bits=4, learning_rate=0.5)",
            "transformers.f(1, 4, False, 0.5)",
        ],
    );
}
