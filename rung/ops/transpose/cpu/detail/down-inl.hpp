// SPDX-License-Identifier: Apache-2.0
//
// Past the caches down the rows of x, a few lines wide: every tile leaves for memory, line by line,
// while the next one is loaded.
//
// A tile has to be loaded whole before its first line can leave. Loads in a bunch and then
// streaming stores in a bunch wait for each other, wherever the lines go: 8191 x 8193 f32 takes 25
// ms even if they go to y one after another, and 15 when one leaves after every fourth piece loaded
// (2-core Zen 5 vCPU, one thread).
#if defined(RUNG_OPS_TRANSPOSE_CPU_DOWN_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_OPS_TRANSPOSE_CPU_DOWN_INL_HPP_
#undef RUNG_OPS_TRANSPOSE_CPU_DOWN_INL_HPP_
#else
#define RUNG_OPS_TRANSPOSE_CPU_DOWN_INL_HPP_
#endif

#include "rung/core/export.hpp"
#include "rung/ops/transpose/cpu/detail/stream-inl.hpp"

// A line must be a vector.
#if HWY_TARGET <= HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace rung::transpose_cpu::HWY_NAMESPACE {

/// One tile of elements of 4 bytes or more, into a buffer with a line for each of its columns.
/// Between the loads, step(k) is called once for each of these.
template <int bytes, class Step>
HWY_INLINE void transpose_in_steps(const std::byte* x, std::int64_t x_row, std::byte* to,
                                   Step&& step) {
  using T = typename LaneOf<bytes>::Type;
  const hn::ScalableTag<T> d;
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
      hn::Store(v[s][j], d, reinterpret_cast<T*>(to + (s * per_block + j) * line_bytes));
    }
  }
}

/// A band of x, `wide` lines, from its first row to the last whole tile. `shifted`: y's rows do not
/// begin with lines, and each line is combined from two tiles.
template <int bytes, int wide, bool shifted>
class BandDown {
 public:
  static constexpr std::int64_t side = tile_side<bytes>;
  /// A tile that leaves needs the one above it, while one below is filled.
  static constexpr int slots = 3;
  static constexpr std::int64_t tiles_bytes = slots * wide * side * line_bytes;

  /// Columns from `column` on, of which the first `done` have been written already. `tiles` has
  /// tiles_bytes: as a member it would keep the others in memory.
  HWY_INLINE BandDown(const Block& b, std::byte* tiles, std::int64_t column, std::int64_t done)
      : b_(b),
        tiles_(tiles),
        column_(column),
        done_(done),
        whole_(b.rows / side * side),
        straddles_(((reinterpret_cast<std::uintptr_t>(b.x) | static_cast<std::uintptr_t>(b.x_row)) &
                    (line_bytes - 1)) != 0) {}

  HWY_INLINE void run() {
    std::int64_t last_row = -1;  // of the tile that is to leave
    int last_line = 0;
    int last_slot = 0;
    int slot = 0;
    for (std::int64_t row = 0; row < whole_; row += side, slot = after(slot)) {
      const std::byte* const fetched = far_below(row);
      for (int line = 0; line < wide; ++line) {
        const std::byte* const x = b_.x + row * b_.x_row + (column_ + line * side) * bytes;
        const std::byte* const fetch = fetched + line * line_bytes;
        const bool beyond = straddles_ && line == wide - 1;
        const auto ask = [&](int k) HWY_ATTR RUNG_ALWAYS_INLINE {
          __builtin_prefetch(fetch + k * b_.x_row, 0, 2);
          if (beyond) __builtin_prefetch(fetch + k * b_.x_row + line_bytes, 0, 2);
        };
        if (HWY_LIKELY(last_row > 0 || (!shifted && last_row == 0))) {
          transpose_in_steps<bytes>(x, b_.x_row, tile(slot, line),
                                    [&](int k) HWY_ATTR RUNG_ALWAYS_INLINE {
                                      leave(last_row, last_line, last_slot, k);
                                      ask(k);
                                    });
        } else {
          transpose_in_steps<bytes>(x, b_.x_row, tile(slot, line), ask);
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
      for (int k = 0; k < side; ++k) leave(last_row, last_line, last_slot, k);
    }
    if constexpr (shifted) end_lines(last_slot);
  }

 private:
  /// Tiles of rows that are fetched ahead. (1: 21 ms in place of 15, 8: 16 to 20.)
  static constexpr std::int64_t tiles_ahead = 4;

  static HWY_INLINE int after(int slot) { return slot + 1 == slots ? 0 : slot + 1; }
  static HWY_INLINE int before(int slot) { return slot == 0 ? slots - 1 : slot - 1; }

  HWY_INLINE std::byte* tile(int slot, int line) {
    return tiles_ + (slot * wide + line) * side * line_bytes;
  }
  HWY_INLINE std::byte* y_of(std::int64_t row, int line, int k) const {
    return b_.y + (column_ + line * side + k) * b_.y_row + row * bytes;
  }

  /// x some tiles below: where the band ends, of the band beside it.
  [[nodiscard]] HWY_INLINE const std::byte* far_below(std::int64_t row) const {
    std::int64_t below = row + tiles_ahead * side;
    std::int64_t column = column_;
    if (below >= whole_) {
      below = std::min(below - whole_, row);
      column += wide * side;
    }
    return b_.x + below * b_.x_row + column * bytes;
  }

  /// Line k of a tile goes to memory.
  HWY_INLINE void leave(std::int64_t row, int line, int slot, int k) {
    using T = typename LaneOf<bytes>::Type;
    const hn::ScalableTag<T> d;
    if (wide == 1 && k < done_) return;
    std::byte* const to = y_of(row, line, k);
    const auto load = [&](int which) HWY_ATTR RUNG_ALWAYS_INLINE {
      return hn::Load(d, reinterpret_cast<const T*>(tile(which, line) + k * line_bytes));
    };
    if constexpr (shifted) {
      const std::int64_t skew = skew_of(to);
      const auto whole_line = shift_in(d, load(before(slot)), load(slot), skew);
      hn::Stream(whole_line, d, reinterpret_cast<T*>(to - skew));
    } else {
      hn::Stream(load(slot), d, reinterpret_cast<T*>(to));
    }
  }

  /// The first tile's lines: what precedes in the same line of y is not ours.
  HWY_INLINE void begin_lines(int line, int slot) {
    for (int k = 0; k < side; ++k) {
      if (k < done_) continue;
      std::byte* const to = y_of(0, line, k);
      copy_short(tile(slot, line) + k * line_bytes, to, line_bytes - skew_of(to));
    }
  }
  /// The end of the last tiles' lines belongs into lines of y that are not full.
  HWY_INLINE void end_lines(int slot) {
    for (int line = 0; line < wide; ++line) {
      for (int k = 0; k < side; ++k) {
        if (k < done_) continue;
        std::byte* const end = y_of(whole_, line, k);
        const std::int64_t skew = skew_of(end);
        copy_short(tile(slot, line) + (k + 1) * line_bytes - skew, end - skew, skew);
      }
    }
  }

  Block b_;
  std::byte* tiles_;
  std::int64_t column_;
  std::int64_t done_;
  std::int64_t whole_;
  bool straddles_;
};

/// At least a tile each way; the last rows, less than a tile, are left.
template <int bytes, bool shifted>
HWY_NOINLINE void stream_down(const Block& b) {
  constexpr std::int64_t side = tile_side<bytes>;
  constexpr int wide = 4;  // lines of x: 2 or 8 take 17 ms in place of 15, 1 takes 24
  alignas(line_bytes) std::byte tiles[BandDown<bytes, wide, shifted>::tiles_bytes];
  std::int64_t j = 0;
  for (; j + wide * side <= b.columns; j += wide * side) {
    BandDown<bytes, wide, shifted>(b, tiles, j, 0).run();
  }
  for (; j < b.columns; j += side) {
    // The last tiles reach back over columns that are done.
    const std::int64_t column = std::min(j, b.columns - side);
    BandDown<bytes, 1, shifted>(b, tiles, column, j - column).run();
  }
}

}  // namespace rung::transpose_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // the guard flips with each target
