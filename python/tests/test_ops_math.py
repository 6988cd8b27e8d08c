# SPDX-License-Identifier: Apache-2.0
"""softmax, gemm, elementwise and reduce against NumPy, within their contracts, for random shapes, strides and types."""
import arrays
import numpy as np
import pytest
import rung
from hypothesis import given, settings
from hypothesis import strategies as st

few = settings(deadline=None, max_examples=30)
FLOATS = st.sampled_from([np.float32, np.float64, np.float16])
UNIT = {np.dtype(np.float16): 2.0**-11, np.dtype(np.float32): 2.0**-24, np.dtype(np.float64): 2.0**-53}


def close(result, exact, units, scale=None):
    """Asserts |result - exact| <= units u scale, plus one rounding to the result's type."""
    assert result.shape == exact.shape
    unit = UNIT[result.dtype]
    work = min(unit, 2.0**-24)
    scale = np.abs(exact) if scale is None else scale
    bound = units * work * scale + unit * np.abs(exact) + np.finfo(result.dtype).tiny
    assert (np.abs(result.astype(np.float64) - exact) <= bound).all()


def exact_softmax(x, axis, scale=1.0):
    z = scale * (x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    e = np.exp(z)
    return e / e.sum(axis=axis, keepdims=True)


@few
@given(arrays.SHAPES, FLOATS, arrays.LAYOUTS, st.integers(-4, 3), st.integers(0, 99))
def test_softmax_is_numpys(shape, dtype, layout, axis, seed):
    x = arrays.laid_out(shape, dtype, layout, seed)
    if not -len(shape) <= axis < len(shape):
        with pytest.raises(rung.Error, match="axis"):
            rung.softmax(x, axis=axis)
        return
    exact = exact_softmax(x.astype(np.float64), axis)
    y = rung.softmax(x, axis=axis)
    assert y.dtype == x.dtype and y.flags.c_contiguous
    close(y, exact, 60)
    # log p does not depend on a shift of x: its error is that of the sum and of x.
    logs = rung.log_softmax(x, axis=axis)
    close(logs, np.log(exact), 60, 1 + np.abs(np.log(exact)))
    dy = arrays.laid_out(shape, dtype, "c", seed + 1)
    y64, dy64 = y.astype(np.float64), dy.astype(np.float64)
    dot = (dy64 * y64).sum(axis=axis, keepdims=True)
    magnitude = y64 * (np.abs(dy64) + np.abs(dy64 * y64).sum(axis=axis, keepdims=True))
    close(rung.softmax_backward(y, dy, axis=axis), (dy64 - dot) * y64, 60, magnitude)


def test_softmax_of_a_masked_row_is_zero():
    x = np.array([[-np.inf, 0.0], [-np.inf, -np.inf]], dtype=np.float32)
    assert rung.softmax(x).tolist() == [[0, 1], [0, 0]]
    assert rung.softmax(x, out=x) is x
    assert x.tolist() == [[0, 1], [0, 0]]


@few
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.sampled_from([None, 1, 3]),
       st.sampled_from([None, 1, 3]), FLOATS, arrays.LAYOUTS, st.booleans(), st.booleans(), st.integers(0, 99))
def test_gemm_is_numpys(m, n, k, batch_a, batch_b, dtype, layout, transpose_a, transpose_b, seed):
    def operand(rows, columns, batch, transposed, seed):
        shape = (columns, rows) if transposed else (rows, columns)
        x = arrays.laid_out(shape if batch is None else (batch, *shape), dtype, layout, seed)
        return x, (x.swapaxes(-1, -2) if transposed else x).astype(np.float64)
    a, exact_a = operand(m, k, batch_a, transpose_a, seed)
    b, exact_b = operand(k, n, batch_b, transpose_b, seed + 1)
    c = rung.gemm(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    assert c.dtype == dtype
    close(c, exact_a @ exact_b, k + 4, np.abs(exact_a) @ np.abs(exact_b))
    out = arrays.laid_out(c.shape, dtype, "second", seed + 2)
    exact = 0.5 * exact_a @ exact_b - 2 * out.astype(np.float64) + 1
    magnitude = np.abs(exact_a) @ np.abs(exact_b) + 2 * np.abs(out.astype(np.float64)) + 1
    bias = np.ones(n, dtype)
    got = rung.gemm(a, b, transpose_a=transpose_a, transpose_b=transpose_b, alpha=0.5, beta=-2.0, bias=bias, out=out)
    assert got is out
    close(out, exact, k + 6, magnitude)


def test_gemm_has_an_epilogue_and_integer_types():
    a, b = np.array([[-1.0, 2.0]]), np.array([[3.0], [1.0]])
    assert rung.gemm(a, b, activation="relu", residual=np.array([[10.0]])).tolist() == [[10.0]]
    c = rung.gemm(np.array([[100, 100]], dtype=np.int8), np.array([[100], [100]], dtype=np.int8))
    assert c.dtype == np.int32 and c.tolist() == [[20000]]
    with pytest.raises(rung.Error, match="beta"):
        rung.gemm(a, b, beta=1.0)
    with pytest.raises(rung.Error, match=r"activation is 'rel'; accepted: .*did you mean 'relu'"):
        rung.gemm(a, b, activation="rel")


def test_gemm_grouped_makes_each_product():
    a = [np.full((i, 3), i, dtype=np.float32) for i in range(4)]
    b = [np.ones((3, 2), dtype=np.float32)] * 4
    results = rung.gemm_grouped(a, b, bias=[None, np.ones(2, dtype=np.float32), None, None])
    assert [c.shape for c in results] == [(i, 2) for i in range(4)]
    assert results[1].tolist() == [[4, 4]] and results[3].tolist() == [[9, 9]] * 3
    with pytest.raises(rung.Error, match="1"):
        rung.gemm_grouped(a, [b[0], np.ones((2, 2), dtype=np.float32), *b[2:]])
    with pytest.raises(rung.Error, match="b has 1"):
        rung.gemm_grouped(a, b[:1])


@few
@given(arrays.SHAPES, st.sampled_from([np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8]),
       arrays.LAYOUTS, st.integers(0, 99), st.data())
def test_elementwise_broadcasts_as_numpy(shape, dtype, layout, seed, data):
    x = arrays.laid_out(shape, dtype, layout, seed)
    other = tuple(data.draw(st.sampled_from([1, extent])) for extent in shape)[data.draw(st.integers(0, len(shape))):]
    y = arrays.laid_out(other, dtype, "c", seed + 1) if other else np.array(2, dtype=dtype)
    with np.errstate(all="ignore"):
        pairs = [(rung.add, np.add), (rung.subtract, np.subtract), (rung.multiply, np.multiply)]
        if np.dtype(dtype).kind == "f":
            pairs.append((rung.divide, np.divide))
        for ours, numpys in pairs:
            assert ours(x, y).dtype == x.dtype
            np.testing.assert_array_equal(ours(x, y), numpys(x, y))
            np.testing.assert_array_equal(ours(y, x), numpys(y, x))
    np.testing.assert_array_equal(rung.relu(x), np.maximum(x, 0))


@few
@given(arrays.SHAPES, FLOATS, arrays.LAYOUTS, st.integers(0, 99))
def test_functions_are_numpys(shape, dtype, layout, seed):
    x = arrays.laid_out(shape, dtype, layout, seed)
    exact = x.astype(np.float64)
    sigmoid = 1 / (1 + np.exp(-exact))
    for name, value in [("exp", np.exp(exact)), ("tanh", np.tanh(exact)), ("sigmoid", sigmoid),
                        ("silu", exact * sigmoid), ("sign", np.sign(exact))]:
        close(getattr(rung, name)(x), value, 8 + 2**8 * (dtype == np.float16))
    w = arrays.laid_out(shape, dtype, "c", seed + 1)
    close(rung.axpy(0.5, x, w), 0.5 * exact + w, 2, np.abs(exact) + np.abs(w))
    close(rung.multiply_add(x, 0.5, w), 0.5 * exact + w, 2, np.abs(exact) + np.abs(w))


def test_numbers_take_the_type_of_the_array():
    x = np.array([200, 100], dtype=np.uint8)
    assert rung.add(x, 100).tolist() == [44, 200]
    for number, message in [(256, "y is 256, out of the range of u8"), (-1, "out of the range"), (0.5, "y is a float")]:
        with pytest.raises(rung.Error, match=message):
            rung.add(x, number)
    assert rung.add(np.float32([1]), 2).dtype == np.float32
    assert rung.add(np.int64([0]), -2**63).tolist() == [-2**63]
    with pytest.raises(OverflowError):
        rung.add(np.int64([0]), 2**63)
    with pytest.raises(TypeError, match="add: y is a bool; accepted: an array"):
        rung.add(x, True)
    with pytest.raises(rung.Error):  # its type differs from x's
        rung.add(np.ones(2, dtype=np.float32), np.float64(1))


@few
@given(arrays.SHAPES, st.sampled_from([np.float32, np.float64, np.int32, np.uint8, np.int64]), arrays.LAYOUTS,
       st.integers(0, 99), st.data())
def test_reductions_are_numpys(shape, dtype, layout, seed, data):
    x = arrays.laid_out(shape, dtype, layout, seed)
    axes = data.draw(st.one_of(st.none(), st.integers(-len(shape), len(shape) - 1),
                               st.sets(st.integers(0, len(shape) - 1), min_size=1).map(tuple)))
    keep = data.draw(st.booleans())
    exact = x.astype(np.float64) if np.dtype(dtype).kind == "f" else x.astype(np.int64)
    total = rung.sum(x, axes=axes, keepdims=keep)
    if np.dtype(dtype).kind == "f":
        close(total, np.asarray(exact.sum(axis=axes, keepdims=keep)), 80,
              np.abs(exact).sum(axis=axes, keepdims=keep))
        close(rung.norm(x, axes=axes), np.asarray(np.sqrt((exact**2).sum(axis=axes))), 42)
    else:
        assert total.dtype == np.int64
        np.testing.assert_array_equal(total, exact.sum(axis=axes, keepdims=keep))
    if x.size > 0:
        for name in ("min", "max"):
            got = getattr(rung, name)(x, axes=axes, keepdims=keep)
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got, getattr(np, name)(x, axis=axes, keepdims=keep))
        if not isinstance(axes, tuple):
            np.testing.assert_array_equal(rung.argmax(x, axes=axes), np.argmax(x, axis=axes))
        mean = np.asarray(exact.mean(axis=axes, keepdims=keep))
        close(rung.mean(x, axes=axes, keepdims=keep), mean, 81, np.abs(exact).mean(axis=axes, keepdims=keep))


def test_reduce_takes_segments_and_refuses_nothing():
    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    got = rung.reduce(x, "sum", offsets=np.array([0, 1, 1, 6]))
    assert got.tolist() == [[0, 0, 15], [6, 0, 45]]
    with pytest.raises(rung.Error):
        rung.max(np.zeros((0,), dtype=np.float32))
    with pytest.raises(rung.Error, match="axes has 0 entries"):
        rung.sum(x, axes=())
    with pytest.raises(TypeError, match="axes has a float"):
        rung.sum(x, axes=0.5)
    assert rung.sum(x).shape == ()
    assert rung.sum(x, out=np.zeros(1, dtype=np.float32)).tolist() == [66]
