// SPDX-License-Identifier: Apache-2.0
//
// Rough costs of the CPU rungs, so that the default choice can rank them. Only the order matters;
// the constants are a 2-core Zen 5 vCPU's, and ratios between them hold widely.
#pragma once

#include <algorithm>
#include <cmath>

#include "rung/cpu/isa.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"

namespace rung::gemm_cpu {

/// Lanes of a vector of sums, and columns of a tile.
inline int lanes_of(const Call& call) {
  return with_sums(call.in, []<class T>() { return kernels<T>().lanes; });
}
inline int columns_of_tile(const Call& call) { return 2 * lanes_of(call); }

/// Seconds of one core at its arithmetic peak.
inline double peak_seconds(const Call& call) {
  const double width = lanes_of(call);
  constexpr double cycles_per_second = 4e9;
  const double per_lane_and_cycle = 2 * cpu::vector_fmas_a_cycle();
  return 2.0 * static_cast<double>(call.batch) * static_cast<double>(call.m) *
         static_cast<double>(call.n) * static_cast<double>(call.depth()) /
         (width * per_lane_and_cycle * cycles_per_second);
}

/// Threads that a call should use: a team costs about 2 us to start and join, which pays from two
/// 64-cubes on (4 us of one core's work).
inline int threads_worth(const Call& call, int available) {
  constexpr double seconds_a_thread = 2e-6;
  const double most = peak_seconds(call) / seconds_a_thread;
  return most >= available ? available : std::max(1, static_cast<int>(most));
}

/// Seconds of reading and writing C again and again, if no cache holds it.
inline double memory_seconds_of_c(const Call& call, double passes) {
  constexpr double cached_bytes = 16 << 20, bytes_per_second = 40e9;
  const double bytes = static_cast<double>(call.m) * static_cast<double>(call.n) *
                       static_cast<double>(size_of(call.out));
  return bytes < cached_bytes
             ? 0.0
             : 2 * static_cast<double>(call.batch) * bytes * passes / bytes_per_second;
}

/// Copying B into strips as wide as a tile, or half of one, filled with zeros; columns that are
/// not adjacent take twice as long, and more to begin with. Small floats of a strip that is not
/// full are widened one by one (f16 2x1x42: 0.6 us).
inline double strips_seconds(const Call& call, double columns_of_tile) {
  const double half = columns_of_tile / 2;
  const double n = std::ceil(static_cast<double>(call.n) / half) * half;
  const double k = static_cast<double>(call.depth());
  const double a_column = call.b.column == 1 ? k * 0.1e-9 : 1.5e-9 + k * 0.2e-9;
  const bool widens = size_of(call.in) == 2 && n > static_cast<double>(call.n);
  const double one_by_one = widens ? half * k * 0.35e-9 : 0;
  return static_cast<double>(call.batch) * (n * a_column + one_by_one);
}

/// Of packed multiplication by `threads` threads.
inline double packed_seconds(const Call& call, int threads) {
  const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
  const double k = static_cast<double>(call.depth()), batch = static_cast<double>(call.batch);
  constexpr double pack_an_element = 0.3e-9, update_an_element = 0.15e-9;
  constexpr double start = 0.1e-6, start_a_thread = 1e-6, a_matrix = 50e-9;
  const double packing = std::max(batch * (m * k + k * n) * pack_an_element,
                                  strips_seconds(call, columns_of_tile(call)));
  const double updating = batch * (a_matrix + m * n * (1 + k / 512) * update_an_element);
  return start + (threads > 1 ? start_a_thread * threads : 0) +
         (peak_seconds(call) * 1.03 + packing + updating + memory_seconds_of_c(call, 0.5)) /
             threads;
}

/// Columns of the last strip of tile_columns().
template <class T>
std::int64_t last_columns(const Call& call, const Kernels<T>& ks) {
  return call.n - (ceil_div(call.n, ks.tile_columns()) - 1) * ks.tile_columns();
}

/// Whether all of B, in strips, stays in the L1 cache.
template <class T>
bool b_stays_near(const Call& call, const Kernels<T>& ks) {
  constexpr std::int64_t near_bytes = 32 << 10;
  return call.k * round_up(call.n, ks.tile_columns()) * static_cast<std::int64_t>(sizeof(T)) <=
         near_bytes;
}

/// Tile sizes of `small` for the last columns: 0 columns where it has none.
template <class T>
int sliver_columns(const Kernels<T>& ks) {
  return std::is_same_v<T, float> && ks.lanes >= 4 ? 4 : 0;
}
template <class T>
int sliver_rows(const Kernels<T>& ks) {
  return ks.narrow_tile_rows * ks.lanes / 16;
}

/// Whether `small` makes the last columns by slivers, four at a time: a
/// tile would leave most of its vectors idle.
template <class T>
bool by_slivers(const Call& call, const Kernels<T>& ks) {
  constexpr std::int64_t l2_bytes = 512 << 10;
  if (call.a.column != 1 || call.b.column != 1) return false;
  const std::int64_t slivers = last_columns(call, ks) <= sliver_columns(ks) ? 1 : 3;
  if (last_columns(call, ks) > slivers * sliver_columns(ks)) return false;
  // A is read once for each.
  return slivers == 1 ||
         sliver_rows(ks) * call.k * static_cast<std::int64_t>(sizeof(T)) <= l2_bytes;
}

/// What `small` copies of B: nothing where a strip of it stays in half of the L1 cache, or is read
/// twice at most; else strips one by one, or all of them if they stay in L1.
enum class Copies : std::uint8_t { none, strip, whole };
template <class T>
Copies copies_of(const Call& call, const Kernels<T>& ks) {
  constexpr std::int64_t strip_bytes = 32 << 10;
  if (call.b.column == 1) {
    if (call.n <= ks.tile_columns() && (call.m <= 2 * ks.tile_rows || by_slivers(call, ks))) {
      return Copies::none;
    }
    if (call.k * ks.tile_columns() * static_cast<std::int64_t>(sizeof(T)) <= strip_bytes) {
      return Copies::none;
    }
  }
  return b_stays_near(call, ks) ? Copies::whole : Copies::strip;
}

/// Seconds of one core for the FMAs of tiles: vectors of columns may be partial, and a tile of few
/// sums waits for each.
template <class T>
double tiles_seconds(const Call& call, const Kernels<T>& ks, double columns_by_slivers) {
  constexpr double cycles_per_second = 4e9, latency = 4;
  const double m = static_cast<double>(call.m), k = static_cast<double>(call.depth());
  const double left = static_cast<double>(call.n) - columns_by_slivers;
  const double vectors = std::ceil(left / ks.lanes);
  const double strips = std::ceil(left / ks.tile_columns());
  const double sums = std::min<double>(m, ks.tile_rows) * std::min(vectors, 2.0);
  const double chains = sums <= 2 ? 4 : sums <= 4 ? 2 : 1;  // of each sum: see chains_of
  // A sliver's FMA is for four k, and four columns.
  const double slivers =
      columns_by_slivers == 0 ? 0 : std::ceil(columns_by_slivers / sliver_columns(ks));
  const double cycles = std::max(m * k * vectors / cpu::vector_fmas_a_cycle(),
                                 std::ceil(m / ks.tile_rows) * strips * k * latency / chains) +
                        slivers * m * k / 4 / cpu::vector_fmas_a_cycle();
  return static_cast<double>(call.batch) * cycles / cycles_per_second;
}

/// Of tiles that read A, and perhaps B, where they are. Threads meet at the end alone.
template <class T>
double small_seconds(const Call& call, int threads) {
  constexpr double start = 0.03e-6, start_a_thread = 0.5e-6, a_matrix = 12e-9;
  constexpr double a_tile = 5e-9, a_vector_of_c = 0.3e-9;
  constexpr double l2_bytes = 1 << 20, l3_bytes = 16 << 20;
  constexpr double l2_bytes_per_second = 80e9, bytes_per_second = 30e9, scattered_per_second = 10e9;
  const Kernels<T>& ks = kernels<T>();
  const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
  const double k = static_cast<double>(call.k), batch = static_cast<double>(call.batch);
  double slower = 1.02;
  // A is read again for each strip of columns: from L3, if it has left L2.
  if (m * k * sizeof(T) > l2_bytes && call.n > 64) slower += 0.3;
  // For each 16 columns with AVX2, by tiles of 6 rows (f32 192, 255, 384 and 512 cubed on a 2-core
  // Zen 4 vCPU: .75, .77, .76, .61 of the ceiling; packed .82, .88, .91, .75).
  if (ks.narrow_strips() && call.n > 64) slower += 0.23;
  const std::int64_t row_bytes = call.a.row * static_cast<std::int64_t>(sizeof(T));
  if (row_bytes % 4096 == 0 && call.m > 8) slower += 0.2;
  if (call.a.row != 1 && call.a.column != 1) slower += 0.5;
  const double slivers = by_slivers(call, ks) ? static_cast<double>(last_columns(call, ks)) : 0;
  const double tiles = batch * std::ceil(n / ks.tile_columns()) * std::ceil(m / ks.tile_rows);
  // A strip takes a line or two of each row of B, far from each other: from memory at a third of
  // its rate (f64 1x4097x1023: 3.3 ms).
  const double bytes = batch * k * n * sizeof(T);
  const bool scattered =
      bytes > l3_bytes && k * n * sizeof(T) > l2_bytes && call.n > ks.tile_columns();
  const double rate = bytes <= l2_bytes ? l2_bytes_per_second
                      : scattered       ? scattered_per_second
                                        : bytes_per_second;
  const double fetching = copies_of(call, ks) != Copies::none
                              ? std::max(strips_seconds(call, ks.tile_columns()), bytes / rate)
                              : bytes / rate;
  const double computing = tiles_seconds(call, ks, slivers) * slower + tiles * a_tile +
                           batch * m * std::ceil(n / ks.lanes) * a_vector_of_c;
  return start + (threads > 1 ? start_a_thread * threads : 0) +
         (computing + fetching + batch * a_matrix + memory_seconds_of_c(call, 1)) / threads;
}

/// Of kernels that read the one large operand once, and are bound by that or by load ports.
inline double streaming_seconds(const Call& call, double large_elements, double peak_share,
                                int threads) {
  constexpr double start = 0.1e-6, start_a_thread = 1e-6, bytes_per_second = 40e9;
  const double bytes =
      static_cast<double>(call.batch) * large_elements * static_cast<double>(size_of(call.in));
  return start + (threads > 1 ? start_a_thread * threads : 0) +
         std::max(peak_seconds(call) / peak_share, bytes / bytes_per_second) / threads;
}

/// Rows of B that few_rows takes at a time. Few rows of C are bound by memory, and few streams are
/// followed best; with more rows the traffic of C counts too.
inline std::int64_t few_rows_block(std::int64_t m) { return m < 5 ? 4 : m < 12 ? 8 : 16; }

inline double few_rows_seconds(const Call& call, int threads) {
  constexpr double a_matrix = 0.15e-6, a_sweep_of_a_row = 12e-9, an_element_of_c = 0.25e-9;
  const double m = static_cast<double>(call.m), k = static_cast<double>(call.k);
  const double c = m * static_cast<double>(call.n);
  const double sweeps = std::ceil(k / static_cast<double>(few_rows_block(call.m)));
  return streaming_seconds(call, static_cast<double>(call.n) * k, 0.8 * m / (m + 1), threads) +
         static_cast<double>(call.batch) *
             (a_matrix + (sweeps * m * a_sweep_of_a_row + c * an_element_of_c) / threads);
}

}  // namespace rung::gemm_cpu
