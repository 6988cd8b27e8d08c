# SPDX-License-Identifier: Apache-2.0
"""Calls of rung.torch and of PyTorch with equal results, for the tests and for tools/check_torch_gpu.py."""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import rung.torch as rt


def random(*shape, dtype=torch.float64, device="cpu", seed=0):
    made = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=made, dtype=torch.float64).to(dtype).to(device)


def labels(shape, classes, device="cpu"):
    """Returns labels made on the device without a generator, so that torch.compile traces it and a CUDA graph captures
    it."""
    index = torch.arange(math.prod(shape), device=device)
    return torch.where(index == 0, -100, (7 * index + 3) % classes).reshape(shape)  # -100: ignored


def _gemm(a, b, bias):
    return torch.relu(a @ b.transpose(-1, -2) * 0.5 + bias)


def _cross_entropy(module, **options):
    def run(x):
        shape = x.shape[:1] + x.shape[2:]
        return module.cross_entropy(x, labels(shape, x.shape[1], x.device), **options)
    return run


def _lengths(k):
    """Returns the numbers of keys of the batch elements: none for the first, 4 for the second; made as labels() are."""
    return 4 * torch.arange(k.shape[0], dtype=torch.int32, device=k.device)


def _attention(q, k, v, causal=False, scale=None, key_lengths=None, window=None):
    """PyTorch's attention by matrix products, with rung's alignment of causal masks, its key lengths and windows."""
    lengths = torch.full_like(_lengths(k), k.shape[2]) if key_lengths is None else key_lengths
    lengths = lengths.reshape(-1, 1, 1, 1)
    row, column = (torch.arange(n, device=q.device) for n in (q.shape[2], k.shape[2]))
    seen = column < lengths
    if causal:
        seen = seen & (column <= row[:, None] + lengths - q.shape[2])
    if window is not None:
        seen = seen & (column > row[:, None] + lengths - q.shape[2] - window)
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, seen, scale=scale, enable_gqa=True)


def _capped(q, k, v, sinks):
    """Attention with a soft cap of 1.5, ALiBi slopes and sinks: a score without a value."""
    behind = (torch.arange(k.shape[2], device=q.device) - torch.arange(q.shape[2], device=q.device)[:, None]
              - (k.shape[2] - q.shape[2])).abs()
    scores = 1.5 * torch.tanh(q @ k.transpose(2, 3) / q.shape[3] ** 0.5 / 1.5)
    scores = scores - _slopes(q).to(q.dtype)[:, None, None] * behind
    scores = torch.cat([scores, sinks[None, :, None, None].expand(*scores.shape[:3], 1)], 3)
    return torch.softmax(scores, 3)[..., :-1] @ v


def _slopes(q):
    return 0.25 ** torch.arange(q.shape[1], dtype=torch.float64 if q.dtype == torch.float64 else torch.float32,
                                device=q.device)


def _packed(attend, q, k, v):
    """Calls attend() for rows 0 and 1, and for the others."""
    return torch.cat([attend(*(each[:, :, rows] for each in (q, k, v))) for rows in (slice(0, 2), slice(2, None))], 2)


def _offsets(q):
    """Returns 0, 2 and the number of rows; made as labels() are."""
    row = torch.arange(3, dtype=torch.int32, device=q.device)
    return (2 * row + (row == 2) * (q.shape[2] - 4)).int()


def _mask(q, k):
    """Returns a mask that hides every third pair."""
    pair = torch.arange(q.shape[2] * k.shape[2], device=q.device).reshape(q.shape[2], k.shape[2])
    return pair % 3 != 1


# name: (rung's function, PyTorch's function, shapes of their tensors)
CASES = {
    "softmax": (lambda x: rt.softmax(x, 1), lambda x: torch.softmax(x, 1), [(3, 5, 4)]),
    "softmax_last": (lambda x: rt.softmax(x, -1), lambda x: torch.softmax(x, -1), [(6, 33)]),
    "log_softmax": (lambda x: rt.log_softmax(x, 0), lambda x: torch.log_softmax(x, 0), [(7, 3)]),
    "relu": (rt.relu, torch.relu, [(4, 9)]),
    "gelu": (rt.gelu, F.gelu, [(4, 9)]),
    "silu": (rt.silu, F.silu, [(4, 9)]),
    "sigmoid": (rt.sigmoid, torch.sigmoid, [(4, 9)]),
    "tanh": (rt.tanh, torch.tanh, [(4, 9)]),
    "layer_norm": (lambda x, w, b: rt.layer_norm(x, (5, 6), w, b), lambda x, w, b: F.layer_norm(x, (5, 6), w, b),
                   [(3, 5, 6), (5, 6), (5, 6)]),
    "layer_norm_weight": (lambda x, w: rt.layer_norm(x, 8, w), lambda x, w: F.layer_norm(x, (8,), w), [(3, 8), (8,)]),
    "layer_norm_plain": (lambda x: rt.layer_norm(x, 8, eps=1e-3), lambda x: F.layer_norm(x, (8,), eps=1e-3), [(3, 8)]),
    "rms_norm": (lambda x, w: rt.rms_norm(x, 8, w), lambda x, w: F.rms_norm(x, (8,), w), [(3, 4, 8), (8,)]),
    "rms_norm_plain": (lambda x: rt.rms_norm(x, (4, 8), eps=1e-6), lambda x: F.rms_norm(x, (4, 8), eps=1e-6),
                       [(3, 4, 8)]),
    "cross_entropy": (_cross_entropy(rt), _cross_entropy(F), [(6, 5)]),
    "cross_entropy_sum": (_cross_entropy(rt, reduction="sum", label_smoothing=0.1),
                          _cross_entropy(F, reduction="sum", label_smoothing=0.1), [(3, 5, 4)]),
    "cross_entropy_none": (_cross_entropy(rt, reduction="none"), _cross_entropy(F, reduction="none"), [(3, 5, 2, 2)]),
    "linear": (rt.linear, F.linear, [(4, 3, 7), (5, 7), (5,)]),
    "linear_vector": (rt.linear, F.linear, [(7,), (5, 7)]),
    "linear_gelu": (lambda x, w, b: rt.linear(x, w, b, activation="gelu"), lambda x, w, b: F.gelu(F.linear(x, w, b)),
                    [(4, 7), (5, 7), (5,)]),
    "gemm": (lambda a, b, c: rt.gemm(a, b, bias=c, alpha=0.5, transpose_b=True, activation="relu"), _gemm,
             [(2, 4, 7), (2, 5, 7), (5,)]),
    "gemm_shared": (lambda a, b: rt.gemm(a, b, transpose_a=True), lambda a, b: a.t() @ b, [(7, 4), (3, 7, 5)]),
    "gemm_transposed": (lambda a, b: rt.gemm(a, b, transpose_a=True, transpose_b=True), lambda a, b: a.t() @ b.t(),
                        [(7, 4), (5, 7)]),
    "attention": (lambda q, k, v: rt.scaled_dot_product_attention(q, k, v, enable_gqa=True), _attention,
                  [(2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8)]),
    "attention_causal": (lambda q, k, v: rt.attention(q, k, v, causal=True, scale=0.7),
                         lambda q, k, v: _attention(q, k, v, causal=True, scale=0.7),
                         [(2, 2, 3, 6), (2, 1, 5, 6), (2, 1, 5, 9)]),
    "attention_window": (lambda q, k, v: rt.attention(q, k, v, causal=True, window=2),
                         lambda q, k, v: _attention(q, k, v, causal=True, window=2),
                         [(2, 2, 4, 6), (2, 1, 5, 6), (2, 1, 5, 6)]),
    "attention_lengths": (lambda q, k, v: rt.attention(q, k, v, causal=True, key_lengths=_lengths(k)),
                          lambda q, k, v: _attention(q, k, v, causal=True, key_lengths=_lengths(k)),
                          [(2, 2, 5, 3), (2, 2, 6, 3), (2, 2, 6, 2)]),
    "attention_rules": (lambda q, k, v, sinks: rt.attention(q, k, v, soft_cap=1.5, slopes=_slopes(q), sinks=sinks),
                        _capped, [(2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 4), (3,)]),
    "attention_packed": (lambda q, k, v: rt.attention(q, k, v, query_offsets=_offsets(q), key_offsets=_offsets(k)),
                         lambda q, k, v: _packed(_attention, q, k, v), [(1, 2, 5, 6), (1, 2, 5, 6), (1, 2, 5, 4)]),
    "attention_mask": (lambda q, k, v: rt.scaled_dot_product_attention(q, k, v, _mask(q, k)),
                       lambda q, k, v: F.scaled_dot_product_attention(q, k, v, _mask(q, k)),
                       [(2, 2, 4, 6), (2, 2, 5, 6), (2, 2, 5, 6)]),
    "conv1d": (lambda x, w, b: rt.conv1d(x, w, b, 2, 1), lambda x, w, b: F.conv1d(x, w, b, 2, 1),
               [(2, 3, 9), (4, 3, 3), (4,)]),
    "conv2d": (lambda x, w, b: rt.conv2d(x, w, b, (2, 1), (1, 2), (1, 2), 2),
               lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), (1, 2), 2), [(2, 4, 7, 6), (6, 2, 3, 3), (6,)]),
    "conv2d_same": (lambda x, w: rt.conv2d(x, w, padding="same"), lambda x, w: F.conv2d(x, w, padding="same"),
                    [(3, 5, 6), (2, 3, 2, 3)]),
    "conv3d": (lambda x, w: rt.conv3d(x, w, padding=1), lambda x, w: F.conv3d(x, w, padding=1),
               [(1, 2, 4, 3, 5), (3, 2, 3, 3, 3)]),
    "max_pool2d": (lambda x: rt.max_pool2d(x, 3, 2, 1), lambda x: F.max_pool2d(x, 3, 2, 1), [(2, 3, 7, 8)]),
    "max_pool2d_ceil": (lambda x: rt.max_pool2d(x, (2, 3), ceil_mode=True, dilation=(1, 2)),
                        lambda x: F.max_pool2d(x, (2, 3), ceil_mode=True, dilation=(1, 2)), [(3, 7, 9)]),
    "avg_pool2d": (lambda x: rt.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
                   lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), [(2, 3, 7, 8)]),
    "avg_pool2d_image": (lambda x: rt.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
                         lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [(3, 7, 8)]),
}
TWICE = ("gemm_shared", "gemm_transposed", "linear", "conv1d", "conv2d")  # support second derivatives


def tensors(name, dtype=torch.float64, device="cpu", gradient=False):
    return [random(*shape, dtype=dtype, device=device, seed=7 * i).requires_grad_(gradient)
            for i, shape in enumerate(CASES[name][2])]


def attention_tensors(dtype=torch.float64, device="cpu", heads=2):
    q = random(2, 4, 5, 8, dtype=dtype, device=device)
    return q, *(random(2, heads, 5, 8, dtype=dtype, device=device, seed=i) for i in (1, 2))


def operator_calls(device="cpu"):
    """Yields (operator, arguments) of every operator, for torch.library.opcheck: small, with gradients where
    supported."""
    ops = torch.ops.rung

    def r(*shape, seed=0, gradient=True):
        return random(*shape, dtype=torch.float32, device=device, seed=seed).requires_grad_(gradient)

    def n(*shape, seed=0):
        return r(*shape, seed=seed, gradient=False)

    for name in ("softmax", "log_softmax"):
        yield getattr(ops, name), (r(2, 3, 4), 1)
        yield getattr(ops, f"{name}_out"), (n(2, 3), -1, n(2, 3))
        yield getattr(ops, f"{name}_backward"), (n(2, 3), n(2, 3), -1)
    for name in ("relu", "gelu", "silu", "sigmoid", "tanh"):
        yield getattr(ops, name), (r(3, 4),)
        yield getattr(ops, f"{name}_out"), (n(3, 4), n(3, 4))
        yield getattr(ops, f"{name}_backward"), (n(3, 4), n(3, 4, seed=1))
    yield ops.layer_norm, (r(3, 4, 5), 2, r(4, 5), r(4, 5), 1e-5)
    yield ops.layer_norm, (r(3, 4), 1, None, None, 1e-5)
    yield ops.layer_norm_backward, (n(3, 4), n(3, 4, seed=1), n(3), n(3).abs(), 1, n(4), True)
    yield ops.rms_norm, (r(3, 4, 5), 1, r(5), 1e-5)
    yield ops.rms_norm_backward, (n(3, 4), n(3, 4, seed=1), n(3).abs(), 1, None, False)
    for reduction in ("mean", "none"):
        yield ops.cross_entropy, (r(3, 4), labels((3,), 4, device), 1, reduction, 0.1, -100, True)
    yield ops.cross_entropy, (n(3, 4), labels((3,), 4, device), 1, "sum", 0.0, -100, False)
    yield ops.gemm, (r(2, 3, 4), r(4, 5), r(5), 2.0, False, False, "none", "full")
    yield ops.gemm, (n(3, 4), n(4, 5), None, 1.0, False, False, "relu", "full")
    yield ops.gemm_out, (n(3, 4), n(4, 5), None, 1.0, False, False, "none", "full", n(3, 5))
    yield ops.linear, (r(2, 3, 4), r(5, 4), r(5), "none")
    q, k, v = attention_tensors(torch.float32, device)
    counts = torch.tensor([3, 5], dtype=torch.int32, device=device)
    yield ops.attention, (q, k, v, True, None, None, 3, False)
    yield ops.attention, (*(each.clone().requires_grad_() for each in (q, k, v)), True, 0.5, counts, 2, True)
    yield ops.attention, (q, k, v, True, None, counts, 0, False, 2.0, None, None, None, n(4), n(2, 4, 5, 5), n(4))
    yield ops.attention, (*(each.clone().requires_grad_() for each in (q, k, v)), True, None, counts, 0, True, 2.0,
                          None, None, None, n(4), n(2, 4, 5, 5), r(4))
    yield ops.attention_backward, (n(2, 4, 5, 8, seed=3), q, k, v, n(2, 4, 5, 8), n(2, 4, 5), False, None, counts, 0,
                                   None, None, None, None, None, n(4))
    window = [1, 1], [1, 0], [1, 1], 1
    for x in (r(2, 3, 5, 4), r(2, 3, 5, 4).detach().contiguous(memory_format=torch.channels_last).requires_grad_()):
        yield ops.conv, (x, r(4, 3, 2, 3), r(4), *window)
        yield ops.max_pool2d, (x, [2, 2], [2, 1], [1, 0], [1, 1], True)
        yield ops.avg_pool2d, (x, [2, 2], [2, 1], [1, 0], True, False)
    yield ops.conv_backward_data, (r(2, 4, 6, 2), r(4, 3, 2, 3), [2, 3, 5, 4], *window)
    yield ops.conv_backward_filter, (r(2, 3, 5, 4), r(2, 4, 6, 2), [4, 3, 2, 3], *window)
    indices = torch.zeros(1, 1, 2, 2, dtype=torch.int64, device=device)
    yield ops.max_pool2d_backward, (n(1, 1, 2, 2), indices, [1, 1, 4, 4], [2, 2], [2, 2], [0, 0], [1, 1], False)
    yield ops.avg_pool2d_backward, (n(1, 1, 2, 2), [1, 1, 4, 4], [2, 2], [2, 2], [0, 0], False, True)
