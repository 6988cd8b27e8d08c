# SPDX-License-Identifier: Apache-2.0
"""JAX arrays on the CPU: read in place; results are JAX arrays."""
import numpy as np
import pytest

import rung

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((6, 9)).astype(np.float32)


def test_a_result_is_an_array_of_jax(x):
    result = rung.softmax(jnp.asarray(x))
    assert isinstance(result, jax.Array)
    np.testing.assert_array_equal(np.asarray(result), rung.softmax(x))


def test_jax_computes_with_a_result_after_its_input_is_gone(x):
    result = rung.softmax(jnp.asarray(x))
    total = jax.jit(lambda y: (2 * y).sum(axis=1))(result)
    np.testing.assert_allclose(np.asarray(total), 2, rtol=1e-5)


def test_bfloat16_stays(x):
    result = rung.softmax(jnp.asarray(x).astype(jnp.bfloat16))
    assert result.dtype == jnp.bfloat16
    np.testing.assert_allclose(np.asarray(result).astype(np.float32), rung.softmax(x), atol=0.01)


def test_nothing_gives_nothing():
    assert rung.softmax(jnp.zeros((0, 3))).shape == (0, 3)


def test_several_results(x):
    y, indices = rung.max_pool(jnp.asarray(x.reshape(1, 1, 6, 9)), 2, return_indices=True)
    assert isinstance(y, jax.Array) and isinstance(indices, jax.Array)
    np.testing.assert_array_equal(np.asarray(y), rung.max_pool(x.reshape(1, 1, 6, 9), 2))


def test_an_array_of_jax_is_not_written(x):
    with pytest.raises(rung.Error, match="out is written, and read-only"):
        rung.softmax(jnp.asarray(x), out=jnp.zeros((6, 9)))
