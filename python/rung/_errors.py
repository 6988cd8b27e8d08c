# SPDX-License-Identifier: Apache-2.0
"""What rung's functions raise."""


class Error(ValueError):
    """A call that rung refuses, or that failed. The text names the argument, its value and what is accepted.

    code: "invalid_argument", "unsupported", "not_available", "out_of_memory", "io", "device" or "internal".

    >>> import array
    >>> x = array.array("f", [1, 2])
    >>> try:
    ...     rung.softmax(x, axis=3, out=array.array("f", [0, 0]))
    ... except rung.Error as error:
    ...     print(error.code)
    invalid_argument
    """

    def __init__(self, message="", code="invalid_argument"):
        super().__init__(message)
        self.code = code


class OutOfMemoryError(Error, MemoryError):
    """Memory of the device or of the host did not suffice. A MemoryError too."""


for _class in (Error, OutOfMemoryError):
    _class.__module__ = "rung"
