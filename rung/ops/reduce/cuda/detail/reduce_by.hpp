// SPDX-License-Identifier: Apache-2.0
// Kernels of reduce_by() (reduce.cuh), which takes functors of the caller's own.
//
// Elements keep their order, so that combine need not commute: a thread folds `items` neighbors,
// the block its threads' states in the order of their indices, tile after tile; a row may be cut
// into parts, one per block, whose states a second launch joins. x is read once; a warp's lanes
// load from addresses that are eight elements apart.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/core/view.hpp"
#include "rung/device/collectives.hpp"

namespace rung {

namespace reduce_by_detail::inline RUNG_TARGET {

inline constexpr int threads = 256;
inline constexpr int items = 8;  // neighbors that a thread folds by itself
inline constexpr std::int64_t tile = std::int64_t{threads} * items;
inline constexpr std::int64_t wanted_blocks = 1024;

/// A block a part of a row: parts[row * gridDim.y + part].
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

/// A thread per row.
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

}  // namespace rung
