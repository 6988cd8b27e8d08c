# SPDX-License-Identifier: Apache-2.0
"""Access to an array's memory without a copy; rejected arrays; results of the caller's kind."""
import array
import sys
import types

import arrays
import numpy as np
import pytest
import rung

F4 = np.array([1.0, 2.0, 4.0], dtype=np.float32)


def test_buffers_without_numpy_need_out():
    x, out = array.array("f", [1, 1]), array.array("f", [0, 0])
    assert rung.softmax(x, out=out) is out
    assert list(out) == [0.5, 0.5]
    with pytest.raises(rung.Error, match="no result of the kind of a array can be made; give out="):
        rung.softmax(x)
    assert rung.add(memoryview(bytes([1, 2])), 1, out=bytearray(2)) == bytearray([2, 3])


@pytest.mark.parametrize("kind", [arrays.OfDLPack, arrays.OfOldDLPack])
def test_dlpack_is_read_and_written_in_place(kind):
    x = np.array([[1, 2], [3, 5]], dtype=np.float32).T
    out = np.zeros((2, 2), dtype=np.float32)
    calls = arrays.OfDLPack.calls
    wrapped = kind(out)
    assert rung.add(kind(x), kind(x), out=wrapped) is wrapped
    assert out.tolist() == [[2, 6], [4, 10]]
    assert kind is arrays.OfOldDLPack or kind.calls == calls + 3
    with pytest.raises(rung.Error, match="give out="):
        rung.relu(kind(x))


def test_dlpack_marks_read_only():
    x = F4.copy()
    x.flags.writeable = False
    if "max_version" not in (np.ndarray.__dlpack__.__doc__ or ""):
        pytest.skip("this NumPy has DLPack without the mark")
    with pytest.raises(rung.Error, match="read-only"):
        rung.relu(F4, out=arrays.OfDLPack(x))


def test_exchange_table_is_used_and_makes_results():
    x = arrays.OfExchangeTable(np.array([[0, 0], [0, 0]], dtype=np.float32)[:, ::-1])
    before = arrays.OfExchangeTable.described
    y = rung.softmax(x)
    assert isinstance(y, arrays.OfExchangeTable) and y.array.tolist() == [[0.5, 0.5]] * 2
    assert arrays.OfExchangeTable.described == before + 2  # x and y, once each
    assert rung.softmax(x, out=y) is y


def test_gradients_are_not_dropped_silently(monkeypatch):
    class OfGradient(arrays.OfExchangeTable):
        requires_grad = True
    x = OfGradient(F4)
    with pytest.raises(rung.Error, match="requires a gradient"):
        rung.relu(x)
    for enabled in (True, False):
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(is_grad_enabled=lambda on=enabled: on))
        if enabled:
            with pytest.raises(rung.Error, match="requires a gradient"):
                rung.relu(x)
        else:
            assert rung.relu(x).array.tolist() == [1, 2, 4]


def test_results_of_another_type_are_made_by_the_same_library():
    assert rung.sum(np.array([1, 2], dtype=np.uint8)).dtype == np.int64
    assert rung.mean(np.array([1, 2], dtype=np.uint8)).dtype == np.float64
    assert isinstance(rung.relu(np.memmap.__new__(np.memmap, "/dev/zero", "float32", "r", shape=(2,))), np.ndarray)


def test_small_floats_of_ml_dtypes():
    small = pytest.importorskip("ml_dtypes")
    x = np.array([1.0, 1.0, 2.0], dtype=small.bfloat16)
    assert rung.add(x, x).dtype == small.bfloat16
    assert rung.add(x[::-1], 1.0).astype(np.float32).tolist() == [3, 2, 2]
    assert rung.softmax(x[:2], out=np.zeros(2, dtype=np.float32)).tolist() == [0.5, 0.5]
    a = np.ones((2, 4), dtype=small.float8_e4m3fn)
    assert rung.gemm(a, a, transpose_b=True).dtype == small.bfloat16
    x.flags.writeable = False
    with pytest.raises(rung.Error, match="out is written, and read-only"):
        rung.relu(x.copy(), out=x)
    with pytest.raises(rung.Error, match="float8_e3m4"):
        rung.relu(np.ones(2, dtype=small.float8_e3m4))


@pytest.mark.parametrize("x, message", [
    (np.ones(2, dtype=np.complex64), "accepted: f32, f64"), (np.ones(2, dtype=bool), "accepted: f32"),
    (np.ones(2, dtype=">f4"), "accepted: f32"), (np.ones(2, dtype=np.int16), "accepted: f32"),
    (np.ones((1,) * 9, dtype=np.float32), "has 9 axes; at most 8"),
    (np.ones(3, dtype=[("a", "f4"), ("b", "i2")])["a"], "stride of 6 bytes"),
    (np.ma.masked_array([1.0, 2.0], [True, False]), "masked array"),
    (np.frombuffer(bytes(9), dtype=np.uint8)[1:].view(np.float32), "a multiple of 4")])
def test_refused_arrays(x, message):
    with pytest.raises(rung.Error, match=message) as caught:
        rung.relu(x, out=np.zeros(x.shape, dtype=np.float32) if "multiple" in message else None)
    assert "x " in str(caught.value) or "x: " in str(caught.value)


@pytest.mark.parametrize("x", [None, 1.0, [1.0], "text", object()])
def test_what_is_no_array_is_a_type_error(x):
    with pytest.raises(TypeError, match="relu: x is (None|a (float|list|str|object)); accepted"):
        rung.relu(x)


def test_types_are_not_promoted():
    for y in (np.ones(3), np.ones(3, dtype=np.int32)):
        with pytest.raises(rung.Error) as caught:
            rung.add(F4, y)
        assert caught.value.code == "invalid_argument"
    with pytest.raises(rung.Error):
        rung.softmax(F4, out=np.zeros(3))


def test_read_only_arrays_are_read_and_not_written():
    x = F4.copy()
    x.flags.writeable = False
    assert rung.relu(x).tolist() == [1, 2, 4]
    with pytest.raises(rung.Error, match="out is written, and read-only; give a writable array"):
        rung.relu(F4, out=x)
    with pytest.raises(rung.Error, match="read-only"):
        rung.relu(np.zeros(4, dtype=np.uint8), out=b"abcd")


def test_overlap_is_refused_and_in_place_is_not():
    x = np.arange(6, dtype=np.float32)
    assert rung.relu(x, out=x) is x
    with pytest.raises(rung.Error, match="overlap"):
        rung.relu(x[:4], out=x[2:])
    with pytest.raises(rung.Error, match="overlap"):
        rung.relu(np.zeros((2, 3), dtype=np.float32), out=np.lib.stride_tricks.as_strided(x, (2, 3), (0, 4)))


def test_empty_arrays_and_scalars():
    assert rung.softmax(np.zeros((0, 3), dtype=np.float32)).shape == (0, 3)
    assert rung.relu(np.float32(2.0).reshape(())).shape == ()
    assert rung.gemm(np.zeros((2, 0)), np.zeros((0, 3))).tolist() == [[0, 0, 0]] * 2


def test_references_are_not_leaked():
    x, out = F4.copy(), np.zeros(3, dtype=np.float32)
    wrapped, table = arrays.OfDLPack(x), arrays.OfExchangeTable(x)
    objects = [x, out, wrapped, table, np.float32, rung.Context, arrays.OfExchangeTable]

    def calls():
        rung.softmax(x)
        rung.softmax(x, out=out)
        rung.softmax(wrapped, out=out)
        rung.softmax(table)
        rung.sum(x, axes=(0,))
        for bad in (wrapped, np.zeros(2)):
            with pytest.raises(rung.Error):
                rung.add(x, x, out=bad if bad is not wrapped else np.zeros(5, dtype=np.float32))
        with pytest.raises(rung.Error):
            rung.gemm(x, x)
        with pytest.raises(TypeError):
            rung.softmax(x, out=3)

    for _ in range(3):
        calls()
    before = [sys.getrefcount(each) for each in objects]
    for _ in range(20):
        calls()
    after = [sys.getrefcount(each) for each in objects]
    assert all(abs(now - then) < 5 for then, now in zip(before, after)), (before, after)


class OfCudaInterface:
    """Memory as CuPy and Numba offer it, at an address that no call accesses."""

    def __init__(self, read_only=False, mask=None):
        self.__cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (F4.ctypes.data, read_only),
                                         "version": 3, "strides": None, "stream": 7, "mask": mask}


def test_arrays_on_a_gpu_go_to_its_context():
    x = OfCudaInterface()
    with pytest.raises(rung.Error, match="x is on cuda:0, the context runs on cpu:0"):
        rung.relu(x, out=F4, context=rung.Context("cpu", threads=1))
    for call, message in [(lambda: rung.relu(x, out=OfCudaInterface(read_only=True)), "read-only"),
                          (lambda: rung.relu(OfCudaInterface(mask=F4)), "mask"),
                          (lambda: rung.relu(x), "give out="),
                          (lambda: rung.add(x, 1.0, out=x), "y is a number, which goes with arrays in host memory")]:
        with pytest.raises(rung.Error, match=message):
            call()
    if not rung.available("cuda")[0]:
        with pytest.raises(rung.Error) as caught:
            rung.relu(x, out=x)
        assert caught.value.code == "not_available"


def test_torch_tensors_on_the_cpu():
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 5)
    y = rung.softmax(x)
    assert isinstance(y, torch.Tensor)
    torch.testing.assert_close(y, torch.softmax(x, -1))
    torch.testing.assert_close(rung.add(x.t(), 1.0), x.t() + 1)
    assert rung.relu(x.to(torch.bfloat16)).dtype == torch.bfloat16
    with pytest.raises(rung.Error, match="requires a gradient"):
        rung.relu(x.requires_grad_())
    with torch.no_grad():
        torch.testing.assert_close(rung.relu(x), torch.relu(x))
    negated = torch.conj(torch.view_as_complex(torch.randn(4, 2))).imag
    with pytest.raises(rung.Error, match="negated view"):
        rung.relu(negated)
