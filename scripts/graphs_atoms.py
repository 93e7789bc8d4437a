"""Models of atoms and proteins whose graphs scripts/graphs.py records: MACE and NequIP, trained on energies and forces, and the Evoformer.

Needs mace-torch and e3nn, or nequip 0.6 with e3nn, or a checkout of openfold in PYTHONPATH. e3nn's generated code runs as Python, not
as TorchScript, for a recording sees operations.
"""
import sys
import types

import torch
import torch.nn.functional as F

SCRIPTED = "TorchScript's fusion of kernels: e3nn's code runs an operation at a time"


def pairs(b, s, device):
    """b molecules of s atoms, each a neighbour of all others, as two rows of places."""
    atom = torch.arange(s)
    first, second = (part.flatten() for part in torch.meshgrid(atom, atom, indexing="ij"))
    both = torch.stack([first[first != second], second[first != second]])
    return (both[:, None] + torch.arange(b)[None, :, None] * s).flatten(1).to(device)


def of_energy_and_forces(model, batch):
    given = {key: part for key, part in batch.items() if key not in ("energy", "forces")}
    out = model(given)
    return F.mse_loss(out["energy"], batch["energy"]) + 100 * F.mse_loss(out["forces"], batch["forces"])


def mace_batch(elements):
    def batch(b, s, device):
        edges = pairs(b, s, device)
        kinds = torch.zeros(b * s, elements, device=device)
        kinds[:, 0] = 1.0
        return dict(
            positions=torch.randn(b * s, 3, device=device), node_attrs=kinds, edge_index=edges,
            shifts=torch.zeros(edges.shape[1], 3, device=device), unit_shifts=torch.zeros(edges.shape[1], 3, device=device),
            cell=torch.zeros(b * 3, 3, device=device), batch=torch.arange(b, device=device).repeat_interleave(s),
            ptr=torch.arange(b + 1, device=device) * s, head=torch.zeros(b, dtype=torch.long, device=device),
            energy=torch.zeros(b, device=device), forces=torch.zeros(b * s, 3, device=device),
        )

    return batch


class Mace(torch.nn.Module):
    """The model as its training calls it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, batch):
        return self.inner(batch, training=True, compute_force=True)


def eager():
    import e3nn

    e3nn.set_optimization_defaults(jit_script_fx=False)


def mace(elements, channels, most, bessel):
    eager()
    import numpy
    from e3nn import o3
    from mace.modules import interaction_classes, models

    hidden = o3.Irreps(" + ".join(f"{channels}x{degree}{'eo'[degree % 2]}" for degree in range(most + 1)))
    return Mace(
        models.ScaleShiftMACE(
            r_max=6.0, num_bessel=bessel, num_polynomial_cutoff=5, max_ell=3, num_interactions=2, num_elements=elements, hidden_irreps=hidden,
            MLP_irreps=o3.Irreps("16x0e"), atomic_energies=numpy.zeros(elements), avg_num_neighbors=19.0, atomic_numbers=list(range(1, elements + 1)),
            interaction_cls=interaction_classes["RealAgnosticResidualInteractionBlock"], correlation=3, gate=torch.nn.functional.silu,
            interaction_cls_first=interaction_classes["RealAgnosticResidualInteractionBlock" if elements > 20 else "RealAgnosticInteractionBlock"],
            atomic_inter_scale=1.0, atomic_inter_shift=0.0, radial_MLP=[64, 64, 64],
        )
    )


def nequip_batch(b, s, device):
    edges = pairs(b, s, device)
    return dict(
        pos=torch.randn(b * s, 3, device=device), atom_types=torch.zeros(b * s, 1, dtype=torch.long, device=device), edge_index=edges,
        batch=torch.arange(b, device=device).repeat_interleave(s), ptr=torch.arange(b + 1, device=device) * s,
        energy=torch.zeros(b, 1, device=device), forces=torch.zeros(b * s, 3, device=device),
    )


class Nequip(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, batch):
        out = self.inner(batch)
        return dict(energy=out["total_energy"], forces=out["forces"])


def nequip(most, features):
    eager()
    from nequip.model import EnergyModel, ForceOutput, SimpleIrrepsConfig

    config = dict(
        r_max=4.0, num_layers=4, l_max=most, parity=True, num_features=features, num_basis=8, invariant_layers=2, invariant_neurons=64,
        type_names=["H", "C", "O"], num_types=3, avg_num_neighbors=19.0, default_dtype="float32", model_dtype="float32", PolynomialCutoff_p=6,
        nonlinearity_type="gate", use_sc=True, resnet=False,
    )
    SimpleIrrepsConfig(config)
    return Nequip(ForceOutput(EnergyModel(config, initialize=False, dataset=None)))


def evoformer():
    """Evoformer blocks as openfold trains them: each of them checkpointed, with its own attention in plain PyTorch."""
    sys.modules.setdefault("attn_core_inplace_cuda", types.ModuleType("attn_core_inplace_cuda"))
    for part in ("openfold", "openfold.model"):  # without the rest of the library, which needs other packages
        if part not in sys.modules:
            found = types.ModuleType(part)
            found.__path__ = [f"{root}/{part.replace('.', '/')}" for root in sys.path]
            sys.modules[part] = found
    from openfold.model import primitives
    from openfold.model.evoformer import EvoformerStack

    # Its initial values take minutes to draw.
    primitives.trunc_normal_init_ = lambda weights, *args, **kwargs: None

    return EvoformerStack(
        c_m=256, c_z=128, c_hidden_msa_att=32, c_hidden_opm=32, c_hidden_mul=128, c_hidden_pair_att=32, c_s=384, no_heads_msa=8, no_heads_pair=4,
        no_blocks=48, transition_n=4, msa_dropout=0.15, pair_dropout=0.25, no_column_attention=False, opm_first=False, fuse_projection_weights=False,
        blocks_per_ckpt=1, inf=1e9, eps=1e-8,
    )


def of_msa(b, s, device):
    """128 clustered sequences and the pairs of a crop of s residues."""
    made = dict(m=(b, 128, s, 256), z=(b, s, s, 128))
    values = {key: torch.randn(shape, device=device, requires_grad=True) for key, shape in made.items()}
    return dict(values, msa_mask=torch.ones(b, 128, s, device=device), pair_mask=torch.ones(b, s, s, device=device))


def of_representations(model, batch):
    return sum(part.float().square().mean() for part in model(**batch, chunk_size=None))


# Id, library, what builds it, batch.
MODELS = {
    "mace-mp0-small": ("mace-torch", lambda: mace(89, 128, 0, 10), mace_batch(89)),
    "mace-mp0-medium": ("mace-torch", lambda: mace(89, 128, 1, 10), mace_batch(89)),
    "mace-mp0-large": ("mace-torch", lambda: mace(89, 128, 2, 10), mace_batch(89)),
    "mace-off23-small": ("mace-torch", lambda: mace(10, 96, 0, 8), mace_batch(10)),
    "mace-off23-medium": ("mace-torch", lambda: mace(10, 128, 1, 8), mace_batch(10)),
    "mace-small-32": ("mace-torch", lambda: mace(5, 32, 0, 8), mace_batch(5)),
    "nequip-l1-32": ("nequip", lambda: nequip(1, 32), nequip_batch),
    "nequip-l2-32": ("nequip", lambda: nequip(2, 32), nequip_batch),
    "nequip-l2-64": ("nequip", lambda: nequip(2, 64), nequip_batch),
}
TRUNK = "all but the trunk: embedders, templates, the extra MSA stack and the structure module"
