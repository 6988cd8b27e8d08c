# SPDX-License-Identifier: Apache-2.0
"""Exceptions of rung's functions."""
import sys


class Error(ValueError):
    """A call that rung rejects, or that failed. The text names the argument, its value and the accepted values.

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
    """The device or the host has too little memory. Also a MemoryError."""


def in_terms_of_caller(message):
    """Returns the library's message with the names of the called Python function and its arguments.

    "elementwise: z is 4" becomes "add: out is 4". The extension module calls this function while a call fails; the
    frame above is the function of rung._ops that made the call.
    """
    frame = sys._getframe(1)
    module = frame.f_globals
    operator = module.get("__name__", "").removeprefix("rung._ops.")
    head, colon, text = message.partition(": ")
    if f"rung._ops.{operator}" != module.get("__name__") or not colon:
        return message
    if head != operator and head not in module["__all__"]:
        return message
    while frame.f_code.co_name not in module["__all__"] and frame.f_back and frame.f_back.f_globals is module:
        frame = frame.f_back  # a helper function of the module
    code = frame.f_code
    parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    for given, names in module.get("_RENAMED", {}).items():
        names = [name for name in ((names,) if isinstance(names, str) else names) if name in parameters]
        if names and given not in parameters:
            import re
            text = re.sub(rf"\b{given}\b", names[0], text)
    return f"{code.co_name}: {text}"


for _class in (Error, OutOfMemoryError):
    _class.__module__ = "rung"
