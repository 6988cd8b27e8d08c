// SPDX-License-Identifier: Apache-2.0
// Whole rows that follow one another in memory, as many as a block takes at a time: they come into
// shared memory, and leave it, 16 bytes at a time, wherever a row begins or ends. For rows that are
// shorter than what a warp loads at once, or that do not begin at multiples of 16 bytes.
//
//   T* const rows = behind_as(shared_memory, x);   // room for 16 bytes more than rows take
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
/// threads of a warp per row.
struct RowChunks {
  std::int64_t rows;
  int length;
  int group;
  int lanes;  // a power of two: at most 32, unless row_chunks() is told otherwise

  /// The most elements of a row that a lane has.
  [[nodiscard]] RUNG_HD constexpr int rounds() const { return (length + lanes - 1) / lanes; }
  /// Blocks of the grid.
  [[nodiscard]] std::int64_t blocks() const { return ceil_div(rows, std::int64_t{group}); }
  /// Shared memory of a group, in bytes: behind_as() needs 16 more than its elements take.
  template <class T>
  [[nodiscard]] RUNG_HD constexpr int bytes() const {
    return round_up(group * length * static_cast<int>(sizeof(T)), 16) + 16;
  }
};

/// A group of rows: `rows` of them from `first` on, `count` elements from `offset` on. Without
/// `first` it is this block's.
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

/// The address as far behind `aligned`, a multiple of 16 bytes, as `p` behind one.
template <class T>
__device__ __forceinline__ T* behind_as(T* aligned, const T* p) {
  return aligned + lead_of<vector_width<T>>(p);
}

/// Starts copying elements [0, count) to shared memory; both pointers lie equally far behind
/// multiples of 16 bytes. By all threads of a block, which number them along x.
template <class T>
__device__ __forceinline__ void copy_in(T* to, const T* from, int count) {
  constexpr int chunk = vector_width<T>;
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int behind = lead_of<vector_width<T>>(from);
  const int head = behind == 0 ? 0 : chunk - behind;
  // The first and the last elements are not whole chunks.
  for (int i = thread; i < head && i < count; i += threads) to[i] = from[i];
  const int chunks = count > head ? (count - head) / chunk : 0;
  for (int i = thread; i < chunks; i += threads) {
    ptx::async_copy<16>(to + head + i * chunk, from + head + i * chunk);
  }
  for (int i = head + chunks * chunk + thread; i < count; i += threads) to[i] = from[i];
}

/// Copies them out of shared memory: 16 bytes at a time if both are so aligned.
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

/// f(begin, lane) for the rows of the thread's lanes: where the row begins among the block's, and
/// the first of its elements for this lane. Every thread makes the same number of rounds; where
/// there is no row, `lane` is beyond its elements.
template <class F>
__device__ __forceinline__ void for_each_row_of(const RowChunks& chunks, int rows, F&& f) {
  const int thread = static_cast<int>(threadIdx.x);
  const int at_once = static_cast<int>(blockDim.x) / chunks.lanes;
  for (int first = 0; first < rows; first += at_once) {
    const int row = first + thread / chunks.lanes;
    f(row * chunks.length, row < rows ? thread % chunks.lanes : chunks.length);
  }
}

/// f over the values of `lanes` adjacent threads, as for_each_row_of() divides them, in each of
/// them: beyond a warp they meet in shared memory. f must commute; by all threads of the block.
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
  __syncthreads();  // the scratch may be used again
  return value;
}

// --- on the host ---------------------------------------------------------------------------------

/// Some `bytes` of rows, but a few groups for every SM.
inline int rows_of_group(const RowChunks& chunks, std::size_t element, int threads, int bytes,
                         const Context& context) {
  const int at_once = threads / chunks.lanes;
  const std::int64_t few = ceil_div(chunks.rows, std::int64_t{4} * context.info().sms);
  const std::int64_t fitting =
      smaller(few, std::int64_t{bytes} / (chunks.length * static_cast<int>(element)));
  return static_cast<int>(larger<std::int64_t>(fitting / at_once * at_once, at_once));
}

/// Returns a distribution with about `elements` elements per lane, and groups of about `bytes`
/// bytes, but at least a few groups per SM.
inline RowChunks row_chunks(std::int64_t rows, int length, std::size_t element, int elements,
                            int threads, int bytes, const Context& context,
                            int max_lanes = warp_size) {
  RowChunks chunks{.rows = rows, .length = length, .group = 1, .lanes = 1};
  while (chunks.lanes < max_lanes && chunks.lanes * elements < length) chunks.lanes *= 2;
  chunks.group = rows_of_group(chunks, element, threads, bytes, context);
  return chunks;
}

/// Lanes of a warp that read the same bank of shared memory, where rows have `lanes` each.
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

/// Returns a distribution for rows with up to `kept` elements per lane: with the fewest lanes that
/// still fill the GPU, since a lane costs about as much as an element, and with few bank conflicts.
inline RowChunks short_row_chunks(std::int64_t rows, int length, std::size_t element, int kept,
                                  int threads, int bytes, const Context& context) {
  RowChunks best{.rows = rows, .length = length, .group = 1, .lanes = warp_size};
  const bool many = rows * warp_size > std::int64_t{2048} * context.info().sms;
  double least = 0;
  for (int lanes = warp_size; lanes >= 1 && (length + lanes - 1) / lanes <= kept; lanes /= 2) {
    // Rows that the threads of a block process at once are in shared memory at once.
    const std::int64_t at_once = std::int64_t{threads / lanes} * length;
    if (lanes < warp_size && at_once * static_cast<std::int64_t>(element) > bytes) break;
    const RowChunks chunks{.rows = rows, .length = length, .group = 1, .lanes = lanes};
    const double resident = 1024.0 * context.info().sms;  // threads
    const double waves = larger(1.0, static_cast<double>(rows) * lanes / resident);
    // Shared memory serves two words of a bank in the time of an element's instructions. A call
    // that is over at once does not count them.
    const double round = many ? larger(1.0, 0.4 * bank_conflicts(length, element, lanes)) : 1.0;
    const double seconds = waves * (1 + round * chunks.rounds());
    if (least != 0 && seconds > least) continue;
    best = chunks;
    least = seconds;
  }
  best.group = rows_of_group(best, element, threads, bytes, context);
  return best;
}

// For kernels that keep a row in the registers of its lanes (softmax, norm and others, short_rows):

inline constexpr int row_chunk_threads = 256;
inline constexpr std::int64_t longest_chunked_row = 1024;  // 32 elements for each of 32 lanes

/// Returns the chunks of rows of `length` units of `width` elements, up to 1024 elements; `unit` is
/// the size of a unit in bytes, `tensors` the number of tensors that are staged.
inline RowChunks short_row_groups(std::int64_t rows, std::int64_t length, std::size_t unit,
                                  int tensors, const Context& context, int width = 1) {
  const int kept = length <= 256 || width > 1 ? 16 : 32;  // units per lane, at most
  const int bytes = length * width > 256 ? 32 << 10 : 16 << 10;
  return short_row_chunks(rows, static_cast<int>(length), unit, kept, row_chunk_threads,
                          bytes / tensors, context);
}

/// Calls f<kept>() for the least kept of 4, 16 and 32 that holds a lane's elements: a larger
/// instance fetches instructions only to skip them.
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

/// Returns the facts of such a kernel, whose trips are the elements of a lane.
inline Work row_chunk_work(const RowChunks& chunks, std::string_view path) {
  const int trips = ceil_div(chunks.group * chunks.lanes, row_chunk_threads) * chunks.rounds();
  return block_work(chunks.blocks(), row_chunk_threads, trips, path, 40);
}

/// Returns whether rows of `bytes` bytes are short, or not all aligned to 16 bytes: others are
/// faster one by one.
inline Support require_short_or_odd_rows(std::int64_t bytes, const void* first) {
  constexpr std::int64_t short_bytes = 128;
  const bool odd = bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(first) % 16 != 0;
  return odd || bytes <= short_bytes
             ? supported
             : unsupported("rows from multiples of 16 bytes on are longer than 128 bytes");
}
/// Returns whether rows of N tensors, the first at `first`, are for such a kernel.
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
