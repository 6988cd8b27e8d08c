# SPDX-License-Identifier: Apache-2.0
"""Convolution and pooling."""
import rung
import torch
from rung.torch._library import define, once_differentiable

_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def _empty(shape, *like):
    """Returns an empty tensor for images: channels last if one of `like` is, and is not contiguous."""
    format_ = torch.contiguous_format
    last = _CHANNELS_LAST.get(len(shape))
    if last is not None:
        for each in like:
            if not each.is_contiguous() and each.is_contiguous(memory_format=last):
                format_ = last
    return torch.empty(shape, dtype=like[0].dtype, device=like[0].device, memory_format=format_)


# --- conv ----------------------------------------------------------------------------------------------------------

def _convolved(x, w, stride, padding, dilation):
    if x.dim() != w.dim() or not 3 <= x.dim() <= 5:
        raise rung.Error(f"conv: x has {x.dim()} axes, w {w.dim()}; accepted: 3 to 5 each, with images and channels")
    extents = [(extent + 2 * p - d * (kernel - 1) - 1) // s + 1
               for extent, kernel, s, p, d in zip(x.shape[2:], w.shape[2:], stride, padding, dilation)]
    return x.shape[0], w.shape[0], *(extent if extent > 0 else 0 for extent in extents)


def _run_conv(x, w, bias, stride, padding, dilation, groups):
    return rung.conv(x, w, bias=bias, stride=stride, padding=padding, dilation=dilation, groups=groups,
                     out=_fake_conv(x, w, bias, stride, padding, dilation, groups))


def _fake_conv(x, w, bias, stride, padding, dilation, groups):
    return _empty(_convolved(x, w, stride, padding, dilation), x, w)


def _run_conv_data(dy, w, shape, stride, padding, dilation, groups):
    return rung.conv_backward_data(dy, w, stride=stride, padding=padding, dilation=dilation, groups=groups,
                                   out=_empty(shape, dy, w))


def _run_conv_filter(x, dy, shape, stride, padding, dilation, groups):
    return rung.conv_backward_filter(x, dy, stride=stride, padding=padding, dilation=dilation, groups=groups,
                                     out=_empty(shape, x, dy))


def _setup_conv(ctx, inputs, output):
    x, w, _, *ctx.window = inputs
    ctx.save_for_backward(x, w)


def _conv_gradient(ctx, dy):
    x, w = ctx.saved_tensors
    needs_x, needs_w, needs_bias = ctx.needs_input_grad[:3]
    return (conv_backward_data(dy, w, x.shape, *ctx.window) if needs_x else None,
            conv_backward_filter(x, dy, w.shape, *ctx.window) if needs_w else None,
            dy.sum((0, *range(2, dy.dim()))) if needs_bias else None, None, None, None, None)


# conv, its gradient by x and its gradient by w are each linear in two tensors; the other two functions compute the
# gradients of each.
def _setup_conv_gradient(ctx, inputs, output):
    first, second, _, *ctx.window = inputs
    ctx.save_for_backward(first, second)


def _conv_data_gradient(ctx, ddx):
    dy, w = ctx.saved_tensors
    needs_dy, needs_w = ctx.needs_input_grad[:2]
    return (conv(ddx, w, None, *ctx.window) if needs_dy else None,
            conv_backward_filter(ddx, dy, w.shape, *ctx.window) if needs_w else None, None, None, None, None, None)


def _conv_filter_gradient(ctx, ddw):
    x, dy = ctx.saved_tensors
    needs_x, needs_dy = ctx.needs_input_grad[:2]
    return (conv_backward_data(dy, ddw, x.shape, *ctx.window) if needs_x else None,
            conv(x, ddw, None, *ctx.window) if needs_dy else None, None, None, None, None, None)


_WINDOW = "int[] stride, int[] padding, int[] dilation, int groups"
conv = define(f"conv(Tensor x, Tensor w, Tensor? bias, {_WINDOW}) -> Tensor", _run_conv, _fake_conv, _setup_conv,
              _conv_gradient)
conv_backward_data = define(
    f"conv_backward_data(Tensor dy, Tensor w, SymInt[] shape, {_WINDOW}) -> Tensor", _run_conv_data,
    lambda dy, w, shape, *_: _empty(shape, dy, w), _setup_conv_gradient, _conv_data_gradient)
conv_backward_filter = define(
    f"conv_backward_filter(Tensor x, Tensor dy, SymInt[] shape, {_WINDOW}) -> Tensor", _run_conv_filter,
    lambda x, dy, shape, *_: _empty(shape, x, dy), _setup_conv_gradient, _conv_filter_gradient)


# --- pool ----------------------------------------------------------------------------------------------------------

def _pooled(x, kernel, stride, padding, dilation, ceil_mode):
    if x.dim() != 4:
        raise rung.Error(f"pool: x has {x.dim()} axes; accepted: 4, images and channels included")
    shape = list(x.shape[:2])
    for extent, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation):
        room = extent + 2 * p - d * (k - 1) - 1
        count = (room + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (count - 1) * s >= extent + p:
            count = count - 1  # excludes a window that begins beyond the image and the padding before it
        shape.append(count if count > 0 else 0)
    return shape


def _run_max_pool(x, kernel, stride, padding, dilation, ceil_mode):
    y, indices = _fake_max_pool(x, kernel, stride, padding, dilation, ceil_mode)
    rung.max_pool(x, kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode, indices=indices,
                  out=y)
    return y, indices


def _fake_max_pool(x, kernel, stride, padding, dilation, ceil_mode):
    y = _empty(_pooled(x, kernel, stride, padding, dilation, ceil_mode), x)
    return y, torch.empty_like(y, dtype=torch.int64)


def _run_max_pool_backward(dy, indices, shape, kernel, stride, padding, dilation, ceil_mode):
    return rung.max_pool_backward(dy, indices, kernel, stride=stride, padding=padding, dilation=dilation,
                                  ceil_mode=ceil_mode, out=_empty(shape, dy, indices))


def _setup_max_pool(ctx, inputs, output):
    x, *ctx.window = inputs
    ctx.shape = x.shape
    ctx.save_for_backward(output[1])
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


@once_differentiable
def _max_pool_gradient(ctx, dy, _):
    dx = None
    if dy is not None:
        dx = _max_pool_backward(dy, ctx.saved_tensors[0], ctx.shape, *ctx.window)
    return dx, None, None, None, None, None


_TAPS = "int[] kernel, int[] stride, int[] padding"
_max_pool_backward = define(
    f"max_pool2d_backward(Tensor dy, Tensor indices, SymInt[] shape, {_TAPS}, int[] dilation, bool ceil_mode)"
    " -> Tensor", _run_max_pool_backward, lambda dy, indices, shape, *_: _empty(shape, dy, indices))
max_pool2d = define(f"max_pool2d(Tensor x, {_TAPS}, int[] dilation, bool ceil_mode) -> (Tensor, Tensor)",
                    _run_max_pool, _fake_max_pool, _setup_max_pool, _max_pool_gradient)


def _run_average_pool(x, kernel, stride, padding, ceil_mode, count_padding):
    return rung.average_pool(x, kernel, stride=stride, padding=padding, ceil_mode=ceil_mode,
                             count_padding=count_padding,
                             out=_fake_average_pool(x, kernel, stride, padding, ceil_mode, count_padding))


def _fake_average_pool(x, kernel, stride, padding, ceil_mode, count_padding):
    return _empty(_pooled(x, kernel, stride, padding, (1, 1), ceil_mode), x)


def _run_average_pool_backward(dy, shape, kernel, stride, padding, ceil_mode, count_padding):
    return rung.average_pool_backward(dy, kernel, stride=stride, padding=padding, ceil_mode=ceil_mode,
                                      count_padding=count_padding, out=_empty(shape, dy))


def _setup_average_pool(ctx, inputs, output):
    x, *ctx.window = inputs
    ctx.shape = x.shape


@once_differentiable
def _average_pool_gradient(ctx, dy):
    return _average_pool_backward(dy, ctx.shape, *ctx.window), None, None, None, None, None


_average_pool_backward = define(
    f"avg_pool2d_backward(Tensor dy, SymInt[] shape, {_TAPS}, bool ceil_mode, bool count_padding) -> Tensor",
    _run_average_pool_backward, lambda dy, shape, *_: _empty(shape, dy))
avg_pool2d = define(f"avg_pool2d(Tensor x, {_TAPS}, bool ceil_mode, bool count_padding) -> Tensor",
                    _run_average_pool, _fake_average_pool, _setup_average_pool, _average_pool_gradient)
