// SPDX-License-Identifier: Apache-2.0
// Work of kernels (rung/core/work.hpp) whose blocks own a tile of queries and loop over tiles of
// keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/core/operator.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/mask.hpp"
#include "rung/ops/attention/shared/packed_rows.hpp"

namespace rung::attention_cuda {

/// Returns the rates key of kernels compiled for widths of 64, 128 and 256.
inline std::string_view path_of_width(std::int64_t width) {
  return width <= 64 ? "64" : width <= 128 ? "128" : "256";
}

/// Returns the work of `blocks` blocks, `resident` per SM, that compute `rows` rows each (padding
/// rows included) over `tiles` tiles of `keys` keys; `width` is the columns of Q and V together.
inline Work tile_work(double blocks, int rows, int keys, double tiles, std::int64_t width,
                      int resident, std::string_view path) {
  const double columns = tiles * static_cast<double>(width);
  return {.operations = 2 * blocks * rows * keys * columns,
          .blocks = blocks,
          .resident = resident,
          .rounds = tiles,
          .steps = columns + static_cast<double>(width),
          .path = path};
}

/// Returns the number of tiles of `rows` queries of one head over all batch elements; with packed
/// queries an upper bound, because the host does not know their offsets.
inline std::int64_t query_tiles(const Attention::Args& args, std::int64_t rows) {
  return count_row_tiles(args.has_query_offsets(), args.batch(), args.queries(), rows);
}

/// Returns the work of blocks that each own a tile of queries of one head. The queries of a tile
/// together see more keys than an average query: rows / 2 more under a causal mask, `rows` more
/// with a window, which moves with the query.
inline Work query_work(const Attention::Args& args, int rows, int keys, int width, int resident) {
  const auto queries = static_cast<double>(args.typical_queries());
  const auto blocks = static_cast<double>(args.heads() * query_tiles(args, rows));
  const double seen =
      std::min(args.visible_pairs() / queries + (args.options.window > 0 ? rows : rows / 2),
               static_cast<double>(args.most_keys(rows)));
  return tile_work(blocks, rows, keys, std::ceil(seen / keys), 2 * width, resident,
                   path_of_width(width));
}

/// Returns the work of split-KV blocks: each owns a tile of stacked rows of one head of K and V and
/// one split of the keys; a second kernel combines the splits.
inline Work split_work(const Attention::Args& args, std::int64_t row_tiles, std::int64_t splits,
                       int rows, int keys, std::int64_t width, int resident) {
  const std::int64_t blocks = args.batch() * args.kv_heads() * row_tiles * splits;
  const std::int64_t seen =
      most_visible_keys(args.queries_of(rows), args.typical_keys(), args.options.window);
  const std::int64_t tiles = ceil_div(seen, splits * keys);
  Work work = tile_work(static_cast<double>(blocks), rows, keys, static_cast<double>(tiles), width,
                        resident, args.q.dtype == DType::f64 ? "f64" : path_of_width(width / 2));
  work.launches = splits > 1 ? 2 : 1;
  return work;
}

}  // namespace rung::attention_cuda
