# SPDX-License-Identifier: Apache-2.0
"""Functions with the signatures of torch.nn.functional, on the operators of PyTorch's namespace `rung`.

They take tensors of any strides on the CPU or a CUDA device, of one type (float32, float64, float16 or bfloat16), and
are not autocast. They raise rung.Error for types, shapes and options that are not accepted.
"""
import math

import torch
from rung import Error
from rung.torch import _images, _products, _rows

__all__ = ["softmax", "log_softmax", "relu", "gelu", "silu", "sigmoid", "tanh", "layer_norm", "rms_norm",
           "cross_entropy", "gemm", "linear", "scaled_dot_product_attention", "attention", "conv1d", "conv2d", "conv3d",
           "max_pool2d", "avg_pool2d"]


def _needs_gradient(*tensors):
    return torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in tensors)


def _refuse_gradient(name, *tensors):
    if _needs_gradient(*tensors):
        raise Error(f"{name}: out is given, and an argument requires a gradient; leave one of them out")


def _per_axis(value, axes):
    return (value,) * axes if isinstance(value, int) else tuple(value)


# --- along rows ----------------------------------------------------------------------------------------------------

def _softmax(name, op, op_out, input, dim, dtype, out):
    if dtype is not None:
        input = input.to(dtype)
    if out is None:
        return op(input, dim)
    _refuse_gradient(name, input, out)
    op_out(input, dim, out)
    return out


def softmax(input, dim=-1, dtype=None, *, out=None):
    """exp(x_i - m) / sum_j exp(x_j - m) along an axis, m = max_j x_j; rows of nothing but -infinity give 0, not NaN.

    dtype: input is converted to it first. out: shaped as input, of its type, or float32 for float16 and bfloat16.

    >>> import torch, rung.torch
    >>> rung.torch.softmax(torch.zeros(2), 0)
    tensor([0.5000, 0.5000])
    """
    return _softmax("softmax", _rows.softmax, _rows.softmax_out, input, dim, dtype, out)


def log_softmax(input, dim=-1, dtype=None, *, out=None):
    """Logarithm of softmax(); arguments as of that.

    >>> import torch, rung.torch
    >>> rung.torch.log_softmax(torch.zeros(1), 0)
    tensor([0.])
    """
    return _softmax("log_softmax", _rows.log_softmax, _rows.log_softmax_out, input, dim, dtype, out)


def _activation(name, op, op_out, input, inplace, out):
    if inplace:
        if _needs_gradient(input):
            # PyTorch records the copy; tensors that op saves for its gradient must not be overwritten.
            return input.copy_(op(input if op is _rows.relu else input.clone()))
        out = input
    if out is None:
        return op(input)
    _refuse_gradient(name, input, out)
    op_out(input, out)
    return out


def relu(input, inplace=False, *, out=None):
    """max(x, 0), element by element; NaN stays NaN.

    >>> import torch, rung.torch
    >>> rung.torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return _activation("relu", _rows.relu, _rows.relu_out, input, inplace, out)


def gelu(input, *, approximate="none", out=None):
    """x Phi(x), element by element, Phi the normal distribution. approximate: "none" alone.

    >>> import torch, rung.torch
    >>> rung.torch.gelu(torch.zeros(1))
    tensor([0.])
    """
    if approximate != "none":
        raise Error(f"gelu: approximate is {approximate!r}; accepted: 'none'")
    return _activation("gelu", _rows.gelu, _rows.gelu_out, input, False, out)


def silu(input, inplace=False, *, out=None):
    """x / (1 + e^-x), element by element.

    >>> import torch, rung.torch
    >>> rung.torch.silu(torch.zeros(1))
    tensor([0.])
    """
    return _activation("silu", _rows.silu, _rows.silu_out, input, inplace, out)


def sigmoid(input, *, out=None):
    """1 / (1 + e^-x), element by element.

    >>> import torch, rung.torch
    >>> rung.torch.sigmoid(torch.zeros(1))
    tensor([0.5000])
    """
    return _activation("sigmoid", _rows.sigmoid, _rows.sigmoid_out, input, False, out)


def tanh(input, *, out=None):
    """The hyperbolic tangent, element by element.

    >>> import torch, rung.torch
    >>> rung.torch.tanh(torch.zeros(1))
    tensor([0.])
    """
    return _activation("tanh", _rows.tanh, _rows.tanh_out, input, False, out)


def _normalized_axes(name, input, normalized_shape):
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or tuple(input.shape[-len(shape):]) != shape:
        raise Error(f"{name}: normalized_shape is {shape}, input has the shape {tuple(input.shape)}; accepted: its "
                    "last extents, one or more")
    return len(shape)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """(x - mean) / sqrt(variance + eps) weight + bias, over the last axes. weight, bias: None, or normalized_shape.

    weight and bias are of input's type or, for float16 and bfloat16, both float32.

    >>> import torch, rung.torch
    >>> rung.torch.layer_norm(torch.tensor([[1.0, 3.0]]), 2, eps=0.0)
    tensor([[-1.,  1.]])
    """
    axes = _normalized_axes("layer_norm", input, normalized_shape)
    return _rows.layer_norm(input, axes, weight, bias, eps)[0]


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """x / sqrt(mean(x^2) + eps) weight, over the last axes. eps: None means the unit roundoff, torch.finfo's eps.

    For float16 and bfloat16 it is that of float32, in which the mean is computed.

    >>> import torch, rung.torch
    >>> rung.torch.rms_norm(torch.tensor([[2.0, -2.0]]), 2, eps=0.0)
    tensor([[ 1., -1.]])
    """
    axes = _normalized_axes("rms_norm", input, normalized_shape)
    if eps is None:
        eps = torch.finfo(torch.float64 if input.dtype == torch.float64 else torch.float32).eps
    return _rows.rms_norm(input, axes, weight, eps)[0]


def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                  label_smoothing=0.0):
    """-sum_c q_c log softmax(input)_c, of each label or their mean or sum. target: int64 or int32, labels alone.

    input: C, N x C or N x C x ...; target: its shape without C. reduction: "mean", "sum" or "none". A label that is no
    class gives NaN; where all are ignored the mean is 0. weight, size_average and reduce are not accepted.

    >>> import torch, rung.torch
    >>> rung.torch.cross_entropy(torch.zeros(1, 1), torch.tensor([0]))
    tensor(0.)
    """
    for name, given in (("weight", weight), ("size_average", size_average), ("reduce", reduce)):
        if given is not None:
            raise Error(f"cross_entropy: {name} is given; accepted: None")
    if reduction not in ("mean", "sum", "none"):
        raise Error(f"cross_entropy: reduction is {reduction!r}; accepted: 'mean', 'sum', 'none'")
    if target.is_floating_point():
        raise Error("cross_entropy: target holds probabilities; accepted: labels, int64 or int32")
    # For float16, divides after the kernel: gradients over the number of rows would underflow before a loss scaler's
    # factor.
    after = reduction == "mean" and input.dtype == torch.float16
    loss, _ = _rows.cross_entropy(input, target, 0 if input.dim() == 1 else 1, "sum" if after else reduction,
                                  label_smoothing, ignore_index, _needs_gradient(input))
    if after:
        loss = loss / (target != ignore_index).sum().clamp(min=1)
    return loss if loss.dtype == input.dtype else loss.to(input.dtype)


# --- products ------------------------------------------------------------------------------------------------------

def gemm(a, b, *, bias=None, alpha=1.0, transpose_a=False, transpose_b=False, activation="none", precision="full",
         out=None):
    """activation(alpha op(a) op(b) + bias), for each matrix of a batch; arguments as of rung.gemm().

    >>> import torch, rung.torch
    >>> rung.torch.gemm(torch.ones(1, 2), torch.ones(2, 1), bias=torch.ones(1))
    tensor([[3.]])
    """
    if out is not None:
        _refuse_gradient("gemm", a, b, bias, out)
        _products.gemm_out(a, b, bias, alpha, transpose_a, transpose_b, activation, precision, out)
        return out
    if activation == "none" or not _needs_gradient(a, b, bias):
        return _products.gemm(a, b, bias, alpha, transpose_a, transpose_b, activation, precision)
    return _activate(_products.gemm(a, b, bias, alpha, transpose_a, transpose_b, "none", precision), activation)


def _activate(x, activation):
    known = {"relu": relu, "gelu": gelu, "sigmoid": sigmoid, "tanh": tanh}
    if activation not in known:
        raise Error(f"activation is {activation!r}; accepted: none, relu, gelu, sigmoid, tanh")
    return known[activation](x)


def linear(input, weight, bias=None, *, activation="none"):
    """activation(x weight^T + bias). activation: "none", "relu", "gelu", "sigmoid" or "tanh"; fused unless a gradient
    is recorded.

    >>> import torch, rung.torch
    >>> rung.torch.linear(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1))
    tensor([[3.]])
    """
    if activation == "none" or not _needs_gradient(input, weight, bias):
        return _products.linear(input, weight, bias, activation)
    return _activate(_products.linear(input, weight, bias, "none"), activation)


def attention(q, k, v, *, causal=False, window=None, scale=None, soft_cap=None, key_lengths=None, query_offsets=None,
              key_offsets=None, page_table=None, slopes=None, bias=None, sinks=None, k_scales=None, v_scales=None):
    """softmax(scale q k^T) v for every head; arguments as of rung.attention(), whose lse is not returned.

    slopes, bias and sinks of other types are converted to float32, for float64 to float64. q, k, v and sinks have
    gradients, slopes and bias do not; with page_table, and with k and v of float8_e4m3fn, none has.

    >>> import torch, rung.torch
    >>> rung.torch.attention(torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 2, 4), torch.tensor([[[[1.0], [3.0]]]]))
    tensor([[[[2.]]]])
    """
    if _needs_gradient(slopes, bias) or (page_table is not None and _needs_gradient(q, k, v, sinks)):
        raise Error("attention: slopes, bias or a mask requires a gradient, or an argument does with page_table; "
                    "accepted with gradients: those of q, k, v and sinks, without pages")
    if k.dtype == torch.float8_e4m3fn and _needs_gradient(q, sinks):
        raise Error("attention: k and v are float8_e4m3fn, and q or sinks requires a gradient; accepted: k and v of "
                    "the type of q")
    numbers = torch.float64 if q.dtype == torch.float64 else torch.float32
    slopes, bias, sinks = (None if each is None else each.to(numbers) for each in (slopes, bias, sinks))
    return _products.attention(q, k, v, causal, scale, key_lengths, 0 if window is None else window,
                               _needs_gradient(q, k, v, sinks), soft_cap, query_offsets, key_offsets, page_table,
                               slopes, bias, sinks, k_scales, v_scales)[0]


def _bias_of_mask(name, mask, query, key):
    """Returns the bias of an attn_mask: -infinity where a boolean one is False. Broadcast axes keep strides of 0."""
    shape = (*query.shape[:-1], key.shape[-2])
    if len(shape) != 4:
        raise Error(f"{name}: query has shape {tuple(query.shape)}; accepted: 3 or 4 axes")
    if mask.dim() > 4:
        raise Error(f"{name}: attn_mask has {mask.dim()} axes; accepted: up to 4")
    dtype = torch.float64 if query.dtype == torch.float64 else torch.float32
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise Error(f"{name}: attn_mask is {mask.dtype}; accepted: bool, and floating-point types")
    if mask.dtype == torch.bool:
        bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -math.inf)
    else:
        bias = mask.to(dtype)
    try:
        return bias.expand(shape)
    except RuntimeError:
        raise Error(f"{name}: attn_mask has shape {tuple(mask.shape)}; accepted: a shape that broadcasts to "
                    f"{shape}") from None


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """attention() with PyTorch's signature. Tensors of 3 or 4 axes; dropout_p is not accepted.

    attn_mask: boolean, True where a query sees a key, or numbers to add to the scores; converted to float32 (float64
    for float64). A query that sees no key gives 0. A mask has no gradient.

    >>> import torch, rung.torch
    >>> rung.torch.scaled_dot_product_attention(torch.zeros(1, 1, 1, 1), *2 * [torch.ones(1, 1, 2, 1)])
    tensor([[[[1.]]]])
    """
    name = "scaled_dot_product_attention"
    if dropout_p != 0:
        raise Error(f"{name}: dropout_p is {dropout_p}; accepted: 0")
    if attn_mask is not None and is_causal:
        raise Error(f"{name}: attn_mask is given, and is_causal is True; accepted: one of them")
    if is_causal and query.shape[-2] != key.shape[-2]:
        raise Error(f"{name}: is_causal with {query.shape[-2]} queries and {key.shape[-2]} keys, of which PyTorch "
                    "aligns the first, attention(causal=True) the last; accepted: equal numbers")
    if not enable_gqa and query.dim() > 2 and query.shape[-3] != key.shape[-3]:
        raise Error(f"{name}: query has {query.shape[-3]} heads, key {key.shape[-3]}; accepted: equal numbers, or "
                    "enable_gqa=True")
    has_batch = query.dim() != 3
    if not has_batch:
        query, key, value = (each.unsqueeze(0) for each in (query, key, value))
    bias = None if attn_mask is None else _bias_of_mask(name, attn_mask, query, key)
    result = attention(query, key, value, causal=is_causal, scale=scale, bias=bias)
    return result if has_batch else result.squeeze(0)


# --- images --------------------------------------------------------------------------------------------------------

def _conv(axes, input, weight, bias, stride, padding, dilation, groups):
    stride, dilation = _per_axis(stride, axes), _per_axis(dilation, axes)
    if padding == "valid":
        padding = 0
    elif padding == "same":
        if any(each != 1 for each in stride):
            raise Error(f"conv: padding is 'same', stride is {stride}; accepted: 1")
        ends = [d * (kernel - 1) for d, kernel in zip(dilation, weight.shape[2:])]
        padding = [each // 2 for each in ends]
        if any(each % 2 for each in ends):  # one more element at the end
            more = [side for each in reversed(ends) for side in (0, each % 2)]
            input = torch.nn.functional.pad(input, more)
    elif isinstance(padding, str):
        raise Error(f"conv: padding is {padding!r}; accepted: numbers, 'valid', 'same'")
    window = stride, _per_axis(padding, axes), dilation, groups
    if input.dim() == axes + 1:
        return _images.conv(input.unsqueeze(0), weight, bias, *window).squeeze(0)
    if input.dim() != axes + 2:
        raise Error(f"conv{axes}d: input has {input.dim()} axes; accepted: {axes + 2}, or {axes + 1} without a batch")
    return _images.conv(input, weight, bias, *window)


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation of one axis. padding: a number, "valid" or "same".

    >>> import torch, rung.torch
    >>> rung.torch.conv1d(torch.ones(1, 1, 3), torch.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation of two axes. padding: a number or one per axis, "valid" or "same".

    >>> import torch, rung.torch
    >>> rung.torch.conv2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2))
    tensor([[[[4.]]]])
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlation of three axes. padding: a number or one per axis, "valid" or "same".

    >>> import torch, rung.torch
    >>> rung.torch.conv3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2))
    tensor([[[[[8.]]]]])
    """
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def _window(kernel_size, stride, padding):
    kernel = _per_axis(kernel_size, 2)
    return kernel, _per_axis(stride, 2) if stride is not None else kernel, _per_axis(padding, 2)


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Maximum of each window; with return_indices, (maxima, their positions h W + w).

    >>> import torch, rung.torch
    >>> rung.torch.max_pool2d(torch.arange(4.0).reshape(1, 1, 2, 2), 2)
    tensor([[[[3.]]]])
    """
    x = input.unsqueeze(0) if input.dim() == 3 else input
    both = _images.max_pool2d(x, *_window(kernel_size, stride, padding), _per_axis(dilation, 2), ceil_mode)
    if input.dim() == 3:
        both = both[0].squeeze(0), both[1].squeeze(0)
    return tuple(both) if return_indices else both[0]


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    """Mean of each window. divisor_override is not accepted.

    >>> import torch, rung.torch
    >>> rung.torch.avg_pool2d(torch.arange(4.0).reshape(1, 1, 2, 2), 2)
    tensor([[[[1.5000]]]])
    """
    if divisor_override is not None:
        raise Error(f"avg_pool2d: divisor_override is {divisor_override}; accepted: None")
    x = input.unsqueeze(0) if input.dim() == 3 else input
    y = _images.avg_pool2d(x, *_window(kernel_size, stride, padding), ceil_mode, count_include_pad)
    return y.squeeze(0) if input.dim() == 3 else y
