"""Records the forward pass and the loss of a PyTorch model for Headroom, on a machine without a GPU.

    from headroom_record import record
    record(model, example_batch, "model.json")                 # loss: model(**batch).loss, or loss=function(model, batch)

    python headroom_record.py mymodule:build --batch mymodule:batch --loss mymodule:loss -o model.json
    python headroom_record.py FILE.py --out DIR                # a file with build(), batch(b, s, device), loss(model, batch), SIZES
    python headroom_record.py hf:gpt2 -o model.json            # a causal language model of the Hugging Face hub, by its config
    python headroom_record.py timm:resnet50 -o model.json

Tensors are on torch's meta device: nothing is computed, trained or sent. The step is recorded in fp32, under autocast and in
bf16, at several batch sizes and lengths, and every size is solved as an expression of these two. Needs torch 2.1 or newer
and nothing else. The file's format is described in docs/record.md of Headroom.
"""
import argparse
import collections
import contextlib
import copy
import functools
import gc
import importlib
import importlib.util
import itertools
import json
import math
import os
import sys
import warnings
import weakref
from fractions import Fraction

import torch
import torch.utils.checkpoint
from torch.utils._python_dispatch import TorchDispatchMode

FORMAT = 3
META = torch.device("meta")
A = torch.ops.aten
HALF = torch.bfloat16
FLOATS = (torch.float16, torch.bfloat16, torch.float32)


class Unrecordable(Exception):
    """What the recorder cannot do, in words for a person."""


def tensors_of(*parts):
    """All tensors of nested arguments."""
    found, rest = [], list(reversed(parts))
    while rest:
        part = rest.pop()
        if isinstance(part, torch.Tensor):
            found.append(part)
        elif isinstance(part, (list, tuple)):
            rest.extend(reversed(part))
        elif isinstance(part, dict):
            rest.extend(reversed(list(part.values())))
    return found


def mapped(change, part):
    """Nested arguments with their tensors changed; lists and dictionaries of other kinds keep their kind."""
    if isinstance(part, torch.Tensor):
        return change(part)
    if isinstance(part, (list, tuple)):
        items = [mapped(change, item) for item in part]
        return type(part)(*items) if hasattr(part, "_fields") else type(part)(items)
    if isinstance(part, dict):
        items = {key: mapped(change, item) for key, item in part.items()}
        try:
            return type(part)(items)
        except TypeError:
            return items
    if hasattr(part, "__dict__") and hasattr(part, "apply") and hasattr(part, "to"):
        return copy.copy(part).apply(change)  # a batch of PyTorch Geometric
    return part


# --- values that follow from the batch alone -------------------------------------------------------------------------


class Values:
    """CPU values of small tensors, so that `.item()` and masks answer as they would with the user's data."""

    MOST = 1 << 22

    @classmethod
    def small(cls, tensor):
        """Whether a tensor's values are followed: of masks and positions, which decide sizes, larger ones are."""
        return tensor.numel() <= cls.MOST * (4 if tensor.element_size() == 1 else 1)

    MAKERS = ("arange", "zeros", "ones", "full", "scalar_tensor", "eye", "linspace", "new_")
    RANDOM = ("rand", "normal", "bernoulli", "uniform", "dropout", "multinomial", "exponential", "empty")

    def __init__(self):
        self.known = {}
        self.assumed = 0

    def put(self, tensor, value):
        storage = tensor.untyped_storage()
        size = storage.nbytes() // max(1, tensor.element_size())
        if size <= self.MOST * (4 if tensor.element_size() == 1 else 1):
            flat = torch.zeros(size, dtype=tensor.dtype)
            if tensor.numel():
                once = tuple(slice(0, None if stride else 1) for stride in tensor.stride())  # of expanded dimensions
                flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())[once].copy_(value[once])
            self.known[storage._cdata] = flat

    def drop(self, key):
        self.known.pop(key, None)

    def of(self, tensor):
        if tensor.device.type != "meta":
            return tensor
        flat = self.known.get(tensor.untyped_storage()._cdata)
        if flat is None or flat.dtype != tensor.dtype:
            raise KeyError
        return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def run(self, func, args, kwargs, given):
        """The operation on known values; None where some value is not known."""
        name = func._schema.name[6:]
        if name in ("zeros_like", "ones_like") and kwargs.get("dtype") in (torch.bool, torch.int64) and self.small(given[0]):
            return torch.full(given[0].shape, name == "ones_like", dtype=kwargs["dtype"])
        if given and name not in ("isfinite", "isinf", "isnan") and not func._schema.is_mutable and not name.startswith("new_"):
            for tensor in given:
                if tensor.device.type == "meta" and tensor.untyped_storage()._cdata not in self.known:
                    return None
        try:
            if any(word in name for word in self.RANDOM):
                raise KeyError
            if not given and not name.startswith(self.MAKERS):
                raise KeyError
            if not all(self.small(t) for t in given):
                raise KeyError
            if name in ("isfinite", "isinf", "isnan") and given[0].device.type == "meta":
                try:
                    self.of(given[0])
                except KeyError:  # ordinary data is finite
                    if given[0].numel() > self.MOST:
                        raise
                    return torch.full(given[0].shape, name == "isfinite")
            if name.startswith("new_"):
                args = (torch.empty(0, dtype=args[0].dtype),) + tuple(args[1:])
            args = mapped(self.of, args)
            kwargs = {key: mapped(self.of, item) for key, item in kwargs.items()}
            if str(kwargs.get("device", "")) == "meta":
                kwargs["device"] = torch.device("cpu")
            if not given or name.startswith("new_"):
                size = next((a for a in args if isinstance(a, (list, tuple))), ())
                if torch.Size([n for n in size if isinstance(n, int)]).numel() > self.MOST:
                    raise KeyError
            with torch.no_grad():
                return func(*args, **kwargs)
        except (KeyError, RuntimeError, NotImplementedError, IndexError):
            if func._schema.is_mutable:
                for tensor, argument in zip(args, func._schema.arguments):
                    if isinstance(tensor, torch.Tensor) and argument.alias_info and argument.alias_info.is_write:
                        self.drop(tensor.untyped_storage()._cdata)
            return None


# --- autocast as CUDA does it ----------------------------------------------------------------------------------------

# autocast_mode.h of PyTorch: what runs in the lower precision, in fp32, with an fp32 result, in the widest type.
LOWER = """_convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm chain_matmul
linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
_scaled_dot_product_flash_attention scaled_dot_product_attention""".split()
RAISED = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor
pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity
poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist
pdist cdist renorm logsumexp upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d
upsample_nearest3d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d
upsample_bicubic2d _upsample_bicubic2d_aa""".split()
RAISED_RESULT = """prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
linalg_matrix_norm.str_ord sum sum.dim_IntList""".split()
WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add".split()

# In the CPU's list alone: CUDA's autocast sees what these are made of.
THROUGH = ["cross_entropy_loss"]

KEY = torch._C.DispatchKey.AutocastCPU


def eligible(tensor):
    return tensor.device.type == "meta" and tensor.dtype in FLOATS


class Autocast:
    """The state of autocast, and the kernels that stand for CUDA's on the meta device."""

    def __init__(self):
        self.stack = []
        self.casts = {}

    def state(self):
        return self.stack[-1] if self.stack else (False, torch.float16)

    def enter(self, enabled, dtype):
        self.stack.append((enabled, dtype))
        self.apply()

    def leave(self):
        self.stack.pop()
        if not any(on for on, _ in self.stack):
            self.casts.clear()
        self.apply()

    def apply(self):
        set_autocast_cpu(self.state()[0])

    def lowered(self, tensor):
        to = self.state()[1]
        if not eligible(tensor) or tensor.dtype == to:
            return tensor
        kept = tensor.dtype == torch.float32 and tensor.requires_grad and tensor.is_leaf and not tensor._is_view()
        if not kept:
            return tensor.to(to)
        if id(tensor) not in self.casts:
            # A cast that a pass without gradients caches serves the next one with them.
            with torch.enable_grad():
                self.casts[id(tensor)] = (tensor, tensor.to(to))
        return self.casts[id(tensor)][1]

    @staticmethod
    def raised(tensor):
        return tensor.to(torch.float32) if eligible(tensor) and tensor.dtype != torch.float32 else tensor

    def kernel(self, op, kind):
        names = [argument.name for argument in op._schema.arguments]
        place = names.index("dtype") if "dtype" in names else None

        def cast(change, args, kwargs):
            # C++ evaluates arguments from the last to the first.
            kwargs = {key: mapped(change, item) for key, item in reversed(list(kwargs.items()))}
            return [mapped(change, item) for item in reversed(args)][::-1], kwargs

        def run(*args, **kwargs):
            with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(KEY)):
                if kind == "lower":
                    args, kwargs = cast(self.lowered, list(args), kwargs)
                elif kind == "raise":
                    args, kwargs = cast(self.raised, list(args), kwargs)
                elif kind == "result" and eligible(args[0]):
                    given = args[place] if len(args) > place else kwargs.get("dtype")
                    if given is None:
                        args = list(args[:place])
                        kwargs = {**kwargs, "dtype": torch.float32}
                        for argument in op._schema.arguments[len(args):place]:
                            kwargs.setdefault(argument.name, argument.default_value)
                elif kind == "widest":
                    found = [t for t in tensors_of(args, kwargs) if eligible(t)]
                    if any(t.dtype == torch.float32 for t in found):
                        args, kwargs = cast(self.raised, list(args), kwargs)
                return op(*args, **kwargs)

        return run

    def install(self, library):
        for name in THROUGH:
            library.impl(name, getattr(A, name).default.decompose, "AutocastCPU")
        for kind, names in (("lower", LOWER), ("raise", RAISED), ("result", RAISED_RESULT), ("widest", WIDEST)):
            for name in names:
                base, _, overload = name.partition(".")
                try:
                    op = getattr(getattr(A, base), overload or "default")
                    library.impl(name, self.kernel(op, kind), "AutocastCPU")
                except (AttributeError, RuntimeError):
                    pass  # not of this version of PyTorch


def remember_what_was_given():
    """Keeps what regions of autocast are asked for: those that decorate functions are made when the user's module is imported, on a
    machine without CUDA, where PyTorch turns them off."""
    made = torch.amp.autocast_mode.autocast.__init__

    @functools.wraps(made)
    def init(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made(self, device_type, dtype, enabled, cache_enabled)
        self.dtype_given, self.enabled_given = dtype, enabled

    torch.amp.autocast_mode.autocast.__init__ = init


remember_what_was_given()


def set_autocast_cpu(on):
    try:
        torch.set_autocast_enabled("cpu", on)
    except TypeError:
        torch.set_autocast_cpu_enabled(on)


# --- what CUDA runs in place of what meta would ----------------------------------------------------------------------


def cuda_dropout(x, p, train):
    if not train or p == 0:
        return x
    if 0 < p < 1 and x.numel():
        return A.native_dropout(x, p, True)[0]
    return x * 0


def cuda_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    """`_fused_sdp_choice_cuda`: flash, else memory-efficient, else plain products."""
    half = q.dtype in (torch.float16, torch.bfloat16)
    dim, regular = q.shape[-1], q.dim() == 4 and q.stride(-1) == 1 and k.stride(-1) == 1 and v.stride(-1) == 1
    if regular and half and attn_mask is None and dim == v.shape[-1] and dim <= 256:
        scale = dim**-0.5 if scale is None else scale
        pad = -dim % 8
        if pad:
            q, k, v = (torch.nn.functional.pad(t, (0, pad)) for t in (q, k, v))
        out = A._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, False, scale=scale)[0]
        return out[..., :dim] if pad else out
    known = half or q.dtype == torch.float32
    if regular and known and dim % (8 if half else 4) == 0 and v.shape[-1] % (8 if half else 4) == 0:
        bias = attn_mask
        if bias is not None:
            if bias.dtype == torch.bool:
                least = torch.full((), float("-inf"), dtype=q.dtype, device=META)
                bias = torch.where(bias, torch.zeros((), dtype=q.dtype, device=META), least)
            elif bias.dtype != q.dtype:
                bias = bias.to(q.dtype)
            if bias.shape[-1] % 8:
                bias = torch.nn.functional.pad(bias, (0, -bias.shape[-1] % 8))[..., : bias.shape[-1]]
            while bias.dim() < 4:
                bias = bias[None]
            bias = bias.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        asked = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
        return A._scaled_dot_product_efficient_attention(q, k, v, bias, asked, dropout_p, is_causal, scale=scale)[0]
    return A._scaled_dot_product_attention_math(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[0]


def cuda_batch_norm(x, weight, bias, mean, var, training, momentum, eps, cudnn_enabled):
    """`_batch_norm_impl_index`: cuDNN's kernel takes and saves a dense input."""
    cudnn = (
        weight is not None
        and bias is not None
        and (mean is None) == (var is None)
        and (mean is not None or training)
        and torch.bfloat16 not in (x.dtype, weight.dtype)
        and (x.dtype != torch.float16 or weight.dtype == torch.float32)
        and x.dim() >= 3
        and x.shape[0] <= (880801 if training else 65535)
        and eps >= 1e-5
        and cudnn_enabled
    )
    if cudnn:
        last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
        x = x.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
    return A.native_batch_norm(x, weight, bias, mean, var, training, momentum, eps)[0]


def meta_batch_norm_backward(grad, x, weight, mean, var, save_mean, save_invstd, train, eps, mask):
    """`batch_norm_backward_cuda_template`: the gradient of the input lies in row-major order, or with its channels last."""
    last = x.dim() in (4, 5) and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    made = torch.empty_like(x) if last else torch.empty_like(x, memory_format=torch.contiguous_format)
    channels = x.new_empty((x.shape[1],), dtype=weight.dtype if weight is not None else x.dtype)
    return made if mask[0] else None, channels if mask[1] else None, torch.empty_like(channels) if mask[2] else None


def cuda_rms_norm(x, shape, weight=None, eps=None):
    """`rms_norm_symint`: one kernel where the weight is of the input's type."""
    last = x.dim() in (4, 5) and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    if last or weight is not None and weight.dtype != x.dtype:
        return A.rms_norm.default.decompose(x, shape, weight, eps)
    return FusedRmsNorm.apply(x, shape, weight, eps)


class FusedRmsNorm(torch.autograd.Function):
    """`_fused_rms_norm`, which decomposes on the meta device."""

    @staticmethod
    def forward(ctx, x, shape, weight, eps):
        out, rstd = torch.ops.headroom._fused_rms_norm(x, shape, weight)
        ctx.save_for_backward(x, rstd, weight)
        ctx.shape = shape
        return out

    @staticmethod
    def backward(ctx, grad):
        x, rstd, weight = ctx.saved_tensors
        first, second = torch.ops.headroom._fused_rms_norm_backward(grad, x, ctx.shape, rstd, weight)
        asked = ctx.needs_input_grad
        return first if asked[0] else None, None, second if asked[2] else None, None


def meta_rms_norm(x, shape, weight):
    rows = (*x.shape[: x.dim() - len(shape)], *(1 for _ in shape))
    wide = torch.float32 if x.dtype in FLOATS else x.dtype
    return torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(rows, dtype=wide)


def meta_rms_norm_backward(grad, x, shape, rstd, weight):
    made = torch.empty_like(x, memory_format=torch.contiguous_format)
    return made, x.new_empty(()) if weight is None else torch.empty_like(weight)


def below_autograd(op, *args):
    """An operation itself, for the forward of what stands for its formula."""
    with torch._C._AutoDispatchBelowAutograd():
        return op(*args)


class Cumprod(torch.autograd.Function):
    """`cumprod_backward` of data without zeros: under a dispatch mode PyTorch takes the other branch, which is quadratic."""

    @staticmethod
    def forward(ctx, x, dim):
        out = below_autograd(A.cumprod, x, dim)
        ctx.save_for_backward(x, out)
        ctx.dim = dim
        return out

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        if x.numel() <= 1 or x.shape[ctx.dim] == 1:
            return grad, None
        products, zero = out * grad, x == 0
        zero.any()
        made = products.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim)
        del products
        return made.div(x), None


def cuda_cumprod(x, dim, *, dtype=None):
    return Cumprod.apply(x if dtype is None else x.to(dtype), dim)


class Prod(torch.autograd.Function):
    """`prod_backward` of data without zeros, over one dimension or, where there is none, over all."""

    @staticmethod
    def forward(ctx, x, dim, keepdim):
        out = below_autograd(A.prod, x) if dim is None else below_autograd(A.prod.dim_int, x, dim, keepdim)
        ctx.save_for_backward(x, out)
        ctx.dim, ctx.keepdim = dim, keepdim
        return out

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        if x.dim() == 0:
            return grad * out, None, None
        if ctx.dim is None:
            places = torch.empty((0, x.dim()), dtype=torch.long, device=META)
            zero = x == 0
            del zero, places
        else:
            if not ctx.keepdim:
                grad, out = grad.unsqueeze(ctx.dim), out.unsqueeze(ctx.dim)
            zero = x == 0
            zero.sum(ctx.dim, True).sum()
            del zero
        return grad * (out / x), None, None


def cuda_prod(x, *, dtype=None):
    return Prod.apply(x if dtype is None else x.to(dtype), None, False)


def cuda_prod_dim(x, dim, keepdim=False, *, dtype=None):
    return Prod.apply(x if dtype is None else x.to(dtype), dim, keepdim)


def meta_mish_backward(grad, x):
    return torch.empty_like(grad)


OWN = []


def install_own(library):
    """Operations of one kernel on CUDA that decompose on the meta device."""
    if not OWN and not hasattr(torch.ops.headroom, "_fused_rms_norm"):
        own = torch.library.Library("headroom", "FRAGMENT")
        for name, rest, body in (
            ("_fused_rms_norm", "(Tensor x, int[] shape, Tensor? weight) -> (Tensor, Tensor)", meta_rms_norm),
            ("_fused_rms_norm_backward", "(Tensor grad, Tensor x, int[] shape, Tensor rstd, Tensor? weight) -> (Tensor, Tensor)", meta_rms_norm_backward),
            ("mish_backward", "(Tensor grad, Tensor x) -> Tensor", meta_mish_backward),
        ):
            own.define(name + rest)
            own.impl(name, body, "Meta")
        OWN.append(own)
    if hasattr(A, "_fused_rms_norm_backward"):  # before PyTorch 2.9, CUDA runs what meta does
        library.impl("rms_norm", cuda_rms_norm, "AutogradMeta")
    library.impl("mish_backward", torch.ops.headroom.mish_backward, "AutogradMeta")


def cuda_lstm_cell(x, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    h, c, _ = A._thnn_fused_lstm_cell(torch.matmul(x, w_ih.t()), torch.matmul(hx[0], w_hh.t()), hx[1], b_ih, b_hh)
    return h, c


def cuda_gru_cell(x, hx, w_ih, w_hh, b_ih=None, b_hh=None):
    return A._thnn_fused_gru_cell(torch.matmul(x, w_ih.t()), torch.matmul(hx, w_hh.t()), hx, b_ih, b_hh)[0]


def meta_gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return torch.empty_like(hx, memory_format=torch.contiguous_format), hx.new_empty((hx.shape[0], 5 * hx.shape[1]))


def meta_gru_cell_backward(grad_hy, workspace, has_bias):
    gates = grad_hy.new_empty((grad_hy.shape[0], 3 * grad_hy.shape[1]))
    bias = grad_hy.new_empty((3 * grad_hy.shape[1],)) if has_bias else None
    return gates, torch.empty_like(gates), torch.empty_like(grad_hy), bias, None if bias is None else torch.empty_like(bias)


def meta_lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    return torch.empty_like(cx), torch.empty_like(cx), torch.empty_like(input_gates)


def meta_lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    gates = torch.empty_like(workspace)
    return gates, torch.empty_like(cx), workspace.new_empty((workspace.shape[1],)) if has_bias else None


def meta_ctc(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    """`ctc_loss_gpu_template`: its table is as wide as the longest target."""
    longest = targets.shape[-1]
    try:
        longest = int(TAPES[-1].values.of(target_lengths).max()) if TAPES else longest
    except (KeyError, RuntimeError):
        pass
    samples = log_probs.shape[1] if log_probs.dim() == 3 else 1
    return log_probs.new_empty((samples,)), log_probs.new_empty((samples, log_probs.shape[0], 2 * longest + 1))


def meta_ctc_backward(grad, log_probs, *rest, **named):
    return torch.empty_like(log_probs)


def suggests_last(tensor):
    """`Tensor::suggest_memory_format`: whether the strides are those of channels last."""
    shape, stride = tensor.shape, tensor.stride()
    if len(shape) not in (4, 5) or stride[1] == 0:
        return False
    least = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0 or stride[d] < least or d == 0 and least == stride[1]:
            return False
        least = stride[d] * shape[d]
    return True


def as_cudnn_lies(name, args, result):
    """`cudnn_conv_suggest_memory_format`: a convolution lies as its input or its weight; on the meta device it lies in row-major order."""
    images, weight = args[1:3] if name == "convolution_backward" else args[:2]
    dims = weight.dim()
    if dims not in (4, 5) or weight.dtype == torch.float64 or not (suggests_last(images) or suggests_last(weight)):
        return result
    order = torch.channels_last if dims == 4 else torch.channels_last_3d
    return mapped(lambda t: torch.empty_like(t, memory_format=order) if t.dim() == dims else t, result)


def cuda_ctc_loss(general):
    """`ctc_loss` with lengths on the host, which goes through lists of numbers; on the meta device it would mix devices."""

    def on_host(lengths):
        return not isinstance(lengths, torch.Tensor) or lengths.device.type == "cpu"

    def run(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
        if not (log_probs.device.type == "meta" and on_host(input_lengths) and on_host(target_lengths)):
            return general(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
        frames, lengths = (torch.as_tensor(part, dtype=torch.long, device="cpu") for part in (input_lengths, target_lengths))
        loss = torch._ctc_loss(log_probs, targets, frames, lengths, blank, zero_infinity)[0]
        if zero_infinity:
            loss = torch.where(loss == math.inf, torch.zeros((), dtype=loss.dtype, device=META), loss)
        if reduction == 1:
            return (loss / torch.tensor(lengths.tolist(), dtype=loss.dtype, device=META).clamp_min(1)).mean()
        return loss.sum() if reduction == 2 else loss

    return run


def sum_of_products(left, right, sums):
    """`sumproduct_pair`: a batched product over these dimensions of two tensors, which keep them at size one."""
    both, only_left, only_right, summed = [], [], [], []
    for place in range(left.dim()):
        of_left, of_right = left.shape[place] != 1, right.shape[place] != 1
        if place not in sums:
            (both if of_left and of_right else only_left if of_left else only_right).append(place)
        elif of_left and of_right:
            summed.append(place)
        else:
            left, right = (side.sum(place, True) if own else side for side, own in ((left, of_left), (right, of_right)))
    empty = [place for place in sums if place not in summed]

    def count(side, places):
        return math.prod(side.shape[place] for place in places)

    shape = [left.shape[place] for place in both + only_left] + [1] * (len(summed) + len(empty)) + [right.shape[place] for place in only_right]
    order = both + only_left + summed + empty + only_right
    batch, inner = count(left, both), count(left, summed)
    rows = left.permute(both + only_left + summed + empty + only_right).reshape(batch, count(left, only_left), inner)
    columns = right.permute(both + summed + empty + only_right + only_left).reshape(batch, inner, count(right, only_right))
    made = torch.bmm(rows, columns).view(shape)
    return made.permute([order.index(place) for place in range(len(order))])


def trilinear(one, two, three, expand1, expand2, expand3, sums, unroll_dim=1):
    """`_trilinear` in Linear.cpp, which `nn.Bilinear` and its backward call: a slice at a time."""
    parts, total = [one, two, three], one.dim() + len(expand1)
    size, inner, outer, unrolled = [], [], [], 1
    for place in range(total):
        here = 0
        for at, expanded in enumerate((expand1, expand2, expand3)):
            if place in expanded:
                parts[at] = parts[at].unsqueeze(place)
            else:
                here = parts[at].shape[place]
        if place in sums and place != unroll_dim:
            (inner if place in expand3 else outer).append(place)
        size.append(1 if place in sums else here)
        unrolled = here if place == unroll_dim else unrolled
    made = torch.zeros(size, dtype=one.dtype, device=META)
    for step in range(unrolled):
        left, right, third = (
            part.narrow(unroll_dim, 0 if unroll_dim in expanded else step, 1) for part, expanded in zip(parts, (expand1, expand2, expand3))
        )
        product = sum_of_products(left, right, inner)
        product = sum_of_products(product, third, outer)
        (made if unroll_dim in sums else made.narrow(unroll_dim, step, 1)).add_(product)
    for place in reversed(range(total)):
        if place in sums:
            made = made.squeeze(place)
    return made


# Operations that are made of others below autograd, where a mode does not see those.
MADE_OF_OTHERS = {"_trilinear": trilinear}


def install_stand_ins(library):
    for name, body in (
        ("dropout", cuda_dropout),
        ("scaled_dot_product_attention", cuda_attention),
        ("batch_norm", cuda_batch_norm),
        ("lstm_cell", cuda_lstm_cell),
        ("gru_cell", cuda_gru_cell),
        ("cumprod", cuda_cumprod),
        ("prod", cuda_prod),
        ("prod.dim_int", cuda_prod_dim),
    ):
        library.impl(name, body, "AutogradMeta")
    install_own(library)
    for name, body in (
        ("_thnn_fused_lstm_cell", meta_lstm_cell),
        ("_thnn_fused_lstm_cell_backward_impl", meta_lstm_cell_backward),
        ("_thnn_fused_gru_cell", meta_gru_cell),
        ("_thnn_fused_gru_cell_backward", meta_gru_cell_backward),
        ("_ctc_loss.Tensor", meta_ctc),
        ("_ctc_loss_backward", meta_ctc_backward),
        ("_ctc_loss_backward.Tensor", meta_ctc_backward),
        ("native_batch_norm_backward", meta_batch_norm_backward),
    ):
        try:
            library.impl(name, body, "Meta")
        except RuntimeError:
            pass  # this version has one


# --- the tape --------------------------------------------------------------------------------------------------------


class Pack:
    """Stands for a saved tensor: the memory itself is not held, so that Python's own lifetimes show."""

    __slots__ = ("number", "storage", "shape", "stride", "dtype", "mask", "__weakref__")


LAYOUTS = {}


def layout_of(tensor):
    """A tensor's type, shape and how it lies: None in row-major order, a permutation where it is dense, else strides."""
    key = (tensor.dtype, tensor.shape, tensor.stride())
    found = LAYOUTS.get(key)
    if found is None:
        found = LAYOUTS[key] = new_layout(tensor)
    return found


def new_layout(tensor):
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    if tensor.is_contiguous():
        return (str(tensor.dtype)[6:], shape, None)
    order = sorted(range(len(shape)), key=lambda i: (-stride[i], i))
    step, dense = 1, True
    for i in reversed(order):
        dense &= shape[i] == 1 or stride[i] == step
        step *= shape[i]
    return (str(tensor.dtype)[6:], shape, ("order", tuple(order)) if dense else ("strides", stride))


class Results:
    """What operations return, by what they are given: PyTorch's own shape functions are slow, and layers are alike."""

    PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)

    def __init__(self):
        self.known, self.fresh = {}, {}

    def makes_new(self, func):
        """Whether all that it returns is new memory."""
        if func not in self.fresh:
            schema = func._schema
            returns = schema.returns
            self.fresh[func] = not schema.is_mutable and bool(returns) and all(r.alias_info is None and str(r.type) == "Tensor" for r in returns)
        return self.fresh[func]

    def key(self, func, args, kwargs):
        parts = [func]
        rest = [*reversed(args), *(part for pair in kwargs.items() for part in pair)]
        some = False
        while rest:
            part = rest.pop()
            if isinstance(part, torch.Tensor):
                if part.device.type != "meta" or type(part) not in (torch.Tensor, torch.nn.Parameter):
                    return None
                some |= part.dim() > 0
                parts.append((part.dtype, part.shape, part.stride()))
            elif isinstance(part, (list, tuple)):
                parts.append(len(part))
                rest.extend(reversed(part))
            elif isinstance(part, self.PLAIN):
                parts.append((type(part), part))
            else:
                return None
        return tuple(parts) if some else None

    def run(self, func, args, kwargs):
        key = self.key(func, args, kwargs) if self.makes_new(func) else None
        if key is None:
            return func(*args, **kwargs)
        found = self.known.get(key)
        if found is None:
            result = func(*args, **kwargs)
            made = result if isinstance(result, tuple) else (result,)
            if all(isinstance(t, torch.Tensor) and t.device.type == "meta" and t.storage_offset() == 0 for t in made):
                sizes = [(tuple(t.shape), t.stride(), t.dtype) for t in made]
                whole = all(t.untyped_storage().nbytes() == torch.empty_strided(*row[:2], dtype=row[2], device=META).untyped_storage().nbytes() for t, row in zip(made, sizes))
                given = {t.untyped_storage()._cdata for t in tensors_of(args, kwargs)}
                apart = len({t.untyped_storage()._cdata for t in made} | given) == len(made) + len(given)
                self.known[key] = (sizes, isinstance(result, tuple)) if whole and apart else False
            else:
                self.known[key] = False
            return result
        if found is False:
            return func(*args, **kwargs)
        sizes, several = found
        made = [torch.empty_strided(shape, stride, dtype=dtype, device=META) for shape, stride, dtype in sizes]
        return tuple(made) if several else made[0]


RESULTS = Results()


class Tape(TorchDispatchMode):
    """Every operation of forward and backward, and when each piece of memory comes and goes."""

    def __init__(self, autocast, values):
        super().__init__()
        self.autocast, self.values = autocast, values
        self.events, self.numbers, self.refs = [], {}, {}
        self.count = self.packs = 0
        self.scope, self.quiet = [], False
        self.adopted = set()
        self.backward = False
        self.first = torch.autograd._get_sequence_nr()

    # memory

    def number(self, tensor, new=None):
        """The number of a tensor's memory; None where it is on the host or has none. `new` collects what was unknown."""
        if tensor.device.type != "meta":
            return None
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return None
        key = storage._cdata
        if key in self.numbers:
            return self.numbers[key]
        self.count += 1
        number = self.numbers[key] = self.count
        self.refs[key] = weakref.ref(storage, lambda _, key=key: self.gone(key))
        if new is not None:
            new.append(number)
        return number

    def gone(self, key):
        number = self.numbers.pop(key, None)
        self.refs.pop(key, None)
        self.values.drop(key)
        if number is not None:
            self.events.append(("free", number))

    def operand(self, tensor, new=None):
        number = self.number(tensor, new)
        if number is None:
            return None
        size = tensor.untyped_storage().nbytes()
        layout = layout_of(tensor)
        whole = tensor.numel() * tensor.element_size() == size
        return (number, layout + (None if whole else size,))

    def adopt(self, tensor, kind, name):
        """Memory from before the step: a parameter, a buffer or a part of the batch."""
        operand = self.operand(tensor)
        if operand and operand[0] not in self.adopted:
            self.adopted.add(operand[0])
            self.events.append((kind, name, operand))

    def places(self, model):
        """The numbers of the model's own memory."""
        own = itertools.chain(model.named_parameters(), model.named_buffers())
        return {name: self.number(tensor) for name, tensor in own}

    def kept(self, model):
        """The memory that outlives a step and is none of the model's parameters and buffers, with its size."""
        for tensor in model.parameters():
            tensor.grad = None
        gc.collect()
        own = {self.number(tensor) for tensor in itertools.chain(model.parameters(), model.buffers())}
        alive = {number: self.refs[key]() for key, number in sorted(self.numbers.items(), key=lambda item: item[1]) if number not in own}
        return {number: ("uint8", (storage.nbytes(),), None, None) for number, storage in alive.items() if storage is not None}

    def restart(self, model):
        """Begins another step, which numbers what there is as the first has: the model's own memory, then what is kept."""
        own = [tensor.untyped_storage()._cdata for tensor in itertools.chain(model.parameters(), model.buffers()) if tensor.device.type == "meta"]
        rest = sorted((key for key in self.numbers if key not in own), key=self.numbers.get)
        self.numbers = {key: number for number, key in enumerate(dict.fromkeys(own + rest), 1)}
        self.count, self.packs = len(self.numbers), 0
        self.events, self.scope = [], []
        self.adopted = set()
        self.backward = False
        self.first = torch.autograd._get_sequence_nr()

    # operations

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.quiet:
            return func(*args, **kwargs)
        given = tensors_of(args, kwargs)
        name = func._schema.name.split("::")[1]
        value = self.values.run(func, args, kwargs, given)
        on_device = [t for t in given if t.device.type == "meta"]
        if name == "_local_scalar_dense" and on_device:
            if value is None:
                self.values.assumed += 1
                return True if given[0].dtype == torch.bool else 0.5 if given[0].is_floating_point() else 0
            return value
        if name == "_to_copy" and on_device and str(kwargs.get("device")) == "cpu":
            return value if value is not None else torch.zeros(given[0].shape, dtype=kwargs.get("dtype") or given[0].dtype)
        if name == "equal" and on_device:
            self.values.assumed += value is None
            return False if value is None else value
        if name.startswith("grid_sampler") and given[0].dtype != given[1].dtype:
            # Its shape function does not ask; its kernel does.
            raise RuntimeError(f"expected scalar type {given[0].dtype} but found {given[1].dtype}")
        if name in MADE_OF_OTHERS and on_device:
            with self:
                return MADE_OF_OTHERS[name](*args, **kwargs)
        sequence = torch.autograd._get_sequence_nr() - self.first
        ins, unseen = [], []
        for tensor in given:
            operand = self.operand(tensor, unseen)
            if operand:
                ins.append(operand)
                if unseen and unseen[-1] == operand[0]:
                    # Made where the mode does not see it, as `torch.tensor` does.
                    self.events.append(("call", "tensor", [], [operand], [operand[0]], self.place(), sequence))
                    unseen.clear()
        dynamic = value is not None and on_device and name in ("nonzero", "unique_dim", "_unique2", "unique_consecutive", "bincount", "repeat_interleave")
        if name == "masked_select" and on_device:
            # CUDA's kernel is an index by the mask's positions; only these have to be known.
            places = self.without_masks([args[1].expand(torch.broadcast_shapes(args[0].shape, args[1].shape))])
            result = torch.empty(places[0].shape, dtype=args[0].dtype, device=META)
        elif dynamic:
            result = mapped(lambda t: torch.empty_like(t, device=META), value)
        elif name in IN_PLACE and self.makes_here(args[0]):
            if name == "index_put":
                self.without_masks(args[1])
            result = args[0]
            self.values.drop(result.untyped_storage()._cdata)
        elif name in ("index", "index_put", "index_put_") and on_device:
            result = func(args[0], self.without_masks(args[1]), *args[2:], **kwargs)
        else:
            result = RESULTS.run(func, args, kwargs)
        if name in ("convolution", "convolution_backward") and on_device:
            result = as_cudnn_lies(name, args, result)
        produced = tensors_of(result)
        if value is not None:
            for tensor, known in zip(produced, tensors_of(value)):
                if tensor.device.type == "meta" and tensor.untyped_storage()._cdata not in self.values.known:
                    self.values.put(tensor, known)
        outs, new = [], []
        for tensor in produced:
            operand = self.operand(tensor, new)
            if operand:
                outs.append(operand)
        if (outs or ins) and not (not new and is_view(func)):
            event = ("call", call_name(name, args, kwargs), ins, outs, new, self.place(), sequence, in_backward())
            self.events.append(event)
            if name in WINDOWED and on_device:
                WINDOWS[shapes_of(event)] = window_of(func, args, kwargs)
        return result

    def makes_here(self, tensor):
        """Whether the node of backward that runs now has made this memory."""
        if not self.backward or tensor.device.type != "meta":
            return False
        number = self.number(tensor)
        for event in reversed(self.events):
            if event[0] == "node":
                return False
            if event[0] == "call" and number in event[4]:
                return True
        return False

    def without_masks(self, indices):
        """Boolean indices become positions, as on CUDA."""
        found = []
        for index in indices:
            if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8) and index.device.type == "meta":
                try:
                    known = self.values.of(index)
                except KeyError:
                    raise Unrecordable(f"a mask whose values are not known decides a size ({'.'.join(self.scope[-1:]) or 'loss'})")
                places = known.nonzero()
                whole = torch.empty_like(places, device=META)
                operand = self.operand(whole, [])
                self.events.append(("call", "nonzero", [self.operand(index)], [operand], [operand[0]], self.place(), 0))
                found.extend(whole.unbind(1))
            else:
                found.append(index)
        return found

    def place(self):
        return self.scope[-1] if self.scope else ""

    # saved tensors

    def pack(self, tensor):
        if tensor.device.type != "meta":
            return tensor
        if self.backward:
            # A graph inside a node, such as a reentrant checkpoint's: nothing else holds what it saves.
            quiet, self.quiet = self.quiet, True
            kept = tensor.detach()
            self.quiet = quiet
            return kept
        pack = Pack()
        self.packs += 1
        pack.number = self.packs
        pack.shape, pack.stride, pack.dtype = tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
        quiet, self.quiet = self.quiet, True
        operand = self.operand(tensor)
        self.quiet = quiet
        self.events.append(("save", pack.number, operand))
        weakref.finalize(pack, self.events.append, ("unsave", pack.number))
        try:  # a mask decides sizes in backward too
            pack.mask = self.values.of(tensor) if tensor.dtype == torch.bool else None
        except KeyError:
            pack.mask = None
        return pack

    def unpack(self, pack):
        if isinstance(pack, torch.Tensor):
            return pack
        quiet, self.quiet = self.quiet, True
        tensor = torch.empty_strided(pack.shape, pack.stride, dtype=pack.dtype, device=META)
        operand = self.operand(tensor)
        if pack.mask is not None:
            self.values.put(tensor, pack.mask)
        self.quiet = quiet
        self.events.append(("unpack", operand[0], pack.number))
        return tensor


# What backward functions do to memory that they have just made (FunctionsManual.cpp): to itself, unless a dispatch mode watches.
IN_PLACE = ("scatter", "scatter_add", "index_put", "index_add", "put", "masked_fill")

SEES = {}


def is_view(func):
    """Whether an operation only looks at memory otherwise; such calls are not recorded."""
    if func not in SEES:
        returns = func._schema.returns
        seen = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        SEES[func] = seen or func._schema.name in ("aten::_unsafe_view", "aten::_reshape_alias", "aten::lift_fresh")
    return SEES[func]


def call_name(name, args, kwargs):
    """The operation, with what its memory depends on besides its tensors."""
    if name in ("index_put", "index_put_") and (kwargs.get("accumulate") or (len(args) > 3 and args[3])):
        return name + ":accumulate"
    if name in ("convolution", "convolution_backward"):
        at = 3 if name == "convolution" else 4
        stride, _, dilation, transposed = args[at : at + 4]
        mask = "" if name == "convolution" else "".join("01"[bool(on)] for on in args[10])
        return f"{name}:{stride[0]},{dilation[0]},{int(transposed)}{',' if mask else ''}{mask}"
    if name == "native_batch_norm":
        return f"{name}:{int(args[5])}"
    if name == "native_batch_norm_backward":
        return f"{name}:{int(args[7])},{''.join('01'[bool(on)] for on in args[9])}"
    if name in ("sum", "mean", "amax", "amin", "var", "std", "var_mean", "std_mean", "nansum", "norm", "logsumexp", "linalg_vector_norm"):
        places = next((a for a in args[1:] if isinstance(a, (list, tuple))), kwargs.get("dim"))
        if places is not None:
            return name + ":" + ",".join(str(int(p) % max(1, args[0].dim())) for p in places)
    if name in ("sort", "topk", "argsort", "cumsum", "cumprod", "max", "min", "_softmax", "_log_softmax", "gather", "scatter", "index_select", "index_add", "scatter_add"):
        place = next((a for a in args[1:] if isinstance(a, int) and not isinstance(a, bool)), kwargs.get("dim", -1))
        if name == "topk":
            place = args[2] if len(args) > 2 else -1
        if isinstance(place, int):
            return f"{name}:{place % max(1, args[0].dim())}"
    if name in ("any", "all", "prod") and len(args) > 1 and isinstance(args[1], int):
        return f"{name}:{args[1] % max(1, args[0].dim())}"
    if name in ("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention"):
        rate = args[3] if "flash" in name and len(args) > 3 else args[5] if "efficient" in name and len(args) > 5 else 0
        return name + (":dropout" if rate else "")
    return name


# What moves a window over its input.
WINDOWED = ("convolution", "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d")

# What each window leaves of the sides it moves along, by the shapes of its call.
WINDOWS = {}


def shapes_of(event):
    """What tells the windows of calls apart: the operation and the shapes of what it reads and makes."""
    return (event[1], *(operand[1][1] for operand in (*event[2], *event[3][:1])))


def window_of(func, args, kwargs):
    """`(stride, add)` of each side that a window moves along: it leaves floor((side + add) / stride)."""
    given = {argument.name: argument.default_value for argument in func._schema.arguments}
    given.update(zip(given, args))
    given.update(kwargs)
    if given.get("transposed"):
        return ()
    kernel = given["kernel_size"] if "kernel_size" in given else given["weight"].shape[2:]
    sides = []
    for place, size in enumerate(kernel):
        padding, dilation = (given.get(key, [usual])[place % len(given.get(key, [usual]))] for key, usual in (("padding", 0), ("dilation", 1)))
        stride = (given["stride"] or kernel)[place % len(given["stride"] or kernel)]
        up = stride - 1 if given.get("ceil_mode") else 0
        sides.append((stride, 2 * padding - dilation * (size - 1) - 1 + stride + up))
    return tuple(sides)


# --- one recording ---------------------------------------------------------------------------------------------------


class Patches:
    """What is changed in torch while something is recorded."""

    def __init__(self):
        self.undo = []

    def set(self, place, name, value):
        self.undo.append((place, name, getattr(place, name)))
        setattr(place, name, value)

    def restore(self):
        for place, name, value in reversed(self.undo):
            setattr(place, name, value)


@contextlib.contextmanager
def as_on_cuda(autocast):
    """Autocast, dropout, attention and cells behave for meta tensors as they do for CUDA's."""
    library = torch.library.Library("aten", "IMPL")
    patches = Patches()
    mode = torch.amp.autocast_mode.autocast

    def init(self, device_type="cuda", dtype=None, enabled=True, cache_enabled=None):
        self.device, self.fast_dtype, self._enabled = device_type, dtype, enabled
        self.dtype_given, self.enabled_given = dtype, enabled

    def enter(self):
        # What a module made before this one was imported has PyTorch's own answer alone.
        given = getattr(self, "dtype_given", self.fast_dtype)
        dtype = given or (autocast.state()[1] if autocast.stack else torch.float16)
        if self.device == "cpu":  # not this model's device
            autocast.enter(*autocast.state())
        else:
            autocast.enter(bool(getattr(self, "enabled_given", self._enabled)), dtype)
        return self

    def leave(self, *problem):
        autocast.leave()
        return False

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        install_stand_ins(library)
        autocast.install(library)
    patches.set(mode, "__init__", init)
    patches.set(mode, "__enter__", enter)
    patches.set(mode, "__exit__", leave)
    patches.set(torch, "is_autocast_enabled", lambda device="cuda": autocast.state()[0] and device != "cpu")
    if hasattr(torch, "get_autocast_dtype"):
        patches.set(torch, "get_autocast_dtype", lambda *device: autocast.state()[1])
    patches.set(torch, "get_autocast_gpu_dtype", lambda: autocast.state()[1])
    for place in (torch.amp, torch.amp.autocast_mode):
        if hasattr(place, "is_autocast_available"):
            patches.set(place, "is_autocast_available", lambda device: True)
    patches.set(torch, "ctc_loss", cuda_ctc_loss(torch.ctc_loss))
    patches.set(torch, "tensor", keeping_values(torch.tensor))
    try:
        with torch._C._IncludeDispatchKeyGuard(KEY):
            set_autocast_cpu(False)
            yield
    finally:
        set_autocast_cpu(False)
        patches.restore()
        if hasattr(library, "_destroy"):
            library._destroy()


TAPES = []


def keeping_values(make):
    def tensor(data, *args, **kwargs):
        result = make(data, *args, **kwargs)
        if TAPES and isinstance(result, torch.Tensor) and result.device.type == "meta" and not isinstance(data, torch.Tensor):
            tape = TAPES[-1]
            quiet, tape.quiet = tape.quiet, True
            try:
                on_host = make(mapped(tape.values.of, data), dtype=result.dtype)
                tape.quiet = quiet
                tape.values.put(result, on_host)
            except KeyError:  # of tensors whose values are not known
                pass
            finally:
                tape.quiet = quiet
        return result

    return tensor


def to_meta(model, half, values):
    """Moves parameters and buffers, each once; small buffers keep their values."""
    moved = {}

    def move(tensor, wrap):
        if id(tensor) not in moved:
            dtype = HALF if half and tensor.is_floating_point() else tensor.dtype
            data = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype, device=META)
            if wrap:
                data = torch.nn.Parameter(data, requires_grad=tensor.requires_grad)
            elif tensor.device.type != "meta":
                values.put(data, tensor.detach().to(dtype))
            moved[id(tensor)] = (tensor, data)
        return moved[id(tensor)][1]

    for module in model.modules():
        for table, wrap in ((module._parameters, True), (module._buffers, False)):
            for name, tensor in list(table.items()):
                if tensor is not None:
                    table[name] = move(tensor, wrap)


def nodes_of(root):
    """All nodes that a loss leads to."""
    seen, rest = {}, [root]
    while rest:
        node = rest.pop()
        if node is None or node in seen:
            continue
        seen[node] = None
        rest.extend(parent for parent, _ in node.next_functions)
    return list(seen)


def parents_first(nodes):
    """The same order, but with each node after those that its gradients go to: writing into a view makes older nodes lead to
    newer ones."""
    wanted, placed, order = set(nodes), set(), []
    for root in nodes:
        rest = [root]
        while rest:
            node = rest[-1]
            missing = [] if node in placed else [p for p, _ in node.next_functions if p in wanted and p not in placed]
            if missing:
                rest.extend(missing)
                continue
            rest.pop()
            if node not in placed:
                placed.add(node)
                order.append(node)
    return order


class State:
    """What a model's modules hold, which each recording finds as it was: parameters and buffers, hooks, and attributes that the
    forward pass binds anew or fills, such as tables it makes at its first call."""

    def __init__(self, model):
        self.modules = []
        for module in model.modules():
            held = [(item, item.copy()) for item in module.__dict__.values() if type(item) in (dict, collections.OrderedDict, list, set)]
            self.modules.append((module, dict(module.__dict__), held))

    def restore(self):
        for module, attributes, held in self.modules:
            for item, before in held:
                item.clear()
                item.extend(before) if isinstance(item, list) else item.update(before)
            module.__dict__.clear()
            module.__dict__.update(attributes)


def trace(model, batch, loss, precision, called):
    """Records one step, the second one where the model keeps tensors from step to step; returns its events, or raises. Collects the
    names of the modules that were called."""
    autocast, values = Autocast(), Values()
    state = State(model)
    handles = []
    tape = Tape(autocast, values)
    TAPES.append(tape)
    try:
        half = precision == "half"
        to_meta(model, half, values)
        names = {id(module): name for name, module in model.named_modules()}

        def enter(module, inputs):
            tape.scope.append(names.get(id(module), tape.place()))
            called.add(names.get(id(module)))

        def leave(module, inputs, output):
            if tape.scope:
                tape.scope.pop()
            if module is model and not tape.backward:
                returned = [tensor for tensor in tensors_of(output) if tensor.dim() and tensor.is_floating_point()]
                tape.events.append(("outputs", [operand for operand in map(tape.operand, returned) if operand]))

        modes = torch.nn.modules.module
        handles.append(modes.register_module_forward_pre_hook(enter))
        handles.append(modes.register_module_forward_hook(leave, **({"always_call": True} if "always_call" in modes.register_module_forward_hook.__code__.co_varnames else {})))
        events = step(model, batch, loss, precision, tape)
        if tape.kept(model):
            seed()
            tape.restart(model)
            before = tape.kept(model)
            again = step(model, batch, loss, precision, tape)
            kept = paired(before, tape.kept(model))
            if kept:
                again.insert(0, ("kept", kept))
                events = again
        return events, values.assumed
    finally:
        TAPES.pop()
        for handle in handles:
            handle.remove()
        state.restore()
        for tensor in model.parameters():
            tensor.grad = None


def in_backward():
    """Whether a backward pass runs, such as `torch.autograd.grad` in the loss. CUDA's runs in a thread of its own, which
    numbers its nodes by itself."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() >= 0


def paired(before, after):
    """What is kept from a step to the next, each with what takes its place there; None where that grows."""
    same = [number for number in before if number in after]
    old = [number for number in before if number not in after]
    new = [number for number in after if number not in before]
    if [before[number] for number in old] != [after[number] for number in new]:
        return None
    return [((number, before[number]), other) for number, other in zip(same + old, same + new)]


def step(model, batch, loss, precision, tape):
    """The events of one step."""
    half = precision == "half"
    autocast, values = tape.autocast, tape.values
    for name, tensor in model.named_parameters():
        tape.adopt(tensor, "param", name)
    for name, tensor in model.named_buffers():
        tape.adopt(tensor, "buffer", name)
    before = tape.places(model)

    def to_device(tensor):
        if tensor.is_floating_point() and half:
            tensor = tensor.to(HALF)
        # As `.to("cuda")` lays it: a part of another tensor becomes dense.
        data = torch.empty_like(tensor, device=META, requires_grad=False)
        if tensor.device.type != "meta" and Values.small(tensor):
            values.put(data, tensor)
        tape.adopt(data, "batch", "")
        if tensor.requires_grad:
            data.requires_grad_()
        return data

    on_device = mapped(to_device, batch)
    with contextlib.ExitStack() as stack:
        stack.enter_context(as_on_cuda(autocast))
        # TorchScript joins operations from a function's third call on: recordings would differ by their order.
        stack.enter_context(torch.jit.optimized_execution(False))
        stack.enter_context(torch.autograd.graph.saved_tensors_hooks(tape.pack, tape.unpack))
        stack.enter_context(tape)
        if precision == "amp":
            autocast.enter(True, HALF)
        # A backward pass inside the loss, as of a discriminator, gives its gradients at once.
        given = [
            parameter.register_post_accumulate_grad_hook(lambda leaf: tape.events.append(("given", tape.number(leaf), tape.operand(leaf.grad))))
            for parameter in model.parameters()
            if parameter.requires_grad
        ]
        result = loss(model, on_device)
        for hook in given:
            hook.remove()
        if precision == "amp":
            autocast.leave()
        tape.events.append(("loss", tape.operand(result)))
        if result.grad_fn is None:
            raise Unrecordable("the loss does not depend on a parameter that requires a gradient")
        nodes = nodes_of(result.grad_fn)
        accumulators = {id(n): n.variable for n in nodes if hasattr(n, "variable")}
        order = {}
        graph = []
        leaves = {}
        for node in nodes:
            if id(node) in accumulators:
                leaves[id(node)] = tape.number(accumulators[id(node)])
        inner = [node for node in nodes if id(node) not in accumulators]
        inner = parents_first(sorted(inner, key=lambda node: node._sequence_nr()))
        for place, node in enumerate(inner):
            order[id(node)] = place
        for node in inner:
            edges = []
            for parent, output in node.next_functions:
                if parent is None:
                    edges.append(None)
                elif id(parent) in leaves:
                    edges.append(("leaf", leaves[id(parent)]))
                else:
                    edges.append((order[id(parent)], output))
            graph.append((node.name(), node._sequence_nr() - tape.first, edges))
        own = {id(tensor) for tensor in tensors_of(on_device)}
        held = {leaves[node] for node, variable in accumulators.items() if id(variable) in own}
        tape.events.append(("graph", graph, order[id(result.grad_fn)], sorted(held)))
        hooks = []
        for node in nodes:
            place = order.get(id(node), -1)
            hooks.append(node.register_prehook(lambda grads, place=place: tape.events.append(("node", place, [None if g is None else tape.operand(g) for g in grads]))))
            if place >= 0:
                hooks.append(node.register_hook(lambda made, _, place=place: tape.events.append(("made", place, [None if g is None else (tape.operand(g), bool(g._is_view())) for g in made]))))
            else:
                hooks.append(node.register_hook(lambda made, _: tape.events.append(("leaf done",))))
        del node, inner, accumulators
        tape.scope.clear()
        for parameter in model.parameters():
            if parameter.requires_grad:
                hooks.append(parameter.register_post_accumulate_grad_hook(lambda leaf: tape.events.append(("grad", tape.number(leaf), tape.operand(leaf.grad)))))
        tape.events.append(("backward",))
        tape.backward = True
        with torch.autograd.set_multithreading_enabled(False):
            result.backward()
        tape.events.append(("end",))
        for hook in hooks:
            hook.remove()
        events, tape.events = Recording(tape.events), []
        del nodes, result
    for name, number in tape.places(model).items():
        if before.get(name, number) != number:
            events = replaced(events, before[name], number)
    return events


def replaced(events, old, new):
    """A step in which a parameter's or a buffer's memory makes way for other memory of its size, as where `.data` is bound anew: the
    first stays, and the second goes in its stead."""
    place = next((at for at, event in enumerate(events) if event == ("free", old)), None)
    made = next((operand for event in events[:place] if event[0] == "call" for operand in event[3] if operand[0] == new), None)
    own = next((event[2] for event in events if event[0] in ("param", "buffer") and event[2][0] == old), None)
    if place is None or made is None or own is None or nbytes(made) != nbytes(own):
        return events
    return Recording(events[:place] + [("free", new)] + [renamed(event, old, new) for event in events[place + 1 :]])


def nbytes(operand):
    layout = operand[1]
    return layout[3] if layout[3] is not None else product(layout[1]) * bytes_of(layout[0])


def renamed(part, old, new):
    """An event, or a part of one, in which one number of memory stands for another."""
    if isinstance(part, list):
        return [renamed(item, old, new) for item in part]
    if not isinstance(part, tuple) or not part or len(part) == 4 and isinstance(part[1], tuple) and isinstance(part[0], str):
        return part
    kind = part[0]

    def swap(number):
        return old if number == new else number

    if isinstance(kind, int) and len(part) == 2 and isinstance(part[1], tuple):
        return (swap(kind), part[1])
    if kind == "call":
        return (*part[:2], *(renamed(item, old, new) for item in part[2:4]), [swap(number) for number in part[4]], *part[5:])
    if kind in ("free", "unpack", "grad", "given", "leaf"):
        return (kind, swap(part[1]), *(renamed(item, old, new) for item in part[2:]))
    return tuple(renamed(item, old, new) for item in part)


class NoInit:
    """Leaves out the random numbers of constructors, which nobody asks for here."""

    def __enter__(self):
        self.patches = Patches()
        for name in dir(torch.nn.init):
            if name.endswith("_") and not name.startswith("_") and name not in ("zeros_", "ones_", "constant_"):
                self.patches.set(torch.nn.init, name, lambda tensor=None, *a, **k: tensor if tensor is not None else k.get("tensor"))
        for name in ("normal_", "uniform_"):
            self.patches.set(torch.Tensor, name, lambda tensor, *a, **k: tensor)
        zeros = torch.zeros
        for name in ("randn", "rand"):
            self.patches.set(torch, name, lambda *a, **k: zeros(*a, **{key: item for key, item in k.items() if key != "generator"}))

    def __exit__(self, *problem):
        self.patches.restore()


# --- sizes as expressions of batch and length ------------------------------------------------------------------------

MONOMIALS = ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2))
DIVISORS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 30, 32, 40, 48, 50, 56, 60, 64, 80, 96, 100, 112, 120, 128, 160, 192, 256, 320, 512, 1024)


# The most terms of a size.
MOST_TERMS = 16


class Unsolved(Exception):
    pass


class Solver:
    """Finds the expression of a size from its values at some points (batch, length): `[den, [coef, i, j, add, div], ...]`
    is floor(sum of coef * b**i * floor((s + add) / div)**j / den)."""

    def __init__(self, points):
        self.points = points
        self.known = {}
        self.divided = None

    def __call__(self, values):
        if len(set(values)) == 1:
            return values[0]
        if values not in self.known:
            self.known[values] = self.solve(values)
        found = self.known[values]
        if found is None:
            raise Unsolved(dict(zip(self.points, values)))
        return found

    def agrees(self, point, size, other, found):
        """Whether a size that was `size` at a known point may be `found` at another."""
        place = self.points.index(point)
        if size == found:
            return True
        return any(values[place] == size and expression is not None and evaluate(expression, *other) == found for values, expression in self.known.items())

    def solve(self, values):
        for other in self.known.values():  # what another size is: the same expression at fewer points
            if other is not None and not isinstance(other, int) and all(evaluate(other, b, s) == v for (b, s), v in zip(self.points, values)):
                return other
        exact = self.exact(values)
        if exact and exact[0] == 1:
            return exact
        # Few points tell how a length is rounded less surely than what is known of other sizes.
        found = self.scaled(values, whole=len(self.points) > 3) or self.rounded(values, self.shares()) or self.floors(values) or exact
        return found or self.scaled(values) or self.share(values) or self.rounded(values, self.likely()) or self.times(values)

    def exact(self, values):
        """A polynomial of batch and length."""
        columns = [[b**i * s**j for b, s in self.points] for i, j in MONOMIALS]
        # Each place of an image with each other one, which one length alone does not tell from any other size.
        for i, j in ((0, 4), (1, 4)) if len({s for _, s in self.points}) > 1 else ():
            share = Fraction(values[0], self.points[0][0] ** i * self.points[0][1] ** j)
            if len(self.points) > 1 and all(share * b**i * s**j == value for (b, s), value in zip(self.points, values)):
                return [share.denominator, [share.numerator, i, j, 0, 1]]
        for size in (1, 2, 3):
            if size >= len(self.points):
                break
            for chosen in itertools.combinations(range(len(MONOMIALS)), size):
                found = fit([columns[c] for c in chosen], values)
                if found and all(found):
                    den = 1
                    for part in found:
                        den = math.lcm(den, part.denominator)
                    return [den] + [[int(part * den), *MONOMIALS[c], 0, 1] for part, c in zip(found, chosen)]
        return None

    def suggest(self, values, make):
        """An expression that follows from how an operation makes this size, where it is no plain polynomial."""
        if len(set(values)) == 1 or self.known.get(values) is not None:
            return
        exact = self.exact(values)
        found = None if exact and exact[0] == 1 else make()
        if found and len(found) <= 1 + MOST_TERMS and all(evaluate(found, b, s) == v for (b, s), v in zip(self.points, values)):
            self.known[values] = found

    def scaled(self, values, whole=False):
        """Another size, times a number, or a whole one, and perhaps the batch."""
        for other in self.known.values():
            if not isinstance(other, list):
                continue
            got = [evaluate(other, b, s) for b, s in self.points]
            if len(set(got)) < 2 or 0 in got:
                continue
            for i in (0, 1):
                share = Fraction(values[0], got[0] * self.points[0][0] ** i)
                if (share.denominator == 1 or not whole) and all(share * size * b**i == value for size, (b, _), value in zip(got, self.points, values)):
                    return [other[0] * share.denominator] + [[part[0] * share.numerator, part[1] + i, *part[2:]] for part in other[1:]]
        return None

    def share(self, values):
        """A share of a product, rounded down or up."""
        for i, j in MONOMIALS[1:]:
            column = [b**i * s**j for b, s in self.points]
            for up in (0, 1):
                low = max(Fraction(v - up, c) for v, c in zip(values, column))
                high = min(Fraction(v + 1 - up, c) for v, c in zip(values, column))
                for den in range(1, 65):
                    num = -(-low * den // 1) if not up else low * den // 1 + 1
                    if num > 0 and (num < high * den if not up else num <= high * den):
                        found = [den, [int(num), i, j, 0, 1]] + ([[den - 1, 0, 0, 0, 1]] if up else [])
                        if all(evaluate(found, b, s) == v for (b, s), v in zip(self.points, values)):
                            return found
        return None

    def times(self, values):
        """A multiple of another size, with a number added."""
        for other in [other for other in self.known.values() if isinstance(other, (list, dict)) and "of" not in other]:
            got = [evaluate(other, b, s) for b, s in self.points]
            found = len(set(got)) > 1 and fit([got, [1] * len(got)], values)
            if found and len(values) > 2 and all(part.denominator == 1 for part in found) and found[0] > 0:
                return {"times": int(found[0]), "plus": int(found[1]), "of": other}
        return None

    def shares(self):
        """Known sizes that are a share of others."""
        return [other for other in self.known.values() if isinstance(other, list) and other[0] > 1]

    def likely(self):
        """What may be rounded up: plain products and known sizes."""
        simple = [[1, [k, i, j, 0, 1]] for i, j in ((0, 1), (1, 1), (0, 2), (1, 2)) for k in (1, 2, 3, 4)]
        return simple + [other for other in self.known.values() if isinstance(other, list)]

    def rounded(self, values, others):
        """Another size, rounded up to a multiple."""
        for multiple in (8, 16, 32, 64, 128):
            if any(value % multiple for value in values):
                continue
            for other in others:
                if all(-(-evaluate(other, b, s) // multiple) * multiple == v for (b, s), v in zip(self.points, values)):
                    return {"up": multiple, "of": other}
        return None

    def atoms(self):
        """Lengths divided and rounded, each as found first: those that are known, then rounded down or up as patches are, then as
        strides leave them."""
        if self.divided is None:
            self.divided = {}
            ends = [(div, add) for div in DIVISORS for add in (0, div - 1)]
            inner = [(div, add) for div in DIVISORS for add in sorted(range(-min(4 * div, 160), min(div, 64)), key=abs)]
            for div, add in ends + inner:
                atoms = tuple((s + add) // div for _, s in self.points)
                if len(set(atoms)) > 1 and min(atoms) > 0:
                    self.divided.setdefault(atoms, (add, div))
        known = {}
        for expression in self.known.values():
            if isinstance(expression, list) and len(expression) == 2 and [expression[0], *expression[1][:3]] == [1, 1, 0, 1]:
                add, div = expression[1][3:]
                if div > 1:
                    known.setdefault(tuple((s + add) // div for _, s in self.points), (add, div))
        return [*known.items(), *self.divided.items()]

    def floors(self, values):
        """Lengths divided and rounded: alone, then with a number added, then as a polynomial."""
        if len({s for _, s in self.points}) < 3:
            return None
        for atoms, part in self.atoms():
            for i, j in ((0, 1), (1, 1), (0, 2), (1, 2), (0, 4), (1, 4)):
                factor, rest = divmod(values[0], self.points[0][0] ** i * atoms[0] ** j)
                if factor and not rest and all(factor * b**i * a**j == v for (b, _), a, v in zip(self.points, atoms, values)):
                    return [1, [factor, i, j, *part]]
        for atoms, part in self.atoms():
            for i, j in ((0, 1), (1, 1), (0, 2), (1, 2)):
                for k in range(i + 1):
                    found = line([b**i * a**j for (b, _), a in zip(self.points, atoms)], [b**k for b, _ in self.points], values)
                    if found and found[0] and (k or abs(found[1]) <= 4):
                        return [1, [found[0], i, j, *part], [found[1], k, 0, 0, 1]]
        for atoms, part in self.atoms():
            if len(set(atoms)) < 4 or part[0] not in (0, part[1] - 1):
                continue
            for i in (0, 1):
                found = fit([[b**i * a**j for (b, _), a in zip(self.points, atoms)] for j in (2, 1, 0)], values)
                if found and all(share.denominator == 1 for share in found):
                    return [1] + [[int(share), i, j, *(part if j else (0, 1))] for j, share in zip((2, 1, 0), found) if share]
        return None


def line(column, other, values):
    """The whole factors of two columns whose sum these values are; None where there are none."""
    at = next((n for n in range(1, len(values)) if column[0] * other[n] != column[n] * other[0]), None)
    if at is None:
        return None
    den = column[0] * other[at] - column[at] * other[0]
    first, rest = divmod(values[0] * other[at] - values[at] * other[0], den)
    second, more = divmod(column[0] * values[at] - column[at] * values[0], den)
    if rest or more or any(first * x + second * y != v for x, y, v in zip(column, other, values)):
        return None
    return first, second


def summed(expressions):
    """The sum of sizes; None where one of them is no plain sum."""
    parts = {}
    for expression in expressions:
        if isinstance(expression, int):
            expression = [1, [expression, 0, 0, 0, 1]]
        if not isinstance(expression, list) or expression[0] != 1:
            return None
        for factor, *rest in expression[1:]:
            parts[tuple(rest)] = parts.get(tuple(rest), 0) + factor
    return [1] + [[factor, *rest] for rest, factor in parts.items() if factor]


def strided(expression, given, made, windows=()):
    """What a window with a stride leaves of a length that is itself divided: floor((size + add) / stride). Of windows that are
    not known the nearest is found that leaves these sizes; at even sizes several do."""
    if isinstance(expression, int) or not isinstance(expression, list) or len(expression) != 2:
        return None
    den, (factor, i, j, add, div) = expression
    if (den, factor, i, j) != (1, 1, 0, 1):
        return None
    likely = ((stride, more) for stride in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 32) for more in sorted(range(-3 * stride, stride + 1), key=abs))
    for stride, more in itertools.chain(windows, likely):
        if all((size + more) // stride == out for size, out in zip(given, made)):
            return [1, [1, 0, 1, add + more * div, div * stride]]
    return None


def fit(columns, values):
    """The factors of columns whose sum these values are, exactly; None where there are none."""
    rows = [[Fraction(column[r]) for column in columns] + [Fraction(values[r])] for r in range(len(values))]
    size, top = len(columns), 0
    for c in range(size):
        pivot = next((r for r in range(top, len(rows)) if rows[r][c]), None)
        if pivot is None:
            return None
        rows[top], rows[pivot] = rows[pivot], rows[top]
        lead = rows[top][c]
        rows[top] = [x / lead for x in rows[top]]
        for r in range(len(rows)):
            if r != top and rows[r][c]:
                by = rows[r][c]
                rows[r] = [x - by * y for x, y in zip(rows[r], rows[top])]
        top += 1
    if any(row[-1] for row in rows[size:]):
        return None
    return [row[-1] for row in rows[:size]]


def reach(layout):
    """The bytes from the first element of a tensor with strides to its last."""
    return (sum((size - 1) * stride for size, stride in zip(layout[1], layout[2][1])) + 1) * bytes_of(layout[0])


def evaluate(expression, b, s):
    if isinstance(expression, int):
        return expression
    if "times" in expression:
        return evaluate(expression["of"], b, s) * expression["times"] + expression["plus"]
    if isinstance(expression, dict):
        return -(-evaluate(expression["of"], b, s) // expression["up"]) * expression["up"]
    total = sum(coef * b**i * ((s + add) // div) ** j for coef, i, j, add, div in expression[1:])
    return total // expression[0]


# --- several recordings as one program -------------------------------------------------------------------------------


class Table:
    def __init__(self):
        self.all, self.places = [], {}

    def __call__(self, item, make=None):
        if item not in self.places:
            value = make() if make else item
            self.places[item] = len(self.all)
            self.all.append(value)
        return self.places[item]


class Differs(Exception):
    """Recordings that are not the same operations in the same order."""


def shape_of(part):
    """What must be equal in all recordings: everything but sizes."""
    if isinstance(part, tuple) and len(part) == 4 and isinstance(part[0], str) and isinstance(part[1], tuple):
        return (part[0], len(part[1]))
    if isinstance(part, (tuple, list)):
        parts = tuple(shape_of(item) for item in part)
        # What a call's node is numbered does not count.
        return parts[:-1] if parts and parts[0] == "call" else parts
    return part


def layouts_of(part):
    """The layouts in an event, in order."""
    if isinstance(part, tuple) and len(part) == 4 and isinstance(part[0], str) and isinstance(part[1], tuple):
        return [part]
    if isinstance(part, (tuple, list)):
        return [layout for item in part for layout in layouts_of(item)]
    return []


def difference(one, two):
    """How much of the memory that two recordings make is made by calls that only one of them has."""
    sums, total = {}, 1
    for sign, events in ((1, one), (-1, two)):
        for event in events:
            if event[0] == "call" and event[4]:
                size = sum(product(out[1][1]) * bytes_of(out[1][0]) for out in event[3] if out[0] in event[4])
                count, most = sums.get(event[1:2] + event[5:6], (0, 0))
                sums[event[1:2] + event[5:6]] = (count + sign, max(most, size))
                total += size
    return sum(abs(count) * most for count, most in sums.values()) / total


class Recording(list):
    """The events of one step."""

    def shapes(self):
        if not hasattr(self, "known"):
            self.known = [shape_of(event) for event in self]
        return self.known

    def is_like(self, other):
        return len(self) == len(other) and self.shapes() == other.shapes()


class Program:
    """The events of recordings at several points, as one list whose sizes are expressions."""

    def __init__(self, recordings, solver, scopes):
        self.points = list(recordings)
        self.lists = [recordings[point] for point in self.points]
        self.solver = solver
        self.ops, self.scopes = Table(), scopes
        self.types = Table()
        for other in self.lists[1:]:
            if not self.lists[0].is_like(other):
                pairs = zip(self.lists[0].shapes(), other.shapes())
                place = next((at for at, (one, two) in enumerate(pairs) if one != two), None)
                if place is None:
                    raise Differs(f"{len(self.lists[0])} and {len(other)} events at {self.points}")
                raise Differs(f"{self.lists[0][place][:2]} and {other[place][:2]} at {self.points}")

    def type(self, layouts):
        """The place of a type; `layouts` are those of one tensor in each recording."""
        return self.types(layouts, lambda: self.type_row(layouts))

    def type_row(self, layouts):
        first = layouts[0]
        sizes = [self.solver(tuple(layout[1][d] for layout in layouts)) for d in range(len(first[1]))]
        row = [first[0], sizes]
        how = first[2]
        if any(layout[2] != how and (layout[2] is None or how is None or how[0] == "order") for layout in layouts):
            how = next((layout[2] for layout in layouts if layout[2] and layout[2][0] == "order"), None)
        strides = how and how[0] == "strides"
        if strides:
            if all(layout[2] and layout[2][0] == "strides" for layout in layouts):
                how = [self.solver(tuple(layout[2][1][d] for layout in layouts)) for d in range(len(first[1]))]
                row.append({"strides": how})
        elif how:
            row.append(list(how[1]))
        whole = [layout[3] for layout in layouts]
        if strides and all(layout[2][0] == "strides" and size == reach(layout) for size, layout in zip(whole, layouts)):
            row.append("reach")
        elif any(size is not None for size in whole):
            width = [size if size is not None else product(layout[1]) * bytes_of(layout[0]) for size, layout in zip(whole, layouts)]
            while len(row) < 3:
                row.append(0)
            row.append(self.solver(tuple(width)))
        return row

    def operand(self, operands):
        return [operands[0][0], self.type(tuple(operand[1] for operand in operands))]

    def call(self, rows):
        _, name, ins, outs, new, scope, *_ = rows[0]
        given = [self.operand([row[2][at] for row in rows]) for at in range(len(ins))]
        seen, made = set(), []
        for at, out in enumerate(outs):
            if out[0] in new and out[0] not in seen:
                made.append(self.operand([row[3][at] for row in rows]))
                seen.add(out[0])
        return ("call", self.ops(name), self.scopes(scope), given, made)

    def derive(self, rows):
        """Sizes that follow from those of a call's inputs: sums where it joins them, else what a window leaves of one."""
        given = [tuple(row[2][at][1][1] for row in rows) for at in range(len(rows[0][2]))]
        sides = WINDOWS.get(shapes_of(rows[0]), ())
        for at in range(len(rows[0][3])):
            first = len(rows[0][3][at][1][1]) - len(sides)
            for place in range(len(rows[0][3][at][1][1])):
                sizes = tuple(row[3][at][1][1][place] for row in rows)
                if len(set(sizes)) > 1:
                    window = sides[place - first :][:1] if place >= first else ()
                    self.solver.suggest(sizes, lambda: self.derived(rows[0][1], given, place, sizes, window))

    def derived(self, name, given, place, sizes, window):
        parts = [tuple(shape[place] for shape in shapes) for shapes in given if len(shapes[0]) > place]
        try:
            if name == "cat":
                return summed([self.solver(part) for part in parts])
            for part in parts[:1]:
                found = strided(self.solver(part), part, sizes, window) if len(set(part)) > 1 else None
                if found:
                    return found
        except Unsolved:
            pass
        return None

    def write(self):
        """The program as lists of numbers."""
        # What a batch has in advance, such as a target for each anchor, only shows later how it is made.
        met = set()
        for row in zip(*self.lists):
            key = tuple(tuple(out[1] for out in one[3]) for one in row) if row[0][0] == "call" else None
            if key and key not in met:
                met.add(key)
                self.derive(row)
        first = self.lists[0]
        backward = next(i for i, event in enumerate(first) if event[0] == "backward")
        rows = list(zip(*self.lists))
        # Which node keeps which saved tensor.
        owner, node = {}, None
        for event in first[backward:]:
            if event[0] == "node":
                node = event[1]
            elif event[0] == "unpack" and node is not None and node >= 0:
                owner[event[2]] = node
        graph = next(event for event in first if event[0] == "graph")
        count = len(graph[1])
        kept = [[] for _ in range(count)]
        placed = [0] * count
        for i, event in enumerate(first[:backward]):
            if event[0] == "save" and event[1] in owner:
                kept[owner[event[1]]].append(event[1])
                placed[owner[event[1]]] = i
        # A node is made with the first call that comes after it.
        rising = sorted(range(count), key=lambda n: graph[1][n][1])
        at, inner = 0, []
        for i, event in enumerate(first[:backward]):
            if event[0] == "call":
                while at < count and graph[1][rising[at]][1] < event[6]:
                    placed[rising[at]] = max(placed[rising[at]], i)
                    if event[7:] == (True,):
                        inner.append(rising[at])
                    at += 1
        for n in rising[at:]:
            placed[n] = backward - 1
        for n in range(1, count):
            placed[n] = max(placed[n], placed[n - 1])
        after = {}
        for n, place in enumerate(placed):
            after.setdefault(place, []).append(n)
        forward, params, loss, lasting = [], [], None, []
        returned = max((i for i in range(backward) if first[i][0] == "outputs"), default=None)
        for i in range(backward):
            event, all_rows = first[i], rows[i]
            kind = event[0]
            if kind in ("param", "buffer"):
                params.append((kind, event[1], self.operand([row[2] for row in all_rows])))
            elif kind == "kept":
                for at, (_, last) in enumerate(event[1]):
                    lasting.append([*self.operand([row[1][at][0] for row in all_rows]), last])
            elif kind == "batch":
                forward.append(("batch", self.operand([row[2] for row in all_rows])))
            elif kind == "call":
                forward.append(self.call(all_rows))
            elif kind == "save":
                forward.append(("save", event[1], self.operand([row[2] for row in all_rows])))
            elif kind in ("free", "unsave", "unpack"):
                forward.append(event)
            elif kind == "given":
                forward.append(("given", event[1], self.operand([row[2] for row in all_rows])))
            elif i == returned:
                for at in range(len(event[1])):
                    forward.append(("output", self.operand([row[1][at] for row in all_rows])))
            elif kind == "loss":
                loss = self.operand([row[1] for row in all_rows])
            for n in after.get(i, ()):
                forward.append(("node", n))
        programs = self.backward(rows, backward, count)
        stream = Stream()
        stream.number(count)
        stream.steps(forward)
        for n, (_, _, edges) in enumerate(graph[1]):
            incoming, steps, outgoing, leaves = programs[n]
            edges = edges + [("leaf", slot) for slot, _ in leaves]
            stream.node(n, edges, kept[n], incoming, steps, outgoing + [gradient for _, gradient in leaves])
        stream.value(loss)
        stream.number(graph[2])
        return {
            "ops": self.ops.all,
            "types": self.types.all,
            "params": params,
            "steps": squeezed(stream.all),
            **({"kept": lasting} if lasting else {}),
            **({"inner": sorted(inner)} if inner else {}),
            **({"held": graph[3]} if graph[3] else {}),
        }

    def backward(self, rows, start, count):
        """What each node does: its incoming gradients, its calls, the gradients it passes on, and those it gives to leaves by
        itself, as a reentrant checkpoint does."""
        programs = [([], [], [], []) for _ in range(count)]
        node, made, tail, leaf = None, None, True, False
        summed = set()
        for row in rows[start:]:
            event, kind = row[0], row[0][0]
            if kind == "node":
                if event[1] < 0:
                    leaf |= tail
                    continue
                leaf, node, tail = False, event[1], False
                incoming = [-1 if g is None else g[0] for g in event[2]]
                programs[node] = (incoming, [], [], [])
            elif kind == "leaf done":
                leaf |= tail
            elif kind == "grad":
                if not tail and event[1] not in summed:
                    programs[node][3].append((event[1], self.operand([r[2] for r in row]) + [0]))
                summed.add(event[1])
            elif node is None or leaf and kind != "made":
                if kind == "free" and node is not None:
                    programs[node][1].append(event)
                continue
            elif kind == "made":
                tail = True
                made = programs[node][2]
                for at, gradient in enumerate(event[2]):
                    made.append([] if gradient is None else self.operand([r[2][at][0] for r in row]) + [int(gradient[1])])
            elif kind == "call":
                if tail:
                    given = [operand[0] for operand in event[2]]
                    place = next((i for i, g in enumerate(made) if g and g[0] in given), None)
                    if event[1] in ("add", "add_") or place is None or not event[3]:
                        continue
                    made[place] = self.operand([r[3][0] for r in row]) + [int(not event[4])]
                programs[node][1].append(self.call(row))
            elif kind == "free":
                programs[node][1].append(event)
            elif kind == "unpack":
                programs[node][1].append(event)
        return programs


class Stream:
    """Steps as numbers. What is counted up is written as its distance from the nearest of the last places of its kind, so that
    equal layers are equal numbers, also where they refer to what was made long before."""

    PLACES, NEAR = 8, 100

    def __init__(self):
        self.all, self.last = [], {}

    def number(self, n):
        self.all.append(n)

    def counted(self, kind, n):
        places = self.last.setdefault(kind, [0])
        at = min(range(len(places)), key=lambda i: (abs(n - places[i]), i))
        if abs(n - places[at]) >= self.NEAR:
            at = 0
        away = n - places[at]
        self.number((2 * abs(away) + (away < 0)) * self.PLACES + at)
        # A place follows what is near it; what is far from all begins another.
        if abs(away) < self.NEAR:
            del places[at]
        places.insert(0, n)
        del places[self.PLACES :]

    def value(self, value):
        self.counted("slot", value[0])
        self.number(value[1])

    def values(self, values):
        self.number(len(values))
        for value in values:
            self.value(value)

    def steps(self, steps):
        self.number(len(steps))
        for step in steps:
            kind = step[0]
            self.number(("call", "free", "save", "unsave", "unpack", "node", "batch", "given", "output").index(kind))
            if kind == "call":
                self.number(step[1])
                self.counted("scope", step[2])
                self.values(step[3])
                self.values(step[4])
            elif kind == "free":
                self.counted("slot", step[1])
            elif kind == "save":
                self.counted("save", step[1])
                self.value(step[2])
            elif kind == "unsave":
                self.counted("save", step[1])
            elif kind == "unpack":
                self.counted("slot", step[1])
                self.counted("save", step[2])
            elif kind == "node":
                self.counted("node", step[1])
            elif kind == "given":
                self.counted("leaf", step[1])
                self.value(step[2])
            elif kind in ("batch", "output"):
                self.value(step[1])

    def node(self, number, edges, saves, incoming, steps, outgoing):
        self.number(len(edges))
        for edge in edges:
            if edge is None:
                self.number(0)
            elif edge[0] == "leaf":
                self.number(1)
                self.counted("leaf", edge[1])
            else:
                self.number(2)
                self.number(number - edge[0])
                self.number(edge[1])
        self.number(len(saves))
        for save in saves:
            self.counted("save", save)
        self.number(len(incoming))
        for slot in incoming:
            self.number(int(slot >= 0))
            if slot >= 0:
                self.counted("slot", slot)
        self.steps(steps)
        self.number(len(outgoing))
        for gradient in outgoing:
            self.number(1 + gradient[2] if gradient else 0)
            if gradient:
                self.value(gradient)


def squeezed(numbers):
    """What has stood there before as `[how far back, how many]`."""
    least, found, at, out = 6, {}, 0, []
    while at < len(numbers):
        key = tuple(numbers[at : at + least])
        best = (0, 0)
        for start in found.get(key, ())[-8:]:
            length = least
            while at + length < len(numbers) and numbers[start + length] == numbers[at + length]:
                length += 1
            best = max(best, (length, start))
        taken = best[0] if len(key) == least and best[0] >= least else 1
        if taken > 1:
            out.append([at - best[1], taken])
        else:
            out.append(numbers[at])
        for place in range(at, at + taken):
            found.setdefault(tuple(numbers[place : place + least]), []).append(place)
        at += taken
    return out


def product(sizes):
    total = 1
    for size in sizes:
        total *= size
    return total


BYTES = {}


def bytes_of(name):
    if name not in BYTES:
        BYTES[name] = torch.empty(0, dtype=getattr(torch, name)).element_size()
    return BYTES[name]


def counted_up(rows, path, number):
    """Rows of which some repeat those before them, with a number in their path one higher: `[period, times, place, step]`
    stands for the last rows, so many times more, each with the number at this place of its path counted up, and its own by
    a step."""

    def grown(row, place, step):
        parts = path(row).split(".")
        if place >= len(parts) or not parts[place].isdigit():
            return None
        parts[place] = str(int(parts[place]) + 1)
        return (".".join(parts), number(row) + step)

    said = [(path(row), number(row), row) for row in rows]
    out, at = [], 0
    while at < len(rows):
        best = (0,)
        for period in range(1, min(at, 96) + 1):
            before = path(rows[at - period]).split(".")
            now = path(rows[at]).split(".")
            places = [i for i, (a, b) in enumerate(zip(before, now)) if a != b]
            if len(places) != 1 or len(before) != len(now):
                continue
            place, step = places[0], number(rows[at]) - number(rows[at - period])
            end = at
            while end < len(rows) and same_but(rows[end], rows[end - period]) and grown(rows[end - period], place, step) == said[end][:2]:
                end += 1
            times = (end - at) // period
            if times and times * period > best[0]:
                best = (times * period, [period, times, place, step])
        if best[0]:
            out.append(best[1])
            at += best[0]
        else:
            out.append(rows[at])
            at += 1
    return out


def same_but(row, other):
    """Whether two rows are equal but for their path and number."""
    return isinstance(row, str) or row[1:-1] == other[1:-1]


# --- a model at several sizes ----------------------------------------------------------------------------------------

PRECISIONS = ("fp32", "amp", "half")

# What people call them besides.
OTHER_NAMES = {"amp_bf16": "amp", "autocast": "amp", "bf16": "half"}

# The numbers that a program, and all of a file, may stand for (`read.rs`), and what is no longer a small file.
MOST_OF_PROGRAM, MOST_NUMBERS, LARGE = 5 << 18, 8 << 20, 200_000


def precisions_of(names):
    """Precisions by their names; fp32 is always among them, for the others are solved with its sizes."""
    found = [OTHER_NAMES.get(name.strip(), name.strip()) for name in names]
    unknown = sorted(set(found) - set(PRECISIONS))
    if unknown:
        raise Unrecordable(f"precision {unknown[0]} is not known; expected " + ", ".join(PRECISIONS))
    return tuple(precision for precision in PRECISIONS if precision in found or precision == "fp32")


class Subject:
    """A model, what makes its batches and its loss, and sizes that are known to work."""

    def __init__(self, model, batch, loss, sizes, name, source="", calls=None, asked=()):
        self.model, self.batch, self.loss, self.sizes = model, batch, loss, sizes
        # Sizes that the recording is to answer, which matter where it answers none but its own.
        self.asked = list(sizes) + list(asked)
        self.name, self.source, self.calls = name, source, calls or {}
        self.left_out = []
        # The precisions that were asked for, and the modules that were called.
        self.precisions, self.called = PRECISIONS, set()
        self.taken, self.problems, self.dropped = {}, {}, []
        self.scopes = Table()
        self.fixed, self.example = False, None

    def take(self, precision, b, s):
        """The recording at a point; None where the model does not run there."""
        key = (precision, b, s)
        if key not in self.taken:
            # Circles of references would go at moments of the collector's choosing.
            gc.collect()
            gc.freeze()
            gc.disable()
            try:
                seed()
                self.taken[key] = trace(self.model, self.batch(b, s, "cpu"), self.loss, precision, self.called)[0]
            except Exception as problem:  # the user's own code: any reason counts
                self.problems[key] = f"{type(problem).__name__}: {str(problem)[:300]}"
                self.taken[key] = None
                if os.environ.get("HEADROOM_RECORD_DEBUG"):
                    import traceback

                    traceback.print_exc()
            finally:
                gc.enable()
                gc.unfreeze()
        return self.taken[key]

    def lengths(self, b):
        """Lengths at which the model runs, the known ones first: up to five. One is odd and stays so however often it is halved and
        rounded up, as what pads odd sides only shows there."""
        known = sorted({s for _, s in self.sizes})
        if self.fixed:
            return known[:1]
        low, high = known[0], known[-1]
        step = high - low if high > low else max(2, low // 2)
        more = [(high - 1) // 32 * 32 + 1, low + step // 3 | 1, high + step, high + step // 2 | 1, low + step // 2, 2 * low, 2 * high, low + low // 2, 3 * low, low + 32, low + 64, low + 1]
        found = []
        for s in known + more:
            if s not in found and s > 1 and len(found) < 5 and self.take("fp32", b, s):
                found.append(s)
        return found

    def batches(self):
        for choice in ((2, 3, 5), tuple(k * max(2, self.sizes[0][0]) for k in (1, 2, 3))):
            if all(self.take("fp32", b, self.sizes[0][1]) for b in choice[:2]):
                return choice
        problem = next(iter(self.problems.values()), "")
        raise Unrecordable(f"{self.name} does not run on its example: {problem}")

    def programs(self):
        b1, b2, b3 = self.batches()
        lengths = self.lengths(b1)
        groups = []

        def place(s):
            recording = self.take("fp32", b1, s)
            if not recording:
                return
            for group in groups:
                if self.take("fp32", b1, group[0]).is_like(recording):
                    group.append(s)
                    return
            groups.append([s])

        for s in lengths:
            place(s)
        loops = self.loops(b1, lengths, groups)
        if loops:
            # A program holds for its own length alone: other lengths than those that are asked for are of no use.
            lengths = sorted({s for _, s in self.asked})
            groups = [[s] for s in lengths if self.take("fp32", b1, s)]
        elif len(groups) > 1:
            for s in sorted({s for _, s in self.asked} - set(lengths)):
                lengths.append(s)
                place(s)
        # What runs at the greatest length is what runs beyond it.
        known = sorted(lengths)
        for more in range(1, 1 if loops else 4):
            last = max((s for group in groups for s in group), default=0)
            if len(groups) > 1 and [last] in groups:
                lengths.append(last + more * (known[-1] - known[-2]))
                place(lengths[-1])
        done = []
        for group in groups:
            solver = None
            for precision in self.precisions:
                try:
                    # The third batch is there to check the first two.
                    batches = (b1, b2) if loops and solver else (b1, b2, b3)
                    done.append(self.program(precision, group, batches, solver))
                    if solver is None:
                        solver = done[-1][1]
                except (Differs, Unsolved) as problem:
                    self.problems[(precision, group[0])] = f"{type(problem).__name__}: {problem}"
                    done += self.each(precision, group, (b1, b2, b3))
        if not done:
            # What depends on the batch holds for single batches alone: the known ones and likely others.
            most = max(b for b, _ in self.sizes)
            for b in sorted({b for b, _ in self.asked} | {1, 2, 4, 2 * most}):
                own = lengths[:4] + sorted({s for known, s in self.asked if known == b} - set(lengths[:4]))
                for precision in self.precisions:
                    try:
                        done.append(self.program(precision, own, (b,), None))
                    except (Differs, Unsolved) as problem:
                        self.problems[(precision, b)] = f"{type(problem).__name__}: {problem}"
                        done += self.each(precision, own, (b,))
        if not done:
            raise Unrecordable(f"{self.name}: " + "; ".join(sorted(set(self.problems.values())))[:600])
        return [program for program, _ in self.alone(lengths, done) + done]

    def loops(self, b, lengths, groups):
        """Whether the number of operations is so many for each place of a sample: Python loops over its length."""
        counts = [(s, len(self.take("fp32", b, s))) for s in sorted(lengths)]
        if len(counts) < 3 or len(groups) < len(counts):
            return False
        steps = [(many - few) / (long - short) for (short, few), (long, many) in zip(counts, counts[1:])]
        return min(steps) > 0 and max(steps) < 1.1 * min(steps)

    def alone(self, lengths, done):
        """Programs for a batch of one, where that runs otherwise: dimensions of size one need no copies."""
        done = [known for known in done if len(known[0]["batches"]) > 1]
        groups = {}
        for s in lengths:
            same = next((known for known in done if known[0]["precision"] == "fp32" and s in known[0]["lengths"]), None)
            recording = same and self.take("fp32", 1, s)
            if recording and not self.holds(same, recording, s):
                place = next((at for at in groups if self.take("fp32", 1, at).is_like(recording)), s)
                groups.setdefault(place, []).append(s)
        found = []
        for group in groups.values():
            for precision in self.precisions:
                try:
                    found.append(self.program(precision, group, (1,), found[-1][1] if found else None))
                except (Differs, Unsolved) as problem:
                    self.problems[(precision, 1)] = f"{type(problem).__name__}: {problem}"
                    found += self.each(precision, group, (1,))
        return found

    def each(self, precision, group, batches):
        """Programs for single lengths, where nobody knows how sizes grow between them."""
        found = []
        for s in group:
            try:
                found.append(self.program(precision, [s], batches, None))
            except (Differs, Unsolved) as problem:
                self.problems[(precision, s)] = f"{type(problem).__name__}: {problem}"
        return found

    def holds(self, known, recording, s):
        """Whether a program says what a recording at a batch of one is."""
        program, solver = known
        like = self.taken.get(("fp32", program["batches"][0], s))
        if not like:
            return False
        if not like.is_like(recording):
            return difference(like, recording) < 1e-3
        seen = set()
        for one, two in zip(like, recording):
            seen.update(zip(layouts_of(one), layouts_of(two)))
        return all(solver.agrees((program["batches"][0], s), size, (1, s), other) for one, two in seen for size, other in zip(one[1], two[1]))

    def program(self, precision, lengths, batches, known):
        b1, b2, b3 = (*batches, 0, 0)[:3]
        if len(batches) == 1:
            points = [(b1, s) for s in lengths]
        elif len(lengths) == 1:
            points = [(b, lengths[0]) for b in batches]
        elif precision == "fp32" or known is None:
            points = [(b1, s) for s in lengths] + [(b2, lengths[0]), (b2, lengths[-1])]
        else:
            points = [(b1, lengths[0]), (b2, lengths[-1]), (b1, lengths[1])]
        recordings = {point: self.take(precision, *point) for point in points}
        recordings = {point: events for point, events in recordings.items() if events}
        if len(batches) > 1 and len(lengths) > 1:
            for point in itertools.product((b1, b2), lengths):
                if len(recordings) < 3 and point not in recordings and self.take(precision, *point):
                    recordings[point] = self.take(precision, *point)
        if len(recordings) < min(3, len(points)):
            raise Differs("does not run at enough sizes: " + "; ".join(sorted(set(self.problems.values())))[:300])
        solver = Solver(list(recordings))
        if known is not None:
            for expression in known.known.values():
                if expression is not None and not isinstance(expression, int):
                    values = tuple(evaluate(expression, b, s) for b, s in recordings)
                    if len(set(values)) > 1:
                        solver.known.setdefault(values, expression)
        program = Program(recordings, solver, self.scopes).write()
        params = program.pop("params")
        program = {
            "precision": precision,
            "batches": sorted({b for b, _ in recordings}),
            "lengths": sorted({s for _, s in recordings}),
            **program,
        }
        self.params = getattr(self, "params", None) or [
            [name, program["types"][operand[1]][0], program["types"][operand[1]][1], {"param": 1 if trains else 0, "buffer": 2}[kind], operand[0]]
            for (kind, name, operand), trains in zip(params, self.trains(params))
        ]
        return program, solver

    def trains(self, params):
        wanted = {name: p.requires_grad for name, p in self.model.named_parameters()}
        return [wanted.get(name, False) for _, name, _ in params]

    def document(self):
        programs = self.within_limits(self.programs())
        made = {program["precision"] for program in programs}
        self.missing = [precision for precision in self.precisions if precision not in made]
        return {
            "headroom": FORMAT,
            "name": self.name,
            "source": self.source,
            "example": list(self.example or self.sizes[0]),
            **({"calls": self.calls} if self.calls else {}),
            **({"leaves_out": self.left_out} if self.left_out else {}),
            "torch": torch.__version__,
            "params": counted_up(self.params, lambda row: row[0], lambda row: row[-1]),
            "scopes": counted_up(self.scopes.all, str, lambda row: 0),
            "layers": layers_of(self.model, self.called),
            "programs": programs,
            "notes": sorted({str(key) + " " + text for key, text in self.problems.items()} | set(self.dropped))[:20],
        }

    def within_limits(self, programs):
        """The programs that readers take, those of the sizes that were asked for first."""
        asked = lambda program: any(b in program["batches"] and s in program["lengths"] for b, s in self.asked)
        room, kept = MOST_NUMBERS, set()
        for at in sorted(range(len(programs)), key=lambda at: (not asked(programs[at]), at)):
            numbers = written_out(programs[at]["steps"])
            if numbers > min(room, MOST_OF_PROGRAM):
                most = "one program" if numbers > MOST_OF_PROGRAM else "all"
                limit = MOST_OF_PROGRAM if numbers > MOST_OF_PROGRAM else MOST_NUMBERS
                self.dropped.append(f"{described(programs[at])} is left out: its steps are {numbers:,} numbers, and Headroom reads {limit:,} of {most}")
                continue
            room -= numbers
            kept.add(at)
        if not kept:
            raise Unrecordable(f"{self.name}: " + "; ".join(self.dropped))
        return [program for at, program in enumerate(programs) if at in kept]

    def report(self, document, size):
        """What was recorded, in lines for a person."""
        b, s = document["example"]
        lines = [f"{self.name}: {size:,} bytes; the example is {b} x {s}"]
        for program in document["programs"]:
            lines.append("  " + described(program))
        for row in document["layers"][:4]:
            lines.append(f"  layers: {row[0]}.{row[2]}" + (f" to {row[2] + row[3] - 1}" if row[3] > 1 else "") + f" ({row[1]})")
        lines += ["  " + text for text in self.dropped]
        for precision in self.missing:
            reasons = [text for (kind, *_), text in self.problems.items() if kind == precision]
            lines.append(f"  {precision} is missing: " + ("; ".join(dict.fromkeys(reasons))[:400] or "no size of it could be recorded"))
        if size > LARGE:
            loops = "its operations differ from size to size, and each has a program of its own" if len(document["programs"]) > len(self.precisions) else "it has many operations that are not alike"
            lines.append(f"  the file is larger than {LARGE // 1000} kB: {loops}")
        return lines


def described(program):
    """A program's precision and sizes."""
    sizes = [", ".join(map(str, program[key])) + (" only" if len(program[key]) == 1 else " and others") for key in ("batches", "lengths")]
    return f"{program['precision']}: batches {sizes[0]}; lengths {sizes[1]}"


def written_out(steps):
    """How many numbers a program's steps are with repeats written out."""
    return sum(1 if isinstance(step, int) else step[1] for step in steps)


def layers_of(model, called):
    """The lists of alike modules that can be checkpointed and sharded one by one, as `[path, class, first, count]`: of modules
    that are called, for wrapping one whose `forward` never runs changes nothing."""
    marked = [name for name, module in model.named_modules() if any(base.__name__ == "GradientCheckpointingLayer" for base in type(module).__mro__)]
    chosen = [name for name in marked if name.rpartition(".")[2].isdigit() and name in called]
    if not chosen:
        chosen = [part for name in alike(model, "") for part in running(model.get_submodule(name), name, called)]
    rows = []
    modules = dict(model.named_modules())
    for name in chosen:
        path, _, place = name.rpartition(".")
        kind = type(modules[name])
        kind, place = f"{kind.__module__}.{kind.__qualname__}", int(place)
        if rows and rows[-1][:2] == [path, kind] and rows[-1][2] + rows[-1][3] == place:
            rows[-1][3] += 1
        elif path:
            rows.append([path, kind, place, 1])
    return rows


def running(module, path, called):
    """A module, if it is called, or else the modules with parts of their own that run in it."""
    if path in called:
        return [path]
    inner = [(f"{path}.{name}", child) for name, child in module.named_children() if next(child.children(), None) is not None]
    return [part for name, child in inner for part in running(child, name, called) if part.rpartition(".")[2].isdigit()]


def alike(module, path):
    """Items of the outermost lists of like modules; of the lists in these where they are few stages of many layers."""
    found = []
    for name, child in module.named_children():
        inner = f"{path}.{name}" if path else name
        items = [(f"{inner}.{key}", item) for key, item in child.named_children() if key.isdigit() and next(item.children(), None) is not None]
        kinds = {}
        for key, item in items:
            kinds.setdefault(type(item), []).append((key, item))
        row = [pair for same in kinds.values() if len(same) > 1 for pair in same]
        if not row:
            found += alike(child, inner)
            continue
        below = [key for key, item in items for key in alike(item, key)]
        if len(row) <= 5 and len(below) > 2 * len(row):
            found += below
        else:
            order = [key for key, _ in row]
            found += sorted(order, key=lambda key: int(key.rpartition(".")[2]))
    return found


def seed():
    torch.manual_seed(0)
    import random

    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)


def write(document, path):
    text = json.dumps(document, separators=(",", ":"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return len(text)


# --- doors -----------------------------------------------------------------------------------------------------------


def load_file(path):
    name = os.path.splitext(os.path.basename(path))[0]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def file_subject(path):
    """A file with build, batch, loss and SIZES; its last size is left unseen where there are others."""
    module = load_file(path)
    name = os.path.splitext(os.path.basename(path))[0]
    seed()
    with NoInit():
        model = module.build()
    # The last is for comparing what follows from the others with a real run.
    asked = list(module.SIZES)
    sizes = asked[:-1] or asked
    calls = {called: f"{name}:{called}" for called in ("build", "batch", "loss")}
    subject = Subject(model, module.batch, module.loss, sizes, name, os.path.basename(path), calls, asked)
    subject.precisions = precisions_of(getattr(module, "PRECISIONS", PRECISIONS))
    return subject


def record(model, example_batch, path, loss=None, sizes=None, precisions=PRECISIONS):
    """Records a model from one example of its batch; a batch of one sample is taken as it is and widened. Raises after it has
    written the file if a precision could not be recorded."""
    tensors = tensors_of(example_batch)
    if not tensors:
        raise Unrecordable("the example batch has no tensors")
    first = next((t for t in tensors if t.dim()), tensors[0])
    b0 = first.shape[0] if first.dim() else 1
    words = [t for t in tensors if not t.is_floating_point() and t.dim() > 1]
    s0 = words[0].shape[1] if words else 0

    def batch(b, s, device):
        def resized(tensor):
            for place, size in enumerate(tensor.shape):
                wanted = b if place == 0 and size == b0 else s if s0 and size == s0 and place else size
                if wanted != size:
                    tensor = tensor.index_select(place, torch.arange(wanted) % size)
            return tensor

        return mapped(resized, example_batch)

    subject = Subject(model, batch, loss or own_loss, sizes or [(max(2, b0), s0 or 1)], type(model).__name__, f"{type(model).__module__}.{type(model).__qualname__}")
    subject.fixed, subject.example = not s0, (b0, s0 or 1)
    subject.precisions = precisions_of(precisions)
    size = finish(subject, path)
    if subject.missing:
        raise Unrecordable(f"{path} lacks {', '.join(subject.missing)}; if that does not matter, name the others as `precisions`")
    return size


def finish(subject, path):
    """Writes a recording and says what is in it."""
    document = subject.document()
    size = write(document, path)
    print("\n".join([path, *subject.report(document, size)]))
    return size


def own_loss(model, batch):
    """The loss that a model returns, or the mean of what it returns."""
    output = model(**batch) if isinstance(batch, dict) else model(*batch) if isinstance(batch, (list, tuple)) else model(batch)
    found = getattr(output, "loss", None)
    if found is None and isinstance(output, dict):
        found = output.get("loss")
    if found is None:
        found = next(t for t in tensors_of(list(output.values()) if isinstance(output, dict) else [output]) if t.is_floating_point()).float().mean()
    return found


def named(text):
    """What `module:name` names."""
    module, _, name = text.partition(":")
    sys.path.insert(0, os.getcwd())
    found = load_file(module) if module.endswith(".py") else importlib.import_module(module)
    return getattr(found, name or "build")


def hugging_face(identity):
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(identity)
    config.use_cache = False
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)

    def batch(b, s, device):
        ids = torch.arange(b * s).reshape(b, s) % 1000
        return {"input_ids": ids, "labels": ids}

    return Subject(model.train(), batch, own_loss, [(2, 256), (4, 512)], identity, "transformers")


def timm_model(identity):
    import timm

    with NoInit():
        model = timm.create_model(identity, pretrained=False).train()
    size = model.default_cfg["input_size"]

    def batch(b, s, device):
        return {"x": torch.zeros(b, size[0], s, s), "y": torch.zeros(b, dtype=torch.long)}

    def loss(model, batch):
        return torch.nn.functional.cross_entropy(model(batch["x"]).float(), batch["y"])

    return Subject(model, batch, loss, [(8, size[-1]), (16, size[-1])], identity, "timm")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="FILE.py, module:function, hf:ID or timm:NAME")
    parser.add_argument("--batch", help="module:function of (b, s, device) that makes a batch")
    parser.add_argument("--loss", help="module:function of (model, batch); default: the loss that the model returns")
    parser.add_argument("--sizes", default="2x128,4x256", help="batches and lengths that work, such as 2x128,4x256")
    parser.add_argument("--precisions", help="what has to be recorded, of fp32,amp,half; default: all, or the file's PRECISIONS")
    parser.add_argument("--out", "-o", default=".", help="a folder, or a file that ends in .json")
    options = parser.parse_args()
    failed = 0
    for what in options.what:
        try:
            subject = subject_of(what, options)
            if options.precisions:
                subject.precisions = precisions_of(options.precisions.split(","))
            path = options.out if options.out.endswith(".json") else os.path.join(options.out, subject.name.replace("/", "--") + ".json")
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            finish(subject, path)
            failed += bool(subject.missing)
        except Unrecordable as problem:
            failed += 1
            print(f"{what}: {problem}", file=sys.stderr)
    return 1 if failed else 0


def subject_of(what, options):
    if what.startswith("hf:"):
        return hugging_face(what[3:])
    if what.startswith("timm:"):
        return timm_model(what[5:])
    if what.endswith(".py"):
        return file_subject(what)
    seed()
    with NoInit():
        model = named(what)()
    if not options.batch:
        raise Unrecordable("--batch names the function that makes a batch")
    sizes = [tuple(int(n) for n in size.split("x")) for size in options.sizes.split(",")]
    loss = named(options.loss) if options.loss else own_loss
    given = {"build": what if ":" in what else what + ":build", "batch": options.batch, "loss": options.loss}
    calls = {called: text.replace(".py:", ":") for called, text in given.items() if text}
    return Subject(model, named(options.batch), loss, sizes, what.partition(":")[0], what, calls)


if __name__ == "__main__":
    sys.exit(main())
