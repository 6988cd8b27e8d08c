# SPDX-License-Identifier: Apache-2.0
"""Matrix products, the linear layer and attention."""
import math

import rung
import torch
from rung.torch._library import define, once_differentiable

_RESULTS = {torch.int8: torch.int32, torch.float8_e4m3fn: torch.bfloat16, torch.float8_e5m2: torch.bfloat16}


# --- gemm ----------------------------------------------------------------------------------------------------------

def _run_gemm(a, b, bias, alpha, transpose_a, transpose_b, activation, precision):
    return rung.gemm(a, b, bias=bias, alpha=alpha, transpose_a=transpose_a, transpose_b=transpose_b,
                     activation=activation, precision=precision)


def _run_gemm_out(a, b, bias, alpha, transpose_a, transpose_b, activation, precision, out):
    rung.gemm(a, b, bias=bias, alpha=alpha, transpose_a=transpose_a, transpose_b=transpose_b, activation=activation,
              precision=precision, out=out)


def _fake_gemm(a, b, bias, alpha, transpose_a, transpose_b, activation, precision):
    for name, each in (("a", a), ("b", b)):
        if each.dim() not in (2, 3):
            raise rung.Error(f"gemm: {name} has {each.dim()} axes; accepted: 2, or 3 with the batch in front")
    batch = ()
    if a.dim() == 3 or b.dim() == 3:
        of_a, of_b = (each.shape[0] if each.dim() == 3 else 1 for each in (a, b))
        batch = (of_b if of_a == 1 else of_a,)
    shape = (*batch, a.shape[-1 if transpose_a else -2], b.shape[-2 if transpose_b else -1])
    return a.new_empty(shape, dtype=_RESULTS.get(a.dtype, a.dtype))


def _setup_gemm(ctx, inputs, output):
    a, b, bias, *ctx.options = inputs
    if ctx.options[3] != "none":
        raise NotImplementedError("rung::gemm has no gradient with an activation; apply the activation to its result")
    ctx.save_for_backward(a, b)
    ctx.bias = None if bias is None else bias.shape


def _gemm_gradient(ctx, dc):
    a, b = ctx.saved_tensors
    alpha, ta, tb, _, precision = ctx.options
    needs_a, needs_b, needs_bias = ctx.needs_input_grad[:3]
    da = db = dbias = None
    if needs_a:
        first, second, options = (b, dc, (tb, True)) if ta else (dc, b, (False, not tb))
        da = gemm(first, second, None, alpha, *options, "none", precision).sum_to_size(a.shape)
    if needs_b:
        first, second, options = (dc, a, (True, ta)) if tb else (a, dc, (not ta, False))
        db = gemm(first, second, None, alpha, *options, "none", precision).sum_to_size(b.shape)
    if needs_bias:
        dbias = dc.sum_to_size(ctx.bias)
    return da, db, dbias, None, None, None, None, None


gemm = define("gemm(Tensor a, Tensor b, Tensor? bias, float alpha, bool transpose_a, bool transpose_b, str activation,"
              " str precision) -> Tensor", _run_gemm, _fake_gemm, _setup_gemm, _gemm_gradient)
gemm_out = define("gemm_out(Tensor a, Tensor b, Tensor? bias, float alpha, bool transpose_a, bool transpose_b,"
                  " str activation, str precision, Tensor(a!) out) -> ()", _run_gemm_out)


# --- linear --------------------------------------------------------------------------------------------------------

def _matrix(x):
    """Returns a tensor with all axes but the last merged."""
    return x if x.dim() == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _run_linear(x, w, bias, activation):
    y = _fake_linear(x, w, bias, activation)
    rung.gemm(_matrix(x), w, bias=bias, transpose_b=True, activation=activation, out=_matrix(y))
    return y


def _fake_linear(x, w, bias, activation):
    if w.dim() != 2 or x.dim() == 0:
        raise rung.Error(f"linear: input has {x.dim()} axes, weight {w.dim()}; accepted: 1 and more, 2")
    return x.new_empty((*x.shape[:-1], w.shape[0]))


def _setup_linear(ctx, inputs, output):
    x, w, bias, activation = inputs
    if activation != "none":
        raise NotImplementedError("rung::linear has no gradient with an activation; apply the activation to its result")
    ctx.save_for_backward(x, w)


def _linear_gradient(ctx, dy):
    x, w = ctx.saved_tensors
    needs_x, needs_w, needs_bias = ctx.needs_input_grad[:3]
    dx = dw = db = None
    if needs_x:
        dx = linear(dy, w.t(), None, "none")
    if needs_w or needs_bias:
        rows = _matrix(dy)
    if needs_w:
        dw = gemm(rows, _matrix(x), None, 1.0, True, False, "none", "full")
    if needs_bias:
        db = rows.sum(0)
    return dx, dw, db, None


linear = define("linear(Tensor x, Tensor w, Tensor? bias, str activation) -> Tensor", _run_linear, _fake_linear,
                _setup_linear, _linear_gradient)


# --- attention -----------------------------------------------------------------------------------------------------

def _run_attention(q, k, v, causal, scale, key_lengths, window, gradient, soft_cap=None, query_offsets=None,
                   key_offsets=None, page_table=None, slopes=None, bias=None, sinks=None, k_scales=None,
                   v_scales=None):
    o, lse = _fake_attention(q, k, v, causal, scale, key_lengths, window, gradient)
    if query_offsets is not None:  # rows of no batch element are not written
        o.zero_()
    rung.attention(q, k, v, causal=causal, window=window, scale=scale, soft_cap=soft_cap, key_lengths=key_lengths,
                   query_offsets=query_offsets, key_offsets=key_offsets, page_table=page_table, slopes=slopes,
                   bias=bias, sinks=sinks, k_scales=k_scales, v_scales=v_scales, lse=lse if gradient else None, out=o)
    return o, lse


def _fake_attention(q, k, v, causal, scale, key_lengths, window, gradient, *_):
    if q.shape[-1:] == v.shape[-1:]:
        o = torch.empty_like(q)  # keeps the memory order of q's axes
    else:
        o = q.new_empty((*q.shape[:-1], *v.shape[-1:]))
    return o, q.new_empty(q.shape[:-1] if gradient else 0,
                          dtype=torch.float64 if q.dtype == torch.float64 else torch.float32)


def _run_attention_backward(do, q, k, v, o, lse, causal, scale, key_lengths, window, soft_cap, query_offsets,
                            key_offsets, slopes, bias, sinks):
    dq, dk, dv, dsinks = _fake_attention_backward(do, q, k, v, o, lse, sinks)
    if query_offsets is not None:  # rows of no batch element are not written
        dq.zero_()
    if key_offsets is not None:
        dk.zero_()
        dv.zero_()
    rung.attention_backward(q, k, v, o, lse, do, causal=causal, window=window, scale=scale, soft_cap=soft_cap,
                            key_lengths=key_lengths, query_offsets=query_offsets, key_offsets=key_offsets,
                            slopes=slopes, bias=bias, sinks=sinks, dq=dq, dk=dk, dv=dv,
                            dsinks=None if sinks is None else dsinks)
    return dq, dk, dv, dsinks


def _fake_attention_backward(do, q, k, v, o, lse, *options):
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), lse.new_empty(
        0 if options[-1] is None else options[-1].shape)


def _setup_attention(ctx, inputs, output):
    q, k, v, causal, scale, key_lengths, window, gradient, soft_cap, *rest = inputs
    if not gradient:
        raise ValueError("rung::attention: gradient is False, and q, k or v requires one; give True")
    query_offsets, key_offsets, page_table, slopes, bias, sinks, _, _ = rest
    if k.dtype == torch.float8_e4m3fn:
        raise ValueError("rung::attention: k and v are float8_e4m3fn; accepted with gradients: k and v of q's type")
    if page_table is not None or any(each is not None and each.requires_grad for each in (slopes, bias)):
        raise ValueError("rung::attention: page_table is given, or slopes or bias requires a gradient; accepted with "
                         "gradients: those of q, k, v and sinks, without pages")
    ctx.numbers = causal, scale, window, soft_cap
    optional = key_lengths, query_offsets, key_offsets, slopes, bias, sinks
    ctx.given = [each is not None for each in optional]
    ctx.save_for_backward(q, k, v, *output, *(each for each in optional if each is not None))
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


@once_differentiable
def _attention_gradient(ctx, do, _):
    inputs = 17
    sinks_at = 14
    if do is None:
        return (None,) * inputs
    q, k, v, o, lse, *saved = ctx.saved_tensors
    saved = iter(saved)
    key_lengths, query_offsets, key_offsets, slopes, bias, sinks = (
        next(saved) if given else None for given in ctx.given)
    causal, scale, window, soft_cap = ctx.numbers
    # PyTorch leaves out trailing arguments that have their defaults.
    needs_sinks = len(ctx.needs_input_grad) > sinks_at and ctx.needs_input_grad[sinks_at]
    *each, dsinks = _attention_backward(do, q, k, v, o, lse, causal, scale, key_lengths, window, soft_cap,
                                        query_offsets, key_offsets, slopes, bias,
                                        sinks if needs_sinks else None)
    return (*(d if needed else None for d, needed in zip(each, ctx.needs_input_grad)), *(None,) * (sinks_at - 3),
            dsinks if needs_sinks else None, *(None,) * (inputs - sinks_at - 1))


_OPTIONS = "bool causal, float? scale, Tensor? key_lengths, int window"
_attention_backward = define(
    f"attention_backward(Tensor do, Tensor q, Tensor k, Tensor v, Tensor o, Tensor lse, {_OPTIONS}, float? soft_cap, "
    "Tensor? query_offsets, Tensor? key_offsets, Tensor? slopes, Tensor? bias, Tensor? sinks)"
    " -> (Tensor, Tensor, Tensor, Tensor)", _run_attention_backward, _fake_attention_backward)
attention = define(
    f"attention(Tensor q, Tensor k, Tensor v, {_OPTIONS}, bool gradient, float? soft_cap=None, "
    "Tensor? query_offsets=None, Tensor? key_offsets=None, Tensor? page_table=None, Tensor? slopes=None, "
    "Tensor? bias=None, Tensor? sinks=None, Tensor? k_scales=None, Tensor? v_scales=None) -> (Tensor, Tensor)",
    _run_attention, _fake_attention, _setup_attention, _attention_gradient)
