// SPDX-License-Identifier: Apache-2.0
// gemm: the tile sizes of the CPU ladder, copied from its rungs' files.
#include "rung/harness/explain_tiles.hpp"

#include "rung/cpu/isa.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung {
namespace {

ExplainProduct tiles_of(const Problem& problem) {
  ExplainProduct product;
  if (problem.extents.size() != 3 || problem.dtype != DType::f32) return product;
  product.m = static_cast<double>(problem.extents[0]);
  product.n = static_cast<double>(problem.extents[1]);
  product.k = static_cast<double>(problem.extents[2]);
  // A row of a register tile is a fixed number of vectors, so its length depends on the machine.
  const double strip = cpu::isa() == cpu::Isa::avx512 ? 64 : 16;
  product.tiles = {
      {.rung = "naive_ijk", .rows = 1, .columns = 1, .cache_rows = 1},
      {.rung = "loop_order_ikj", .rows = 1, .cache_rows = 1, .sums_move = true},
      {.rung = "register_tiled", .rows = 4, .columns = 8, .cache_rows = 4},
      {.rung = "cache_tiled",
       .rows = 1,
       .columns = 256,
       .cache_rows = 64,
       .cache_columns = 256,
       .sums_move = true},
      {.rung = "cache_and_register_tiled",
       .rows = 4,
       .columns = 8,
       .cache_rows = 64,
       .cache_columns = 64},
      {.rung = "simd_tile", .rows = 6, .columns = strip, .cache_columns = strip},
      {.rung = "packed_b", .rows = 6, .columns = strip, .cache_columns = strip},
  };
  return product;
}
const ExplainTiles<Gemm> explain_tiles{tiles_of};

}  // namespace
}  // namespace rung
