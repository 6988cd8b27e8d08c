# SPDX-License-Identifier: Apache-2.0
"""Parallel kernels of rung for NumPy, PyTorch, CuPy and JAX.

>>> import numpy as np
>>> rung.softmax(np.array([0.0, 0.0], dtype=np.float32))
array([0.5, 0.5], dtype=float32)

Functions take arrays without copying them, and return an array of the same kind on the same device; out= names the
array to write instead. Types are never converted: mixed ones raise rung.Error. dir(rung) lists the functions.
"""
from rung import _rung
from rung._errors import Error, OutOfMemoryError
from rung._rung import Context

__version__ = version = _rung.version()


class Rung(tuple):
    """One of an operator's implementations: name, step, backend, after, peer, teaching, file."""

    __slots__ = ()
    _fields = ("name", "step", "backend", "after", "peer", "teaching", "file")
    name = property(lambda self: self[0], doc="Name, as rung= takes it.")
    step = property(lambda self: self[1], doc="Step on the operator's ladder.")
    backend = property(lambda self: self[2], doc='"cpu", "cuda", "simt" or "opencl".')
    after = property(lambda self: self[3], doc="Name of the rung that this one improves on.")
    peer = property(lambda self: self[4], doc="True for a vendor's library, which rung= does not take.")
    teaching = property(lambda self: self[5], doc="True for a step that later ones always beat.")
    file = property(lambda self: self[6], doc="Source file.")

    def __repr__(self):
        return "Rung(" + ", ".join(f"{key}={value!r}" for key, value in zip(self._fields, self)) + ")"


def operators():
    """Returns the names and formulas of all operators, as a dict.

    >>> "softmax" in rung.operators()
    True
    """
    return dict(_rung.operators())


def rungs(operator, backend=None):
    """Returns the rungs of an operator, sorted by backend and step; with `backend`, of this backend only.

    >>> rung.rungs("softmax", "cpu")[0].name
    'naive'
    """
    found = [Rung(one) for one in _rung.rungs(operator)]
    return found if backend is None else [one for one in found if one.backend == backend]


def available(backend):
    """Returns whether a backend can run here: (True, "") or (False, reason).

    >>> rung.available("cpu")
    (True, '')
    """
    return _rung.available(backend)


def copy(x, out=None):
    """Copies the elements of x to out, for any strides and devices of either; returns out.

    x: any type that rung supports, up to 8 axes. out: shape and type of x, without overlap, from any library and on any
    device; default: a C-contiguous array of the kind of x. Waits for the streams of both arrays and for the result.

    Raises Error for shapes and types that differ, arrays that overlap, and elements of out that share memory.

    >>> import numpy as np
    >>> y = np.zeros((3, 2))
    >>> rung.copy(np.arange(6.0).reshape(2, 3), y.T).T
    array([[0., 3.],
           [1., 4.],
           [2., 5.]])
    """
    return _rung.copy(x, out)


def _absent(name, operator, built):
    """Returns a function that raises Error, in place of a function of an operator that this build omits."""
    def function(*args, **options):
        raise Error(f"{name}: this build of rung has no operator {operator}, it has {', '.join(built) or 'none'}; "
                    f"build it with -DRUNG_OPERATORS=\"{';'.join([*built, operator])}\", or without this option for "
                    "all operators", "not_available")
    function.__name__ = function.__qualname__ = name
    return function


def __getattr__(name):
    """Imports the operators' functions and the package's modules on first use (PEP 562)."""
    import importlib

    from rung._ops import ABSENT, NAMES
    if name in ABSENT:
        return globals().setdefault(name, _absent(name, ABSENT[name], sorted({*NAMES.values()})))
    if name in NAMES:
        module = importlib.import_module(f"rung._ops.{NAMES[name]}")
        globals().update((each, getattr(module, each)) for each in module.__all__)
        return globals()[name]
    if not name.startswith("_"):
        path = f"rung.{name}"
        try:
            return importlib.import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
    raise AttributeError(f"module 'rung' has no attribute {name!r}")


def __dir__():
    from rung._ops import NAMES
    return sorted({*(name for name in globals() if not name.startswith("_")), "__version__", *NAMES})
