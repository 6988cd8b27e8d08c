# SPDX-License-Identifier: Apache-2.0
"""Results for JAX: arrays that take over memory of the library."""
from __future__ import annotations

from typing import Any


class _Exported:
    """Source for jax.dlpack.from_dlpack(): a capsule, and the device of its memory."""

    def __init__(self, capsule: Any, device: tuple[int, int]) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def adopt(capsule: Any, kind: int, index: int) -> Any:
    """Returns a jax.Array of the capsule's tensor; `kind` and `index` are DLPack's numbers of its device. The tensor
    must be complete: the work that writes it has ended."""
    from jax import dlpack

    return dlpack.from_dlpack(_Exported(capsule, (kind, index)))
