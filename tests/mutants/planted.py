# SPDX-License-Identifier: Apache-2.0
"""Plants faults in the kernels of an operator's rungs, one at a time, and expects `rung check` to fail.

usage: planted.py BUILD [--operator stencil] [--rung NAME]...
       planted.py BUILD --list    every fault; fails if a source no longer has what one is planted in

BUILD is a configured and built tree with the simulated GPU. The mutant's object replaces the original in a copy of
librung, as in barriers.py. Exit code 1 if a fault is not found."""
import argparse
import os
import pathlib
import sys
import tempfile

from barriers import SOURCE, Builder, run, rungs

# Per operator: rung, file (in the operator's folder), fault, original text and its replacement.
FAULTS = {
    "gemm": [
        ("short_k", "cuda/shapes/short_k.cu", "neighboring steps of k are exchanged",
         "factors[i] * b_values[step + i][j]", "factors[i] * b_values[step + (i ^ 1)][j]"),
        ("small_products", "cuda/shapes/small_products.cu", "an array's last element is not copied",
         "copy_flat(b_from, products * b_place.product, b_tile)",
         "copy_flat(b_from, products * b_place.product - 1, b_tile)"),
        ("small_products", "cuda/shapes/small_products.cu", "the next product's A begins an element too early",
         "SmallPlaces{outer * depth, depth, 1}", "SmallPlaces{outer * depth - (outer > 1), depth, 1}"),
        ("few_rows", "cuda/detail/lane_sums.hpp", "a lane keeps the half that it gives away",
         "const Sum kept = upper ? values[half + i] : values[i];", "const Sum kept = given;"),
        ("few_rows", "cuda/detail/lane_sums.hpp", "two lanes have the same share",
         "first += upper ? half : 0;", "first += 0;"),
        ("few_rows", "cuda/shapes/few_rows.cuh", "a step too many counts as whole",
         "k_needed <= k_left &&", "k_needed <= k_left + 1 &&"),
        ("dots", "cuda/shapes/dots.cuh", "the last element of a column is one of the next column",
         "p.m() == 1 ? element : element / p.m()", "p.m() == 1 ? element : (element + 1) / p.m()"),
        ("dots", "cuda/shapes/dots.cuh", "the last block forgets the last share",
         "split < call.splits; split +=", "split < call.splits - 1; split +="),
        ("dots", "cuda/shapes/dots.cuh", "the ticket stays drawn",
         "is_last_block(call.tickets + strip, call.splits,", "is_last_block(call.tickets + strip, call.splits - 1,"),
        ("split_k", "cuda/shapes/split_k.cu", "the workspace is an element too small",
         "workspace(static_cast<std::size_t>(plan.partial_elements())",
         "workspace(static_cast<std::size_t>(plan.partial_elements() - 1)"),
        ("mma_f64", "cuda/types/mma_f64.cu", "the second eight of 16 columns are the first eight",
         "b_values[part % 2][j / 2][j % 2]", "b_values[part % 2][j / 2][0]"),
        ("mma_f64", "cuda/types/mma_f64.cu", "a warp's later columns are its first 16",
         "warp_column + 16 * j,", "warp_column,"),
        ("mma_f64", "cuda/types/mma_f64.cu", "the last line does not exist",
         "i * lines_apart < lines_left &&", "i * lines_apart < lines_left - 1 &&"),
    ],
    "image": [
        ("register_rows", "cuda/025_register_rows.cu", "the neighbor to the right is not held to the border",
         "p.inside(element + p.group)", "(element + p.group)"),
        ("register_rows", "cuda/025_register_rows.cu", "alpha comes from the row below",
         "is_copied ? copied[1]", "is_copied ? copied[2]"),
    ],
    "pool": [
        ("register_window", "cuda/050_register_window.cu", "the last column takes the padding for an element",
         "column < g.columns.in;", "column <= g.columns.in;"),
        ("register_window", "cuda/050_register_window.cu", "averages at the rim are divided by all taps",
         "narrow_divisor<kind, Sum>(g.rows, g.columns, at, p.count_padding)", "Sum(Taps * Taps)"),
        ("warp_per_window", "cuda/shapes/warp_per_window.cu", "a window's last tap is left out where lanes come round",
         "tap < taps;", "tap < taps - taps / 33;"),
    ],
    "pool_backward": [
        ("register_window", "cuda/040_register_window.cu", "a window beyond the last counts",
         "ow < p.columns.out &&", "ow <= p.columns.out &&"),
        ("register_window", "cuda/040_register_window.cu", "the window in front reaches one element too far",
         "column - ow * Stride < Taps", "column - ow * Stride <= Taps"),
    ],
    "stencil": [
        ("window_sum_shared", "cuda/030_window_sum_shared.cu", "the last element of the right halo is not loaded",
         "thread < right &&", "thread < right - 1 &&"),
        ("window_sum_shared", "cuda/030_window_sum_shared.cu", "the right halo is off by one",
         "p.element(0, column + threads)", "p.element(0, column + threads - 1)"),
        ("tile_output_load_halo", "cuda/040_tile_output_load_halo.cu", "the last row of the halo is not loaded",
         "r < height; r +=", "r < height - 1; r +="),
        ("tile_input", "cuda/050_tile_input.cu", "one tap too many is taken for a ghost at the last column",
         "p.is_ghost(row + i - p.origin_row, column + j - p.origin_column)",
         "p.is_ghost(row + i - p.origin_row, column + j - p.origin_column + 1)"),
        ("halo_from_cache", "cuda/060_halo_from_cache.cu", "a column of the halo is read from the tile",
         "c >= 0 && c < side", "c >= 0 && c <= side"),
        ("register_queue_3d", "cuda/070_register_queue_3d.cu", "the last row of the halo is not loaded",
         "r < rows + down - 1; r +=", "r < rows + down - 2; r +="),
        ("vectorized", "cuda/080_vectorized.cu", "the last column of the halo is zero",
         "c < width + across - 1;", "c < width + across - 2;"),
        ("vectorized", "op/edge.hpp", "the mirror repeats the outermost element",
         "2 * (extent - 1)", "2 * extent - 1"),
        ("tma_tile", "cuda/090_tma_tile.sm90a.cu", "the box begins a row too low",
         "{first_row - down.origin,", "{first_row - down.origin + 1,"),
        ("temporal_blocking", "cuda/100_temporal_blocking.cu", "what lies outside takes part in later iterations",
         "(!exists[c] || at < 0 || at >= p.rows)", "false"),
        ("register_queue", "cuda/095_register_queue.cu", "the row below the last but one stands for the last",
         "if (at + R::ahead < last)", "if (at + R::ahead < last - 1)"),
        ("register_queue", "cuda/095_register_queue.cu", "the mirror repeats the outermost element",
         "return i < 0 ? -i : 2 * (extent - 1) - i;", "return i < 0 ? -i - 1 : 2 * (extent - 1) - i;"),
    ],
}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--operator", choices=sorted(FAULTS))
    arguments.add_argument("--rung", action="append", default=[])
    arguments.add_argument("--list", action="store_true")
    options = arguments.parse_args()
    builder = None if options.list else Builder(options.build.resolve())
    operators = [options.operator] if options.operator else sorted(FAULTS) if options.list else ["stencil"]
    alive = total = 0
    for operator, (rung, file, what, text, fault) in ((name, one) for name in operators for one in FAULTS[name]):
        if options.rung and rung not in options.rung:
            continue
        folder = SOURCE / "rung/ops" / operator
        total += 1
        changed = folder / file
        path = next(one for one, name in rungs(operator) if name == rung)
        source = changed.read_text(encoding="utf-8")
        if source.count(text) != 1:
            sys.exit(f"{file} has {source.count(text)} times what a fault is planted in, once is wanted: {text}")
        if options.list:
            print(f"{operator}/{rung}: {what}")
            continue
        with tempfile.TemporaryDirectory() as made:
            made, why = builder.make(pathlib.Path(made), path, changed, source.replace(text, fault))
            if made is None:
                sys.exit(f"{rung}: {what}: " + (f"does not build\n{why}" if why else "changes nothing"))
            checked = run([builder.build / "bin/rung", "check", f"{operator}/{rung}", "--backend", "simt",
                           "--variant", "plain", "--first-failure"],
                          env=dict(os.environ, LD_LIBRARY_PATH=str(made)))
        found = checked.returncode == 1 and "FAILED" in checked.stdout
        print(f"{'found' if found else 'LIVES'}  {rung}: {what}", flush=True)
        alive += 0 if found else 1
    print(f"{total} faults" if options.list else f"{total} faults, {alive} not found")
    return 1 if alive or not total else 0


if __name__ == "__main__":
    sys.exit(main())
