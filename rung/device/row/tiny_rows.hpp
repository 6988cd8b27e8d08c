// SPDX-License-Identifier: Apache-2.0
// Rows of 1 to 8 elements that follow one another: a thread owns the fewest aligned packs of 16
// bytes that hold whole rows, so that no row is shared between threads.
//
//   using Rows = TinyRows<T, length>;
//   const TinySpan<T, length> span(elements);      // this thread's elements
//   if (span.count == 0) return;
//   TinyValues<T, length> values(span.load(x));    // as accumulators; element i of row r: at(r, i)
//   ...
//   span.store(y, values);
//
// Shapes   a row of 3 f16 has period 3 packs, which hold 8 rows; the last thread's packs may be
//          partial.
// Cost     16-byte loads and stores, all in flight; a pack of a warp spans up to 7 times the bytes
//          that it loads, so that the other packs of the warp hit L1.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/rows.hpp"
#include "rung/device/row/packed_words.hpp"

namespace rung::inline RUNG_TARGET {

inline constexpr int tiny_threads = 256;  // per block
inline constexpr int longest_tiny_row = 8;

/// Packs that hold whole rows.
template <class T, int length>
struct TinyRows {
  static constexpr int width = vector_width<T>;
  static constexpr int packs = length / std::gcd(length, width);
  static constexpr int elements = packs * width;
  static constexpr int rows = elements / length;
};

/// A thread's packs as loaded. They are widened after the loads of all tensors have been issued.
template <class T, int length>
struct TinyWords {
  PackedWords packs[TinyRows<T, length>::packs];
};
/// A thread's rows as accumulators.
template <class T, int length>
struct TinyValues {
  using Rows = TinyRows<T, length>;
  Pack<Accumulator<T>, Rows::width> packs[Rows::packs];
  __device__ __forceinline__ explicit TinyValues(const TinyWords<T, length>& words) {
#pragma unroll
    for (int p = 0; p < Rows::packs; ++p) packs[p] = widen<Accumulator<T>, T>(words.packs[p]);
  }
  __device__ __forceinline__ Accumulator<T>& at(int row, int i) {
    return packs[(row * length + i) / Rows::width][(row * length + i) % Rows::width];
  }
};

/// A thread's elements: `count` from `first` on.
template <class T, int length>
struct TinySpan {
  using Rows = TinyRows<T, length>;
  std::int64_t first;
  int count;

  __device__ __forceinline__ explicit TinySpan(std::int64_t elements)
      : first((std::int64_t{blockIdx.x} * tiny_threads + threadIdx.x) * Rows::elements),
        count(static_cast<int>(
            clamped<std::int64_t>(elements - first, 0, std::int64_t{Rows::elements}))) {}
  /// Issues the loads; elements that do not exist are 0.
  [[nodiscard]] __device__ __forceinline__ TinyWords<T, length> load(const T* tensor) const {
    const T* const from = tensor + first;
    TinyWords<T, length> words;
    if (count == Rows::elements) {
#pragma unroll
      for (int p = 0; p < Rows::packs; ++p) {
        words.packs[p] = load_words_streaming(from + p * Rows::width);
      }
    } else {
#pragma unroll
      for (int p = 0; p < Rows::packs; ++p) {
        words.packs[p] =
            words_of<T>(rung::load<Rows::width>(from + p * Rows::width, count - p * Rows::width));
      }
    }
    return words;
  }
  __device__ __forceinline__ void store(T* tensor, TinyValues<T, length>& values) const {
    T* const to = tensor + first;
    if (count == Rows::elements) {
#pragma unroll
      for (int p = 0; p < Rows::packs; ++p) {
        store_words_streaming(to + p * Rows::width, narrow<T>(values.packs[p]));
      }
    } else {
#pragma unroll
      for (int i = 0; i < Rows::elements; ++i) {
        if (i < count) to[i] = convert<T>(values.at(0, i));
      }
    }
  }
};

// --- on the host ---------------------------------------------------------------------------------

/// Calls f<length>() with the length of the rows.
template <class F>
void with_tiny_length(std::int64_t length, F&& f) {
  [&]<int... before>(std::integer_sequence<int, before...>) {
    ((length == before + 1 ? f.template operator()<before + 1>() : void()), ...);
  }
  (std::make_integer_sequence<int, longest_tiny_row>{});
}

/// Returns the number of blocks; `element`: bytes per element.
template <int N>
std::int64_t tiny_blocks(const Rows<N>& rows, std::size_t element) {
  const auto width = static_cast<std::int64_t>(16 / element);
  const std::int64_t elements = rows.length / std::gcd(rows.length, width) * width;
  return ceil_div(rows.count() * rows.length, elements * tiny_threads);
}

/// Accepts rows of N tensors of one type, whose first rows are at `tensors`.
template <int N>
Support require_tiny_rows(const Rows<N>& rows, std::size_t element,
                          const std::array<const void*, N>& tensors) {
  if (rows.length < 1 || rows.length > longest_tiny_row) {
    return unsupported("rows of 1 to 8 elements");
  }
  bool follow = rows.are_contiguous() && rows.others.rank <= 1;
  for (int tensor = 0; tensor < N && rows.count() > 1; ++tensor) {
    follow = follow && rows.others.strides[tensor][0] == rows.length;
  }
  if (!follow) return unsupported("rows must follow one another");
  if (tiny_blocks(rows, element) > 0x7fffffff) return unsupported("more than 2^31 - 1 blocks");
  for (const void* const p : tensors) {
    if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) {
      return unsupported("tensors must begin at multiples of 16 bytes");
    }
  }
  return supported;
}

}  // namespace rung::inline RUNG_TARGET
