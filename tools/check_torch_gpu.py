#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_torch_gpu.py: rung.torch on a CUDA device, beside PyTorch. It needs PyTorch with CUDA and a library with CUDA:
PYTHONPATH=build/dev/python python3 tools/check_torch_gpu.py [--fast]

Results, gradients and gradcheck of every function; torch.library.opcheck; torch.compile; side streams; capture in CUDA
graphs; a second device, if there is one; the cost of a call. It prints a line per check and ends with 1 if one fails.
"""
import argparse
import os
import pathlib
import platform
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python" / "tests"))

import torch  # noqa: E402

import rung  # noqa: E402
import rung.torch as rt  # noqa: E402
from torch_cases import CASES, attention_tensors, operator_calls, random, tensors  # noqa: E402

CLOSE = {torch.float64: {"rtol": 1e-9, "atol": 1e-10}, torch.float32: {"rtol": 5e-5, "atol": 5e-5},
         torch.float16: {"rtol": 5e-3, "atol": 5e-3}, torch.bfloat16: {"rtol": 2e-2, "atol": 4e-2}}
failures = []


def check(name, function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        failures.append(name)
        print(f"FAILED  {name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        if len(failures) <= 5:
            traceback.print_exc()
    else:
        print(f"ok      {name}", flush=True)


def gradients(result, inputs):
    weights = random(*result.shape, dtype=result.dtype, device="cuda", seed=99)
    return torch.autograd.grad((result * weights).sum(), inputs)


def results(name, dtype):
    ours, theirs, _ = CASES[name]
    inputs = tensors(name, dtype, "cuda", gradient=True)
    got, expected = ours(*inputs), theirs(*inputs)
    torch.testing.assert_close(got, expected, **CLOSE[dtype])
    for mine, other in zip(gradients(got, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE[dtype])


def gradcheck(name):
    torch.autograd.gradcheck(CASES[name][0], tensors(name, device="cuda", gradient=True))


def attention(dtype):
    q, k, v = attention_tensors(dtype, "cuda")
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    torch.testing.assert_close(rt.attention(q, k, v, causal=True), expected, **CLOSE[dtype])


def compiled(name):
    ours = CASES[name][0]
    inputs = tensors(name, torch.float32, "cuda", gradient=True)
    torch._dynamo.reset()
    got, expected = torch.compile(ours, fullgraph=True)(*inputs), ours(*inputs)
    torch.testing.assert_close(got, expected)
    for mine, other in zip(gradients(got, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(mine, other)


# --- streams -------------------------------------------------------------------------------------------------------

def side_stream(name):
    """Inputs are written late on a separate stream: work on another stream would read zeros."""
    ours, theirs, _ = CASES[name]
    inputs = tensors(name, torch.float32, "cuda")
    expected = theirs(*inputs)
    late = [torch.zeros_like(each) for each in inputs]
    ours(*late)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        for each, value in zip(late, inputs):
            each.copy_(value)
        got = ours(*late)
        copy = got.clone()
    stream.synchronize()
    torch.testing.assert_close(copy, expected, **CLOSE[torch.float32])


def captured(name, warm):
    """Captures a step with its gradient in a CUDA graph, and replays it with other values."""
    ours, theirs, _ = CASES[name]
    inputs = tensors(name, torch.float32, "cuda", gradient=True)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3 if warm else 0):
            gradients(ours(*inputs), inputs)
    torch.cuda.synchronize()
    weights = random(*theirs(*inputs).shape, dtype=torch.float32, device="cuda", seed=99)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        y = ours(*inputs)
        found = torch.autograd.grad((y * weights).sum(), inputs)
    with torch.no_grad():
        for each in inputs:
            each.mul_(0.5)
    graph.replay()
    torch.cuda.synchronize()
    expected = theirs(*inputs)
    torch.testing.assert_close(y, expected, **CLOSE[torch.float32])
    for mine, other in zip(found, gradients(expected, inputs), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE[torch.float32])


def second_device():
    x = random(64, 64, dtype=torch.float32, device="cuda:1")
    with torch.cuda.device(0):
        torch.testing.assert_close(rt.softmax(x, -1), torch.softmax(x, -1))
        assert torch.cuda.current_device() == 0


# --- costs ---------------------------------------------------------------------------------------------------------

def cost(function, calls=2000, rounds=7):
    """Returns host time per call in us, the minimum of several rounds; the device is far from saturated."""
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, time.perf_counter() - start)
        torch.cuda.synchronize()
    return best / calls * 1e6


def print_costs():
    x = torch.randn(4, 8, device="cuda")
    y, z = torch.empty_like(x), x.clone().requires_grad_()
    op = torch.ops.rung.softmax.default
    rows = [("rung.softmax(x, out=y)", lambda: rung.softmax(x, out=y)),
            ("rung.torch.softmax(x, -1, out=y)", lambda: rt.softmax(x, -1, out=y)),
            ("rung.torch.softmax(x, -1)", lambda: rt.softmax(x, -1)),
            ("rung.torch.softmax(x, -1), gradient recorded", lambda: rt.softmax(z, -1)),
            ("torch.ops.rung.softmax(x, -1), by the dispatcher", lambda: op(x, -1)),
            ("torch.ops.rung.softmax(x, -1), gradient recorded", lambda: op(z, -1)),
            ("torch.softmax(x, -1, out=y)", lambda: torch.softmax(x, -1, out=y)),
            ("torch.softmax(x, -1)", lambda: torch.softmax(x, -1)),
            ("torch.softmax(x, -1), gradient recorded", lambda: torch.softmax(z, -1))]
    print(f"\nus per call, 4 x 8 float32, {torch.cuda.get_device_name()}, {platform.processor() or platform.machine()}")
    for name, function in rows:
        print(f"  {name:52}{cost(function):8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fast", action="store_true", help="no gradcheck, opcheck and torch.compile")
    fast = parser.parse_args().fast
    if not torch.cuda.is_available():
        sys.exit("check_torch_gpu.py: PyTorch finds no CUDA device")
    usable, why = rung.available("cuda")
    if not usable:
        sys.exit(f"check_torch_gpu.py: rung has no CUDA here: {why}")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, {os.cpu_count()} cores")
    for name in CASES:
        for dtype in CLOSE:
            check(f"results {name} {dtype}", results, name, dtype)
        check(f"side stream {name}", side_stream, name)
        check(f"CUDA graph {name}", captured, name, True)
    check("CUDA graph, first call of its stream", captured, "softmax_last", False)
    for dtype in CLOSE:
        check(f"attention {dtype}", attention, dtype)
    if torch.cuda.device_count() > 1:
        check("second device", second_device)
    if not fast:
        for name in CASES:
            check(f"gradcheck {name}", gradcheck, name)
        for at, (op, arguments) in enumerate(operator_calls("cuda")):
            check(f"opcheck {at} {op}", torch.library.opcheck, op.default, arguments)
        for name in ("softmax", "linear_gelu", "layer_norm", "conv2d", "max_pool2d", "cross_entropy"):
            check(f"torch.compile {name}", compiled, name)
    print_costs()
    print(f"{len(failures)} checks failed" if failures else "all checks passed")
    sys.exit(bool(failures))


main()
