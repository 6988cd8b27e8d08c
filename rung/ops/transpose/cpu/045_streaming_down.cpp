// SPDX-License-Identifier: Apache-2.0
// transpose / streaming down
//
// Idea     Software pipelining of tiles: bands four lines wide run down the rows of x, and each
//          line of a tile is stored while the next tile is loaded.
// Changes  Against streaming: bursts of loads and bursts of non-temporal stores no longer wait for
//          each other. 8191 x 8193 f32 takes 15 ms instead of 25 (2-core Zen 5 vCPU, one thread).
// Cost     Every byte of x and y once; three tiles per line of the band in L1.
// Limits   The many rows in flight must not map to one set of the caches: rows of x must not be a
//          multiple of 4 KiB apart (8192 x 8192 takes 20 to 35 ms instead of 18). AVX-512, elements
//          of at least 4 bytes; one thread.
#include "rung/cpu/foreach_target.hpp"

#include <hwy/cache_control.h>

#include <algorithm>

#include "rung/core/export.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/cpu/transpose_tile-inl.hpp"
#include "rung/ops/transpose/cpu/detail/blocks.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {
namespace {
using namespace cpu::HWY_NAMESPACE;

#if HWY_TARGET <= HWY_AVX3  // a vector is a line
/// Transposes one tile to a buffer with a line per column, and calls step(k) between the loads,
/// once per column.
template <int bytes, class Step>
HWY_INLINE void transpose_in_steps(const std::byte* x, std::int64_t x_row, std::byte* to,
                                   Step&& step) {
  const hn::ScalableTag<LaneOf<bytes>> d;
  constexpr int per_block = 16 / bytes;
  hn::Vec<decltype(d)> v[4][per_block];
#pragma GCC unroll 4
  for (int j = 0; j < per_block; ++j) {
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) {
      v[s][j] = load_blocks(d, x + j * x_row + s * 16, per_block * x_row);
      step(4 * j + s);
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
    transpose_in_blocks<per_block>(d, v[s]);
#pragma GCC unroll 4
    for (int j = 0; j < per_block; ++j) {
      hn::Store(v[s][j], d,
                reinterpret_cast<LaneOf<bytes>*>(to + (s * per_block + j) * line_bytes));
    }
  }
}

/// Transposes a band of x, `wide` lines, from its first row to the last whole tile. `shifted`: y's
/// rows do not start on lines, and each line is combined from two tiles.
template <int bytes, int wide, bool shifted>
class BandDown {
 public:
  static constexpr std::int64_t side = tile_side<bytes>;
  /// Tile buffers: storing a tile needs the tile above it, while the tile below is filled.
  static constexpr int slots = 3;
  static constexpr std::int64_t tiles_bytes = slots * wide * side * line_bytes;

  /// Prepares columns from `column` on, the first `done` of which have been stored already. `tiles`
  /// points to tiles_bytes bytes; as a member array it would keep the other members in memory
  /// instead of registers.
  HWY_INLINE BandDown(const TransposeBlock& b, std::byte* tiles, std::int64_t column,
                      std::int64_t done)
      : b_(b),
        tiles_(tiles),
        column_(column),
        done_(done),
        whole_(b.rows / side * side),
        straddles_(((reinterpret_cast<std::uintptr_t>(b.x) | static_cast<std::uintptr_t>(b.x_row)) &
                    (line_bytes - 1)) != 0) {}

  HWY_INLINE void run() {
    std::int64_t last_row = -1;  // last row of the tile to store
    int last_line = 0;
    int last_slot = 0;
    int slot = 0;
    for (std::int64_t row = 0; row < whole_; row += side, slot = after(slot)) {
      const std::byte* const below = far_below(row);
      for (int line = 0; line < wide; ++line) {
        const std::byte* const x = b_.x + row * b_.x_row + (column_ + line * side) * bytes;
        const std::byte* const next = below + line * line_bytes;
        const bool beyond = straddles_ && line == wide - 1;
        const auto prefetch = [&](int k) HWY_ATTR RUNG_ALWAYS_INLINE {
          __builtin_prefetch(next + k * b_.x_row, 0, 2);
          if (beyond) __builtin_prefetch(next + k * b_.x_row + line_bytes, 0, 2);
        };
        if (HWY_LIKELY(last_row > 0 || (!shifted && last_row == 0))) {
          transpose_in_steps<bytes>(x, b_.x_row, tile(slot, line),
                                    [&](int k) HWY_ATTR RUNG_ALWAYS_INLINE {
                                      store(last_row, last_line, last_slot, k);
                                      prefetch(k);
                                    });
        } else {
          transpose_in_steps<bytes>(x, b_.x_row, tile(slot, line), prefetch);
          if (shifted && last_row == 0) begin_lines(last_line, last_slot);
        }
        last_row = row;
        last_line = line;
        last_slot = slot;
      }
    }
    if (shifted && last_row == 0) {
      begin_lines(last_line, last_slot);
    } else {
      for (int k = 0; k < side; ++k) store(last_row, last_line, last_slot, k);
    }
    if constexpr (shifted) end_lines(last_slot);
  }

 private:
  /// Prefetch distance in tiles of rows. (1: 21 ms instead of 15; 8: 16 to 20.)
  static constexpr std::int64_t tiles_ahead = 4;

  static HWY_INLINE int after(int slot) { return slot + 1 == slots ? 0 : slot + 1; }
  static HWY_INLINE int before(int slot) { return slot == 0 ? slots - 1 : slot - 1; }

  HWY_INLINE std::byte* tile(int slot, int line) {
    return tiles_ + (slot * wide + line) * side * line_bytes;
  }
  HWY_INLINE std::byte* y_of(std::int64_t row, int line, int k) const {
    return b_.y + (column_ + line * side + k) * b_.y_row + row * bytes;
  }

  /// Returns the address in x `tiles_ahead` tiles below; past the band's end, in the next band.
  [[nodiscard]] HWY_INLINE const std::byte* far_below(std::int64_t row) const {
    std::int64_t below = row + tiles_ahead * side;
    std::int64_t column = column_;
    if (below >= whole_) {
      below = std::min(below - whole_, row);
      column += wide * side;
    }
    return b_.x + below * b_.x_row + column * bytes;
  }

  /// Stores line k of a tile to memory.
  HWY_INLINE void store(std::int64_t row, int line, int slot, int k) {
    using Lane = LaneOf<bytes>;
    const hn::ScalableTag<Lane> d;
    if (wide == 1 && k < done_) return;
    std::byte* const to = y_of(row, line, k);
    const auto load = [&](int which) HWY_ATTR RUNG_ALWAYS_INLINE {
      return hn::Load(d, reinterpret_cast<const Lane*>(tile(which, line) + k * line_bytes));
    };
    if constexpr (shifted) {
      const std::int64_t skew = cpu::line_offset(to);
      const auto whole_line = shift_in(d, load(before(slot)), load(slot), skew);
      hn::Stream(whole_line, d, reinterpret_cast<Lane*>(to - skew));
    } else {
      hn::Stream(load(slot), d, reinterpret_cast<Lane*>(to));
    }
  }

  /// Stores the first tile's lines, without the bytes before them in the same line of y, which
  /// belong to other rows.
  HWY_INLINE void begin_lines(int line, int slot) {
    for (int k = 0; k < side; ++k) {
      if (k < done_) continue;
      std::byte* const to = y_of(0, line, k);
      cpu::copy_short(tile(slot, line) + k * line_bytes, to, line_bytes - cpu::line_offset(to));
    }
  }
  /// Stores the end of the last tiles' lines to the partial lines of y.
  HWY_INLINE void end_lines(int slot) {
    for (int line = 0; line < wide; ++line) {
      for (int k = 0; k < side; ++k) {
        if (k < done_) continue;
        std::byte* const end = y_of(whole_, line, k);
        const std::int64_t skew = cpu::line_offset(end);
        cpu::copy_short(tile(slot, line) + (k + 1) * line_bytes - skew, end - skew, skew);
      }
    }
  }

  TransposeBlock b_;
  std::byte* tiles_;
  std::int64_t column_;
  std::int64_t done_;
  std::int64_t whole_;
  bool straddles_;
};

template <int bytes, bool shifted>
HWY_NOINLINE void stream_bands(const TransposeBlock& b) {
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr int wide = 4;  // lines of x: 2 or 8 take 17 ms instead of 15, 1 takes 24
  alignas(line_bytes) std::byte tiles[BandDown<bytes, wide, shifted>::tiles_bytes];
  std::int64_t j = 0;
  for (; j + wide * side <= b.columns; j += wide * side) {
    BandDown<bytes, wide, shifted>(b, tiles, j, 0).run();
  }
  for (; j < b.columns; j += side) {
    // The last tiles overlap finished columns.
    const std::int64_t column = std::min(j, b.columns - side);
    BandDown<bytes, 1, shifted>(b, tiles, column, j - column).run();
  }
  transpose_last_rows(b);
}
#endif

}  // namespace

void stream_bands_down(const TransposeBlock& b) {
#if HWY_TARGET <= HWY_AVX3
  with_elements(b.element_bytes, [&]<class T>() HWY_ATTR {
    if constexpr (sizeof(T) >= 4) {
      const bool aligned = cpu::line_offset(b.y) == 0 && b.y_row % line_bytes == 0;
      aligned ? stream_bands<sizeof(T), false>(b) : stream_bands<sizeof(T), true>(b);
    }
  });
  hwy::FlushStream();
#else
  transpose_tiles(b);
#endif
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace transpose_cpu {
HWY_EXPORT(stream_bands_down);
void stream_down(const TransposeBlock& block) { HWY_DYNAMIC_DISPATCH(stream_bands_down)(block); }
}  // namespace transpose_cpu

namespace {
using namespace transpose_cpu;

Support supports(const Transpose::Args& args, const Context& context) {
  if (cpu::isa() != cpu::Isa::avx512) return unsupported("needs AVX-512");
  if (!args.moves.empty() && !goes_down(args.moves)) {
    return unsupported("elements of 4 bytes and more, rows of x no multiple of 4 KiB apart");
  }
  return require_tiles(args, context);
}

void run(const Transpose::Args& args, Context&) {
  const Grid grid = streaming_grid(args.moves, any_rows);
  grid.for_each({0, grid.size()},
                [&](const BlockRange& block) { stream_down(block_of(args, block)); });
}

const Rung<Transpose> self{{.name = "streaming_down",
                            .step = 45,
                            .after = "streaming",
                            .teaching = true,
                            .supports = supports,
                            .run = run}};

}  // namespace
}  // namespace rung
#endif
