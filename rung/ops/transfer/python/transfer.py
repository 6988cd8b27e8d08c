# SPDX-License-Identifier: Apache-2.0
"""A function of host memory, computed on a GPU."""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rung._errors import Error
from rung._rung import transfer as _transfer

if TYPE_CHECKING:
    from rung import Context

__all__ = ["transfer"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def transfer(x: Array, function: str = "relu", *, out: Array | None = None, rung: str | None = None,
             context: Context | None = None) -> Array:
    """y = f(x) with x and y in host memory and f on a GPU: copies in, computes, copies out; waits for the result.

    x: C-contiguous; float32, float64, float16 or bfloat16, for relu int32, int64 and uint8 too. function: "relu",
    "sigmoid", "tanh", "gelu", "exp", "silu" or "sign". out: shaped as x, of its type; may be x itself. context: on a
    GPU; None stands for GPU 0.

    Raises Error for types, shapes and places that are not accepted, and without a usable GPU.

    >>> import numpy as np
    >>> x = np.array([-1.0, 2.0])
    >>> rung.transfer(x) if rung.available("cuda")[0] else rung.relu(x)
    array([0., 2.])
    """
    accepted = f"accepted: a context on 'cuda', or on the simulated GPU, 'simt'; rung.{function}() computes on a CPU"
    if context is not None and getattr(context, "backend", "cuda") in ("cpu", "opencl"):
        raise Error(f"transfer: context is on '{context.backend}'; {accepted}")
    try:
        return _transfer(context, rung, function, x, out)
    except Error as error:
        if error.code != "not_available" or context is not None:
            raise
        raise Error(f"transfer: context is left out, and there is no usable GPU: {error}; {accepted}",
                    error.code) from None
