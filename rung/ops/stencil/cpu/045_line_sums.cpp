// SPDX-License-Identifier: Apache-2.0
// stencil / line sums
//
// Idea     The block sums of 026 with whole lines in place of elements: a window of m rows is a
//          suffix of one block of m lines and a prefix of the next block, so that three additions
//          of lines make a row. Along a row, sums of 2, 4, 8 and 16 neighbors are built by
//          doubling.
// Changes  Against simd: at most 11 additions per element for a window of any size, instead of m +
//          n multiply-adds. Against block_sums: unit stride and no dependency chain of additions.
// Cost     Ring buffer of 3 m lines, mostly in L2. x loaded once, y stored once.
// Limits   Windows of one or two axes, with more than 3 rows or columns; one thread.
// Source   See 026_block_sums.cpp.
#include <algorithm>

#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/prefetch.hpp"
#include "rung/ops/stencil/cpu/detail/passes.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::stencil_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace words = rung::cpu::HWY_NAMESPACE;

/// Computes out = scale * (a + b + c), omitting null lines; `out` may alias a, b or c.
template <class T>
void add_lines(const T* a, const T* b, const T* c, T scale, T* out, std::int64_t length,
               bool streams) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto s = hn::Set(d, scale);
  const auto result = [&](std::int64_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, a + i);
    if (b != nullptr) sum = hn::Add(sum, hn::LoadU(d, b + i));
    if (c != nullptr) sum = hn::Add(sum, hn::LoadU(d, c + i));
    return hn::Mul(sum, s);
  };
  std::int64_t j = 0;
  if (streams) {
    for (; j + lanes <= length; j += lanes) hn::Stream(result(j), d, out + j);
  } else {
    for (; j + lanes <= length; j += lanes) hn::StoreU(result(j), d, out + j);
  }
  if (j < length) words::store_as_n(result(j), d, out + j, static_cast<std::size_t>(length - j));
}

/// Computes out[j] = from[j] + ... + from[j + taps - 1]: builds sums of 2, 4, 8 and 16 neighbors by
/// doubling, then adds those that the binary digits of `taps` select. Works on segments that stay
/// in L1. Reads nothing of `from` beyond the last window if `length` is a multiple of 64 bytes.
template <class T>
void sum_along(const T* from, int taps, T* out, std::int64_t length) {
  constexpr std::int64_t piece = 512;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  HWY_ALIGN T levels[4][piece + 2 * line_slack];
  for (std::int64_t at = 0; at < length; at += piece) {
    const std::int64_t columns = std::min(piece, length - at);
    const T* sums[5] = {from + at, levels[0], levels[1], levels[2], levels[3]};
    for (int level = 1; 1 << level <= taps; ++level) {
      const int half = 1 << level >> 1;
      const std::int64_t count = columns + taps - 2 * half;
      const T* const in = sums[level - 1];
      T* const to = levels[level - 1];
      std::int64_t j = 0;
      for (; j + lanes <= count; j += lanes) {
        hn::Store(hn::Add(hn::LoadU(d, in + j), hn::LoadU(d, in + j + half)), d, to + j);
      }
      if (j < count) {  // no read beyond the end of `from`
        const auto n = static_cast<std::size_t>(count - j);
        hn::Store(hn::Add(words::load_as_n(d, in + j, n), words::load_as_n(d, in + j + half, n)), d,
                  to + j);
      }
    }
    for (std::int64_t j = 0; j < columns; j += lanes) {
      auto sum = hn::Zero(d);
      std::int64_t shift = 0;
      for (int level = 0; 1 << level <= taps; ++level) {
        if ((taps >> level & 1) == 0) continue;
        const auto part = hn::LoadU(d, sums[level] + j + shift);
        sum = shift == 0 ? part : hn::Add(sum, part);
        shift += 1 << level;
      }
      if (j + lanes <= columns) {
        hn::StoreU(sum, d, out + at + j);
      } else {
        words::store_as_n(sum, d, out + at + j, static_cast<std::size_t>(columns - j));
      }
    }
  }
}

/// Computes the tiles of one pass on one thread.
template <class S>
void sum_range(const Args& args, cpu::Range range, S* scratch) {
  Lines<S> lines(args, scratch);
  const std::int64_t length = lines.length;
  const int taps = args.rows().taps;
  S* const spare = scratch + Lines<S>::buffers() * length;
  S* const begins = spare + length;
  S* const ring = begins + length;           // lines of two blocks
  S* const ends = ring + 2 * taps * length;  // ends[i]: sum of lines i to the last of a block
  const auto scale = static_cast<S>(args.scale);
  const S* found[2 * Stencil::max_taps];
  const auto line = [&](std::int64_t i) { return found[i % (2 * taps)]; };

  // Returns line i of the tile, summed along the row.
  const auto make = [&](std::int64_t i) HWY_ATTR {
    const std::int64_t row = lines.first_row + i - args.rows().origin;
    S* const out = ring + i % (2 * taps) * length;
    if (args.columns().taps == 1) return lines.load(lines.first_plane, row, out);
    if (lines.is_inside) {
      // The hardware prefetcher starts too late on short row segments: prefetch two rows ahead.
      const S* const ahead = lines.load(lines.first_plane, row + 2, nullptr);
      for (std::int64_t j = 0; j < lines.columns; j += 64 / sizeof(S)) {
        cpu::prefetch_line(ahead + j, true);
      }
    }
    const S* const from = lines.load(lines.first_plane, row, spare);
    sum_along(from, args.columns().taps, out, lines.columns);
    return static_cast<const S*>(out);
  };

  for (std::int64_t tile = range.begin; tile < range.end; ++tile) {
    lines.for_each_segment(tile, [&]() HWY_ATTR {
      std::int64_t made = 0;
      const auto need = [&](std::int64_t count) HWY_ATTR {
        for (; made < count; ++made) found[made % (2 * taps)] = make(made);
      };
      // Up to three lines: adding them directly costs no more.
      for (std::int64_t i = 0; taps <= 3 && i < lines.rows; ++i) {
        need(i + taps);
        add_lines<S>(line(i), taps > 1 ? line(i + 1) : nullptr, taps > 2 ? line(i + 2) : nullptr,
                     scale, lines.result(lines.first_plane, lines.first_row + i), lines.columns,
                     lines.streams);
        lines.store(lines.first_plane, lines.first_row + i);
      }
      for (std::int64_t block = 0; taps > 3 && block < lines.rows; block += taps) {
        need(block + taps);
        // Suffix sums: from the last line of the block upward.
        const S* end = line(block + taps - 1);
        for (std::int64_t i = taps - 2; i >= 0; --i) {
          S* const sum = ends + i * length;
          add_lines<S>(line(block + i), end, nullptr, 1, sum, lines.columns, false);
          end = sum;
        }
        // Prefix sums of the next block, from its first line downward; each completes a row of y.
        const S* begin = nullptr;
        for (std::int64_t i = 0; i < std::min<std::int64_t>(taps, lines.rows - block); ++i) {
          const std::int64_t row = lines.first_row + block + i;
          if (i > 0) {
            need(block + taps + i);
            const S* const next = line(block + taps + i - 1);
            if (i > 1) add_lines<S>(begin, next, nullptr, 1, begins, lines.columns, false);
            begin = i > 1 ? begins : next;
          }
          const S* const rest = i == taps - 1 ? line(block + i) : ends + i * length;
          add_lines<S>(rest, begin, nullptr, scale, lines.result(lines.first_plane, row),
                       lines.columns, lines.streams);
          lines.store(lines.first_plane, row);
        }
      }
    });
  }
  lines.finish();
}

}  // namespace

void sum_f32(const Args& pass, cpu::Range tiles, float* scratch) {
  sum_range(pass, tiles, scratch);
}
void sum_f64(const Args& pass, cpu::Range tiles, double* scratch) {
  sum_range(pass, tiles, scratch);
}

}  // namespace rung::stencil_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace stencil_cpu {
HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);
void sum_tiles(const Args& pass, cpu::Range tiles, float* scratch) {
  HWY_DYNAMIC_DISPATCH(sum_f32)(pass, tiles, scratch);
}
void sum_tiles(const Args& pass, cpu::Range tiles, double* scratch) {
  HWY_DYNAMIC_DISPATCH(sum_f64)(pass, tiles, scratch);
}
}  // namespace stencil_cpu

namespace {

Support supports(const Stencil::Args& args, const Context&) {
  if (args.weights != Stencil::Weights::ones) return unsupported("takes a window");
  const bool takes = args.depth().taps == 1 && stencil_cpu::is_large_window(args);
  return takes ? supported
               : unsupported("takes windows of one or two axes with more than 3 rows or columns");
}

void run(const Stencil::Args& args, Context& context) {
  using namespace stencil_cpu;
  for_each_pass(args, context, 1, []<class S>(const Args& pass, S* scratch) {
    sum_tiles(pass, {0, tiles_of<S>(pass).count()}, scratch);
  });
}

const Rung<Stencil> self{{.name = "line_sums",
                          .step = 45,
                          .after = "simd",
                          .teaching = true,
                          .supports = supports,
                          .run = run}};

}  // namespace
}  // namespace rung
#endif
