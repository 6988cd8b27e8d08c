// SPDX-License-Identifier: Apache-2.0
// transpose / staged
//
// Idea     Tiles are staged in an L1 buffer, 4 tiles of x wide and 8 high: neighboring lines of x
//          are loaded together, and whole rows of the buffer are copied to y.
// Changes  Against simd: lines of rows a multiple of 4 KiB apart map to one set of L1 (4K
//          aliasing), where a half-used line is evicted. Staging uses neighboring lines at once.
// Cost     One more store and load per element, from L1.
// Limits   Gains only for many rows that map to the same sets: f32 1024 x 1024 takes 180 us instead
//          of 212, but 1000 x 1000 175 instead of 94 (2-core Zen 5 vCPU). Elements of at least 4
//          bytes, since the buffer of smaller ones would exceed L1; one thread.
#include "rung/cpu/foreach_target.hpp"

#include <algorithm>

#include "rung/cpu/transpose_tile-inl.hpp"
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {
namespace {
using namespace cpu::HWY_NAMESPACE;

/// Size of the buffer in lines of x and of y.
constexpr std::int64_t stage_across = 4;
constexpr std::int64_t stage_down = 8;
/// Bytes between rows of the buffer: an odd number of lines, so that rows start in different sets.
constexpr std::int64_t stage_pitch = (stage_down + 1) * line_bytes;

template <int bytes>
HWY_NOINLINE void fill_stage(const std::byte* x, std::int64_t x_row, std::byte* stage,
                             std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t side = tile_side<bytes>;
  for (std::int64_t row = 0; row < rows; row += side, x += side * x_row) {
    for (std::int64_t column = 0; column < columns; column += side) {
      transpose_tile<bytes>(x + column * bytes, x_row, stage + column * stage_pitch + row * bytes,
                            stage_pitch);
    }
  }
}

/// Copies `lines` lines of each row of the buffer to y.
HWY_INLINE void empty_stage(const std::byte* stage, std::byte* y, std::int64_t y_row,
                            std::int64_t columns, std::int64_t lines) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::int64_t step = static_cast<std::int64_t>(hn::MaxLanes(d));
  const auto copy = [&](std::int64_t at) HWY_ATTR {
    hn::StoreU(hn::Load(d, reinterpret_cast<const std::uint8_t*>(stage + at)), d,
               reinterpret_cast<std::uint8_t*>(y + at));
  };
  for (std::int64_t column = 0; column < columns; ++column, stage += stage_pitch, y += y_row) {
    if (HWY_LIKELY(lines == stage_down)) {
#pragma GCC unroll 16
      for (std::int64_t at = 0; at < stage_down * line_bytes; at += step) copy(at);
    } else {
      for (std::int64_t at = 0; at < lines * line_bytes; at += step) copy(at);
    }
  }
}

template <int bytes>
HWY_NOINLINE void staged(const TransposeBlock& b) {
  constexpr std::int64_t side = tile_side<bytes>;
  alignas(line_bytes) std::byte stage[stage_across * side * stage_pitch];
  const std::int64_t whole_rows = b.rows / side * side;
  const std::int64_t whole_columns = b.columns / side * side;
  for (std::int64_t j = 0; j < whole_columns; j += stage_across * side) {
    const std::int64_t columns = std::min(stage_across * side, whole_columns - j);
    for (std::int64_t i = 0; i < whole_rows; i += stage_down * side) {
      const std::int64_t rows = std::min(stage_down * side, whole_rows - i);
      fill_stage<bytes>(b.x + i * b.x_row + j * bytes, b.x_row, stage, rows, columns);
      empty_stage(stage, b.y + j * b.y_row + i * bytes, b.y_row, columns, rows / side);
    }
  }
  transpose_last_columns(b, 0, whole_rows);
  transpose_last_rows(b);
}

}  // namespace

void staged_block(const TransposeBlock& b) {
  with_elements(b.element_bytes, [&]<class T>() HWY_ATTR {
    if constexpr (sizeof(T) >= 4) staged<sizeof(T)>(b);
  });
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace transpose_cpu {
HWY_EXPORT(staged_block);
void transpose_staged(const TransposeBlock& block) { HWY_DYNAMIC_DISPATCH(staged_block)(block); }
}  // namespace transpose_cpu

namespace {
using namespace transpose_cpu;

Support supports(const Transpose::Args& args, const Context& context) {
  if (args.moves.element_bytes < 4) return unsupported("elements of 4 bytes and more");
  return require_tiles(args, context);
}

void run(const Transpose::Args& args, Context&) {
  const Grid grid = cached_grid(args.moves);
  grid.for_each({0, grid.size()},
                [&](const BlockRange& block) { transpose_staged(block_of(args, block)); });
}

const Rung<Transpose> self{{.name = "staged",
                            .step = 35,
                            .after = "simd",
                            .teaching = true,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
#endif
