// SPDX-License-Identifier: Apache-2.0
//
// Packing: copies matrices into the order in which a micro-kernel reads them, converted to the
// arithmetic type T.
//
//   pack_panels<T, In>(from, row, column, count, readable, width, k, to)
//       to[panel * width * k + p * width + i] = from[(panel * width + i) * row + p * column]
//   copy_rows<T, In>(from, from_row, rows, k, to, to_row)
//       to[i * to_row + p] = from[i * from_row + p]
//
// Shapes   any strides, in elements; `count` rows need not fill the last panel, whose remainder is
//          initialized but unspecified.
// Owner    the caller owns `to`, of `count` rounded up to panels, times k elements.
// Cost     0.1 ns per element if rows or columns are contiguous: full vectors, 8 panels per pass,
//          or squares transposed in registers; otherwise one load per element.
#if defined(RUNG_CPU_PACK_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef RUNG_CPU_PACK_INL_HPP_
#undef RUNG_CPU_PACK_INL_HPP_
#else
#define RUNG_CPU_PACK_INL_HPP_
#endif

#include <algorithm>
#include <cstdint>

#include "rung/cpu/load-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Packs a panel that is contiguous along its width. Vector stores may extend into the next column,
/// which is written later, but not past the panel, since the next panel may be another thread's.
template <class T, class In>
void pack_copy(const In* from, std::int64_t column, int count, int width, std::int64_t k, T* to) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  const int whole = count / lanes * lanes;
  const int rest = count - whole;
  for (std::int64_t p = 0; p < k; ++p, from += column, to += width) {
    int i = 0;
    for (; i < whole; i += lanes) hn::StoreU(load_as(d, from + i), d, to + i);
    if (rest != 0) {
      const auto some = static_cast<std::size_t>(rest);
      const auto x = load_as_n(d, from + i, some);
      if ((k - p) * width >= whole + lanes) {
        hn::StoreU(x, d, to + i);
      } else {
        hn::BlendedStore(x, hn::FirstN(d, some), d, to + i);
      }
    }
    for (i = count; i < width; ++i) to[i] = T{0};
  }
}

#if HWY_TARGET != HWY_SCALAR
/// Loads 16 bytes of T per 128-bit block of a vector; blocks are `step` elements apart in memory.
template <class D, class In>
HWY_INLINE hn::Vec<D> load_blocks(D d, const In* from, std::int64_t step) {
  if constexpr (hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) == 16) {
    return load_as(d, from);
  } else {
    const hn::Half<D> half;
    constexpr int blocks = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 32;
    return hn::Combine(d, load_blocks(half, from + blocks * step, step),
                       load_blocks(half, from, step));
  }
}

/// Exchanges element r of block b of v[j] with element j of block b of v[r]: if block b of v[j] has
/// elements of row per_block * b + j, v[r] becomes column r.
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V (&v)[4]) {
  const V ac_low = hn::InterleaveLower(d, v[0], v[2]);
  const V bd_low = hn::InterleaveLower(d, v[1], v[3]);
  const V ac_high = hn::InterleaveUpper(d, v[0], v[2]);
  const V bd_high = hn::InterleaveUpper(d, v[1], v[3]);
  v[0] = hn::InterleaveLower(d, ac_low, bd_low);
  v[1] = hn::InterleaveUpper(d, ac_low, bd_low);
  v[2] = hn::InterleaveLower(d, ac_high, bd_high);
  v[3] = hn::InterleaveUpper(d, ac_high, bd_high);
}
template <class D, class V>
HWY_INLINE void transpose_blocks(D d, V (&v)[2]) {
  const V low = hn::InterleaveLower(d, v[0], v[1]);
  v[1] = hn::InterleaveUpper(d, v[0], v[1]);
  v[0] = low;
}

/// Packs a panel that is contiguous along k by transposing squares of lanes x lanes. Row 4b + j
/// (for f64 2b + j) is loaded into block b of vector j, so that transposing 4x4 (2x2) within all
/// blocks at once yields whole columns. Each row of the square is loaded completely before the next
/// row: rows a power of two apart map to one set of the L1 cache, and a half-read line would be
/// evicted (0.3 ns per element instead of 0.1).
template <class T, class In>
void pack_transposed(const In* from, std::int64_t row, int count, int readable, int width,
                     std::int64_t k, T* to) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int lanes = HWY_LANES(T);
  constexpr int per_block = 16 / sizeof(T);
  constexpr int blocks = lanes / per_block;
  // Processes groups of `lanes` rows; the last group may include rows of the next panel.
  // Full-vector stores extend into later columns; groups are processed last to first, so that the
  // first overwrites what the last wrote there. No store may extend past the panel.
  const int last_group = (count - 1) / lanes * lanes;
  std::int64_t p = 0;
  if (last_group + lanes <= readable) {
    for (; p + lanes <= k && (k - p - (lanes - 1)) * width >= last_group + lanes; p += lanes) {
      for (int i = last_group; i >= 0; i -= lanes) {
        const In* x = from + i * row + p;
        // Prefetches the same columns in the rows of the next panel.
        for (int r = i; r < std::min(i + lanes, readable - width); ++r) {
          __builtin_prefetch(from + (width + r) * row + p, 0, 2);
        }
        V v[blocks][per_block];
#pragma GCC unroll 4
        for (int j = 0; j < per_block; ++j) {
#pragma GCC unroll 4
          for (int s = 0; s < blocks; ++s) {
            v[s][j] = load_blocks(d, x + j * row + s * per_block, per_block * row);
          }
        }
        T* column = to + p * width + i;
#pragma GCC unroll 4
        for (int s = 0; s < blocks; ++s) {
          transpose_blocks(d, v[s]);
#pragma GCC unroll 4
          for (int j = 0; j < per_block; ++j, column += width) hn::StoreU(v[s][j], d, column);
        }
      }
    }
  }
  for (int i = 0; i < width; ++i) {
    const In* x = from + std::min(i, count - 1) * row;
    for (std::int64_t q = p; q < k; ++q) to[q * width + i] = static_cast<T>(x[q]);
  }
}
#endif

/// Packs full panels of full vectors that are contiguous along their width, several at a time: a
/// single panel would use only two cache lines of each page.
template <class T, class In>
void copy_panels(const In* from, std::int64_t column, std::int64_t panels, int width,
                 std::int64_t k, T* to) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  constexpr std::int64_t at_once =
      8;  // 1 KiB of a row; as many output streams as L1 has ways to spare
  constexpr std::int64_t ahead = 8;  // rows; on separate pages, so not prefetched by hardware
  for (std::int64_t first = 0; first < panels; first += at_once) {
    const std::int64_t group = std::min(at_once, panels - first);
    for (std::int64_t p = 0; p < k; ++p) {
      const In* x = from + p * column + first * width;
      T* out = to + (first * k + p) * width;
      const std::int64_t jump = p + ahead < k ? ahead * column : 0;
      for (std::int64_t panel = 0; panel < group; ++panel, x += width, out += k * width) {
        for (int i = 0; i < width; i += lanes) {
          __builtin_prefetch(x + jump + i);
          hn::StoreU(load_as(d, x + i), d, out + i);
        }
      }
    }
  }
}

/// Packs one panel of `count` <= width rows.
template <class T, class In>
void pack_panel(const In* x, std::int64_t row, std::int64_t column, int count,
                [[maybe_unused]] std::int64_t readable, int width, std::int64_t k, T* to) {
  if (row == 1) return pack_copy(x, column, count, width, k, to);
#if HWY_TARGET != HWY_SCALAR
  if (column == 1) {
    const int near = static_cast<int>(std::min<std::int64_t>(readable, 2 * width + HWY_LANES(T)));
    return pack_transposed(x, row, count, near, width, k, to);
  }
#endif
  for (std::int64_t p = 0; p < k; ++p) {
    for (int i = 0; i < count; ++i) {
      to[p * width + i] = static_cast<T>(x[i * row + p * column]);
    }
    for (int i = count; i < width; ++i) to[p * width + i] = T{0};
  }
}

/// Packs `count` rows of a matrix into consecutive panels of `width` rows; `readable` >= count rows
/// are readable from `from` on.
template <class T, class In>
void pack_panels(const void* from, std::int64_t row, std::int64_t column, std::int64_t count,
                 std::int64_t readable, int width, std::int64_t k, T* to) {
  const In* x = static_cast<const In*>(from);
  std::int64_t done = 0;
  if (row == 1 && width % HWY_LANES(T) == 0) {
    done = count / width * width;
    copy_panels(x, column, count / width, width, k, to);
  }
  for (; done < count; done += width) {
    const auto part = static_cast<int>(std::min<std::int64_t>(width, count - done));
    pack_panel(x + done * row, row, column, part, readable - done, width, k, to + done * k);
  }
}

/// Copies `rows` runs of k contiguous elements, `from_row` apart, to rows `to_row` apart.
template <class T, class In>
void copy_rows(const void* from, std::int64_t from_row, std::int64_t rows, std::int64_t k, T* to,
               std::int64_t to_row) {
  const hn::ScalableTag<T> d;
  constexpr int lanes = HWY_LANES(T);
  for (std::int64_t i = 0; i < rows; ++i, to += to_row) {
    const In* x = static_cast<const In*>(from) + i * from_row;
    // Runs are too short (2 KiB) for hardware prefetchers.
    const std::int64_t ahead = std::min<std::int64_t>(2, rows - 1 - i) * from_row;
    std::int64_t p = 0;
    for (; p + lanes <= k; p += lanes) {
      __builtin_prefetch(x + ahead + p, 0, 2);
      hn::StoreU(load_as(d, x + p), d, to + p);
    }
    if (p < k) {
      const auto left = static_cast<std::size_t>(k - p);
      hn::BlendedStore(load_as_n(d, x + p, left), hn::FirstN(d, left), d, to + p);
    }
  }
}

}  // namespace rung::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // the guard flips with each target
