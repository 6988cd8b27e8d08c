// SPDX-License-Identifier: Apache-2.0
// reduce_by: reductions with user-defined functors, for C++ and CUDA programs.
//
//   y[row] = combine(... combine(combine(identity, map(x[row, 0])), map(x[row, 1])) ...)
//
//   struct Range { float low, high; };
//   reduce_by(context, x, y, Range{INFINITY, -INFINITY},
//             [] RUNG_HD (Range a, Range b) { ... }, [] RUNG_HD (float v) { return Range{v, v}; });
//
// combine(earlier, later) is associative and need not commute: elements keep their order. identity
// is neutral on either side. The nesting of combine depends on the shape only, so that results are
// reproducible bit for bit, for any number of threads. Without rows nothing is written; empty rows
// give the identity.
//
// x is rows x columns with any strides, y has one element per row and does not overlap x. The state
// S, identity's type, is trivially copyable, of 1, 2 or a multiple of 4 bytes. CPU contexts work
// with any compiler; cuda contexts require that nvcc compiles the caller (with __host__ __device__
// lambdas), simt contexts that the caller is compiled for the simulated GPU.
// Errors: Error(invalid_argument) for shapes that do not fit; Error(unsupported) for a context that
// the including file was not compiled for.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/core/context.hpp"
#include "rung/core/error.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/view.hpp"
#include "rung/cpu/team.hpp"

#if defined(__CUDACC__) || defined(RUNG_SIMT)
#include "rung/device/collectives.hpp"
#endif

namespace rung {

/// The identity map, used by default.
struct Unchanged {
  template <class T>
  RUNG_HD constexpr T operator()(T value) const {
    return value;
  }
};

namespace reduce_by_detail {

constexpr std::int64_t cpu_chunk = 4096;  // elements that one thread folds in a row

template <class T, class S, class Combine, class Map>
void on_cpu(Context& context, const View<const T, 2>& x, const View<S, 1>& y, const S& identity,
            const Combine& combine, const Map& map) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t columns = x.shape[1];
  const std::int64_t chunks = larger<std::int64_t>(ceil_div(columns, cpu_chunk), 1);
  const auto fold = [&](std::int64_t row, std::int64_t chunk) {
    const std::int64_t end = smaller((chunk + 1) * cpu_chunk, columns);
    S state = identity;
    for (std::int64_t i = chunk * cpu_chunk; i < end; ++i) state = combine(state, map(x(row, i)));
    return state;
  };
  const int threads =
      static_cast<int>(smaller<std::int64_t>(context.threads(), ceil_div(rows * chunks, 16)));
  // With few rows, threads divide rows into chunks, whose states the workspace holds.
  const bool share = threads > 1 && rows < 4 * threads;
  S* states =
      share
          ? static_cast<S*>(context.workspace(static_cast<std::size_t>(rows * chunks) * sizeof(S)))
          : nullptr;
  const auto ranks = share ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    if (share) {
      const cpu::Range tasks = team.share(rows * chunks);
      for (std::int64_t task = tasks.begin; task < tasks.end; ++task) {
        states[task] = fold(task / chunks, task % chunks);
      }
      team.wait();
    }
    const cpu::Range part = team.share(rows);
    for (std::int64_t row = part.begin; row < part.end; ++row) {
      S state = share ? states[row * chunks] : fold(row, 0);
      for (std::int64_t c = 1; c < chunks; ++c) {
        state = combine(state, share ? states[row * chunks + c] : fold(row, c));
      }
      y(row) = state;
    }
  });
}

}  // namespace reduce_by_detail

#if defined(__CUDACC__) || defined(RUNG_SIMT)
namespace reduce_by_detail::inline RUNG_TARGET {

// Elements keep their order, since combine need not commute: a thread folds `items` neighbors, the
// block its threads' states in the order of their indices, tile after tile. A row may be divided
// into parts, one per block, whose states a second launch joins. x is read once; a warp's lanes
// load from addresses eight elements apart.

inline constexpr int threads = 256;
inline constexpr int items = 8;  // neighbors that a thread folds by itself
inline constexpr std::int64_t tile = std::int64_t{threads} * items;
inline constexpr std::int64_t wanted_blocks = 1024;

/// Folds a part of a row per block, into parts[row * gridDim.y + part].
template <class T, class S, class Combine, class Map>
__global__ void reduce_by_parts(View<const T, 2> x, S identity, Combine combine, Map map, S* parts,
                                std::int64_t part_length) {
  auto& scratch = shared<WarpValues<S, threads>>();
  const std::int64_t columns = x.shape[1];
  const std::int64_t begin = std::int64_t{blockIdx.y} * part_length;
  const std::int64_t end = begin + part_length < columns ? begin + part_length : columns;
  for (std::int64_t row = blockIdx.x; row < x.shape[0]; row += gridDim.x) {
    S total = identity;
    for (std::int64_t first = begin; first < end; first += tile) {
      S state = identity;
      for (int i = 0; i < items; ++i) {
        const std::int64_t at = first + std::int64_t{threadIdx.x} * items + i;
        if (at < end) state = combine(state, map(x(row, at)));
      }
      state = block_reduce<threads>(state, combine, identity, scratch);
      total = combine(total, state);
    }
    if (threadIdx.x == 0) parts[row * gridDim.y + blockIdx.y] = total;
  }
}

/// Combines the `count` parts of each row; one thread per row.
template <class S, class Combine>
__global__ void reduce_by_join(View<S, 1> y, Combine combine, const S* parts, int count) {
  const std::int64_t row = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (row >= y.shape[0]) return;
  S state = parts[row * count];
  for (int i = 1; i < count; ++i) state = combine(state, parts[row * count + i]);
  y(row) = state;
}

template <class T, class S, class Combine, class Map>
void on_device(Context& context, const View<const T, 2>& x, const View<S, 1>& y, const S& identity,
               const Combine& combine, const Map& map) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t tiles = larger<std::int64_t>(ceil_div(x.shape[1], tile), 1);
  if (rows == 0) return;
  const std::int64_t wanted = larger<std::int64_t>(wanted_blocks / rows, 1);
  const std::int64_t part = ceil_div(tiles, smaller(wanted, tiles)) * tile;
  const std::int64_t count = larger<std::int64_t>(ceil_div(x.shape[1], part), 1);
  auto* parts =
      static_cast<S*>(context.workspace(static_cast<std::size_t>(rows * count) * sizeof(S)));
  constexpr std::int64_t max_blocks = 0x7fffffff;
  launch(context,
         {.grid = {smaller(rows, max_blocks), count},
          .block = threads,
          .shared_bytes = sizeof(WarpValues<S, threads>)},
         reduce_by_parts<T, S, Combine, Map>, x, identity, combine, map, parts, part);
  launch(context, {.grid = ceil_div(rows, std::int64_t{threads}), .block = threads},
         reduce_by_join<S, Combine>, y, combine, parts, static_cast<int>(count));
}

}  // namespace reduce_by_detail::inline RUNG_TARGET
#endif

template <class T, class S, class Combine, class Map = Unchanged>
void reduce_by(Context& context, const View<const T, 2>& x, const View<S, 1>& y,
               const std::type_identity_t<S>& identity, const Combine& combine,
               const Map& map = {}) {
  static_assert(std::is_trivially_copyable_v<S>);
  if (x.shape[0] != y.shape[0]) {
    throw Error(ErrorCode::invalid_argument,
                "reduce_by: y has " + std::to_string(y.shape[0]) +
                    " elements; accepted: " + std::to_string(x.shape[0]) + ", the rows of x");
  }
  const detail::ContextUse use(context);
  if (context.backend() == Backend::cpu) {
    reduce_by_detail::on_cpu(context, x, y, identity, combine, map);
    return use.finish();
  }
#if defined(__CUDACC__) || defined(RUNG_SIMT)
  if (context.backend() == device_backend) {
    reduce_by_detail::on_device(context, x, y, identity, combine, map);
    return use.finish();
  }
#endif
  throw Error(ErrorCode::unsupported,
              std::string("reduce_by: the context is ") + to_string(context.backend()) +
                  ", for which this file was not compiled; accepted: cpu, or cuda from nvcc");
}

}  // namespace rung
