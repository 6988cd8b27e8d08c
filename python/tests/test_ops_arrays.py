# SPDX-License-Identifier: Apache-2.0
"""scan, histogram, transpose, stencil, image, transfer and gradients of activations against NumPy."""
import math

import arrays
import numpy as np
import pytest
import rung
from hypothesis import given, settings
from hypothesis import strategies as st

few = settings(deadline=None, max_examples=25)
TYPES = st.sampled_from([np.float64, np.int32, np.int64, np.int8, np.uint8, np.uint16])


@few
@given(arrays.SHAPES, TYPES, arrays.LAYOUTS, st.booleans(), st.booleans(), st.integers(0, 99), st.data())
def test_scans(shape, dtype, layout, exclusive, reverse, seed, data):
    x = arrays.laid_out(shape, dtype, layout, seed)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for name, ufunc, identity in [("cumsum", np.add, 0), ("cumprod", np.multiply, 1), ("cummin", np.minimum, None),
                                  ("cummax", np.maximum, None)]:
        if identity is None and exclusive:
            continue
        source = np.flip(x, axis) if reverse else x
        expected = ufunc.accumulate(source, axis=axis, dtype=dtype)
        if exclusive:
            expected = np.roll(expected, 1, axis)
            if expected.shape[axis] > 0:
                expected[(slice(None),) * (axis % len(shape)) + (0,)] = identity
        expected = np.flip(expected, axis) if reverse else expected
        got = getattr(rung, name)(x, axis=axis, exclusive=exclusive, reverse=reverse)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_scan_of_segments():
    assert rung.scan(np.arange(6), offsets=np.array([2, 4])).tolist() == [0, 1, 2, 5, 4, 9]


@few
@given(arrays.SHAPES, st.sampled_from([np.uint8, np.int32, np.int64, np.uint16]), arrays.LAYOUTS, st.integers(1, 9),
       st.integers(0, 99))
def test_histograms(shape, dtype, layout, bins, seed):
    x = np.abs(4 * arrays.laid_out(shape, np.float64, layout, seed)).astype(dtype)
    counts = rung.histogram(x, bins)
    assert counts.dtype == np.int64
    expected = np.bincount(x.ravel().astype(np.int64), minlength=bins)[:bins]
    np.testing.assert_array_equal(counts, expected)
    assert rung.histogram(x, accumulate=True, out=counts) is counts
    np.testing.assert_array_equal(counts, 2 * expected)
    edges = np.array([0, 1, 5, 7], dtype=np.int64)
    np.testing.assert_array_equal(rung.histogram(x, edges=edges), np.histogram(x, edges)[0])


def test_histogram_of_floats_and_refusals():
    x = np.array([0.1, 0.5, 0.9, 1.0, 2.0, np.nan], dtype=np.float32)
    assert rung.histogram(x, 2, range=(0.0, 1.0), out=np.zeros(2, dtype=np.int32)).tolist() == [1, 3]
    for options, message in [({}, "bins is left out"), ({"accumulate": True, "bins": 2}, "accumulate"),
                             ({"bins": 3, "out": np.zeros(2, dtype=np.int64)}, "bins is 3, out has 2"),
                             ({"bins": 2, "edges": np.zeros(5, dtype=np.float32)}, "bins is 2, edges enclose 4")]:
        with pytest.raises(rung.Error, match=message):
            rung.histogram(x, **options)


@few
@given(arrays.SHAPES, st.sampled_from([np.float32, np.uint8, np.int64, np.float16]), arrays.LAYOUTS,
       st.integers(0, 99), st.data())
def test_transposes(shape, dtype, layout, seed, data):
    x = arrays.laid_out(shape, dtype, layout, seed)
    axes = data.draw(st.permutations(range(len(shape))))
    got = rung.transpose(x, [axis - len(shape) if axis % 2 else axis for axis in axes])
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got, x.transpose(axes))
    if len(shape) >= 2:
        np.testing.assert_array_equal(rung.transpose(x), x.swapaxes(-1, -2))


@pytest.mark.parametrize("axes", [(0, 0), (0, 2), (0,), (0, 1, 2)])
def test_transpose_refuses_what_is_no_permutation(axes):
    with pytest.raises(rung.Error):
        rung.transpose(np.zeros((2, 3)), axes)


@few
@given(st.integers(1, 5), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3),
       st.sampled_from([("zero", "constant"), ("clamp", "edge"), ("wrap", "wrap")]), st.integers(0, 99))
def test_stencils(rows, columns, down, across, edge, seed):
    x = arrays.laid_out((2, rows, columns), np.float64, "c", seed)
    vectors = [arrays.laid_out((extent,), np.float64, "c", seed + extent) for extent in (down, across)]
    mask = np.outer(*vectors)
    anchor = (down // 2, across // 2)
    padded = np.pad(x, ((0, 0), *((a, extent - 1 - a) for a, extent in zip(anchor, mask.shape))), edge[1])
    expected = sum(mask[i, j] * padded[:, i:i + rows, j:j + columns] for i in range(down) for j in range(across))
    limit = dict(rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rung.stencil(x, mask, edge=edge[0], scale=0.5), 0.5 * expected, **limit)
    np.testing.assert_allclose(rung.stencil_separable(x, vectors[1], vectors[0], edge=edge[0]), expected, **limit)
    box = sum(padded[:, i:i + rows, j:j + columns] for i in range(down) for j in range(across))
    np.testing.assert_allclose(rung.stencil(x, window=(down, across), edge=edge[0]), box, **limit)
    turned = rung.stencil(x, mask[::-1, ::-1], anchor=(down - 1 - anchor[0], across - 1 - anchor[1]), edge=edge[0],
                          convolution=True)
    np.testing.assert_allclose(turned, expected, **limit)


def test_stencil_iterates_and_refuses():
    x = np.array([1.0, 0.0, 0.0])
    once = rung.stencil(x, window=3)
    np.testing.assert_array_equal(rung.stencil(x, window=3, iterations=2), rung.stencil(once, window=3))
    with pytest.raises(rung.Error, match="mask"):
        rung.stencil(x)
    with pytest.raises(rung.Error, match="edge is 'nearest'; accepted: zero, clamp, mirror, wrap"):
        rung.stencil(x, window=3, edge="nearest")


def test_images():
    x = np.random.default_rng(7).integers(0, 256, (2, 5, 6, 4)).astype(np.uint8)
    red, green, blue, alpha = np.moveaxis(x.astype(np.int64), -1, 0)
    grey = (3 * red + 6 * green + blue) // 10
    assert rung.to_grey(x, weights="tenths").shape == (2, 5, 6, 1)
    np.testing.assert_array_equal(rung.to_grey(x, weights="tenths", keep_alpha=True), np.stack([grey, alpha], -1))
    planar = rung.to_grey(np.ascontiguousarray(np.moveaxis(x, -1, 1)), weights="tenths", planar=True)
    np.testing.assert_array_equal(planar[:, 0], grey)
    padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)), "edge")
    around = {(i, j): padded[:, i:i + 5, j:j + 6] for i in range(3) for j in range(3)}
    np.testing.assert_array_equal(rung.box_blur(x, 1), np.floor(sum(around.values()) / 9 + 0.5))
    np.testing.assert_array_equal(rung.box_blur(x, 1, truncate=True), sum(around.values()) // 9)
    h = sum((1, 2, 1)[i] * (around[i, 2] - around[i, 0]) for i in range(3))
    v = sum((1, 2, 1)[j] * (around[2, j] - around[0, j]) for j in range(3))
    root = np.minimum(np.floor(np.sqrt(h * h + v * v) + 0.5), 255)
    np.testing.assert_array_equal(rung.sobel(x)[..., :3], root[..., :3])
    f = x.astype(np.float32)
    g = np.array([math.exp(-k * k / 2 / 0.8**2) for k in (-1, 0, 1)])
    g /= g.sum()
    blurred = sum(g[i] * g[j] * around[i, j] for i in range(3) for j in range(3))
    np.testing.assert_allclose(rung.gaussian_blur(f, 1), blurred, rtol=1e-5)
    sharp = rung.unsharp_mask(f, 1, amount=2.0)[..., :3]
    np.testing.assert_allclose(sharp, (f + 2 * (f - blurred))[..., :3], rtol=1e-4, atol=1e-2)
    with pytest.raises(rung.Error, match="keep_alpha"):
        rung.to_grey(x[..., :3], keep_alpha=True)
    with pytest.raises(rung.Error):
        rung.gaussian_blur(x, 16)


@few
@given(arrays.SHAPES, arrays.LAYOUTS, st.integers(0, 99))
def test_gradients_of_activations(shape, layout, seed):
    x, dy = arrays.laid_out(shape, np.float64, layout, seed), arrays.laid_out(shape, np.float64, "c", seed + 1)
    s = 1 / (1 + np.exp(-x))
    phi = np.vectorize(lambda each: (1 + math.erf(each / math.sqrt(2))) / 2, otypes=[float])(x)
    slopes = {"relu": (x > 0) * 1.0, "sigmoid": x * (1 - x), "tanh": 1 - x * x, "sign": (np.abs(x) <= 1) * 1.0,
              "silu": s * (1 + x * (1 - s)), "gelu": phi + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)}
    for name, slope in slopes.items():
        got = getattr(rung, f"{name}_backward")(x, dy)
        np.testing.assert_allclose(got, dy * slope, rtol=1e-9, atol=1e-12, err_msg=name)


def test_transfer_needs_a_gpu():
    x = np.array([-1.0, 2.0], dtype=np.float32)
    if rung.available("cuda")[0]:
        assert rung.transfer(x).tolist() == [0, 2]
        return
    with pytest.raises(rung.Error) as caught:
        rung.transfer(x)
    assert caught.value.code == "not_available"
