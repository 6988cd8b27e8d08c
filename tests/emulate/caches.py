# SPDX-License-Identifier: Apache-2.0
"""Results of the cache model for tests/emulate/caches/caches.cu that can be calculated by hand.
usage: caches.py RUNG"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import compare_caches  # pylint: disable=wrong-import-position

N, SIDE, CUBE, WIDTH = 512, 2048, 128, 1024
MATRIX, IMAGE = 4 * N * N, 4 * SIDE * SIDE  # bytes
L1, L2 = "l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct"
EXPECTED = {
    # Two matrices are read from memory once; two operations per step.
    "gemm_coalesced": {"dram_read_bytes": 2 * MATRIX, "operations": 2 * N**3, "store_hits": 0},
    "gemm_uncoalesced": {"dram_read_bytes": 2 * MATRIX, "operations": 2 * N**3},
    # Each block loads each element of its tiles once: no reuse in L1. Of 16 blocks in a row one misses L2.
    "gemm_tiled": {"load_hits": 0, "dram_read_bytes": 2 * MATRIX, "operations": 2 * N**3,
                   L2: 100 * (1 - 2 * N * N / 8 / (2 * N * N / 8 * (N // 32) + N * N / 8))},
    # Loads miss both, stores hit L2.
    "transpose_tiled": {L1: 0, L2: 50, "dram_read_bytes": IMAGE, "operations": 0},
    # Stores of a column: 32 sectors per four that a warp loads. Eight warps store to a sector, and all but the first
    # hit.
    "transpose_naive": {L1: 100 * 28 / 36, L2: 100 * 32 / 36, "dram_read_bytes": IMAGE},
    "stencil_naive": {"operations": 6 * (CUBE - 2) ** 3},
    "reduce_blocks": {L1: 0, "dram_read_bytes": IMAGE, "operations": SIDE * SIDE + 528 * 255},
    "convolution_naive": {"operations": 2 * 25 * (SIDE - 4) ** 2},
    # Three passes over a row of 4 KiB, which fits in L1.
    "softmax_rows": {L1: 50, L2: 50, "dram_read_bytes": IMAGE},
    # L1 keeps stored sectors: a warp stores four sectors, and four more after it has loaded five.
    "store_then_load": {L1: 100 * 5 / 13},
    "load_then_store": {L1: 50, L2: 50, "load_hits": 0, "store_hits": IMAGE / 32},
    # 80 MiB twice through an L2 of 50 MiB: L1 has no hits.
    "sweep_twice": {"load_hits": 0},
}


def main():
    figures = compare_caches.simulate(sys.argv[1])
    wrong = [f"{kernel}: {name} is {figures[kernel][name]}, expected {value}"
             for kernel, expected in EXPECTED.items() for name, value in expected.items()
             if abs(figures[kernel][name] - value) > 1e-5 * abs(value) + 1e-9]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
