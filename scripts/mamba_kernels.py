"""Stands in for the compiled parts of mamba-ssm and causal-conv1d, so that their own Python runs without a GPU: each function makes
the tensors that its kernel makes (csrc/selective_scan/selective_scan.cpp, csrc/causal_conv1d.cpp) and computes nothing.

Needs the packages' Python sources in sys.path, not their kernels.
"""
import sys
import types

import torch


def scan(u, delta, A, B, C, D, z, delta_bias, softplus):
    chunks = (u.shape[-1] + 2047) // 2048
    more = [torch.empty_like(z)] if z is not None else []
    return [torch.empty_like(delta), torch.empty(u.shape[0], u.shape[1], chunks, A.shape[1] * 2, dtype=A.dtype, device=u.device), *more]


def scan_backward(u, delta, A, B, C, D, z, delta_bias, grad, x, out, dz, softplus, recompute):
    made = [torch.empty_like(u), torch.empty_like(delta), torch.zeros_like(A)]
    wide = [torch.zeros_like(part, dtype=torch.float32) for part in (B, C)]
    rest = [torch.zeros_like(D) if D is not None else None, torch.zeros_like(delta_bias) if delta_bias is not None else None]
    last = [torch.empty_like(z)] if z is not None else []
    return [*made, wide[0].to(B.dtype), wide[1].to(C.dtype), *rest, *last]


def convolved(x, weight, bias, *rest):
    return torch.empty_like(x)


def convolved_backward(x, weight, bias, grad, *rest):
    made = torch.empty_like(x)
    wide = [torch.zeros_like(part, dtype=torch.float32) for part in (weight, bias)]
    return made, wide[0].to(weight.dtype), wide[1].to(bias.dtype), None


def module(name, **parts):
    made = types.ModuleType(name)
    made.__path__ = []
    vars(made).update(parts)
    sys.modules[name] = made
    return made


def install():
    """Makes `mamba_ssm` and `causal_conv1d` what transformers finds them as."""
    if "selective_scan_cuda" in sys.modules:
        return
    module("selective_scan_cuda", fwd=scan, bwd=scan_backward)
    places = [f"{root}/mamba_ssm" for root in sys.path]
    module("mamba_ssm").__path__ = places
    module("mamba_ssm.ops").__path__ = [f"{place}/ops" for place in places]
    module("mamba_ssm.ops.triton")
    module("mamba_ssm.ops.triton.layer_norm", _layer_norm_fwd=None)
    names = dict(causal_conv1d_fwd_function=convolved, causal_conv1d_bwd_function=convolved_backward, causal_conv1d_update_function=None)
    module("causal_conv1d").__path__ = [f"{root}/causal_conv1d" for root in sys.path]
    module("causal_conv1d.cpp_functions", **names)
    from causal_conv1d.causal_conv1d_interface import causal_conv1d_fn

    sys.modules["causal_conv1d"].causal_conv1d_fn = causal_conv1d_fn
    from mamba_ssm.ops.selective_scan_interface import mamba_inner_fn, selective_scan_fn

    vars(sys.modules["mamba_ssm"]).update(selective_scan_fn=selective_scan_fn, mamba_inner_fn=mamba_inner_fn)
