// SPDX-License-Identifier: Apache-2.0
// transpose / blocked
//
// Idea     a block of x small enough for the cache is transposed before the next is touched: the
//          lines that a column of it runs through are still there for the column beside it.
// Changes  against naive: the order in which elements are moved, nothing else.
// Cost     each line of x and y comes from memory once; element by element, a load and a store
//          each.
// Limits   every valid call. Rows a power of two apart still compete for the few places of one set
//          of the cache, so that blocks must be small; and one element an instruction is slow.
// Tried    -
// Source   M. Lam, E. Rothberg and M. Wolf, ASPLOS 1991.
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

namespace rung {
namespace {
using namespace transpose_cpu;

constexpr std::int64_t side = 32;

template <class T>
void blocked(const Transpose::Args& args) {
  const Grid grid(args.moves, side, side);
  for_each_block(grid, {0, grid.size()}, [&](const Place& place) { move_block<T>(args, place); });
}

void run(const Transpose::Args& args, Context&) {
  with_elements(args, [&]<class T>() { blocked<T>(args); });
}

const Rung<Transpose> self{
    {.name = "blocked", .step = 20, .after = "naive", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
