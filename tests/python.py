"""The Python package without PyTorch: python3 tests/python.py HEADROOM

What it asks the program is answered by the program. Trainers, models and tensors are stand-ins that have what the package
reads of them; tests/accept/wheel.py has the real ones.
"""

import base64
import csv
import hashlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import zipfile

HEADROOM = os.path.abspath(sys.argv.pop())
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts", "python")
os.environ["HEADROOM_BINARY"] = HEADROOM
sys.path.insert(0, SCRIPTS)

import headroom  # noqa: E402
from headroom import _run  # noqa: E402
from headroom._estimate import changes  # noqa: E402

GPT2 = {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 128, "vocab_size": 1000}


class Estimates(unittest.TestCase):
    def test_every_form_of_a_scenario_is_the_same(self):
        expected = headroom.estimate("gpt2", mb=4, seq=256)["allocated"]
        self.assertEqual(headroom.estimate("gpt2", data={"micro_batch": 4, "sequence": 256})["allocated"], expected)
        document = {"model": {"id": "gpt2"}, "data": {"micro_batch": 4}}
        self.assertEqual(headroom.estimate(document, seq=256)["allocated"], expected)
        self.assertEqual(headroom.estimate("v=1&model=gpt2&mb=4&seq=256")["allocated"], expected)

    def test_a_run_that_does_not_fit_is_an_answer(self):
        self.assertIs(headroom.estimate("llama-3.1-8b", precision="fp32", gpu="rtx-4090")["fits"], False)

    def test_what_is_wrong_is_raised_in_the_programs_words(self):
        with self.assertRaisesRegex(headroom.Refused, "^data.micro_batch is `0`; expected a whole number"):
            headroom.estimate("gpt2", mb=0)

    def test_values_are_written_as_settings_read_them(self):
        for settings, expected in [
            ({"clip": True, "ema": False}, ["--set=clip=on", "--set=ema=off"]),
            ({"lora_targets": ("q_proj", "v_proj")}, ["--set=lora_targets=q_proj,v_proj"]),
            ({"model": {"dims": {"layers": 2, "hidden": 64}}}, ["--set=model.dims=layers=2,hidden=64"]),
            ({"training": {"lora": {"rank": 8}}, "gpu": None}, ["--set=training.lora.rank=8"]),
        ]:
            self.assertEqual(changes(settings), expected)


class Tensor:
    def __init__(self, *shape, dtype="float32", requires_grad=True, whole=True):
        self.shape, self.dtype, self.requires_grad, self.whole = shape, f"torch.{dtype}", requires_grad, whole

    def numel(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    def is_floating_point(self):
        return "float" in self.dtype

    def all(self):
        return self.whole


class Model:
    """Named parameters, and modules by the dots in their names."""

    def __init__(self, config, **weights):
        self.config = types.SimpleNamespace(
            model_type=config.get("model_type"), _attn_implementation="sdpa", to_json_string=lambda use_diff: json.dumps(config)
        )
        self.weights = {name.replace("__", "."): weight for name, weight in weights.items()}

    def named_parameters(self, recurse=True):
        return [(name, weight) for name, weight in self.weights.items() if recurse or "." not in name]

    def parameters(self):
        return list(self.weights.values())

    def named_children(self):
        for first in dict.fromkeys(name.split(".")[0] for name in self.weights if "." in name):
            inner = {name.partition(".")[2]: weight for name, weight in self.weights.items() if name.startswith(f"{first}.")}
            child = Model({})
            child.weights = inner
            yield first, child

    def modules(self):
        return [self]


def stand_ins(cuda=None):
    """The modules that the package imports, with a GPU or without one."""

    class About:
        name, total_memory, major, minor = "NVIDIA GeForce RTX 4090", 25_282_281_472, 8, 9

    there = types.SimpleNamespace(
        is_available=lambda: cuda is not None,
        current_device=lambda: 0,
        get_device_properties=lambda device: About,
        reset_peak_memory_stats=lambda: cuda.update(allocated=0),
        max_memory_allocated=lambda: cuda["allocated"],
        max_memory_reserved=lambda: cuda["allocated"] + (1 << 30),
    )
    torch = types.ModuleType("torch")
    torch.cuda, torch.version = there, types.SimpleNamespace(cuda="13.0")
    transformers, lightning, pytorch = (types.ModuleType(name) for name in ("transformers", "lightning", "lightning.pytorch"))
    transformers.TrainerCallback = pytorch.Callback = type("Base", (), {})
    sys.modules.update({"torch": torch, "transformers": transformers, "lightning": lightning, "lightning.pytorch": pytorch})


class Trainer:
    """As transformers' is."""

    def __init__(self, model, **arguments):
        usual = {
            "per_device_train_batch_size": 2, "gradient_accumulation_steps": 1, "bf16": False, "fp16": False, "optim": "adamw_torch",
            "gradient_checkpointing": False, "max_grad_norm": 1.0, "world_size": 1, "n_gpu": 1,
        }
        self.args = types.SimpleNamespace(**{**usual, **arguments})
        self.model, self.callbacks, self.steps = model, [], 0
        self.accelerator = types.SimpleNamespace(state=types.SimpleNamespace())

    def add_callback(self, callback):
        self.callbacks.append(callback)

    def is_world_process_zero(self):
        return True

    def training_step(self, model, inputs, count=None):
        return 1.5

    def train(self, batch, steps=2):
        for _ in range(steps):
            assert self.training_step(self.model, batch, 1) == 1.5
            for callback in self.callbacks:
                callback.on_step_end(self.args, types.SimpleNamespace(is_world_process_zero=True), None)


Trainer.__module__ = "transformers.trainer"
BATCH = {"input_ids": Tensor(2, 64, dtype="int64"), "attention_mask": Tensor(2, 64, dtype="int64")}


def gpt2(**changes):
    """A stand-in with as many parameters as the network has."""
    count = headroom.estimate({"model": {"id": "gpt2", "dims": {"layers": 2, "hidden": 64, "heads": 4, "ffn": 256, "ctx": 128, "vocab": 1000}}}, seq=64)
    return Model(GPT2, **{"weight": Tensor(count["parameters"]), **changes})


class Checks(unittest.TestCase):
    def check(self, trainer, batch, expected, cuda=None, steps=2, **settings):
        """The lines that are said, each by its beginning."""
        stand_ins(cuda)
        said = []
        callback = headroom.check(trainer, say=said.append, **settings)
        trainer.train(batch, steps)
        self.assertEqual(len(said), len(expected), said)
        for line, start in zip(said, expected):
            self.assertTrue(line.startswith(start), f"{line!r} for {start!r}")
        return callback

    def test_without_a_gpu_nothing_is_measured(self):
        expected = [
            "headroom: there is no CUDA GPU here",
            "headroom: with batches of 2 × 64 tokens this run needs ",
            "headroom: PyTorch will allocate 0.0",
            "headroom: nothing was measured",
        ]
        callback = self.check(Trainer(gpt2()), BATCH, expected)
        self.assertEqual((callback.measured, callback.problem), (None, None))
        self.assertEqual(callback.estimate["phase"], headroom.estimate(callback.link)["phase"])
        self.assertEqual(callback.estimate["allocated"], headroom.estimate(callback.link)["allocated"])
        self.assertIn("precision=fp32", callback.link)
        self.assertIn("trainer=transformers", callback.link)

    def test_with_a_gpu_the_peak_of_the_steps_is_said(self):
        cuda = {"allocated": 5}
        expected = [
            "headroom: with batches of 2 × 64 tokens",
            "headroom: PyTorch will allocate",
            "headroom: with batches of 100 tokens, to which samples are cut, it needs",
            "headroom: up to the end of step 1 PyTorch allocated 0.00 GiB at most and reserved 1.00 GiB (-100.0 %",
        ]
        callback = self.check(Trainer(gpt2(), max_length=100), BATCH, expected, cuda, steps=5)
        self.assertEqual(callback.measured, {"step": 3, "allocated": 0, "reserved": 1 << 30})
        self.assertIn("&gpu=rtx-4090", f"&{callback.link}".replace("-24gb", ""))
        self.assertIn("mem=24111", callback.link)

    def test_what_the_caller_says_comes_first(self):
        stand_ins()
        trainer = Trainer(gpt2())
        callback = headroom.check(trainer, say=lambda line: None, **{"hardware.gpu": "h100-sxm5-80gb", "precision": "bf16"})
        trainer.train(BATCH)
        self.assertIn("h100", callback.link)
        self.assertIn("precision=bf16", callback.link)

    def test_another_model_is_refused(self):
        expected = ["headroom: no estimate: the model has 9 parameters", "headroom: nothing was measured"]
        self.check(Trainer(gpt2(weight=Tensor(9))), BATCH, expected)

    def test_an_unknown_model_is_to_be_recorded(self):
        model = Model({"model_type": "gpt2000"}, weight=Tensor(9))
        expected = ["headroom: no estimate: model_type is `gpt2000`", "headroom: Record it", "headroom: nothing was measured"]
        self.check(Trainer(model), BATCH, expected)
        expected = ["headroom: no estimate: Model is no model of transformers", "headroom: nothing was measured"]
        self.check(Trainer(Model({}, weight=Tensor(9))), BATCH, expected)

    def test_what_cannot_be_read_is_refused(self):
        for trainer, batch, start in [
            (Trainer(gpt2(), n_gpu=2), BATCH, "torch.nn.DataParallel is not modelled"),
            (Trainer(gpt2()), {"prompt": ["a"]}, "the batch has no input_ids"),
        ]:
            self.check(trainer, batch, [f"headroom: no estimate: {start}", "headroom: nothing was measured"])

    def test_only_the_first_step_is_watched(self):
        stand_ins()
        trainer = Trainer(gpt2())
        headroom.check(trainer, say=lambda line: None)
        self.assertIn("training_step", vars(trainer))
        trainer.train(BATCH, 1)
        self.assertNotIn("training_step", vars(trainer))

    def test_frozen_parts_are_named_whole(self):
        frozen = lambda: Tensor(3, requires_grad=False)
        for weights, expected in [
            ({"a__1__x": frozen(), "a__1__y": frozen(), "a__10__x": Tensor(3)}, ["a.1."]),
            ({"a__x": frozen(), "b": frozen(), "c": Tensor(3)}, ["b", "a."]),
            ({"a": Tensor(3)}, []),
        ]:
            self.assertEqual(_run.frozen(Model({}, **weights)), expected)

    def test_others_than_trainers_are_refused(self):
        with self.assertRaisesRegex(TypeError, "not builtins.dict"):
            headroom.check({})

    def test_lightning_is_read_from_its_trainer_and_module(self):
        stand_ins()

        class AdamW:
            defaults = {"fused": None, "foreach": None, "lr": 0.1}

        AdamW.__module__ = "torch.optim"
        trainer = type("Trainer", (), {"__module__": "lightning.pytorch.trainer.trainer"})()
        trainer.callbacks, trainer.global_step, trainer.is_global_zero = [], 0, True
        trainer.strategy, trainer.optimizers, trainer.world_size = type("SingleDeviceStrategy", (), {})(), [AdamW()], 1
        trainer.num_devices = trainer.num_nodes = trainer.accumulate_grad_batches = 1
        trainer.precision, trainer.gradient_clip_val = "bf16-mixed", None
        said = []
        callback = headroom.check(trainer, say=said.append)
        model = gpt2()
        for step in range(2):
            callback.on_train_batch_start(trainer, model, [Tensor(3, 32, dtype="int64")], step)
            trainer.global_step += 1
            callback.on_train_batch_end(trainer, model, None, None, step)
        self.assertIsNone(callback.problem)
        self.assertTrue(said[1].startswith("headroom: with batches of 3 × 32 tokens this run needs"), said)
        self.assertTrue(said[-1].startswith("headroom: nothing was measured"), said)
        for part in ("trainer=lightning", "precision=amp-bf16", "mb=3", "seq=32"):
            self.assertIn(part, callback.link)


class Names(unittest.TestCase):
    def test_a_drivers_name_is_a_card_of_the_catalogue(self):
        gib = 1 << 30
        for name, total, expected in [
            ("NVIDIA GeForce RTX 4090", 23.5 * gib, "rtx-4090-24gb"),
            ("NVIDIA A100-SXM4-80GB", 79.2 * gib, "a100-sxm4-80gb"),
            ("NVIDIA A100-SXM4-40GB", 39.4 * gib, "a100-sxm4-40gb"),
            ("NVIDIA H100 80GB HBM3", 79.2 * gib, "h100-"),
            ("Tesla T4", 14.6 * gib, "t4-16gb"),
            ("Something 1", gib, "something-1"),
        ]:
            self.assertTrue(_run.listed(name, int(total)).startswith(expected), _run.listed(name, int(total)))


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        spec = importlib.util.spec_from_file_location("wheel", os.path.join(SCRIPTS, "wheel.py"))
        cls.wheel = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.wheel)

    def test_a_wheel_lists_what_it_holds_and_runs(self):
        with open(HEADROOM, "rb") as file:
            program = file.read()
        with tempfile.TemporaryDirectory() as folder:
            path = self.wheel.write(program, folder)
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                record = next(name for name in names if name.endswith("RECORD"))
                rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(archive.read(record).decode()))}
                self.assertEqual(sorted(rows), sorted(names))
                for name in names:
                    if name != record:
                        digest = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest()).rstrip(b"=").decode()
                        self.assertEqual(rows[name], [f"sha256={digest}", str(archive.getinfo(name).file_size)], name)
                about = archive.read(record.replace("RECORD", "METADATA")).decode()
                self.assertTrue(about.startswith("Metadata-Version: 2.4\nName: headroom\nVersion: "))
                self.assertIn("headroom/py.typed", names)
                archive.extractall(folder)
                for entry in archive.infolist():
                    os.chmod(os.path.join(folder, entry.filename), entry.external_attr >> 16)
            words = [sys.executable, "-m", "headroom", "estimate", "gpt2", "--json"]
            alone = {"PATH": os.environ["PATH"], "PYTHONPATH": folder}
            done = subprocess.run(words, env=alone, cwd=folder, capture_output=True, text=True)
            self.assertEqual(json.loads(done.stdout)["allocated"], headroom.estimate("gpt2")["allocated"])

    @unittest.skipUnless(sys.platform == "linux", "tags of Linux")
    def test_the_tag_is_the_newest_glibc_that_is_asked_for(self):
        for program, expected in [
            (b"..GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17\0", "manylinux_2_34_"),
            (b"GLIBC_2.2.5", "manylinux_2_17_"),
            (b"static", "manylinux_2_17_"),
        ]:
            self.assertTrue(self.wheel.tag(program).startswith(expected))


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=1).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed")
    sys.exit(failed > 0)
