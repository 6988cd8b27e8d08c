#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_arrays_gpu.py: arrays of CuPy and JAX on a CUDA device. It needs both, NumPy, and a library with CUDA:
PYTHONPATH=build/dev/python python3 tools/check_arrays_gpu.py

Results, strides, out=, streams, capture in a CUDA graph, refusals. It prints a line per check and ends with 1 if one
fails.
"""
import os
import sys
import traceback

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import cupy as cp  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import rung  # noqa: E402

generator = np.random.default_rng(0)
X = generator.standard_normal((37, 129)).astype(np.float32)
W = generator.standard_normal((129, 65)).astype(np.float32)
SOFTMAX = rung.softmax(X)
SIDE = 4096  # side of arrays whose work takes long enough to reveal missing synchronization


def close(got, expected, tolerance=2e-5):
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def cupy_results():
    result = rung.softmax(cp.asarray(X))
    assert isinstance(result, cp.ndarray), type(result)
    close(cp.asnumpy(result), SOFTMAX)
    close(cp.asnumpy(rung.gemm(cp.asarray(X), cp.asarray(W))), X @ W, 1e-4)
    assert rung.softmax(cp.asarray(X.astype(np.float16))).dtype == cp.float16


def cupy_out():
    x, out = cp.asarray(X), cp.empty(X.shape, cp.float32)
    assert rung.softmax(x, out=out) is out
    close(cp.asnumpy(out), SOFTMAX)


def cupy_strides():
    close(cp.asnumpy(rung.softmax(cp.asarray(X.T).T)), SOFTMAX)
    close(cp.asnumpy(rung.softmax(cp.asarray(np.repeat(X, 2, 1))[:, ::2])), SOFTMAX)
    close(cp.asnumpy(rung.softmax(cp.asarray(X[:, ::-1].copy())[:, ::-1])), SOFTMAX)


def cupy_side_stream():
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        x = cp.random.standard_normal((SIDE, SIDE), dtype=cp.float32)
        for _ in range(20):
            x = x * 1.0001
        total = rung.softmax(x).sum(1)
    stream.synchronize()
    close(cp.asnumpy(total), 1, 1e-4)


def cupy_graph():
    stream = cp.cuda.Stream(non_blocking=True)
    x, out = cp.asarray(X), cp.empty(X.shape, cp.float32)
    with stream:
        rung.softmax(x, out=out)
    stream.synchronize()
    out[...] = 0
    cp.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        rung.softmax(x, out=out)
        graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    close(cp.asnumpy(out), SOFTMAX)


def cupy_refusals():
    for refused in (lambda: rung.softmax(cp.asarray(X), out=np.empty_like(X)), lambda: rung.gemm(cp.asarray(X), W)):
        try:
            refused()
        except rung.Error:
            continue
        raise AssertionError("arrays in two kinds of memory were accepted")


def jax_results():
    x = jnp.asarray(X)
    result = rung.softmax(x)
    assert isinstance(result, jax.Array), type(result)
    assert result.devices() == x.devices(), (result.devices(), x.devices())
    close(np.asarray(result), SOFTMAX)
    close(np.asarray(rung.gemm(x, jnp.asarray(W))), X @ W, 1e-4)
    assert rung.softmax(x.astype(jnp.bfloat16)).dtype == jnp.bfloat16


def jax_work_in_flight():
    x = jax.random.normal(jax.random.key(0), (SIDE, SIDE))
    for _ in range(20):
        x = x * 1.0001
    close(np.asarray(rung.softmax(x).sum(1)), 1, 1e-4)


def main():
    failed = 0
    for check in (cupy_results, cupy_out, cupy_strides, cupy_side_stream, cupy_graph, cupy_refusals, jax_results,
                  jax_work_in_flight):
        try:
            check()
            print(f"ok      {check.__name__}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED  {check.__name__}: {type(error).__name__}: {error}", flush=True)
            traceback.print_exc()
    print(f"CuPy {cp.__version__}, JAX {jax.__version__}: {failed} checks failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
