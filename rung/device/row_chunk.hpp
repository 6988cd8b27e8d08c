// SPDX-License-Identifier: Apache-2.0
// Groups of contiguous rows, one group per block, copied to and from shared memory 16 bytes at a
// time, whatever the alignment of single rows. For rows of at most 128 bytes, and for longer rows
// that do not all begin at multiples of 16 bytes.
//
//   T* const rows = behind_as(shared_memory, x);   // shared memory: the rows and 16 bytes more
//   copy_in(rows, x, count);
//   ptx::async_wait_all();
//   __syncthreads();
//   ...
//   __syncthreads();
//   copy_out(y, rows, count);
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/context.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/rows.hpp"

namespace rung::inline RUNG_TARGET {

/// Distribution of rows to a kernel's threads: each block processes `group` rows, with `lanes`
/// adjacent threads per row.
struct RowChunks {
  std::int64_t rows;
  int length;
  int group;
  int lanes;  // a power of two, at most `max_lanes` of row_chunks() (32 by default)

  /// Returns the maximum number of elements of a row per lane.
  [[nodiscard]] RUNG_HD constexpr int rounds() const { return (length + lanes - 1) / lanes; }
  /// Returns the number of blocks of the grid.
  [[nodiscard]] std::int64_t blocks() const { return ceil_div(rows, std::int64_t{group}); }
  /// Returns the shared memory of a group in bytes, with the 16 bytes that behind_as() needs.
  [[nodiscard]] RUNG_HD constexpr int bytes(std::size_t element) const {
    return round_up(group * length * static_cast<int>(element), 16) + 16;
  }
  template <class T>
  [[nodiscard]] RUNG_HD constexpr int bytes() const {
    return bytes(sizeof(T));
  }
};

/// A group of rows: rows [first, first + rows), elements [offset, offset + count). The constructor
/// without `first` makes this block's group.
struct RowChunk {
  std::int64_t first;
  std::int64_t offset;
  int rows;
  int count;
  __device__ __forceinline__ explicit RowChunk(const RowChunks& chunks)
      : RowChunk(chunks, std::int64_t{blockIdx.x} * chunks.group) {}
  __device__ __forceinline__ RowChunk(const RowChunks& chunks, std::int64_t first)
      : first(first),
        offset(first * chunks.length),
        rows(static_cast<int>(smaller<std::int64_t>(chunks.group, chunks.rows - first))),
        count(rows * chunks.length) {}
};

/// Returns the first address from `aligned` (a multiple of 16 bytes) on that is congruent to `p`
/// modulo 16 bytes.
template <class T>
__device__ __forceinline__ T* behind_as(T* aligned, const T* p) {
  return aligned + lead_of<vector_width<T>>(p);
}

/// Starts copying elements [0, count) to shared memory; both pointers are congruent modulo 16
/// bytes. All threads of a one-dimensional block call it.
template <class T>
__device__ __forceinline__ void copy_in(T* to, const T* from, int count) {
  constexpr int chunk = vector_width<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int behind = lead_of<vector_width<T>>(from);
  const int head = behind == 0 ? 0 : chunk - behind;
  // The first and last elements, in partial chunks, are copied one by one.
  for (int i = thread; i < head && i < count; i += threads) to[i] = from[i];
  const int chunks = count > head ? (count - head) / chunk : 0;
  for (int i = thread; i < chunks; i += threads) {
    ptx::async_copy<16>(to + head + i * chunk, from + head + i * chunk);
  }
  for (int i = head + chunks * chunk + thread; i < count; i += threads) to[i] = from[i];
}

/// Copies elements [0, count) out of shared memory: 16 bytes at a time if both pointers are
/// congruent modulo 16 bytes, else one by one.
template <class T>
__device__ __forceinline__ void copy_out(T* to, const T* from, int count) {
  constexpr int chunk = vector_width<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int behind = lead_of<vector_width<T>>(to);
  if (behind != lead_of<vector_width<T>>(from)) {
    for (int i = thread; i < count; i += threads) to[i] = from[i];
    return;
  }
  const int head = behind == 0 ? 0 : chunk - behind;
  for (int i = thread; i < head && i < count; i += threads) to[i] = from[i];
  const int chunks = count > head ? (count - head) / chunk : 0;
  for (int i = thread; i < chunks; i += threads) {
    store_wide<chunk>(to + head + i * chunk, load_wide<chunk>(from + head + i * chunk));
  }
  for (int i = head + chunks * chunk + thread; i < count; i += threads) to[i] = from[i];
}

/// Calls f(begin, lane) for each row of this thread's group of lanes: `begin` is the offset of the
/// row in the block's elements, `lane` the index in the row of the thread's first element. Every
/// thread makes the same number of calls; in a call without a row, `lane` is the row's length.
template <class F>
__device__ __forceinline__ void for_each_row_of(const RowChunks& chunks, int rows, F&& f) {
  const int thread = static_cast<int>(threadIdx.x);
  const int at_once = static_cast<int>(blockDim.x) / chunks.lanes;
  for (int first = 0; first < rows; first += at_once) {
    const int row = first + thread / chunks.lanes;
    f(row * chunks.length, row < rows ? thread % chunks.lanes : chunks.length);
  }
}

/// Reduces the values of each group of `lanes` adjacent threads by f, which must commute; returns
/// the result in each of them. Groups of more than a warp exchange partials in shared memory. All
/// threads of the block call it.
template <class T, class F>
__device__ __forceinline__ T row_lanes_reduce(T value, F f, int lanes, RowScratch<T>& scratch) {
  value = lanes_reduce(value, f, smaller(lanes, warp_size));
  if (lanes <= warp_size) return value;
  const int warps = lanes / warp_size;
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
  if (lane_of_thread() == 0) scratch.partial[warp] = value;
  __syncthreads();
  value = scratch.partial[warp / warps * warps + lane_of_thread() % warps];
  value = lanes_reduce(value, f, warps);
  __syncthreads();  // the scratch can be reused
  return value;
}

// --- on the host ---------------------------------------------------------------------------------

/// Returns the number of rows per group, a multiple of the number that a block processes at once:
/// at most `bytes` bytes of rows, few enough for 4 groups per SM, but at least one such multiple.
inline int rows_of_group(const RowChunks& chunks, std::size_t element, int threads, int bytes,
                         const Context& context) {
  const int at_once = threads / chunks.lanes;
  const std::int64_t few = ceil_div(chunks.rows, std::int64_t{4} * context.info().sms);
  const std::int64_t fitting =
      smaller(few, std::int64_t{bytes} / (chunks.length * static_cast<int>(element)));
  return static_cast<int>(larger<std::int64_t>(fitting / at_once * at_once, at_once));
}

/// Returns a distribution with at most `elements` elements per lane (more if `max_lanes` lanes do
/// not suffice) and with rows_of_group() rows per group.
inline RowChunks row_chunks(std::int64_t rows, int length, std::size_t element, int elements,
                            int threads, int bytes, const Context& context,
                            int max_lanes = warp_size) {
  RowChunks chunks{.rows = rows, .length = length, .group = 1, .lanes = 1};
  while (chunks.lanes < max_lanes && chunks.lanes * elements < length) chunks.lanes *= 2;
  chunks.group = rows_of_group(chunks, element, threads, bytes, context);
  return chunks;
}

/// Returns the degree of bank conflicts, the maximum number of words that a warp reads from one
/// bank, with `lanes` lanes per row.
inline int bank_conflicts(int length, std::size_t element, int lanes) {
  constexpr int banks = 32;
  int words[banks] = {};
  std::int64_t last[banks];
  for (int thread = 0; thread < warp_size; ++thread) {
    const std::int64_t at = std::int64_t{thread / lanes} * length + thread % lanes;
    const std::int64_t word = at * static_cast<std::int64_t>(element) / 4;
    const auto bank = static_cast<std::size_t>(word % banks);
    if (words[bank] == 0 || last[bank] != word) ++words[bank];
    last[bank] = word;
  }
  int most = 1;
  for (const int count : words) most = larger(most, count);
  return most;
}

/// Returns the distribution of least estimated time with at most `kept` elements per lane. The time
/// of a wave (1024 threads per SM) is one unit per thread plus one per element of a lane, more with
/// bank conflicts: the fewest lanes per row that still fill the GPU are best.
inline RowChunks short_row_chunks(std::int64_t rows, int length, std::size_t element, int kept,
                                  int threads, int bytes, const Context& context) {
  RowChunks best{.rows = rows, .length = length, .group = 1, .lanes = warp_size};
  const bool many = rows * warp_size > std::int64_t{2048} * context.info().sms;
  double least = 0;
  for (int lanes = warp_size; lanes >= 1 && (length + lanes - 1) / lanes <= kept; lanes /= 2) {
    // The rows that a block processes at once must fit in shared memory.
    const std::int64_t at_once = std::int64_t{threads / lanes} * length;
    if (lanes < warp_size && at_once * static_cast<std::int64_t>(element) > bytes) break;
    const RowChunks chunks{.rows = rows, .length = length, .group = 1, .lanes = lanes};
    const double resident = 1024.0 * context.info().sms;  // threads
    const double waves = larger(1.0, static_cast<double>(rows) * lanes / resident);
    // Shared memory serves 2.5 words per bank in the time of one element's instructions. Bank
    // conflicts do not matter in short kernels (`many` is false).
    const double round = many ? larger(1.0, 0.4 * bank_conflicts(length, element, lanes)) : 1.0;
    const double seconds = waves * (1 + round * chunks.rounds());
    if (least != 0 && seconds > least) continue;
    best = chunks;
    least = seconds;
  }
  best.group = rows_of_group(best, element, threads, bytes, context);
  return best;
}

// For kernels that keep a row in the registers of its lanes (short_rows of softmax, norm ...):

inline constexpr int row_chunk_threads = 256;
inline constexpr std::int64_t longest_chunked_row = 1024;  // 32 elements for each of 32 lanes

/// Returns the distribution for rows of `length` units of `width` elements, up to 1024 elements, if
/// `tensors` tensors are staged in shared memory. `unit`: bytes per unit.
inline RowChunks short_row_groups(std::int64_t rows, std::int64_t length, std::size_t unit,
                                  int tensors, const Context& context, int width = 1) {
  const int kept = length <= 256 || width > 1 ? 16 : 32;  // units per lane, at most
  const int bytes = length * width > 256 ? 32 << 10 : 16 << 10;
  return short_row_chunks(rows, static_cast<int>(length), unit, kept, row_chunk_threads,
                          bytes / tensors, context);
}

/// Calls f<kept>() with the least of 4, 16 and 32 that is at least the number of elements per lane:
/// a larger instance would fetch instructions only to skip them.
template <class F>
void with_kept_elements(const RowChunks& chunks, F&& f) {
  const int rounds = chunks.rounds();
  if (rounds <= 4) return f.template operator()<4>();
  if (rounds <= 16) return f.template operator()<16>();
  f.template operator()<32>();
}

/// Launches kernel(arguments...), a block per group of rows.
template <class... Parameters, class... Arguments>
void launch_row_chunks(Context& context, const RowChunks& chunks, int shared_bytes,
                       void (*kernel)(Parameters...), Arguments&&... arguments) {
  launch(context,
         {.grid = chunks.blocks(),
          .block = row_chunk_threads,
          .shared_bytes = static_cast<std::size_t>(shared_bytes)},
         kernel, std::forward<Arguments>(arguments)...);
}

/// Returns the work of a kernel launched by launch_row_chunks(), with one loop iteration per
/// element of a lane.
inline Work row_chunk_work(const RowChunks& chunks, std::string_view path) {
  const int trips = ceil_div(chunks.group * chunks.lanes, row_chunk_threads) * chunks.rounds();
  return block_work(chunks.blocks(), row_chunk_threads, trips, path, 40);
}

/// Accepts rows of at most 128 bytes, and longer rows that are not all aligned to 16 bytes; other
/// rows are faster without staging. `bytes` is the size of a row, `first` the address of the first
/// row.
inline Support require_short_or_odd_rows(std::int64_t bytes, const void* first) {
  constexpr std::int64_t short_bytes = 128;
  const bool odd = bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(first) % 16 != 0;
  return odd || bytes <= short_bytes
             ? supported
             : unsupported("rows from multiples of 16 bytes on are longer than 128 bytes");
}
/// Accepts rows of N tensors that launch_row_chunks() supports; `first` is the address of the first
/// tensor's rows.
template <int N>
Support require_row_chunks(const Rows<N>& rows, const void* first, std::size_t element) {
  if (rows.length < 2 || rows.length > longest_chunked_row) {
    return unsupported("rows of 2 to 1024 elements");
  }
  bool follow = rows.are_contiguous() && rows.others.rank <= 1;
  for (int tensor = 0; tensor < N && rows.count() > 1; ++tensor) {
    follow = follow && rows.others.strides[tensor][0] == rows.length;
  }
  if (!follow) return unsupported("rows must follow one another");
  if (rows.count() >= std::int64_t{1} << 40) return unsupported("2^40 rows and more");
  return require_short_or_odd_rows(rows.length * static_cast<std::int64_t>(element), first);
}

}  // namespace rung::inline RUNG_TARGET
