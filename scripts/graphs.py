"""Records the graphs that the catalogue ships, catalog/graphs/ID.json.gz, from the classes of the real libraries.

    python scripts/graphs.py                 # all of them
    python scripts/graphs.py densenet-121    # some

Needs torch, torchvision, transformers, timm, diffusers, scipy, and schnetpack with ase for its models; the versions it ran with are in each
file's `source`. For each it prints the parameters, which are the catalogue's count.
"""
import contextlib
import gzip
import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crates", "headroom-core", "src", "nets", "graph"))
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import torch
import torch.nn.functional as F
import graphs_atoms
import graphs_hf
import graphs_mixed
import graphs_objects
from headroom_record import NoInit, Subject, Values, own_loss, seed

# Models whose weights need more memory than a laptop has.
ON_META = """mamba2-130m mamba2-370m mamba2-780m mamba2-1.3b mamba2-2.7b phi-3.5-moe jamba-v0.1
gemma-3n-e4b qwen3.5-27b seamless-m4t-medium""".split()

FOLLOWED = ("longformer-base-4096",)

OUT = os.environ.get("OUT") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "catalog", "graphs")
MODELS = {}


def model(name, library, sizes, batch, loss=own_loss, leaves_out=None):
    """A model by its id in the catalogue: what builds it, at which sizes, its batch, its loss, and what is not in it."""

    def add(build):
        MODELS[name] = (build, library, sizes, batch, loss, leaves_out)
        return build

    return add


def text(vocabulary, least=3):
    def batch(b, s, device):
        ids = torch.randint(least, vocabulary, (b, s), device=device)
        return dict(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids.clone())

    return batch


def without_mask(batch):
    def made(b, s, device):
        return {key: part for key, part in batch(b, s, device).items() if key != "attention_mask"}

    return made


# --- images ----------------------------------------------------------------------------------------------------------


def images(b, s, device):
    return dict(x=torch.randn(b, 3, s, s, device=device), y=torch.randint(0, 1000, (b,), device=device))


def classes(model, batch):
    return F.cross_entropy(model(batch["x"]), batch["y"])


def of_timm(identity, name, sizes):
    @model(identity, "timm", sizes, images, classes)
    def build():
        import timm

        return timm.create_model(name, pretrained=False)


of_timm("densenet-121", "densenet121", [(2, 192), (2, 224)])
of_timm("inception-v3", "inception_v3", [(2, 299), (2, 331)])


@model("detr-resnet-50", "transformers", graphs_mixed.SCENES, graphs_mixed.scenes())
def detr():
    from transformers import DetrConfig, DetrForObjectDetection

    return DetrForObjectDetection(DetrConfig(use_pretrained_backbone=False))


def maps(b, s, device):
    return dict(pixel_values=torch.randn(b, 3, s, s, device=device), labels=torch.randint(0, 150, (b, s, s), device=device))


@model("segformer-b0", "transformers", [(2, 512), (2, 640)], maps)
def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    return SegformerForSemanticSegmentation(SegformerConfig(num_labels=150))


# --- diffusion -------------------------------------------------------------------------------------------------------


def pixart(identity, tokens, conditions):
    def batch(b, s, device):
        made = dict(x=torch.randn(b, 4, s, s, device=device), c=torch.randn(b, tokens, 4096, device=device), t=torch.randint(0, 1000, (b,), device=device))
        if conditions:
            made.update(resolution=torch.randn(b, 2, device=device), aspect=torch.randn(b, 1, device=device))
        return made

    def loss(model, batch):
        added = dict(resolution=batch.get("resolution"), aspect_ratio=batch.get("aspect"))
        out = model(hidden_states=batch["x"], encoder_hidden_states=batch["c"], timestep=batch["t"], added_cond_kwargs=added).sample
        return F.mse_loss(out[:, :4].float(), batch["x"].float())

    @model(identity, "diffusers", [(2, 128)], batch, loss)
    def build():
        from diffusers import PixArtTransformer2DModel

        return PixArtTransformer2DModel(
            num_attention_heads=16, attention_head_dim=72, in_channels=4, out_channels=8, num_layers=28, cross_attention_dim=1152,
            sample_size=128, patch_size=2, caption_channels=4096, use_additional_conditions=conditions, norm_type="ada_norm_single",
        )


pixart("pixart-alpha-xl-2-1024", 120, True)
pixart("pixart-sigma-xl-2-1024", 300, False)


def pixels(b, s, device):
    return dict(x=torch.randn(b, 3, s, s, device=device))


def reconstructed(model, batch):
    found = model.encode(batch["x"]).latent_dist
    return F.l1_loss(model.decode(found.sample()).sample.float(), batch["x"].float()) + 1e-6 * found.kl().float().mean()


def autoencoder(identity, latent, side, quantised):
    @model(identity, "diffusers", [(2, 256), (2, 384)], pixels, reconstructed)
    def build():
        from diffusers import AutoencoderKL

        return AutoencoderKL(
            latent_channels=latent, block_out_channels=(128, 256, 512, 512), layers_per_block=2, down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4, sample_size=side, use_quant_conv=quantised, use_post_quant_conv=quantised,
        )


autoencoder("sd-vae-kl-f8", 4, 512, True)
autoencoder("vae-kl-f8-16ch", 16, 1024, False)

# --- text, tables and series -----------------------------------------------------------------------------------------


@model("longformer-base-4096", "transformers", [(2, 512), (2, 1024)], text(50265))
def longformer():
    from transformers import LongformerConfig, LongformerForMaskedLM

    return LongformerForMaskedLM(LongformerConfig(vocab_size=50265, max_position_embeddings=4098, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5))


@model("xlnet-base-cased", "transformers", [(2, 256), (2, 512)], text(32000))
def xlnet():
    from transformers import XLNetConfig, XLNetLMHeadModel

    return XLNetLMHeadModel(XLNetConfig(d_model=768, n_layer=12, n_head=12, d_inner=3072))


def series(b, s, device):
    return dict(past_values=torch.randn(b, 512, 7, device=device), future_values=torch.randn(b, 96, 7, device=device))


@model("patchtst-etth1", "transformers", [(2, 512)], series)
def patchtst():
    from transformers import PatchTSTConfig, PatchTSTForPrediction

    return PatchTSTForPrediction(
        PatchTSTConfig(num_input_channels=7, context_length=512, patch_length=12, patch_stride=12, prediction_length=96, d_model=128, num_attention_heads=16,
                       num_hidden_layers=3, ffn_dim=512, dropout=0.2, head_dropout=0.2, pooling_type=None, channel_attention=False, scaling="std", loss="mse",
                       pre_norm=True, norm_type="batchnorm", use_cls_token=False)
    )


MAMBA = "the kernels of mamba-ssm, which keep less than transformers' own code does: this is the latter"


def mamba2(identity, layers, hidden):
    @model(identity, "transformers", [(2, 512), (2, 1024)], without_mask(text(50280)), leaves_out=MAMBA)
    def build():
        from transformers import Mamba2Config, Mamba2ForCausalLM

        config = Mamba2Config(vocab_size=50288, hidden_size=hidden, num_hidden_layers=layers, num_heads=hidden // 32, head_dim=64, state_size=128, n_groups=1,
                              expand=2, conv_kernel=4, chunk_size=256, tie_word_embeddings=True, use_cache=False)
        return Mamba2ForCausalLM(config)


mamba2("mamba2-130m", 24, 768)
mamba2("mamba2-370m", 48, 1024)
mamba2("mamba2-780m", 48, 1536)
mamba2("mamba2-1.3b", 48, 2048)
mamba2("mamba2-2.7b", 64, 2560)

# --- transformers' models by their configurations -----------------------------------------------------------------------


def of_transformers(identity):
    kind, sizes, batch, leaves_out, loss, _ = graphs_hf.MODELS[identity]
    model(identity, "transformers", sizes, batch, loss or own_loss, leaves_out)(lambda: graphs_hf.build(identity))


for known in graphs_hf.MODELS:
    of_transformers(known)

# --- atoms -----------------------------------------------------------------------------------------------------------


def molecules(b, s, device):
    """b molecules of s atoms, each a neighbour of all others."""
    atom = torch.arange(s)
    first, second = (part.flatten() for part in torch.meshgrid(atom, atom, indexing="ij"))
    apart = first != second
    pairs = torch.stack([first[apart], second[apart]])
    every = (pairs[:, None] + torch.arange(b)[None, :, None] * s).flatten(1)
    return {
        "_atomic_numbers": torch.randint(1, 10, (b * s,), device=device), "_n_atoms": torch.full((b,), s, device=device),
        "_positions": torch.randn(b * s, 3, device=device), "_idx_m": torch.arange(b, device=device).repeat_interleave(s),
        "_idx_i": every[0].to(device), "_idx_j": every[1].to(device), "_offsets": torch.zeros(every.shape[1], 3, device=device),
        "energy": torch.randn(b, device=device),
    }


def energy(model, batch):
    return F.mse_loss(model({key: part for key, part in batch.items() if key != "energy"}), batch["energy"])


class Potential(torch.nn.Module):
    """Energies alone, as `NeuralNetworkPotential` comes to them."""

    def __init__(self, distances, body, head):
        super().__init__()
        self.distances, self.body, self.head = distances, body, head

    def forward(self, inputs):
        return self.head(self.body(self.distances(inputs)))["energy"]


def parts_of_schnetpack():
    """Its networks without its data sets and its training, which need other packages and an older torch."""
    if "schnetpack" not in sys.modules:
        whole = types.ModuleType("schnetpack")
        whole.__path__ = list(importlib.util.find_spec("schnetpack").submodule_search_locations)
        sys.modules["schnetpack"] = whole
        for part in ("properties", "nn", "representation", "atomistic"):
            setattr(whole, part, importlib.import_module(f"schnetpack.{part}"))
    return sys.modules["schnetpack"]


def schnetpack(identity, layers, kind, rbf):
    @model(identity, "schnetpack", [(8, 16), (8, 24)], molecules, energy)
    def build():
        spk = parts_of_schnetpack()
        kinds = dict(schnet=spk.representation.SchNet, painn=spk.representation.PaiNN)
        body = kinds[kind](n_atom_basis=128, n_interactions=layers, radial_basis=spk.nn.GaussianRBF(n_rbf=rbf, cutoff=5.0), cutoff_fn=spk.nn.CosineCutoff(5.0))
        head = spk.atomistic.Atomwise(n_in=128, output_key="energy")
        return Potential(spk.atomistic.PairwiseDistances(), body, head)


schnetpack("schnet-128-3", 3, "schnet", 20)
schnetpack("schnet-128-6", 6, "schnet", 50)
schnetpack("painn-128-3", 3, "painn", 20)


def of_atoms(identity):
    library, build, batch = graphs_atoms.MODELS[identity]
    model(identity, library, [(8, 16), (8, 24)], batch, graphs_atoms.of_energy_and_forces, graphs_atoms.SCRIPTED)(build)


for known in graphs_atoms.MODELS:
    of_atoms(known)
model("evoformer-48", "openfold", [(1, 256)], graphs_atoms.of_msa, graphs_atoms.of_representations, graphs_atoms.TRUNK)(graphs_atoms.evoformer)


def version(library):
    return "ce0029e1" if library == "openfold" else importlib.metadata.version(library)


def main():
    os.makedirs(OUT, exist_ok=True)
    graphs_objects.together(graphs_mixed.OBJECTS)
    failed = []
    for name in sys.argv[1:] or MODELS:
        build, library, sizes, batch, loss, leaves_out = MODELS[name]
        try:
            # The masks of long windows are followed too, and pictures that are left away where they are empty.
            Values.MOST = 1 << (24 if name in FOLLOWED else 22)
            seed()
            # What nobody reads needs no memory.
            drawn = library in ("mace-torch", "nequip")  # they find constants by drawing numbers
            with torch.device("meta" if name in ON_META else "cpu"), contextlib.nullcontext() if drawn else NoInit():
                made = build().train()
            count = sum(p.numel() for p in made.parameters())
            subject = Subject(made, batch, loss, sizes, name, f"{library} {version(library)} {type(made).__name__}")
            subject.fixed = len(sizes) == 1
            subject.left_out = [leaves_out] if leaves_out else []
            document = subject.document()
        except Exception as problem:  # one that fails keeps no other from being made
            failed.append(name)
            print(f"{name}: {type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr, flush=True)
            continue
        text = json.dumps(document, separators=(",", ":"))
        packed = gzip.compress(text.encode(), 9, mtime=0)
        with open(os.path.join(OUT, name + ".json.gz"), "wb") as file:
            file.write(packed)
        held = [(p["precision"], p["batches"], p["lengths"]) for p in document["programs"]]
        print(f"{name}: {count} parameters, {len(text)} bytes, {len(packed)} packed, {held}", flush=True)
        for note in document["notes"]:
            print("   ", note[:200], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
