// SPDX-License-Identifier: Apache-2.0
//
// Work of the CPU rungs, from which the default choice predicts their times (rung/core/work.hpp),
// and the scheduling decisions that they share.
#pragma once

#include <algorithm>
#include <cmath>

#include "rung/core/work.hpp"
#include "rung/cpu/isa.hpp"
#include "rung/ops/gemm/cpu/detail/blocked.hpp"
#include "rung/ops/gemm/cpu/detail/engine.hpp"

namespace rung::gemm_cpu {

/// Returns the lanes of a vector of sums, which is also the column granularity of a tile.
inline int lanes_of(const RowMajorProduct& call) {
  return with_sums(call.in, []<class T>() { return kernels<T>().lanes; });
}
inline int columns_of_tile(const RowMajorProduct& call) { return 2 * lanes_of(call); }

/// Returns the thread count that amortizes starting and joining a team, some thousand cycles: with
/// AVX-512, two threads from two products of 64^3 on.
inline int threads_worth(const RowMajorProduct& call, int available) {
  constexpr double cycles_a_thread = 8000;
  const double cycles = static_cast<double>(call.batch) * static_cast<double>(call.m) *
                        static_cast<double>(call.n) * static_cast<double>(call.depth()) /
                        (lanes_of(call) * cpu::vector_fmas_a_cycle());
  const double most = cycles / cycles_a_thread;
  return most >= available ? available : std::max(1, static_cast<int>(most));
}

/// Returns the number of columns in the last strip of tile_columns().
template <class T>
std::int64_t last_columns(const RowMajorProduct& call, const Kernels<T>& ks) {
  return call.n - (ceil_div(call.n, ks.tile_columns()) - 1) * ks.tile_columns();
}

/// Returns whether all of B, in strips, stays in the L1 cache.
template <class T>
bool b_stays_near(const RowMajorProduct& call, const Kernels<T>& ks) {
  constexpr std::int64_t near_bytes = 32 << 10;
  return call.k * round_up(call.n, ks.tile_columns()) * static_cast<std::int64_t>(sizeof(T)) <=
         near_bytes;
}

/// Returns the columns per sliver of `small`; 0 if it has no slivers.
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
bool by_slivers(const RowMajorProduct& call, const Kernels<T>& ks) {
  constexpr std::int64_t l2_bytes = 512 << 10;
  if (call.a.column != 1 || call.b.column != 1) return false;
  const std::int64_t slivers = last_columns(call, ks) <= sliver_columns(ks) ? 1 : 3;
  if (last_columns(call, ks) > slivers * sliver_columns(ks)) return false;
  // A is read once per sliver.
  return slivers == 1 ||
         sliver_rows(ks) * call.k * static_cast<std::int64_t>(sizeof(T)) <= l2_bytes;
}

/// Copies of B that `small` makes: none if a strip of B fits in half of the L1 cache or is read at
/// most twice; else all strips if they fit in L1, or one strip at a time.
enum class Copies : std::uint8_t { none, strip, whole };
template <class T>
Copies copies_of(const RowMajorProduct& call, const Kernels<T>& ks) {
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

/// Returns the rows of B per pass of few_rows. With few rows of C, memory bandwidth is the
/// bottleneck and prefetchers follow few streams best; with more rows the traffic of C counts too.
inline std::int64_t few_rows_block(std::int64_t m) { return m < 5 ? 4 : m < 12 ? 8 : 16; }

/// Returns the f32-equivalent operations of `fmas` vector FMAs: an f64 vector takes as long as an
/// f32 vector.
inline double vector_operations(double fmas) { return 2 * fmas * kernels<float>().lanes; }

/// Returns the FMA issue slots that the tiles of one matrix occupy, including idle lanes of partial
/// vectors and the latency stalls of tiles with few accumulators.
template <class T>
double tile_fmas(const RowMajorProduct& call, const Kernels<T>& ks, double columns_by_slivers) {
  constexpr double latency = 4;  // cycles
  const double m = static_cast<double>(call.m), k = static_cast<double>(call.depth());
  const double left = static_cast<double>(call.n) - columns_by_slivers;
  const double vectors = std::ceil(left / ks.lanes);
  const double strips = std::ceil(left / ks.tile_columns());
  const double sums = std::min<double>(m, ks.tile_rows) * std::min(vectors, 2.0);
  const double chains = sums <= 2 ? 4 : sums <= 4 ? 2 : 1;  // per sum: see chains_of
  // A sliver's FMA covers four k and four columns.
  const double slivers =
      columns_by_slivers == 0 ? 0 : std::ceil(columns_by_slivers / sliver_columns(ks));
  const double waiting = std::ceil(m / ks.tile_rows) * strips * k * latency / chains;
  return std::max(m * k * vectors, waiting * cpu::vector_fmas_a_cycle()) + slivers * m * k / 4;
}

/// Returns the elements of packed B, zero padding included.
template <class T>
double strip_elements(const RowMajorProduct& call, const Kernels<T>& ks) {
  return static_cast<double>(call.depth()) * static_cast<double>(round_up(call.n, ks.lanes));
}

/// Returns the FMA issue slots that the epilogue of C takes: rounding, scaling, and activations,
/// whose instructions form dependency chains. `staged`: sums never accumulate in C itself.
inline double finish_fmas(const RowMajorProduct& call, bool staged) {
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

/// Returns the rates key of kernels that read or copy B, by operand type and the contiguous axis of
/// B.
inline const char* b_path(const RowMajorProduct& call) {
  const bool along = call.b.column == 1;
  if (size_of(call.in) == 2) return along ? "widened" : "widened, B gathered";
  return along ? "" : "B gathered";
}

/// Returns the work of kernels on packed tiles, one piece of k at a time; each piece reads and
/// writes C.
template <class T>
Work packed_work(const RowMajorProduct& call, const Kernels<T>& ks, std::int64_t k_bytes,
                 int threads, bool waits = false) {
  const double m = static_cast<double>(call.m), n = static_cast<double>(call.n);
  const double k = static_cast<double>(call.depth()), batch = static_cast<double>(call.batch);
  const double pieces = std::max(1.0, std::ceil(k * sizeof(T) / static_cast<double>(k_bytes)));
  // Threads share the tiles of one matrix unless there are at least as many matrices as threads.
  const double tiles = std::ceil(m / ks.tile_rows) * std::ceil(n / ks.tile_columns());
  const bool each = batch >= threads;
  const double share = (each ? batch : tiles) / threads;
  const double uneven = std::ceil(share) / share;
  constexpr double beside_fmas = 120;  // issue slots of a tile's prologue and epilogue
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
