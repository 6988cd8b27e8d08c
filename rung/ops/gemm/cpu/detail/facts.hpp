// SPDX-License-Identifier: Apache-2.0
//
// What the CPU rungs do in a call: the facts from which the default choice predicts their times
// (rung/core/work.hpp), and what they share of deciding how to work.
#pragma once

#include <algorithm>
#include <cmath>

#include "rung/core/work.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"

namespace rung::gemm_cpu {

/// Lanes of a vector of sums, and columns of a tile.
inline int lanes_of(const Call& call) {
  return with_sums(call.in, []<class T>() { return kernels<T>().lanes; });
}
inline int columns_of_tile(const Call& call) { return 2 * lanes_of(call); }

/// Threads that a call should use: a team takes some thousands of cycles to start and join, which
/// pays from two 64-cubes on.
inline int threads_worth(const Call& call, int available) {
  constexpr double cycles_a_thread = 8000;
  const double cycles = static_cast<double>(call.batch) * static_cast<double>(call.m) *
                        static_cast<double>(call.n) * static_cast<double>(call.depth()) /
                        (lanes_of(call) * cpu::vector_fmas_a_cycle());
  const double most = cycles / cycles_a_thread;
  return most >= available ? available : std::max(1, static_cast<int>(most));
}

/// Columns of the last strip of tile_columns().
template <class T>
std::int64_t last_columns(const Call& call, const Kernels<T>& ks) {
  return call.n - (ceil_div(call.n, ks.tile_columns()) - 1) * ks.tile_columns();
}

/// Returns whether all of B, in strips, stays in the L1 cache.
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

/// Returns whether `small` computes the last columns by slivers, four at a time: a tile would leave
/// most of its vectors idle.
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

/// Copies of B that `small` makes: none where a strip of it stays in half of the L1 cache, or is
/// read twice at most; else strips one by one, or all of them if they stay in L1.
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

/// Rows of B that few_rows takes at a time. Few rows of C are bound by memory, and few streams are
/// followed best; with more rows the traffic of C counts too.
inline std::int64_t few_rows_block(std::int64_t m) { return m < 5 ? 4 : m < 12 ? 8 : 16; }

/// Operations of so many FMAs of vectors, counted as if of f32: a vector of f64 takes as long.
inline double vector_operations(double fmas) { return 2 * fmas * kernels<float>().lanes; }

/// FMAs that a core could start while the tiles of one matrix are made: vectors of columns may be
/// partial, and a tile of few sums waits for each.
template <class T>
double tile_fmas(const Call& call, const Kernels<T>& ks, double columns_by_slivers) {
  constexpr double latency = 4;  // cycles
  const double m = static_cast<double>(call.m), k = static_cast<double>(call.depth());
  const double left = static_cast<double>(call.n) - columns_by_slivers;
  const double vectors = std::ceil(left / ks.lanes);
  const double strips = std::ceil(left / ks.tile_columns());
  const double sums = std::min<double>(m, ks.tile_rows) * std::min(vectors, 2.0);
  const double chains = sums <= 2 ? 4 : sums <= 4 ? 2 : 1;  // of each sum: see chains_of
  // A sliver's FMA is for four k, and four columns.
  const double slivers =
      columns_by_slivers == 0 ? 0 : std::ceil(columns_by_slivers / sliver_columns(ks));
  const double waiting = std::ceil(m / ks.tile_rows) * strips * k * latency / chains;
  return std::max(m * k * vectors, waiting * cpu::vector_fmas_a_cycle()) + slivers * m * k / 4;
}

/// Elements that copying B into strips of tiles takes, zeros included.
template <class T>
double strip_elements(const Call& call, const Kernels<T>& ks) {
  return static_cast<double>(call.depth()) * static_cast<double>(round_up(call.n, ks.lanes));
}

/// FMAs in whose place the vectors of C are finished: rounded, scaled, and passed through an
/// activation, whose instructions wait for one another. `staged`: sums are never made in C itself.
inline double finish_fmas(const Call& call, bool staged) {
  if (!staged && call.direct() && !call.has_epilogue()) return 0;
  const double vectors = static_cast<double>(call.batch) * static_cast<double>(call.m) *
                         std::ceil(static_cast<double>(call.n) / lanes_of(call));
  const double a_function =
      call.activation == Activation::gelu                                          ? 600
      : call.activation == Activation::none || call.activation == Activation::relu ? 0
                                                                                   : 100;
  const double scaling = call.beta != 0 || call.has_epilogue() ? 40 : 0;
  return vectors * (20 + scaling + a_function);
}

/// The path of kernels that read B, or copy it, by the type of operands and the direction of B.
inline const char* b_path(const Call& call) {
  const bool along = call.b.column == 1;
  if (size_of(call.in) == 2) return along ? "widened" : "widened, B gathered";
  return along ? "" : "B gathered";
}

/// Facts of tiles of packed operands, pieces of k at a time, each of which reads and writes C.
template <class T>
Work packed_work(const Call& call, const Kernels<T>& ks, std::int64_t k_bytes, int threads,
                 bool waits = false) {
  const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
  const double k = static_cast<double>(call.depth()), batch = static_cast<double>(call.batch);
  const double pieces = std::max(1.0, std::ceil(k * sizeof(T) / static_cast<double>(k_bytes)));
  // Tiles of one matrix are shared, if there are several.
  const double tiles = std::ceil(m / ks.tile_rows) * std::ceil(n / ks.tile_columns());
  const bool each = batch >= threads;
  const double share = (each ? batch : tiles) / threads;
  const double uneven = std::ceil(share) / share;
  constexpr double beside_fmas = 120;  // that a tile's beginning and end take the place of
  const double fmas = tile_fmas(call, ks, 0) + tiles * pieces * beside_fmas;
  const double moved = (m * k + k * n) * static_cast<double>(size_of(call.in)) +
                       2 * m * n * static_cast<double>(size_of(call.out)) * pieces;
  return {.bytes = batch * moved,
          .operations = vector_operations(uneven * batch * fmas + finish_fmas(call, false)),
          .blocks = batch,
          .steps = m * k + strip_elements(call, ks),
          .threads = threads,
          .path = waits ? "waits" : b_path(call)};
}

}  // namespace rung::gemm_cpu
