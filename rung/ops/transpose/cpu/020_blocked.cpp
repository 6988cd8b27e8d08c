// SPDX-License-Identifier: Apache-2.0
// transpose / blocked
//
// Idea     Cache blocking: a block of x that fits the cache is transposed before the next, so that
//          the lines loaded for one column are still cached for the next column.
// Changes  Against naive: only the order in which elements are moved.
// Cost     Each line of x and y is loaded from memory once; a load and a store per element.
// Limits   Every valid call. Rows a power of two apart still compete for the ways of one set
//          (conflict misses), so blocks must be small.
// Source   M. Lam, E. Rothberg and M. Wolf, ASPLOS 1991.
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

namespace rung {
namespace transpose_cpu {

Grid element_grid(const Moves& m) { return {m, 32, 32}; }

void move_blocks(const Transpose::Args& args, cpu::Range blocks) {
  const Moves& m = args.moves;
  with_elements(m.element_bytes, [&]<class T>() {
    element_grid(m).for_each(blocks, [&](const BlockRange& block) {
      std::int64_t at[2];
      m.batch.offsets(block.matrix, at);
      const T* x = static_cast<const T*>(args.x.data) + at[1];
      T* y = static_cast<T*>(args.y.data) + at[0];
      for (std::int64_t j = block.column; j < block.column + block.columns; ++j) {
        for (std::int64_t i = block.row; i < block.row + block.rows; ++i) {
          const T* from = x + i * m.x_row + j * m.x_column;
          T* to = y + j * m.y_row + i * m.y_column;
          for (std::int64_t r = 0; r < m.run; ++r) to[r] = from[r];
        }
      }
    });
  });
}

}  // namespace transpose_cpu

namespace {

void run(const Transpose::Args& args, Context&) {
  transpose_cpu::move_blocks(args, {0, transpose_cpu::element_grid(args.moves).size()});
}

const Rung<Transpose> self{
    {.name = "blocked", .step = 20, .after = "naive", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
