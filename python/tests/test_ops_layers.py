# SPDX-License-Identifier: Apache-2.0
"""conv, pool, norm, attention, loss, optimizer and gradients against NumPy, for random shapes and layouts."""
import itertools

import arrays
import numpy as np
import pytest
import rung
from hypothesis import given, settings
from hypothesis import strategies as st

few = settings(deadline=None, max_examples=15)


def taps(x_extent, kernel, stride, padding, dilation):
    """Returns (extent of the result, [(output, tap, input)])."""
    extent = (x_extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    return extent, [(o, t, o * stride - padding + t * dilation) for o in range(extent) for t in range(kernel)
                    if 0 <= o * stride - padding + t * dilation < x_extent]


def convolve(x, w, stride, padding, dilation, groups):
    """Returns the result, and functions of dy for the gradients of x and of w; channels first, any number of axes."""
    axes = x.ndim - 2
    per_axis = [taps(x.shape[2 + i], w.shape[2 + i], stride[i], padding[i], dilation[i]) for i in range(axes)]
    filters, width = w.shape[0] // groups, w.shape[1]
    y = np.zeros((x.shape[0], w.shape[0], *(extent for extent, _ in per_axis)))

    def each(visit):
        for places in itertools.product(*(found for _, found in per_axis)):
            out, tap, at = ((slice(None), slice(None), *(place[i] for place in places)) for i in range(3))
            for group in range(groups):
                k, c = slice(group * filters, (group + 1) * filters), slice(group * width, (group + 1) * width)
                visit((out[0], k, *out[2:]), (k, slice(None), *tap[2:]), (at[0], c, *at[2:]))

    def forward(out, tap, at):
        y[out] += x[at] @ w[tap].T

    def back_data(dy):
        dx = np.zeros(x.shape)
        each(lambda out, tap, at: dx.__setitem__(at, dx[at] + dy[out] @ w[tap]))
        return dx

    def back_filter(dy):
        dw = np.zeros(w.shape)
        each(lambda out, tap, at: dw.__setitem__(tap, dw[tap] + dy[out].T @ x[at]))
        return dw

    each(forward)
    return y, back_data, back_filter


@few
@given(st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 2]), st.booleans(), st.integers(0, 99), st.data())
def test_conv_and_gradients(axes, images, groups, channels_last, seed, data):
    def per_axis(low, high):
        return [data.draw(st.integers(low, high)) for _ in range(axes)]
    stride, padding, dilation, kernel = per_axis(1, 2), per_axis(0, 2), per_axis(1, 2), per_axis(1, 3)
    extents = [data.draw(st.integers(d * (k - 1) + 1, 6)) for k, d in zip(kernel, dilation)]
    x = arrays.laid_out((images, 2 * groups, *extents), np.float64, "c", seed)
    w = arrays.laid_out((3 * groups, 2, *kernel), np.float64, "reversed", seed + 1)
    y, back_data, back_filter = convolve(x, w, stride, padding, dilation, groups)
    dy = arrays.laid_out(y.shape, np.float64, "c", seed + 2)

    def given_as(array):
        return np.moveaxis(array, 1, -1) if channels_last else array

    def of(array):
        return np.moveaxis(array, -1, 1) if channels_last else array
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups, channels_last=channels_last)
    bias = np.arange(w.shape[0], dtype=np.float64)
    got = of(rung.conv(given_as(x), given_as(w), bias=bias, activation="relu", **options))
    np.testing.assert_allclose(got, np.maximum(y + bias.reshape(-1, *[1] * axes), 0), rtol=1e-9, atol=1e-9)
    dx = rung.conv_backward_data(given_as(dy), given_as(w), given_as(x).shape, **options)
    np.testing.assert_allclose(of(dx), back_data(dy), rtol=1e-9, atol=1e-9)
    dw = rung.conv_backward_filter(given_as(x), given_as(dy), given_as(w).shape, **options)
    np.testing.assert_allclose(of(dw), back_filter(dy), rtol=1e-9, atol=1e-9)


def test_conv_refuses():
    x, w = np.ones((1, 1, 4, 4), dtype=np.float32), np.ones((1, 1, 2, 2), dtype=np.float32)
    for options, message in [(dict(stride=(1, 1, 1)), "stride has 3 entries; accepted: one for all axes, or 2"),
                             (dict(groups=2), "group"), (dict(stride=0), "stride"), (dict(activation="rel"), "relu")]:
        with pytest.raises(rung.Error, match=message):
            rung.conv(x, w, **options)
    with pytest.raises(rung.Error, match="x has 2 axes"):
        rung.conv(x[0, 0], w[0, 0])
    with pytest.raises(rung.Error, match="shape and out are left out"):
        rung.conv_backward_data(x, w)


@few
@given(st.integers(1, 3), st.integers(1, 2), st.integers(0, 1), st.booleans(), st.integers(0, 99))
def test_pools_and_gradients(kernel, stride, padding, channels_last, seed):
    padding = min(padding, kernel // 2)
    x = arrays.laid_out((2, 3, 5, 4), np.float64, "c", seed)
    shape = (2, 3) + tuple((extent + 2 * padding - kernel) // stride + 1 for extent in (5, 4))
    dy = arrays.laid_out(shape, np.float64, "c", seed + 1)
    weights = np.arange(1.0, kernel**2 + 1).reshape(kernel, kernel)
    exact = {name: np.zeros(shape) for name in ("max", "average", "l2", "weighted")}
    back = {name: np.zeros(x.shape) for name in exact}
    for o, p in itertools.product(range(shape[2]), range(shape[3])):
        top, left = o * stride - padding, p * stride - padding
        rows = slice(max(top, 0), min(top + kernel, 5))
        columns = slice(max(left, 0), min(left + kernel, 4))
        window = x[:, :, rows, columns]
        part = weights[rows.start - top:rows.stop - top, columns.start - left:columns.stop - left]
        out, g = (slice(None), slice(None), o, p), dy[:, :, o, p, None, None]
        at = (slice(None), slice(None), rows, columns)
        exact["max"][out] = window.max(axis=(2, 3))
        exact["average"][out] = window.sum(axis=(2, 3)) / kernel**2
        exact["l2"][out] = np.sqrt((window**2).sum(axis=(2, 3)))
        exact["weighted"][out] = (window * part).sum(axis=(2, 3)) / weights.sum()
        back["max"][at] += g * (window == window.max(axis=(2, 3), keepdims=True))
        back["average"][at] += g / kernel**2
        back["l2"][at] += g * window / exact["l2"][out][:, :, None, None]
        back["weighted"][at] += g * part / weights.sum()

    def given_as(array):
        return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if channels_last else array
    options = dict(stride=stride, padding=(padding, padding), channels_last=channels_last)
    xs, dys = given_as(x), given_as(dy)
    y, indices = rung.max_pool(xs, kernel, return_indices=True, **options)
    ys = {"max": y, "average": rung.average_pool(xs, kernel, **options), "l2": rung.l2_pool(xs, kernel, **options),
          "weighted": rung.weighted_pool(xs, weights, kernel, **options)}
    dxs = {"max": rung.max_pool_backward(dys, indices, kernel, xs.shape, **options),
           "average": rung.average_pool_backward(dys, kernel, xs.shape, **options),
           "l2": rung.l2_pool_backward(dys, xs, ys["l2"], kernel, **options),
           "weighted": rung.weighted_pool_backward(dys, weights, kernel, xs.shape, **options)}
    assert indices.dtype == np.int64 and indices.shape == y.shape
    for name in exact:
        np.testing.assert_allclose(ys[name], given_as(exact[name]), rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(dxs[name], given_as(back[name]), rtol=1e-9, atol=1e-12, err_msg=name)


def test_a_stride_left_out_is_the_kernel():
    x = np.arange(16.0).reshape(1, 1, 4, 4)
    assert rung.max_pool(x, (2, 4)).tolist() == [[[[7.0], [15.0]]]]


@few
@given(st.integers(0, 4), st.integers(1, 40), st.sampled_from([np.float32, np.float64]), arrays.LAYOUTS,
       st.integers(0, 99))
def test_norms_and_gradients(rows, length, dtype, layout, seed):
    x = arrays.laid_out((rows, length), dtype, layout, seed)
    residual, dy = arrays.laid_out((rows, length), dtype, "c", seed + 1), arrays.laid_out((rows, length), dtype, "c", 3)
    gamma, beta = arrays.laid_out((length,), dtype, "c", seed + 2), arrays.laid_out((length,), dtype, "c", seed + 3)
    total = np.empty((rows, length), dtype)
    y, mean, rstd = rung.layer_norm(x, gamma, beta, residual=residual, sum=total, return_stats=True, epsilon=1e-2)
    s = (x + residual).astype(np.float64)
    np.testing.assert_array_equal(total, x + residual)
    limit = dict(rtol=1e-3, atol=1e-4) if dtype == np.float32 else dict(rtol=1e-9, atol=1e-9)
    m = s.mean(axis=1, keepdims=True)
    r = 1 / np.sqrt(((s - m)**2).mean(axis=1, keepdims=True) + 1e-2)
    np.testing.assert_allclose(y, (s - m) * r * gamma + beta, **limit)
    np.testing.assert_allclose(mean, m[:, 0], **limit)
    np.testing.assert_allclose(rstd, r[:, 0], **limit)
    assert mean.dtype == dtype
    g, z = dy.astype(np.float64) * gamma, (s - m) * r
    dx, dgamma, dbeta = rung.layer_norm_backward(dy, total, gamma, mean=mean, rstd=rstd, return_weights=True)
    np.testing.assert_allclose(dx, r * (g - g.mean(axis=1, keepdims=True) - z * (g * z).mean(axis=1, keepdims=True)),
                               **limit)
    np.testing.assert_allclose(dgamma, (dy * z).sum(axis=0), **limit)
    np.testing.assert_allclose(dbeta, dy.astype(np.float64).sum(axis=0), **limit)
    y, rstd = rung.rms_norm(x, gamma, return_stats=True, epsilon=1e-2)
    x64 = x.astype(np.float64)
    r = 1 / np.sqrt((x64**2).mean(axis=1, keepdims=True) + 1e-2)
    np.testing.assert_allclose(y, x64 * r * gamma, **limit)
    z = x64 * r
    np.testing.assert_allclose(rung.rms_norm_backward(dy, x, gamma, epsilon=1e-2),
                               r * (g - z * (g * z).mean(axis=1, keepdims=True)), **limit)


def test_norm_of_several_axes():
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    y, mean, _ = rung.layer_norm(x, np.ones((3, 4)), axis=1, axes=2, epsilon=0.0, return_stats=True)
    m, s = x.mean(axis=(1, 2), keepdims=True), x.std(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(y, (x - m) / s, rtol=1e-9, atol=1e-12)
    assert mean.shape == (2,)


@few
@given(st.integers(1, 2), st.sampled_from([(2, 1), (2, 2), (4, 2)]), st.integers(1, 4), st.integers(0, 5),
       st.sampled_from([(False, None), (True, None), (True, 1), (True, 3)]), st.integers(0, 99), st.data())
def test_attention(batch, heads, queries, keys, masks, seed, data):
    causal, window = masks
    q = arrays.laid_out((batch, queries, heads[0], 5), np.float64, "c", seed).swapaxes(1, 2)
    k = arrays.laid_out((batch, heads[1], keys, 5), np.float64, "c", seed + 1)
    v = arrays.laid_out((batch, heads[1], keys, 3), np.float64, "c", seed + 2)
    lengths = data.draw(st.one_of(st.none(), st.lists(st.integers(0, keys), min_size=batch, max_size=batch)))
    given_lengths = None if lengths is None else np.array(lengths, dtype=np.int32)
    o, lse = rung.attention(q, k, v, causal=causal, window=window, scale=0.7, key_lengths=given_lengths,
                            return_lse=True)
    share = heads[0] // heads[1]
    for b, h, i in itertools.product(range(batch), range(heads[0]), range(queries)):
        length = keys if lengths is None else lengths[b]
        seen = max(0, min(length, i + length - queries + 1)) if causal else length
        first = max(0, seen - (window or keys))
        s = 0.7 * k[b, h // share, first:seen] @ q[b, h, i]
        expected, total = np.zeros(3), -np.inf
        if seen > 0:
            total = np.log(np.exp(s).sum())
            expected = np.exp(s - total) @ v[b, h // share, first:seen]
        np.testing.assert_allclose(o[b, h, i], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(lse[b, h, i], total, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(
        rung.attention(q, k, v, causal=causal, window=window, scale=0.7, key_lengths=given_lengths), o)


def dense_attention(q, k, v, scores_of):
    """Returns o and lse of one batch element, H x S x D, with as many heads of k; scores_of(s) is the rule."""
    scores = scores_of(np.einsum("hid,hjd->hij", q, k))
    weights = np.exp(scores)
    total = weights.sum(axis=2, keepdims=True)
    return weights / total @ v, np.log(total)[..., 0]


@few
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 99))
def test_attention_rules(queries, keys, seed):
    draw = np.random.default_rng(seed).standard_normal
    q, k, v = draw((1, 2, queries, 5)), draw((1, 2, keys, 5)), draw((1, 2, keys, 3))
    bias, slopes, sinks = draw((1, 2, queries, keys)), np.array([0.5, 0.25]), np.array([1.0, -2.0])
    distance = abs(np.arange(keys) - (np.arange(queries)[:, None] + keys - queries))

    def rule(s):
        return 2 * np.tanh(0.7 * s / 2) - slopes[:, None, None] * distance + bias[0]

    o, lse = dense_attention(q[0], k[0], v[0], rule)
    with_sink = np.logaddexp(lse, sinks[:, None])
    got, got_lse = rung.attention(q, k, v, scale=0.7, soft_cap=2.0, slopes=slopes, bias=bias, sinks=sinks,
                                  return_lse=True)
    np.testing.assert_allclose(got[0], o * np.exp(lse - with_sink)[..., None], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got_lse[0], with_sink, rtol=1e-9, atol=1e-12)


@few
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=4), st.integers(0, 99))
def test_attention_of_packed_rows(counts, seed):
    draw = np.random.default_rng(seed).standard_normal
    ends = np.cumsum([(0, 0), *counts], axis=0, dtype=np.int32)
    q, k, v = (draw((1, 2, total, width)) for total, width in zip(ends[-1][[0, 1, 1]], (5, 5, 3), strict=True))
    o, lse = rung.attention(q, k, v, query_offsets=ends[:, 0].copy(), key_offsets=ends[:, 1].copy(), causal=True,
                            return_lse=True)
    assert o.shape == (1, 2, ends[-1][0], 3)
    for begin, end in itertools.pairwise(ends):
        rows, keys = slice(begin[0], end[0]), slice(begin[1], end[1])
        expected = rung.attention(q[:, :, rows], k[:, :, keys], v[:, :, keys], causal=True, return_lse=True)
        # Calls of other sizes may be computed by other kernels.
        np.testing.assert_allclose(o[:, :, rows], expected[0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(lse[:, :, rows], expected[1], rtol=1e-12, atol=1e-13)


def test_attention_of_pages():
    draw = np.random.default_rng(0).standard_normal
    q, k, v = draw((2, 4, 1, 8)), draw((7, 2, 3, 8)), draw((7, 2, 3, 8))
    table = np.array([[6, 0, 3], [6, 2, -1]], dtype=np.int32)  # the first page is shared
    lengths = np.array([9, 5], dtype=np.int32)
    plain = [np.moveaxis(pages[table.clip(0)], 2, 1).reshape(2, 2, 9, 8) for pages in (k, v)]
    np.testing.assert_array_equal(rung.attention(q, k, v, page_table=table, key_lengths=lengths),
                                  rung.attention(q, *plain, key_lengths=lengths))


def test_attention_of_small_floats():
    small = pytest.importorskip("ml_dtypes")
    draw = np.random.default_rng(0).standard_normal
    q = draw((2, 4, 3, 8)).astype(np.float32)
    k, v = (draw((2, 2, 5, 8)).astype(small.float8_e4m3fn) for _ in range(2))
    k_scales, v_scales = (np.array([[1, 0.5], [2, scale]], dtype=np.float32) for scale in (0.25, -4))
    wide = [each.astype(np.float32) * scales[..., None, None] for each, scales in ((k, k_scales), (v, v_scales))]
    np.testing.assert_allclose(rung.attention(q, k, v, k_scales=k_scales, v_scales=v_scales),
                               rung.attention(q, *wide), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rung.attention(q, k, v), rung.attention(q, k.astype(np.float32), v.astype(np.float32)),
                               rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options, message", [
    ({"k_scales": np.ones((2, 2), dtype=np.float32)}, "accepted with e4m3 only"),
    ({"soft_cap": -1.0}, "soft_cap is -1"), ({"slopes": np.zeros(3)}, "slopes is 3"),
    ({"sinks": np.zeros(2, dtype=np.float32)}, "sinks"), ({"bias": np.zeros((2, 2, 3, 3))}, "bias is 2x2x3x3"),
    ({"query_offsets": np.zeros(3, dtype=np.int32)}, "1 on the first axis"),
    ({"key_offsets": np.zeros(3, dtype=np.int32)}, "1 on the first axis"),
    ({"page_table": np.zeros((3, 1), dtype=np.int32)}, "page_table has shape 3x1")])
def test_wrong_options_of_attention_are_named(options, message):
    q, k = np.zeros((2, 2, 3, 4)), np.zeros((2, 2, 5, 4))
    with pytest.raises(rung.Error, match=message):
        rung.attention(q, k, k, **options)


@few
@given(st.integers(1, 2), st.sampled_from([(2, 1), (2, 2), (4, 2)]), st.integers(1, 4), st.integers(0, 5),
       st.sampled_from([(False, None), (True, None), (True, 1), (True, 3)]), st.integers(0, 99))
def test_attention_backward(batch, heads, queries, keys, masks, seed):
    causal, window = masks
    q = arrays.laid_out((batch, queries, heads[0], 5), np.float64, "c", seed).swapaxes(1, 2)
    k = arrays.laid_out((batch, heads[1], keys, 5), np.float64, "c", seed + 1)
    v = arrays.laid_out((batch, heads[1], keys, 3), np.float64, "c", seed + 2)
    dout = arrays.laid_out((batch, heads[0], queries, 3), np.float64, "c", seed + 3)
    o, lse = rung.attention(q, k, v, causal=causal, window=window, scale=0.7, return_lse=True)
    dq, dk, dv = rung.attention_backward(q, k, v, o, lse, dout, causal=causal, window=window, scale=0.7)
    wanted = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
    share = heads[0] // heads[1]
    for b, h, i in itertools.product(range(batch), range(heads[0]), range(queries)):
        seen = max(0, keys - queries + i + 1) if causal else keys
        if seen == 0:
            continue
        g = h // share
        some = slice(max(0, seen - (window or keys)), seen)
        p = np.exp(0.7 * k[b, g, some] @ q[b, h, i] - lse[b, h, i])
        ds = 0.7 * p * (v[b, g, some] @ dout[b, h, i] - dout[b, h, i] @ o[b, h, i])
        wanted[0][b, h, i] = ds @ k[b, g, some]
        wanted[1][b, g, some] += ds[:, None] * q[b, h, i]
        wanted[2][b, g, some] += p[:, None] * dout[b, h, i]
    for got, expected in zip((dq, dk, dv), wanted):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)


@few
@given(st.integers(1, 5), st.integers(1, 6), st.sampled_from(["mean", "sum"]), st.sampled_from([0.0, 0.1]),
       st.sampled_from([np.int32, np.int64]), st.integers(0, 99))
def test_losses(rows, classes, reduction, smoothing, label_type, seed):
    x = arrays.laid_out((rows, classes), np.float64, "second", seed)
    labels = np.random.default_rng(seed).integers(0, classes, rows).astype(label_type)
    total = getattr(np, reduction)
    share = rows if reduction == "mean" else 1
    hot = np.eye(classes)[labels]
    p = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    q = (1 - smoothing) * hot + smoothing / classes
    losses = np.empty(rows)
    loss, dx = rung.cross_entropy(x, labels, reduction=reduction, smoothing=smoothing, return_grad=True, losses=losses)
    np.testing.assert_allclose(losses, -(q * np.log(p)).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(loss, total(losses), rtol=1e-9)
    np.testing.assert_allclose(dx, (p - q) / share, rtol=1e-9, atol=1e-12)
    t = 2 * hot - 1
    loss, dx = rung.hinge_loss(x, labels, reduction=reduction, margin=0.5, return_grad=True)
    np.testing.assert_allclose(loss, total(np.maximum(0.5 - t * x, 0).sum(axis=1)), rtol=1e-9)
    np.testing.assert_allclose(dx, np.where(0.5 - t * x >= 0, -t, 0) / share)
    target = arrays.laid_out((rows, classes), np.float64, "c", seed + 1)
    loss, dx = rung.squared_error(x, target, reduction=reduction, return_grad=True)
    np.testing.assert_allclose(loss, total(((x - target)**2).mean(axis=1)), rtol=1e-9)
    np.testing.assert_allclose(dx, 2 * (x - target) / classes / share, rtol=1e-9)
    ignoring = rung.cross_entropy(x, labels, ignored_label=int(labels[0]), reduction="sum")
    kept = labels != labels[0]
    np.testing.assert_allclose(ignoring, -np.log(p)[kept, labels[kept]].sum(), rtol=1e-9, atol=1e-12)


def test_optimizers():
    random = np.random.default_rng(5)
    p, g, m, v = (random.uniform(0.1, 1, (3, 4)) for _ in range(4))
    p0, m0, v0 = p.copy(), m.copy(), v.copy()
    norm = np.empty(1)
    assert rung.sgd_step(p, g, m, learning_rate=0.1, momentum=0.9, nesterov=True, max_norm=0.5, norm=norm) is p
    clipped = g * min(1, 0.5 / np.linalg.norm(g))
    np.testing.assert_allclose(norm, np.linalg.norm(g))
    np.testing.assert_allclose(m, 0.9 * m0 + clipped)
    np.testing.assert_allclose(p, p0 - 0.1 * (clipped + 0.9 * m))
    p, m = p0.copy(), m0.copy()
    assert rung.adam_step(p, g, m, v, step=3, learning_rate=0.1, weight_decay=0.2, decoupled=True) is p
    np.testing.assert_allclose(m, 0.9 * m0 + 0.1 * g)
    np.testing.assert_allclose(v, 0.999 * v0 + 0.001 * g * g)
    step = m / (1 - 0.9**3) / (np.sqrt(v / (1 - 0.999**3)) + 1e-8)
    np.testing.assert_allclose(p, p0 * (1 - 0.1 * 0.2) - 0.1 * step)
    with pytest.raises(rung.Error, match="first_moment"):
        rung.sgd_step(p, g, momentum=0.9)
    p.flags.writeable = False
    with pytest.raises(rung.Error, match="parameters is written, and read-only"):
        rung.sgd_step(p, g)
