#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_pytorch.py [OUT.json]: times PyTorch's softmax, layer norm and attention on a GPU.

The shapes and types are the defaults of `rung bench softmax`, `norm` and `attention` on a GPU (attention: PyTorch's
backends flash and cudnn), and rows have the format of a peer's rows. For a comparison, run both in the same session on
the same machine. Inputs of softmax and norm rotate through buffers that together exceed the L2 cache several times, so
that every call finds its input in memory; attention's inputs exceed it by themselves. The time is the median over
calls, each between two events of the stream, after a warm-up.
"""

import itertools
import json
import statistics
import sys

import torch

SHAPES = [(65536, 1024), (16384, 4096), (4096, 16384), (8192, 32768), (2048, 131072)]
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
# Batch, heads, queries, width, heads of keys, keys, causal.
ATTENTION = [(2, 32, 8192, 64, 32, 8192, False), (2, 32, 8192, 128, 32, 8192, False),
             (2, 32, 8192, 128, 32, 8192, True), (2, 16, 8192, 256, 16, 8192, True),
             (32, 64, 1, 128, 8, 8192, False), (128, 64, 1, 128, 8, 32768, False),
             (32, 64, 8, 128, 8, 8192, False)]
CALLS = 51  # timed calls; odd, so that the median is one of them
WARM_UP = 5
L2_TIMES = 4  # the inputs together have this many times the size of L2


def seconds_of(call, inputs):
    """Returns the times of CALLS calls, which cycle through the inputs."""
    for i in range(WARM_UP):
        call(inputs[i % len(inputs)])
    events = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
        for _ in range(CALLS)
    ]
    torch.cuda.synchronize()
    for i, (begin, end) in enumerate(events):
        begin.record()
        call(inputs[i % len(inputs)])
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) / 1e3 for begin, end in events]


def row(op, problem, times, amount, rung="pytorch", unit="GB/s"):
    """Returns a row in the format of `rung bench --json`, with null for fields that only rung knows. `amount`: bytes or
    operations."""
    median = statistics.median(times)
    quartiles = statistics.quantiles(times, n=4)
    return {
        "op": op,
        "rung": rung,
        "backend": "cuda",
        "peer": True,
        "problem": problem,
        "seconds": median,
        "spread": (quartiles[2] - quartiles[0]) / median,
        "rate": amount / median / 1e9,
        "unit": unit,
        "of_ceiling": None,
        "vs_peer": None,
        "step": 0,
        "threads": 0,
        "rounds": len(times),
        "chosen": "",
        "note": f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}",
        "failed": False,
    }


def measure():
    # Fallback for older versions of PyTorch, which do not report the size; no current GPU has more.
    l2_bytes = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 128 << 20)
    for type_name, dtype in TYPES.items():
        for rows, columns in SHAPES:
            shape = f"{type_name} {rows}x{columns}"
            size = rows * columns * dtype.itemsize
            count = max(2, -(-L2_TIMES * l2_bytes // size))
            inputs = [
                torch.randn(rows, columns, device="cuda").to(dtype) for _ in range(count)
            ]
            gamma = torch.randn(columns, device="cuda").to(dtype)
            beta = torch.randn(columns, device="cuda").to(dtype)
            with torch.no_grad():
                softmax = seconds_of(lambda x: torch.softmax(x, -1), inputs)
                norm = seconds_of(
                    lambda x: torch.nn.functional.layer_norm(x, (columns,), gamma, beta, 1e-5),
                    inputs,
                )
            yield row("softmax", shape, softmax, 2 * size)
            weights = 2 * columns * dtype.itemsize
            yield row("norm", f"{shape},gamma,beta", norm, 2 * size + weights)
            del inputs
            torch.cuda.empty_cache()


def measure_attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    for batch, heads, queries, width, kv_heads, keys, causal in ATTENTION:
        q = torch.randn(batch, heads, queries, width, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.randn(batch, kv_heads, keys, width, device="cuda", dtype=torch.bfloat16)
                for _ in range(2))
        problem = f"bf16 {batch}x{heads}x{queries}x{width}" + ("" if kv_heads == heads else f",kv={kv_heads}") + (
            "" if keys == queries else f",keys={keys}") + (",causal" if causal else "")
        reads = queries * heads // kv_heads < 256  # memory-bound
        amount = (2 * 2 * (q.numel() + k.numel()) if reads else
                  4 * batch * heads * width * queries * keys * (0.5 if causal else 1))
        for rung, backend in ("pytorch_flash", SDPBackend.FLASH_ATTENTION), (
                "pytorch_cudnn", SDPBackend.CUDNN_ATTENTION):
            def call(x):
                with sdpa_kernel(backend):
                    torch.nn.functional.scaled_dot_product_attention(
                        x, k, v, is_causal=causal, enable_gqa=kv_heads != heads)
            try:
                times = seconds_of(call, [q])
            except RuntimeError:
                continue  # the backend does not support the shape
            yield row("attention", problem, times, amount, rung, "GB/s" if reads else "GFLOP/s")
        del q, k, v
        torch.cuda.empty_cache()


def main():
    if len(sys.argv) > 2 or sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(sys.argv) == 2 else 2
    if not torch.cuda.is_available():
        print("bench_pytorch.py: PyTorch finds no GPU here", file=sys.stderr)
        return 1
    rows = []
    for one in itertools.chain(measure(), measure_attention()):
        rows.append(one)
        print(f"{one['op']:9} {one['problem']:38} {one['seconds'] * 1e6:10.1f} us "
              f"{one['rate']:8.0f} {one['unit']}  {one['rung']}", file=sys.stderr)
    text = json.dumps({"machine": {"gpu": torch.cuda.get_device_name(0)}, "rows": rows}, indent=1)
    if len(sys.argv) == 2:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
