// SPDX-License-Identifier: Apache-2.0
// Work of kernels that compute C in tiles, from which their times are predicted
// (rung/core/work.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rung/core/work.hpp"
#include "rung/ops/gemm/shared/cuda/product.hpp"

namespace rung::gemm_cuda::inline RUNG_TARGET {

/// Returns the load imbalance: blocks of the busiest SM times the number of SMs, over all blocks.
inline double unevenness(double blocks, const Context& context) {
  const double sms = context.info().sms;
  return blocks > sms ? std::ceil(blocks / sms) * sms / blocks : 1;
}

/// Tiling of C by a kernel.
struct TileFacts {
  std::int64_t rows = 1, columns = 1, depth = 1;  // of a tile; depth: k per barrier
  std::int64_t resident = 1;                      // blocks per SM
  std::int64_t slices = 1;                        // slices of k, combined by a second kernel
  int cluster = 1;                                // blocks that share a tile
  bool stays = false;                             // persistent blocks
};

/// Returns the work of a tiled kernel. Operations are those of the SM with the most tiles times the
/// number of SMs, padding included. Tensor cores process half as many operands of twice the size in
/// the same time.
inline Work tile_work(const Gemm::Args& args, const Context& context, const TileFacts& tile,
                      bool tensor_cores = false) {
  const auto sms = static_cast<double>(context.info().sms / tile.cluster);
  const auto k = static_cast<double>(args.alpha == 0 ? 0 : args.k());
  const auto size = static_cast<double>(size_of(args.a.dtype));
  const double tiles = static_cast<double>(tiles_of(args.m(), tile.rows)) *
                       static_cast<double>(tiles_of(args.n(), tile.columns)) *
                       static_cast<double>(args.batch() * tile.slices);
  const double turns = std::ceil(tiles / sms);
  const double rounds = std::ceil(k / static_cast<double>(tile.slices * tile.depth));
  const double whole = turns * sms * 2 * static_cast<double>(tile.rows * tile.columns) *
                       (rounds + 1) * static_cast<double>(tile.depth);
  // Steps are the bytes that a block loads, clipped to the matrices.
  const auto lines = static_cast<double>(std::min(tile.rows, args.m()) / tile.cluster +
                                         std::min(tile.columns, args.n()));
  const double partial = tile.slices == 1
                             ? 0
                             : 2.0 * sizeof(float) * static_cast<double>(tile.slices * args.m()) *
                                   static_cast<double>(args.n() * args.batch());
  const double of_block = tile.stays ? turns : 1;
  const double blocks = tile.cluster * (tile.stays ? std::min(tiles, sms) : tiles);
  return {.bytes = Gemm::cost(args).bytes + partial,
          .operations = whole * (tensor_cores ? size / 2 : 1),
          .launches = tile.slices == 1 ? 1 : 2,
          .blocks = blocks,
          .resident = tile.resident,
          .rounds = of_block * rounds,
          .steps = unevenness(blocks, context) * of_block * lines * rounds *
                   static_cast<double>(tile.depth) * size};
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET
