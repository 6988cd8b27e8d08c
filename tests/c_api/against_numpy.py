# SPDX-License-Identifier: Apache-2.0
"""Calls each operator through librung.so by ctypes, as a Python program without rung's package would, with NumPy's
arrays, also strided ones, and compares with NumPy. Structures and enumerations are read from the headers.

usage: against_numpy.py SOURCE LIBRUNG OPERATOR...
"""
import ctypes
import math
import pathlib
import sys

import numpy as np

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tools"))
import headers  # noqa: E402

PLAIN = {"double": ctypes.c_double, "int": ctypes.c_int, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t,
         "void*": ctypes.c_void_p, "const char*": ctypes.c_char_p, "const int64_t*": ctypes.POINTER(ctypes.c_int64)}
DTYPES = {np.dtype(name): f"RUNG_{code}" for name, code in
          {"f4": "F32", "f8": "F64", "f2": "F16", "i1": "I8", "u1": "U8", "i4": "I32", "i8": "I64",
           "u2": "U16"}.items()}


class Api:
    """librung.so with the declarations of the headers."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.rung_last_error.restype = ctypes.c_char_p
        self.types, self.constants = dict(PLAIN), {}
        self.types |= {f"int[{count}]": ctypes.c_int * count for count in (2, 3)}
        # Of all operators, whether built or not: options of conv and pool include gemm's activation.
        texts = [path.read_text()
                 for path in [SOURCE / "rung/c/api.h"] + sorted(SOURCE.glob("rung/ops/*/*.h"))]
        for text in texts:
            for name, values in headers.c_enumerations(text).items():
                self.types[name] = ctypes.c_int
                self.constants.update(values)
        for text in texts:
            for name, fields in headers.c_structures(text).items():
                made = type(name, (ctypes.Structure,),
                            {"_fields_": [(field, self.types[kind]) for kind, field in fields]})
                self.types[name] = made
                self.types[f"const {name}*"] = ctypes.POINTER(made)
        self.context = ctypes.c_void_p()
        self.check(self.library.rung_context_create(0, 2, None, ctypes.byref(self.context)))

    def check(self, status):
        if status != 0:
            raise RuntimeError(f"status {status}: {self.library.rung_last_error().decode()}")

    def tensor(self, array):
        """Describes an array's memory; the description keeps the array alive. For a type that NumPy lacks: an object
        with the array as `stored` and the type as `code`."""
        code = array.code if hasattr(array, "stored") else DTYPES[array.dtype]
        array = getattr(array, "stored", array)
        strides = [step // array.itemsize for step in array.strides]
        made = self.types["rung_tensor"](
            data=array.__array_interface__["data"][0], dtype=self.constants[code], rank=array.ndim,
            shape=(ctypes.c_int64 * array.ndim)(*array.shape), strides=(ctypes.c_int64 * array.ndim)(*strides))
        made.array = array
        return made

    def options(self, operator, **given):
        made = self.types[f"rung_{operator}_options"]()
        self.check(getattr(self.library, f"rung_{operator}_options_init")(ctypes.byref(made),
                                                                          ctypes.sizeof(made)))
        made.kept = []
        for name, value in given.items():
            if isinstance(value, np.ndarray) or hasattr(value, "stored"):
                made.kept.append(self.tensor(value))
                value = ctypes.pointer(made.kept[-1])
            elif isinstance(getattr(made, name), ctypes.Array):
                value = type(getattr(made, name))(*value)
            elif isinstance(value, (list, tuple)):
                setattr(made, f"{name}_count", len(value))
                value = (ctypes.c_int64 * len(value))(*value)
            elif isinstance(value, str):
                value = self.constants[value]
            setattr(made, name, value)
        return made

    def call(self, function, *arrays, options=None):
        tensors = [None if array is None else ctypes.byref(self.tensor(array)) for array in arrays]
        self.check(getattr(self.library, f"rung_{function}")(
            self.context, *tensors, None if options is None else ctypes.byref(options)))


def agree(what, got, wanted, tolerance=1e-5):
    if not np.allclose(got, wanted, rtol=tolerance, atol=tolerance):
        sys.exit(f"{what}: differs from NumPy by up to {np.max(np.abs(got - wanted))}\n{got}\n{wanted}")


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def gemm(api):
    a, b, bias = random(3, 5, 17), random(29, 17).T, random(29)
    c = np.empty((3, 5, 29), np.float32)
    api.call("gemm", a, b, c, options=api.options("gemm", alpha=0.5, bias=bias, activation="RUNG_ACTIVATION_RELU"))
    agree("gemm", c, np.maximum(0.5 * (a @ b) + bias, 0))


def elementwise(api):
    x, y = random(7, 8, 9)[:, ::2], random(9)
    z = np.empty(x.shape, np.float32)
    api.call("elementwise", x, y, None, z, options=api.options("elementwise", function="RUNG_ELEMENTWISE_MUL"))
    agree("mul", z, x * y)
    api.call("elementwise", x, None, None, z, options=api.options("elementwise", function="RUNG_ELEMENTWISE_GELU"))
    agree("gelu", z, np.vectorize(lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2)))(x))


def reduce(api):
    x = random(6, 7, 8).transpose(2, 0, 1)
    for name, wanted in {"SUM": np.sum, "MAX": np.max, "MEAN": np.mean, "PRODUCT": np.prod,
                         "NORM": lambda v, axis: np.sqrt(np.sum(v * v, axis=axis))}.items():
        y = np.empty(6, np.float32)
        api.call("reduce", x, y, options=api.options("reduce", operation=f"RUNG_REDUCE_{name}", axes=(0, -1)))
        agree(name, y, wanted(x, axis=(0, 2)))
    index = np.empty((8, 6), np.int64)
    api.call("reduce", x, index, options=api.options("reduce", operation="RUNG_REDUCE_ARGMIN", axes=(2,)))
    agree("argmin", index, np.argmin(x, axis=2), 0)


def scan(api):
    x = random(50, 4)
    y = np.empty_like(x)
    api.call("scan", x, y, options=api.options("scan", axis=0))
    agree("cumsum", y, np.cumsum(x, axis=0))
    api.call("scan", x, y, options=api.options("scan", axis=0, operation="RUNG_SCAN_MAX", reverse=1))
    agree("maximum", y, np.maximum.accumulate(x[::-1], axis=0)[::-1], 0)


def histogram(api):
    x, counts = random(1000), np.zeros(10, np.int64)
    edges = np.array([-3, -2, -1.5, -1, -0.5, 0, 0.25, 1, 2, 2.5, 3], np.float32)
    api.call("histogram", x, counts, options=api.options("histogram", edges=edges))
    agree("histogram", counts, np.histogram(x, edges)[0], 0)
    pixels, full = np.arange(5000, dtype=np.uint32).astype(np.uint8), np.zeros(256, np.int32)
    api.call("histogram", pixels, full)
    agree("bincount", full, np.bincount(pixels, minlength=256), 0)


def transpose(api):
    x = random(3, 4, 5, 6)
    y = np.empty((6, 3, 5, 4), np.float32)
    api.call("transpose", x, y, options=api.options("transpose", order=(3, 0, 2, 1)))
    agree("transpose", y, x.transpose(3, 0, 2, 1), 0)


def softmax(api):
    x = random(11, 13)
    y = np.empty_like(x)
    api.call("softmax", x, y, options=api.options("softmax", axis=0, scale=2.0))
    powers = np.exp(2 * (x - x.max(axis=0)))
    agree("softmax", y, powers / powers.sum(axis=0))


def softmax_backward(api):
    y, dy = random(11, 13), random(13, 11).T
    dx = np.empty_like(y)
    api.call("softmax_backward", y, dy, dx, options=api.options("softmax", axis=0, scale=2.0))
    agree("softmax_backward", dx, 2 * (dy - (dy * y).sum(axis=0)) * y)


def attention(api):
    q, k, v = random(2, 4, 5, 8), random(2, 2, 7, 8), random(2, 7, 2, 6).swapaxes(1, 2)
    o, lse, lengths = np.empty((2, 4, 5, 6), np.float32), np.empty((2, 4, 5), np.float32), np.array([7, 6], np.int32)
    api.call("attention", q, k, v, o, options=api.options(
        "attention", scale=0.5, causal=1, key_lengths=lengths, lse=lse))
    scores = 0.5 * q @ k.repeat(2, axis=1).swapaxes(2, 3)
    for b, length in enumerate(lengths):
        # Query i of the last 5 attends to the keys up to its own position.
        scores[b, :, np.arange(7) > np.arange(5)[:, None] + (length - 5)] = -np.inf
    weights = np.exp(scores)
    total = weights.sum(axis=3)
    agree("attention", o, weights @ v.repeat(2, axis=1) / total[..., None])
    agree("log sum exp of the scores", lse, np.log(total))


def attention_backward(api):
    q, k, v = random(2, 4, 5, 8), random(2, 2, 7, 8), random(2, 7, 2, 6).swapaxes(1, 2)
    o, lse, dout = random(2, 4, 5, 6), random(2, 4, 5) + 3, random(2, 5, 4, 6).swapaxes(1, 2)
    dq, dk, dv, lengths = np.empty_like(q), np.empty_like(k), np.empty((2, 2, 7, 6), np.float32), np.array([7, 6], "i4")
    api.call("attention_backward", q, k, v, o, lse, dout, dq, dk, dv, options=api.options(
        "attention_backward", scale=0.5, causal=1, key_lengths=lengths))
    wide_k, wide_v = k.repeat(2, axis=1), v.repeat(2, axis=1)
    p = np.exp(0.5 * q @ wide_k.swapaxes(2, 3) - lse[..., None])
    for b, length in enumerate(lengths):
        p[b, :, np.arange(7) > np.arange(5)[:, None] + (length - 5)] = 0
    ds = p * (dout @ wide_v.swapaxes(2, 3) - (dout * o).sum(axis=3, keepdims=True))
    agree("dq", dq, 0.5 * ds @ wide_k)
    agree("dk", dk, 0.5 * (ds.swapaxes(2, 3) @ q).reshape(2, 2, 2, 7, 8).sum(axis=2))
    agree("dv", dv, (p.swapaxes(2, 3) @ dout).reshape(2, 2, 2, 7, 6).sum(axis=2))


def statistics(x, rms):
    mean = np.zeros((len(x), 1)) if rms else x.mean(axis=1, keepdims=True)
    return mean, 1 / np.sqrt(((x - mean) ** 2).mean(axis=1, keepdims=True) + 1e-5)


def norm(api):
    x, residual, gamma, beta = random(9, 33), random(33, 9).T, random(33), random(33)
    y, total = np.empty_like(x), np.empty_like(x)
    options = api.options("norm", gamma=gamma, beta=beta, residual=residual, sum=total)
    for function, rms in (("layer_norm", False), ("rms_norm", True)):
        api.call(function, x, y, options=options)
        mean, rstd = statistics(x + residual, rms)
        agree(function, y, (x + residual - mean) * rstd * gamma + beta, 1e-4)
        agree("sum", total, x + residual)


def norm_backward(api):
    x, dy, gamma = random(9, 33), random(33, 9).T, random(33)
    dx, dgamma, dbeta = np.empty_like(x), np.empty(33, np.float32), np.empty(33, np.float32)
    options = api.options("norm_backward", gamma=gamma, dgamma=dgamma, dbeta=dbeta)
    for function, rms in (("layer_norm_backward", False), ("rms_norm_backward", True)):
        api.call(function, dy, x, dx, options=options)
        mean, rstd = statistics(x, rms)
        z, g = (x - mean) * rstd, dy * gamma
        shift = 0 if rms else g.mean(axis=1, keepdims=True)
        agree(function, dx, rstd * (g - shift - z * (g * z).mean(axis=1, keepdims=True)), 1e-4)
        agree("dgamma", dgamma, (dy * z).sum(axis=0), 1e-4)
        agree("dbeta", dbeta, dy.sum(axis=0), 1e-4)


def windows(x, size, stride):
    """Returns the windows of the last two axes of x, as two additional axes."""
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]


def pool(api):
    x, bias = random(2, 3, 9, 11), random(3)
    shape = dict(kernel=(3, 3), stride=(2, 2))
    y = np.empty((2, 3, 4, 5), np.float32)
    of_x, weights = windows(x, 3, 2), np.abs(random(3, 3))
    for kind, wanted in {"MAX": of_x.max(axis=(4, 5)), "AVERAGE": of_x.mean(axis=(4, 5)),
                         "L2": np.sqrt((of_x ** 2).sum(axis=(4, 5)))}.items():
        api.call("pool", x, y, options=api.options("pool", kind=f"RUNG_POOLING_{kind}", **shape))
        agree(kind, y, wanted)
    api.call("pool", x, y, options=api.options("pool", kind="RUNG_POOLING_WEIGHTED", weights=weights, bias=bias,
                                               activation="RUNG_ACTIVATION_RELU", **shape))
    mean = (of_x * weights).sum(axis=(4, 5)) / weights.sum()
    agree("weighted", y, np.maximum(mean + bias[:, None, None], 0))
    last, indices = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.empty((2, 4, 5, 3), np.int64)
    y = np.empty((2, 4, 5, 3), np.float32)
    api.call("pool", last, y, options=api.options("pool", channels_last=1, indices=indices, **shape))
    flat = x.transpose(0, 2, 3, 1).reshape(2, -1, 3)
    agree("indices", np.take_along_axis(flat, indices.reshape(2, -1, 3), axis=1).reshape(y.shape), y, 0)


def pool_backward(api):
    dy, dx = random(2, 3, 4, 5), np.empty((2, 3, 9, 11), np.float32)
    api.call("pool_backward", dy, dx, options=api.options(
        "pool_backward", kind="RUNG_POOLING_AVERAGE", kernel=(3, 3), stride=(2, 2)))
    wanted = np.zeros_like(dx)
    for i in range(3):
        for j in range(3):
            wanted[:, :, i:i + 7:2, j:j + 9:2] += dy / 9
    agree("pool_backward", dx, wanted)


def conv(api):
    x, w, bias = random(2, 4, 9, 11), random(6, 4, 3, 3), random(6)
    y = np.empty((2, 6, 4, 5), np.float32)
    api.call("conv", x, w, y, options=api.options("conv", stride=(2, 2, 1), bias=bias,
                                                  activation="RUNG_ACTIVATION_RELU"))
    wanted = np.einsum("nchwij,kcij->nkhw", windows(x, 3, 2), w)
    agree("conv", y, np.maximum(wanted + bias[:, None, None], 0), 1e-4)
    x, w, y = random(2, 4, 20), random(4, 1, 5), np.empty((2, 4, 16), np.float32)
    api.call("conv", x, w, y, options=api.options("conv", groups=4))
    for c in range(4):
        agree("depthwise", y[0, c], np.correlate(x[0, c], w[c, 0], "valid"), 1e-4)


def conv_backward_data(api):
    dy, w, dx = random(2, 6, 4, 5), random(6, 4, 3, 3), np.empty((2, 4, 9, 11), np.float32)
    api.call("conv_backward_data", dy, w, dx, options=api.options("conv_backward_data", stride=(2, 2, 1)))
    wanted = np.zeros_like(dx)
    for i in range(3):
        for j in range(3):
            wanted[:, :, i:i + 7:2, j:j + 9:2] += np.einsum("nkhw,kc->nchw", dy, w[:, :, i, j])
    agree("conv_backward_data", dx, wanted, 1e-4)


def conv_backward_filter(api):
    x, dy, dw = random(2, 4, 9, 11), random(2, 6, 4, 5), np.empty((6, 4, 3, 3), np.float32)
    api.call("conv_backward_filter", x, dy, dw, options=api.options("conv_backward_filter", stride=(2, 2, 1)))
    agree("conv_backward_filter", dw, np.einsum("nchwij,nkhw->kcij", windows(x, 3, 2), dy), 1e-4)


def stencil(api):
    x, mask = random(3, 9, 11), random(3, 5)
    y, modes = np.empty_like(x), {"ZERO": "constant", "CLAMP": "edge", "MIRROR": "reflect", "WRAP": "wrap"}
    for edge, mode in modes.items():
        padded = np.pad(x, ((0, 0), (1, 1), (2, 2)), mode)
        of_x = np.lib.stride_tricks.sliding_window_view(padded, (3, 5), axis=(1, 2))
        for turned in (0, 1):
            api.call("stencil", x, mask, y, options=api.options("stencil", edge=f"RUNG_EDGE_{edge}", scale=0.5,
                                                                convolution=turned))
            agree(f"stencil {edge}", y, 0.5 * (of_x * (mask[::-1, ::-1] if turned else mask)).sum(axis=(3, 4)))
        api.call("stencil", x, None, y, options=api.options("stencil", edge=f"RUNG_EDGE_{edge}", window=(3, 5)))
        agree(f"window {edge}", y, of_x.sum(axis=(3, 4)))
        across, down = mask[0], mask[:, 1]
        api.call("stencil_separable", x, across, down, None, y,
                 options=api.options("stencil", edge=f"RUNG_EDGE_{edge}"))
        agree(f"separable {edge}", y, (of_x * np.outer(down, across)).sum(axis=(3, 4)))
    # x[i - 2], applied twice.
    line, moved = random(20), np.empty(20, np.float32)
    api.call("stencil", line, np.ones(1, np.float32), moved)
    agree("one", moved, line, 0)
    api.call("stencil", line, np.array([1, 0, 0], np.float32), moved, options=api.options(
        "stencil", edge="RUNG_EDGE_WRAP", anchor=(2,), iterations=2))
    agree("iterations", moved, np.roll(line, 4), 0)


def blurred(x, weights):
    """Blurs H x W x C by the same weights along rows and columns; the border is repeated."""
    radius = len(weights) // 2
    padded = np.pad(x, ((radius, radius), (radius, radius), (0, 0)), mode="edge")
    seen = np.lib.stride_tricks.sliding_window_view(padded, (len(weights), len(weights)), axis=(0, 1))
    return np.einsum("ijckl,k,l->ijc", seen, weights, weights)


def image(api):
    x = np.random.default_rng(1).integers(0, 256, (17, 23, 4)).astype(np.uint8)
    wide = x.astype(np.int64)
    y = np.empty((17, 23, 2), np.uint8)
    api.call("image", x, y, options=api.options("image", weights="RUNG_GREY_TENTHS"))
    agree("grey", y[..., 0], wide[..., :3] @ [3, 6, 1] // 10, 0)
    agree("alpha", y[..., 1], x[..., 3], 0)
    planes, grey = np.ascontiguousarray(x[..., :3].transpose(2, 0, 1)), np.empty((1, 17, 23), np.uint8)
    api.call("image", planes, grey, options=api.options("image", planar=1, weights="RUNG_GREY_BT709"))
    agree("planes", grey[0], (wide[..., :3] @ [6966, 23436, 2366] + 2**14) >> 15, 0)
    rgb, y = x[:, :, :3], np.empty((17, 23, 3), np.uint8)
    api.call("image", rgb, y, options=api.options("image", filter="RUNG_IMAGE_BOX", radius=3))
    agree("box", y, np.floor(blurred(wide[..., :3], np.ones(7)) / 49 + 0.5), 0)
    f, y = random(17, 23, 3), np.empty((17, 23, 3), np.float32)
    g = np.exp(-np.arange(-4, 5) ** 2 / (2 * 1.5**2))
    blur = blurred(f.astype(np.float64), g / g.sum())
    api.call("image", f, y, options=api.options("image", filter="RUNG_IMAGE_GAUSSIAN", radius=4, sigma=1.5))
    agree("gaussian", y, blur)
    api.call("image", f, y, options=api.options("image", filter="RUNG_IMAGE_UNSHARP", radius=4, sigma=1.5, amount=0.5))
    agree("unsharp", y, f + 0.5 * (f - blur))
    padded = np.pad(f.astype(np.float64), ((1, 1), (1, 1), (0, 0)), mode="edge")
    seen = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))
    across = np.einsum("ijckl,k,l->ijc", seen, [1, 2, 1], [-1, 0, 1])
    down = np.einsum("ijckl,k,l->ijc", seen, [-1, 0, 1], [1, 2, 1])
    api.call("image", f, y, options=api.options("image", filter="RUNG_IMAGE_SOBEL"))
    agree("sobel", y, np.hypot(across, down))


def transfer(api):
    if api.library.rung_backend_available(api.constants["RUNG_SIMT"]) != 0:
        return
    x = random(100, 3)
    y = np.empty_like(x)
    gpu, host = ctypes.c_void_p(), api.context
    api.check(api.library.rung_context_create(api.constants["RUNG_SIMT"], 0, None, ctypes.byref(gpu)))
    api.context = gpu
    api.call("transfer", x, y, options=api.options("transfer", function="RUNG_ELEMENTWISE_TANH"))
    agree("transfer", y, np.tanh(x))
    api.context = host
    api.library.rung_context_destroy(gpu)


def loss(api):
    x, labels = random(5, 7), np.array([0, 3, 6, -1, 2], np.int32)
    result, losses, dx = np.empty((), np.float32), np.empty(5, np.float32), np.empty((5, 7), np.float32)
    api.call("loss", x, labels, result, options=api.options(
        "loss", ignored_label=-1, smoothing=0.1, dx=dx, losses=losses))
    exact = x.astype(np.float64)
    p = np.exp(exact - exact.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    q = 0.9 * (np.arange(7) == labels[:, None]) + 0.1 / 7
    counts = labels != -1
    rows = -(q * np.log(p)).sum(axis=1) * counts
    agree("losses", losses, rows)
    agree("loss", result, rows.sum() / 4)
    agree("gradient of the loss", dx, (p - q) * counts[:, None] / 4)


def activation_backward(api):
    x, dy, dx = random(4, 9), random(4, 9), np.empty((4, 9), np.float32)
    api.call("activation_backward", x, dy, dx, options=api.options(
        "activation_backward", function="RUNG_ACTIVATION_FUNCTION_SILU"))
    s = 1 / (1 + np.exp(-x.astype(np.float64)))
    agree("activation_backward", dx, dy * s * (1 + x * (1 - s)))


def optimizer(api):
    p, g, moment, norm = random(3, 8), random(3, 8), random(3, 8), np.empty((), np.float32)
    length = np.linalg.norm(g.astype(np.float64))
    wanted_moment = 0.9 * moment + g * (0.5 / length) + 0.01 * p
    wanted = p - 0.1 * wanted_moment
    api.call("optimizer", p, g, options=api.options(
        "optimizer", learning_rate=0.1, weight_decay=0.01, momentum=0.9, max_norm=0.5, first_moment=moment, norm=norm))
    agree("norm of the gradients", norm, length)
    agree("momentum", moment, wanted_moment)
    agree("parameters", p, wanted)


def copies(api):
    x, y = random(4, 6), np.zeros((6, 4), np.float32)
    api.check(api.library.rung_copy(ctypes.byref(api.tensor(x)), ctypes.byref(api.tensor(y.T))))
    agree("copy", y, x.T, 0)


def main():
    operators = sys.argv[3:]
    missing = [name for name in operators if name not in globals()]
    if not operators or missing:
        sys.exit(f"this test has no function for the operators {missing or 'of an empty list'}")
    api = Api(sys.argv[2])
    copies(api)
    for name in operators:
        globals()[name](api)
    api.library.rung_context_destroy(api.context)
    print(f"{len(operators)} operators agree with NumPy")


if __name__ == "__main__":
    main()
