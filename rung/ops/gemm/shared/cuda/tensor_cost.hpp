// SPDX-License-Identifier: Apache-2.0
// Time model of tensor-core kernels, by which a call selects a rung and a rung selects its tile.
// The constants were measured on an H100.
//
//   launch + max(memory, start + waves * (k tiles * max(multiply, L2) + epilogue),
//                start + rounds * k tiles * latency) [+ slices]
// If only the tiles of the last wave are split, the formula applies to the full waves and to the
// split tiles separately.
//
// memory     compulsory bytes; persistent blocks, one per SM, reach slightly less bandwidth
// waves      ceil(tiles * slices / SMs), the tiles of the busiest SM; a round is as many tiles as
//            all SMs hold at a time
// multiply   2 rows columns depth at one SM's share of the tensor-core peak, times the tile's
//            efficiency
// L2         the tile's strips of A and B at one SM's share of L2's rate; a cluster reads one strip
//            once. Lines that do not begin at multiples of 128 bytes take 1.6 times as long
// slices     of k, if C has fewer tiles than there are SMs: partial sums go to L2 and back, and a
//            second kernel adds them
//
// The constants of the wgmma rungs' tiles are the best fit to 30 shapes times their tiles and
// slices, each timed on an H100: the model's choices take 1 % more time than the fastest on
// average, and at most 10 % (EXPERIMENTS.md).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Tile of C of a kernel, with the model's parameters.
struct TensorTile {
  int rows = 0, columns = 0;     // of a block, or of a cluster
  int blocks = 1;                // per cluster, which reads a shared strip once
  double reach = 1;              // fraction of the tensor-core peak with operands in shared memory
  double memory = 0.88;          // fraction of the memory bandwidth of the best kernels
  double start_seconds = 3e-6;   // until the first tile has arrived; later loads overlap
  double wave_seconds = 0;       // between the last product of a tile and the first of the next
  double step_seconds = 0.2e-6;  // minimum per tile of k, whatever its size: latency
  int resident = 1;              // blocks per SM, whose latencies overlap
  double epilogue_rate = 40e9;   // bytes of C per SM and second: TMA stores ...
  double strip_rate = 5e9;       // ... and stores by lanes, for unaligned rows of C
  bool slices_last = false;      // split-K only of the tiles of the last, partial wave
};

struct TensorPlan {
  int tile = 0;  // index of the tile
  int slices = 1;
  double seconds = 0;
};

constexpr std::int64_t slice_workspace = std::int64_t{32} << 20;  // bytes of partial sums

/// Returns the elements of k per tile: 128 bytes.
inline std::int64_t tile_depth(const Gemm::Args& args) {
  return 128 / static_cast<std::int64_t>(size_of(args.a.dtype));
}

/// Returns whether all lines of an operand begin at multiples of `bytes`, which is at least 16.
inline bool has_aligned_lines(const ConstTensorRef& matrix, std::int64_t bytes) {
  const std::int64_t element = static_cast<std::int64_t>(size_of(matrix.dtype));
  const bool rows = std::abs(matrix.strides[2]) <= std::abs(matrix.strides[1]);
  const int along = rows ? 2 : 1;
  const int line = rows ? 1 : 2;
  return (matrix.strides[along] == 1 || matrix.shape[along] <= 1) &&
         (matrix.strides[line] * element % bytes == 0 || matrix.shape[line] <= 1) &&
         (matrix.strides[0] * element % bytes == 0 || matrix.shape[0] <= 1) &&
         reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0;
}

/// Returns the estimated seconds of a tile with `slices` slices. `aligned`: lines begin at
/// multiples of 128 bytes.
inline double tensor_seconds(const Gemm::Args& args, const Context& context, const TensorTile& tile,
                             std::int64_t slices, bool aligned) {
  const NominalRates rates = nominal_rates(context);
  const double sms = context.info().sms;
  // nominal_rates counts 256 operations per SM and cycle; 16-bit tensor cores do 4096 (Hopper) or
  // 2048 (Ampere), tf32 half as many, 8-bit ones twice as many.
  const bool hopper = context.info().compute_capability >= 90;
  const double of_16_bits = rates.operations_per_second / sms / 256 * (hopper ? 4096 : 2048);
  const double rate = of_16_bits * 2 / static_cast<double>(size_of(args.a.dtype)) * tile.reach;
  const double l2_rate = (hopper ? 14.5e12 : 4.0e12) / sms / (aligned ? 1.0 : 1.6);
  const bool boxes = has_aligned_lines(args.c, 16);
  const double epilogue_rate = boxes ? tile.epilogue_rate : tile.strip_rate;

  const auto m = static_cast<double>(args.m());
  const auto n = static_cast<double>(args.n());
  const auto batch = static_cast<double>(args.batch());
  const double depth = args.alpha == 0 ? 0.0 : static_cast<double>(args.k());
  const double tiles = std::ceil(m / tile.rows) * std::ceil(n / tile.columns) * batch;
  const double at_once = std::floor(sms / tile.blocks);
  // Tiles that are computed whole, and tiles that are split along k.
  const double full = slices == 1        ? tiles
                      : tile.slices_last ? std::floor(tiles / at_once) * at_once
                                         : 0;
  const double cut = tiles - full;
  const double area = double{1} * tile.rows * tile.columns / tile.blocks;  // of a block
  // Rows and columns beyond the matrix are not read.
  const double rows = std::min<double>(tile.rows, m);
  const double columns = std::min<double>(tile.columns, n);
  const auto element = static_cast<double>(size_of(args.a.dtype));
  // Returns the seconds of `works` units of `k` steps, each with `out` bytes per element of C and
  // `besides` extra seconds.
  const auto in_waves = [&](double works, double k, double out, double besides) {
    const double waves = std::ceil(works / at_once);
    const double multiply = 2 * area * k / rate;
    const double l2 = (rows + columns) / tile.blocks * k * element / l2_rate;
    const double epilogue = area * out / epilogue_rate + besides + tile.wave_seconds;
    const double chain = std::ceil(waves / tile.resident) *
                         std::ceil(k / static_cast<double>(tile_depth(args))) * tile.step_seconds;
    return std::max(waves * (std::max(multiply, l2) + epilogue), chain);
  };
  const auto out = static_cast<double>(size_of(args.c.dtype));
  // A warp waits for its read of C once per 32 columns.
  constexpr double read_seconds = 0.7e-6;
  const double reads = args.beta != 0 ? std::ceil(columns / 32) / tile.resident * read_seconds : 0;
  const auto parts = static_cast<double>(slices);
  const double busy = tile.start_seconds + in_waves(full, depth, out, reads) +
                      in_waves(cut * parts, depth / parts, sizeof(float), 0);
  // Tiles that are mostly padding have few bytes in flight and reach less than half of the
  // bandwidth.
  const double filled = std::min(1.0, std::min(m, n) / 128);
  const double reached = tile.memory * (0.4 + 0.6 * filled);
  const double memory = Gemm::cost(args).bytes / rates.bytes_per_second / reached;
  double seconds = launch_seconds + std::max(busy, memory);
  if (slices > 1) {
    constexpr double end_seconds = 7e-6;    // launch of the second kernel, and the wait for it
    constexpr double partial_rate = 12e12;  // bytes per second, within L2
    const double partial = 2 * sizeof(float) * parts * cut * rows * columns;
    seconds += end_seconds + partial / partial_rate;
  }
  return seconds;
}

/// Returns the elements of the tiles in the last, partial wave.
inline double tensor_tiles_cut(const Gemm::Args& args, const Context& context,
                               const TensorTile& tile) {
  const double tiles = std::ceil(static_cast<double>(args.m()) / tile.rows) *
                       std::ceil(static_cast<double>(args.n()) / tile.columns) *
                       static_cast<double>(args.batch());
  return std::fmod(tiles, std::floor(static_cast<double>(context.info().sms) / tile.blocks)) *
         tile.rows * tile.columns;
}

/// Returns the fastest tile and number of slices. Slices are whole tiles of k, at least four.
template <std::size_t Tiles>
TensorPlan plan_tensor(const Gemm::Args& args, const Context& context,
                       const TensorTile (&tiles)[Tiles], bool aligned) {
  TensorPlan best;
  const std::int64_t k_tiles = (args.k() + tile_depth(args) - 1) / tile_depth(args);
  const double elements = static_cast<double>(args.m()) * static_cast<double>(args.n()) *
                          static_cast<double>(args.batch());
  for (int tile = 0; tile < static_cast<int>(Tiles); ++tile) {
    for (const int slices : {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128}) {
      const double cut =
          tiles[tile].slices_last ? tensor_tiles_cut(args, context, tiles[tile]) : elements;
      if (slices > 1 && (args.alpha == 0 || k_tiles < std::int64_t{4} * slices || cut == 0 ||
                         cut * 4 * slices > static_cast<double>(slice_workspace))) {
        break;
      }
      const double seconds = tensor_seconds(args, context, tiles[tile], slices, aligned);
      if (best.seconds == 0 || seconds < best.seconds) best = {tile, slices, seconds};
    }
  }
  // All slices but the last have the same number of k tiles, so there may be fewer slices.
  const std::int64_t each = (k_tiles + best.slices - 1) / best.slices;
  if (each > 0) best.slices = static_cast<int>((k_tiles + each - 1) / each);
  return best;
}

template <std::size_t Tiles>
TensorPlan plan_tensor(const Gemm::Args& args, const Context& context,
                       const TensorTile (&tiles)[Tiles]) {
  return plan_tensor(args, context, tiles,
                     has_aligned_lines(args.a, 128) && has_aligned_lines(args.b, 128));
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
