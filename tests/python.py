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
import unittest.mock
import zipfile

HEADROOM = os.path.abspath(sys.argv.pop())
SCRIPTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scripts", "python")
os.environ["HEADROOM_BINARY"] = HEADROOM
sys.path.insert(0, SCRIPTS)

import gpu_headroom as headroom  # noqa: E402
from gpu_headroom import _adapters, _program, _run, _trainers  # noqa: E402
from gpu_headroom._estimate import changes  # noqa: E402

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


def of_trl(name, model, ref_model=None, **arguments):
    """One of TRL's trainers, as far as it is read."""
    usual = {"max_length": 64, "beta": 0.1, "loss_type": "sigmoid"}
    trainer = type(name, (Trainer,), {"__module__": f"trl.trainer.{name.lower()}"})(model, **{**usual, **arguments})
    trainer.ref_model = ref_model
    return trainer


def adapted(config):
    """A model with adapters of PEFT, as many parameters as are counted anyway."""
    model = gpt2()
    model.peft_config = {"default": types.SimpleNamespace(**config)}
    return model


class Objectives(unittest.TestCase):
    """What each of TRL's trainers is, in the link of its run."""

    def check(self, trainer, batch, *parts, without=()):
        stand_ins()
        callback = headroom.check(trainer, say=lambda line: None)
        callback.before(lambda: headroom._trainers._read_transformers(trainer, batch))
        self.assertIsNone(callback.problem)
        for part in parts:
            self.assertIn(f"&{part}&", f"&{callback.link}&")
        for part in without:
            self.assertNotIn(part, callback.link)
        return callback

    def test_preference_pairs_are_samples(self):
        pairs = {"input_ids": Tensor(4, 48, dtype="int64"), "attention_mask": Tensor(4, 48, dtype="int64", whole=False)}
        apart = {
            "prompt_input_ids": Tensor(2, 16, dtype="int64"), "chosen_input_ids": Tensor(2, 30, dtype="int64"),
            "rejected_input_ids": Tensor(2, 32, dtype="int64"),
        }
        copy = gpt2()
        self.check(of_trl("DPOTrainer", gpt2(), copy), pairs, "task=dpo", "mb=2", "seq=48", "mask=on", "reference=copy", "task_head=logits")
        self.check(of_trl("DPOTrainer", gpt2(), copy), apart, "task=dpo", "mb=2", "seq=48")
        self.check(of_trl("DPOTrainer", gpt2(), precompute_ref_log_probs=True), pairs, "reference=precomputed-by-itself")
        self.check(of_trl("DPOTrainer", gpt2(), copy, precompute_ref_log_probs=True), pairs, "reference=precomputed")
        self.check(of_trl("KTOTrainer", gpt2(), copy), {"input_ids": Tensor(2, 40, dtype="int64")}, "task=kto", "mb=2", "seq=40")
        self.check(of_trl("ORPOTrainer", gpt2()), apart, "task=orpo", "mb=2", without=["reference"])
        self.check(of_trl("CPOTrainer", gpt2()), apart, "task=cpo")
        self.check(of_trl("CPOTrainer", gpt2(), loss_type="simpo"), apart, "task=simpo")

    def test_a_reference_of_another_type_is_said(self):
        copy = gpt2()
        copy.weights["weight"].dtype = "torch.bfloat16"
        callback = self.check(of_trl("DPOTrainer", gpt2(), copy), {"input_ids": Tensor(4, 32, dtype="int64")}, "reference_type=bf16")
        same = self.check(of_trl("DPOTrainer", gpt2(), gpt2()), {"input_ids": Tensor(4, 32, dtype="int64")}, without=["reference_type"])
        self.assertLess(callback.estimate["allocated"]["expected"], same.estimate["allocated"]["expected"])

    def test_a_fused_head_is_seen_on_the_model(self):
        def forward(self, *arguments, fused_lm_head=False):
            return None

        model = gpt2()
        model.forward = types.MethodType(forward, model)
        self.check(of_trl("DPOTrainer", model, gpt2()), {"input_ids": Tensor(4, 32, dtype="int64")}, without=["task_head"])

    def test_sampling_is_read_from_the_arguments(self):
        sampling = {
            "per_device_train_batch_size": 4, "num_generations": 4, "max_completion_length": 32, "num_iterations": 2, "steps_per_generation": 1, "max_prompt_length": 16,
            "beta": 0.0, "use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.25, "vllm_enable_sleep_mode": True,
        }
        parts = ["task=grpo", "generations=4", "completion=32", "prompt=16", "iterations=2", "sampler=vllm", "vllm_share=0.25", "vllm_sleep=on"]
        self.check(of_trl("GRPOTrainer", gpt2(), **sampling), [{"prompt": "a"}], *parts)
        trainer = of_trl("RLOOTrainer", gpt2(), gpt2(), **{**sampling, "max_prompt_length": None, "use_vllm": False, "beta": 0.1})
        trainer.processing_class = lambda text: {"input_ids": text.split()}
        self.check(trainer, [{"prompt": "a b"}, {"prompt": "a b c"}], "task=rloo", "prompt=3", "reference=copy")

    def test_heads_of_classification_are_the_reward_trainers_only(self):
        kind = type("GPT2ForSequenceClassification", (Model,), {})
        # The score takes the place of a head that is tied to the embedding.
        model = kind(GPT2, weight=gpt2().weights["weight"], score=Tensor(1, 64))
        self.check(of_trl("RewardTrainer", model), {"input_ids": Tensor(4, 32, dtype="int64")}, "task=reward", "mb=2")
        stand_ins()
        trainer = Trainer(model)
        callback = headroom.check(trainer, say=lambda line: None)
        trainer.train(BATCH)
        self.assertIn("the head of GPT2ForSequenceClassification is not modelled", callback.problem)

    def test_another_of_trls_trainers_is_refused(self):
        stand_ins()
        trainer = of_trl("OnlineDPOTrainer", gpt2())
        callback = headroom.check(trainer, say=lambda line: None)
        trainer.train(BATCH)
        self.assertIn("OnlineDPOTrainer of TRL is not modelled", callback.problem)


class Configurations(unittest.TestCase):
    def test_adapters_of_peft_are_settings(self):
        usual = {"peft_type": "LORA", "r": 8, "lora_dropout": 0.0, "target_modules": {"c_attn"}}
        for config, expected in [
            (usual, {"training.lora": True, "training.lora.rank": 8, "training.lora.dropout": 0.0, "training.lora.targets": ["c_attn"]}),
            ({**usual, "use_dora": True, "modules_to_save": ["lm_head"]}, {"training.lora.method": "dora", "training.lora.modules_to_save": ["lm_head"]}),
            ({"peft_type": "IA3", "target_modules": ["k"], "feedforward_modules": []}, {"training.lora.method": "ia3"}),
            ({"peft_type": "BOFT", "boft_block_size": 8, "target_modules": None}, {"training.lora.method": "boft", "training.lora.block": 8}),
            ({"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 20}, {"training.prompt_tokens": 20}),
            ({"peft_type": "P_TUNING", "num_virtual_tokens": 20, "encoder_hidden_size": 64}, {"training.prompt_hidden": 64}),
        ]:
            model = Model(GPT2, weight=Tensor(9))
            model.peft_config = {"default": types.SimpleNamespace(**config)}
            found = _adapters.adapters(model)
            self.assertEqual({name: found.get(name) for name in expected}, expected)
        for config, problem in [
            ({**usual, "rank_pattern": {"a": 4}}, "rank_pattern"),
            ({**usual, "target_modules": ".*attn"}, "the expression"),
            ({"peft_type": "XLORA"}, "xlora is not modelled"),
        ]:
            model.peft_config = {"default": types.SimpleNamespace(**config)}
            with self.assertRaisesRegex(headroom.Refused, problem):
                _adapters.adapters(model)

    def test_every_method_is_a_choice_of_the_program(self):
        schema, _ = _program.ask("schema")
        choices = schema["properties"]["training"]["properties"]["lora"]
        text = json.dumps(choices)
        for method, _ in _adapters.METHODS.values():
            self.assertIn(f'"{method}"', text)

    def test_quantized_bases_are_settings(self):
        for config, expected in [
            ({"load_in_4bit": True}, "nf4"),
            ({"load_in_4bit": True, "bnb_4bit_use_double_quant": True, "quant_method": "bitsandbytes"}, "nf4-double"),
            ({"load_in_8bit": True}, "int8"),
            ({"quant_method": "gptq", "bits": 4}, "gptq"),
            ({"quant_method": "awq"}, "awq"),
            ({"quant_method": "hqq"}, "hqq"),
        ]:
            model = Model(GPT2)
            model.config.quantization_config = config
            self.assertEqual(_adapters.quantized(model), {"training.quantization": expected})
        model.config.quantization_config = {"quant_method": "fbgemm_fp8"}
        with self.assertRaisesRegex(headroom.Refused, "fbgemm_fp8"):
            _adapters.quantized(model)

    def test_accelerates_plugins_are_the_layout(self):
        state = lambda **plugins: types.SimpleNamespace(state=types.SimpleNamespace(**plugins))
        zero = types.SimpleNamespace(deepspeed_config={"zero_optimization": {"stage": 3, "overlap_comm": True, "reduce_bucket_size": "auto", "x": 1}})
        degrees = types.SimpleNamespace(tp_size=2, cp_size=1, dp_replicate_size=2, dp_shard_size=2)
        for accelerator, said, fields in [
            (state(), {"distributed_type": "MULTI_GPU"}, {}),
            (state(deepspeed_plugin=zero), {"deepspeed": {"zero_optimization": {"stage": 3, "overlap_comm": True}}}, {}),
            (state(parallelism_config=degrees), {}, {"parallel.tp": 2, "parallel.strategy": "hsdp"}),
            (state(dynamo_plugin=types.SimpleNamespace(backend="INDUCTOR")), {}, {"training.compile": "model"}),
        ]:
            found, changed = _trainers._layout(types.SimpleNamespace(accelerator=accelerator), 4)
            self.assertEqual({name: found[name] for name in said}, said)
            self.assertEqual({name: changed[name] for name in fields}, fields)
        with self.assertRaisesRegex(headroom.Refused, "Megatron-LM"):
            _trainers._layout(types.SimpleNamespace(accelerator=state(megatron_lm_plugin=object())), 4)


class Commands(unittest.TestCase):
    def test_the_documentations_example_runs(self):
        with open(os.path.join(os.path.dirname(os.path.dirname(SCRIPTS)), "docs", "python.md"), encoding="utf-8") as file:
            block = file.read().split("```python\n")[1].split("```")[0]
        for line in block.splitlines():
            # Whole searches take long without optimization; they have tests of their own.
            if line and not line.startswith(("headroom.plan", "headroom.layout")):
                exec(line, globals())  # noqa: S102

    def test_each_command_is_a_function(self):
        found = headroom.fit("gpt2", gpu="rtx-4090", seq=256)
        self.assertGreater(found.micro_batch, 8)
        self.assertIs(found.estimate.fits, True)
        self.assertTrue(headroom.layout("gpt2", gpus=2))
        self.assertEqual(headroom.read("LoRA on Llama-3.1-8B at 4k"), headroom.read("LoRA on Llama-3.1-8B", "at 4k"))
        text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.10 GiB is free."
        self.assertEqual(headroom.doctor(text)["cause"], headroom.doctor(text + "\n")["cause"])
        self.assertTrue(headroom.doctor(text, "gpt2", gpu="rtx-4090")["cause"])
        self.assertRegex(headroom.__version__, r"^\d+\.\d+\.\d+$")

    def test_an_estimate_is_a_dictionary_with_a_picture(self):
        answer = headroom.estimate("gpt2", gpu="rtx-4090", batch_size=1)
        self.assertEqual(answer.fits, answer["fits"])
        self.assertEqual(answer.words, answer["verdict"])
        page = answer._repr_html_()
        for part in ["<svg", "gpt2 on 1 × rtx-4090", "#1f56a3", ">fits</strong>", "parameters"]:
            self.assertIn(part, page)
        self.assertIn("does not fit", headroom.estimate("gpt2", gpu="rtx-4090", batch=100)._repr_html_())
        # A name from a file cannot write the page's markup.
        answer["model"] = "<script>"
        self.assertNotIn("<script>", answer._repr_html_())


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
                self.assertTrue(about.startswith("Metadata-Version: 2.4\nName: gpu-headroom\nVersion: "))
                self.assertIn("gpu_headroom/py.typed", names)
                archive.extractall(folder)
                for entry in archive.infolist():
                    os.chmod(os.path.join(folder, entry.filename), entry.external_attr >> 16)
            words = [sys.executable, "-m", "gpu_headroom", "estimate", "gpt2", "--json"]
            alone = {"PATH": os.environ["PATH"], "PYTHONPATH": folder}
            done = subprocess.run(words, env=alone, cwd=folder, capture_output=True, text=True)
            self.assertEqual(json.loads(done.stdout)["allocated"], headroom.estimate("gpt2")["allocated"])

    def test_metadata_is_whole_and_its_description_shows_everywhere(self):
        package = self.wheel.manifest()
        for repository, picture in [("", False), ("acme/headroom", True)]:
            about = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": repository}
            with unittest.mock.patch.dict(os.environ, about), unittest.mock.patch.object(self.wheel.subprocess, "run") as git:
                git.return_value.stdout = ""
                text = self.wheel.metadata(package)
            head, _, description = text.partition("\n\n")
            fields = [line.partition(": ")[0] for line in head.splitlines()]
            for name in ["Name", "Version", "Summary", "Author", "License-Expression", "License-File", "Keywords", "Classifier", "Requires-Python"]:
                self.assertIn(name, fields)
            self.assertEqual("Project-URL" in fields, picture)
            # An index shows no path of this repository.
            self.assertNotIn('"../', description)
            self.assertNotIn("](../", description)
            raw = f"https://raw.githubusercontent.com/acme/headroom/v{package['version']}/docs/screens/1440-light.png"
            self.assertEqual(raw in description, picture)
            self.assertEqual("<img" in description, picture)

    def test_the_descriptions_example_is_what_the_program_prints(self):
        with open(os.path.join(SCRIPTS, "README.md"), encoding="utf-8") as file:
            block = file.read().split("```text\n$ headroom ")[1].split("```")[0]
        command, shown = block.splitlines()[:2]
        done = subprocess.run([HEADROOM, *command.split()], capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines()[0], shown)

    def test_a_release_has_the_program_with_its_completions_and_manual(self):
        spec = importlib.util.spec_from_file_location("release", os.path.join(SCRIPTS, "release.py"))
        release = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(release)
        held = release.contents(HEADROOM, self.wheel.manifest()["version"])
        for name in ["completions/headroom.bash", "completions/_headroom", "completions/headroom.fish", "man/headroom.1", "LICENSE-MIT"]:
            self.assertGreater(len(held[name][0]), 100, name)
        held["headroom"] = (b"program", 0o755)
        with tempfile.TemporaryDirectory() as folder:
            for name, end in [("headroom-1-x86_64-unknown-linux-musl", ".tar.gz"), ("headroom-1-x86_64-pc-windows-msvc", ".zip")]:
                bytes_of = []
                for _ in range(2):
                    path = release.archive(name, held, folder)
                    self.assertTrue(path.endswith(name + end))
                    with open(path, "rb") as file:
                        bytes_of.append(file.read())
                self.assertEqual(*bytes_of)
        with self.assertRaises(SystemExit):
            release.contents(HEADROOM, "9.9.9")

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
