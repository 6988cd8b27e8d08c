// SPDX-License-Identifier: Apache-2.0
// Kernels that work along rows (softmax, norm): assignment of rows to threads, reductions over the
// threads of a row, and vector access to rows of any alignment.
//
// A block is threads x rows: threadIdx.x is the thread within a row, threadIdx.y the row within the
// block; threads is a power of two, and a block has at least 32 threads. Up to 32 threads per row,
// reductions use shuffles only; with more, warps exchange partials in shared memory.
//
//   struct Shared { RowScratch<float> scratch; };
//   __global__ void kernel(Rows<2> rows, const T* x, T* y) {
//     for_each_row(rows.count(), [&](std::int64_t row, bool exists) {  // all threads, every time
//       const T* from = x + (exists ? rows.offset<0>(row) : 0);
//       float sum = 0;
//       for (std::int64_t i = threadIdx.x; exists && i < rows.length; i += blockDim.x) ...
//       sum = row_reduce(sum, Plus{}, shared<Shared>().scratch);  // in every thread of the row
//     });
//   }
//   launch_rows(context, rows, {.threads = 64, .rows = 2, .shared_bytes = sizeof(Shared)}, kernel,
//               x, y);
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/rows.hpp"
#include "rung/device/block_work.hpp"
#include "rung/device/collectives.hpp"
#include "rung/device/load.hpp"
#include "rung/device/resident.hpp"

namespace rung::inline RUNG_TARGET {

// --- launching -----------------------------------------------------------------------------------

struct RowBlock {
  int threads = 32;  // per row; a power of two
  int rows = 1;      // per block
  std::size_t shared_bytes = 0;
  int packs = 0;  // per thread; template argument of some kernels
};

/// Returns a block shape for rows of `packs` loads each: at most `packs_a_thread` loads per thread
/// (more if `max_threads` threads do not suffice), and enough rows for 128 threads per block.
inline RowBlock row_block(std::int64_t packs, int packs_a_thread, int min_threads = 1,
                          int max_threads = 1024) {
  RowBlock block{.threads = min_threads};
  while (block.threads < max_threads && std::int64_t{block.threads} * packs_a_thread < packs) {
    block.threads *= 2;
  }
  block.rows = larger(1, 128 / block.threads);
  return block;
}

inline constexpr int short_row_threads = 128;  // per block, for rows of a warp or less

/// Returns the block shape for rows of up to a warp, with one of `counts` (ascending) packs per
/// thread: the shape with the fewest idle pack slots; on ties, the most threads. The row must fit
/// in 32 threads with the last count of packs each.
template <std::size_t N>
RowBlock short_row_block(std::int64_t packs, const std::array<int, N>& counts) {
  constexpr int min_threads = 2;
  RowBlock best;
  std::int64_t fewest = 0;
  for (int threads = warp_size; threads >= min_threads; threads /= 2) {
    for (const int count : counts) {
      const std::int64_t slots = std::int64_t{threads} * count;
      if (slots < packs || (fewest != 0 && slots >= fewest)) continue;
      best = {.threads = threads, .rows = short_row_threads / threads, .packs = count};
      fewest = slots;
    }
  }
  return best;
}

/// Calls f<block.packs>(); block.packs is one of `counts`.
template <auto counts, class F>
void with_packs_per_thread(const RowBlock& block, F&& f) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((block.packs == counts[i] ? f.template operator()<counts[i]>() : void()), ...);
  }
  (std::make_index_sequence<counts.size()>{});
}

/// Launches kernel(rows, arguments...) with a block per `block.rows` rows, up to the maximum grid;
/// for_each_row() is a grid-stride loop.
template <int N, class... Parameters, class... Arguments>
void launch_rows(Context& context, const Rows<N>& rows, const RowBlock& block,
                 void (*kernel)(Rows<N>, Parameters...), Arguments&&... arguments) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  const std::int64_t blocks = smaller(max_blocks, (rows.count() + block.rows - 1) / block.rows);
  launch(context,
         {.grid = blocks, .block = {block.threads, block.rows}, .shared_bytes = block.shared_bytes},
         kernel, rows, std::forward<Arguments>(arguments)...);
}

/// Returns the work of a kernel launched by launch_rows(), with `trips` dependent loop iterations
/// per thread and row.
inline Work row_work(std::int64_t rows, const RowBlock& block, Amount trips,
                     std::string_view path = "", int registers = 32) {
  const std::int64_t blocks = ceil_div(rows, block.rows);
  return block_work(blocks, block.threads * block.rows, trips, path, registers);
}

/// Returns the rates key (Work::path) of rows loaded in packs of 16 bytes: "cut" if the size of a
/// row is not a multiple of 16 bytes, "warp" for up to a warp per row, else "".
inline std::string_view pack_path(std::int64_t length, DType type, int threads = 1024) {
  const std::int64_t bytes = length * static_cast<std::int64_t>(size_of(type));
  return bytes % 16 != 0 ? "cut" : threads > warp_size ? "" : "warp";
}

/// Returns the used fraction, from 1/4 to 1, of the 32-byte sectors that are loaded for the rows.
/// Adjacent rows of a warp share sectors, and so do elements at small strides; if a sector is
/// loaded again, half of the loads are assumed to hit a cache.
template <int N>
double share_of_sectors(const Rows<N>& rows, const RowBlock& block, DType type) {
  if (rows.are_contiguous()) return 1;
  const std::int64_t across = rows.are_adjacent() ? larger(32 / block.threads, 1) : 1;
  const auto along = static_cast<double>(rows.steps[0] < 0 ? -rows.steps[0] : rows.steps[0]);
  const double own = static_cast<double>(across) * static_cast<double>(size_of(type)) / 32;
  return clamped(2 * larger(own, 1 / larger(along, 1.0)), 1.0 / 4, 1.0);
}

/// Returns the work of a kernel launched by launch_rows() on rows of any strides, with `batch`
/// loads in flight per thread.
template <int N>
Work strided_rows_work(const Rows<N>& rows, const RowBlock& block, int batch, DType type,
                       const Cost& cost) {
  const bool contiguous = rows.are_contiguous();
  Work work = row_work(rows.count(), block, ceil_div(rows.length, block.threads * batch),
                       contiguous            ? type_path(type)
                       : rows.are_adjacent() ? "adjacent"
                                             : "strided");
  work.bytes = cost.bytes / share_of_sectors(rows, block, type);
  return work;
}

// --- in kernels ----------------------------------------------------------------------------------

/// Calls body(row, exists) for this thread's rows. Every thread of the block makes the same number
/// of calls, so that body may contain barriers; `exists` is false beyond the last row.
template <class Body>
__device__ __forceinline__ void for_each_row(std::int64_t count, Body&& body) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y;
  for (std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y; first < count; first += step) {
    const std::int64_t row = first + threadIdx.y;
    body(row, row < count);
  }
}

struct Plus {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};
/// Maximum that drops a NaN, for kernels whose later sum of exponentials propagates it.
struct Larger {
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
  __device__ __forceinline__ double operator()(double a, double b) const { return fmax(a, b); }
};
/// Initial value of a maximum: finite, so that -infinity - no_maximum is -infinity, not NaN. A row
/// of -infinity alone has a sum of exponentials of 0, which identifies it.
template <class Sum>
inline constexpr Sum no_maximum = std::numeric_limits<Sum>::lowest();
/// Maximum that propagates NaN, which fmax would drop.
struct Maximum {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

/// Values that the warps of a block exchange.
template <class T>
struct RowScratch {
  T partial[32];
};

/// Reduces the values of a row's threads by f, which must commute; returns the bitwise same result
/// in every thread of the row. All threads of the block call it.
template <class T, class F>
__device__ __forceinline__ T row_reduce(T value, F f, RowScratch<T>& scratch) {
  const int threads = static_cast<int>(blockDim.x);
  value = lanes_reduce(value, f, smaller(threads, 32));
  if (threads <= 32) return value;
  const int warps = threads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first = static_cast<int>(threadIdx.y) * warps;
  if (lane == 0) scratch.partial[first + static_cast<int>(threadIdx.x) / 32] = value;
  __syncthreads();
  value = scratch.partial[first + lane % warps];
  value = lanes_reduce(value, f, warps);
  __syncthreads();  // the scratch can be reused
  return value;
}

/// A contiguous row as packs of W elements that begin at aligned addresses: pack p holds elements
/// from p W - lead on, and elements outside [0, length) do not exist. All tensors of a kernel use
/// the lead of one of them; packs of a tensor with another alignment are loaded and stored element
/// by element. Kernels that keep a (short) row in registers use int as Index, to save registers.
template <class T, int W, class Index = std::int64_t>
struct RowPacks {
  T* first;  // address of pack 0, at or before the row's first element
  Index begin;
  Index end;
  bool aligned;

  __device__ __forceinline__ RowPacks(T* row, std::int64_t length, int lead)
      : first(row - lead),
        begin(lead),
        end(lead + static_cast<Index>(length)),
        aligned(is_wide_aligned<T, W>(row - lead)) {}

  [[nodiscard]] __device__ __forceinline__ Index packs() const { return (end + W - 1) / W; }
  /// Returns true if all elements of the pack exist.
  [[nodiscard]] __device__ __forceinline__ bool whole(Index pack) const {
    return pack * W >= begin && pack * W + W <= end;
  }
  [[nodiscard]] __device__ __forceinline__ bool exists(Index pack, int i) const {
    return pack * W + i >= begin && pack * W + i < end;
  }
  [[nodiscard]] __device__ __forceinline__ Pack<std::remove_const_t<T>, W> load(
      Index pack, std::remove_const_t<T> otherwise) const {
    if (aligned && whole(pack)) return load_wide<W>(first + pack * W);
    Pack<std::remove_const_t<T>, W> values;
#pragma unroll
    for (int i = 0; i < W; ++i) {
      values[i] = exists(pack, i) ? first[pack * W + i] : otherwise;
    }
    return values;
  }
  __device__ __forceinline__ void store(Index pack, const Pack<T, W>& values) const {
    if (aligned && whole(pack)) {
      store_wide<W>(first + pack * W, values);
      return;
    }
#pragma unroll
    for (int i = 0; i < W; ++i) {
      if (exists(pack, i)) first[pack * W + i] = values[i];
    }
  }
};

/// Returns the number of elements from the last aligned address at or before `row` to `row`.
template <int W, class T>
__device__ __forceinline__ int lead_of(const T* row) {
  constexpr std::uintptr_t bytes = wide_alignment<T, W>;
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % bytes / sizeof(T));
}

}  // namespace rung::inline RUNG_TARGET
