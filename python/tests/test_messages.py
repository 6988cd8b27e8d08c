# SPDX-License-Identifier: Apache-2.0
"""Messages name the Python function that was called and its arguments; rung.copy, and rung.transfer without a GPU."""
import numpy as np
import pytest
import rung
from rung._ops import NAMES

F = np.float32
X, M, IMAGE = np.ones(3, F), np.ones((2, 2), F), np.ones((1, 1, 4, 4), F)


def of(name):
    return pytest.mark.skipif(name not in NAMES, reason=f"{name} is not built")


CASES = [
    ("add", lambda: rung.add(X, np.ones(4, F)), "add: y is 4, out is 3: .* accepted: axes .* equal out's"),
    ("multiply", lambda: rung.multiply(X, X, out=np.ones(3)), "multiply: x is f32; accepted: f64"),
    ("subtract", lambda: rung.subtract(X, [1]), "subtract: y is a list"),
    ("relu", lambda: rung.relu(np.ones(3, np.int8)), "relu: out is i8"),
    ("gelu_backward", lambda: rung.gelu_backward(X, X, out=np.ones(4, F)), "gelu_backward: .*out is 4"),
    ("tanh_backward", lambda: rung.tanh_backward(X.astype(np.int32), X), "tanh_backward: y is i32"),
    ("gelu_backward", lambda: rung.gelu_backward(X.astype(np.int32), X), "gelu_backward: x is i32"),
    ("adam_step", lambda: rung.adam_step(X, X, X, X, step=0), "adam_step: step is 0"),
    ("sgd_step", lambda: rung.sgd_step(X, np.ones(4, F)), "sgd_step: gradients is 4"),
    ("max_pool", lambda: rung.max_pool(X, 2), "max_pool: x has 1 axis"),
    ("average_pool", lambda: rung.average_pool(IMAGE, 2, out=np.ones(3, F)), "average_pool: out "),
    ("l2_pool", lambda: rung.l2_pool(IMAGE, "2"), "l2_pool: kernel has a str"),
    ("mean", lambda: rung.mean(X, axes=4), "mean: ax[ei]s "),
    ("max", lambda: rung.max(X, axes=0, out=np.ones(4, F)), "max: out "),
    ("cumsum", lambda: rung.cumsum(X, axis=4), "cumsum: axis "),
    ("cumsum", lambda: rung.cumsum(X, out=np.ones(4, F)), "cumsum: out is 4"),
    ("softmax", lambda: rung.log_softmax(X, out=np.ones(4, F)), "log_softmax: out is 4"),
    ("softmax", lambda: rung.softmax_backward(np.ones(4, F), X), "softmax_backward: (dy is 3|y is 4)"),
    ("gemm", lambda: rung.gemm(M, M, out=np.ones((3, 3), F)), "gemm: a is 2x2, out is 3x3"),
    ("cross_entropy", lambda: rung.cross_entropy(X, X), "cross_entropy: labels is 3"),
    ("sobel", lambda: rung.sobel(X), "sobel: x "),
    ("rms_norm", lambda: rung.rms_norm(M, np.ones(3, F)), "rms_norm: gamma is 3"),
    ("layer_norm", lambda: rung.layer_norm(M, out=np.ones(3, F)), "layer_norm: out is 3"),
    ("transpose", lambda: rung.transpose(M, (0, 0)), "transpose: axes "),
]


@pytest.mark.parametrize("call, start", [pytest.param(call, start, marks=of(name), id=start.split(":")[0])
                                         for name, call, start in CASES])
def test_messages_name_what_was_called(call, start):
    with pytest.raises((rung.Error, TypeError), match="^" + start):
        call()


def test_copy_takes_any_strides():
    x, y = np.arange(24, dtype=np.int32).reshape(2, 3, 4), np.zeros((4, 3, 4), np.int32)
    assert rung.copy(x[:, ::-1], y[::2, :, ::-1]) is not None
    np.testing.assert_array_equal(y[::2], x[:, ::-1, ::-1])
    assert (y[1::2] == 0).all()
    made = rung.copy(x.T)
    assert made.flags.c_contiguous and made.dtype == x.dtype
    np.testing.assert_array_equal(made, x.T)
    np.testing.assert_array_equal(rung.copy(np.broadcast_to(F(2), (3, 2))), np.full((3, 2), F(2)))
    assert rung.copy(np.ones((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("arguments, message", [
    ((X, np.ones(4, F)), "copy: out is 4; accepted: 3"),
    ((X, np.ones(3)), "copy: out is f64; accepted: f32"),
    ((M, M.T), "copy: out overlaps x; accepted: disjoint memory"),
    ((X, np.lib.stride_tricks.as_strided(np.ones(1, F), (3,), (0,))), "copy: out "),
    ((X, [1.0]), "copy: out is a list"),
    ((None,), "copy: x is None; accepted: an array")])
def test_copy_refuses(arguments, message):
    with pytest.raises((rung.Error, TypeError), match=message):
        rung.copy(*arguments)


def test_copy_between_libraries():
    torch = pytest.importorskip("torch")
    x, y = np.arange(6, dtype=F).reshape(2, 3), torch.zeros(3, 2)
    assert rung.copy(x, y.T).data_ptr() == y.data_ptr()
    np.testing.assert_array_equal(y.numpy(), x.T)


@of("transfer")
def test_transfer_without_a_gpu_says_what_is_accepted():
    with pytest.raises(rung.Error, match="transfer: context is on 'cpu'; accepted: .*'cuda'.*'simt'; rung.gelu"):
        rung.transfer(X, "gelu", context=rung.Context("cpu"))
    if rung.available("cuda")[0]:
        pytest.skip("there is a GPU")
    wanted = "transfer: context is left out, and there is no usable GPU: .*; accepted: .*'simt'"
    with pytest.raises(rung.Error, match=wanted) as caught:
        rung.transfer(X)
    assert caught.value.code == "not_available"
