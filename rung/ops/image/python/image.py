# SPDX-License-Identifier: Apache-2.0
"""Filters of pictures.

x: ... x H x W x C, with planar ... x C x H x W; 1 to 4 channels, grey, grey and alpha, RGB, or RGB and alpha; uint8 or
float32. out: shaped as x, of its type; it does not overlap x. Outside of a picture lies the nearest pixel of its
border. uint8 results are whole numbers that image.hpp defines exactly; grey, unsharp_mask and sobel copy alpha.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rung._rung import image as _image

if TYPE_CHECKING:
    from rung import Context

__all__ = ["to_grey", "box_blur", "gaussian_blur", "unsharp_mask", "sobel"]
_RENAMED = {"y": "out"}  # in messages: the library's names of arguments
Array = TypeVar("Array")


def to_grey(x: Array, *, weights: str = "bt601", planar: bool = False, keep_alpha: bool = False,
            out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """y = wr R + wg G + wb B, of one channel; of two, the second alpha, with keep_alpha.

    weights: "bt601" (0.299, 0.587, 0.114), "bt709" (0.2126, 0.7152, 0.0722), "tenths" (0.3, 0.6, 0.1) or
    "tenths_by_term", which rounds each term of uint8 down. Other arguments as the module says.

    >>> import numpy as np
    >>> rung.to_grey(np.array([[[10, 20, 30]]], dtype=np.uint8), weights="tenths")
    array([[[18]]], dtype=uint8)
    """
    return _image(context, rung, "grey", x, out, weights, 2, 0.0, 1.0, bool(planar), "clamp", False, bool(keep_alpha))


def box_blur(x: Array, radius: int = 2, *, edge: str = "clamp", truncate: bool = False, planar: bool = False,
             out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """y = mean of the (2 radius + 1)^2 pixels around; radius: 0 to 15.

    edge: "clamp", or "zero", which counts pixels outside as 0. truncate: means of uint8 are rounded down. Other
    arguments as the module says.

    >>> import numpy as np
    >>> rung.box_blur(np.full((2, 2, 1), 9, dtype=np.uint8), 1)[0, 0]
    array([9], dtype=uint8)
    """
    return _image(context, rung, "box", x, out, "bt601", radius, 0.0, 1.0, bool(planar), edge, bool(truncate), False)


def gaussian_blur(x: Array, radius: int = 2, *, sigma: float = 0.0, planar: bool = False, out: Array | None = None,
                  rung: str | None = None, context: Context | None = None) -> Array:
    """y = sum of the pixels around, weighted by exp(-k^2 / (2 sigma^2)) per axis; radius: 0 to 15.

    sigma: 0 stands for 0.3 (radius - 1) + 0.8. Other arguments as the module says.

    >>> import numpy as np
    >>> rung.gaussian_blur(np.full((2, 2, 1), 9, dtype=np.uint8))[0, 0]
    array([9], dtype=uint8)
    """
    return _image(context, rung, "gaussian", x, out, "bt601", radius, sigma, 1.0, bool(planar), "clamp", False, False)


def unsharp_mask(x: Array, radius: int = 2, *, sigma: float = 0.0, amount: float = 1.0, planar: bool = False,
                 out: Array | None = None, rung: str | None = None, context: Context | None = None) -> Array:
    """y = x + amount (x - b), b the result of gaussian_blur(); amount: -64 to 64.

    Other arguments as of gaussian_blur().

    >>> import numpy as np
    >>> rung.unsharp_mask(np.full((2, 2, 1), 9, dtype=np.uint8))[0, 0]
    array([9], dtype=uint8)
    """
    return _image(context, rung, "unsharp", x, out, "bt601", radius, sigma, amount, bool(planar), "clamp", False,
                  False)


def sobel(x: Array, *, planar: bool = False, out: Array | None = None, rung: str | None = None,
          context: Context | None = None) -> Array:
    """y = sqrt(h^2 + v^2), h and v the correlations of x with Sobel's 3 x 3 masks. Arguments as the module says.

    >>> import numpy as np
    >>> rung.sobel(np.full((2, 2, 1), 9, dtype=np.uint8))[0, 0]
    array([0], dtype=uint8)
    """
    return _image(context, rung, "sobel", x, out, "bt601", 2, 0.0, 1.0, bool(planar), "clamp", False, False)
