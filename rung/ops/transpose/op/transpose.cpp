// SPDX-License-Identifier: Apache-2.0
// transpose: operator object, list of rungs, and validation of arguments.
#include "rung/ops/transpose/op/transpose.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Transpose> rung_list;
const Operator<Transpose> self;

/// Returns the requested order, or the default order, as a permutation of all axes.
Extents resolve_order(const Extents& order, int rank) {
  if (order.rank == 0) {
    if (rank == 0) return order;
    if (rank == 1) {
      reject(Transpose::name,
             "x has 1 axis and no order is given; accepted: 2 to 8 axes, or order");
    }
    Extents swapped;
    swapped.rank = rank;
    for (int axis = 0; axis < rank; ++axis) swapped[axis] = axis;
    std::swap(swapped[rank - 2], swapped[rank - 1]);
    return swapped;
  }
  bool seen[max_rank] = {};
  bool permutes = order.rank == rank;
  for (int axis = 0; permutes && axis < rank; ++axis) {
    permutes = order[axis] >= 0 && order[axis] < rank && !seen[order[axis]];
    if (permutes) seen[order[axis]] = true;
  }
  if (!permutes) {
    std::string axes;
    for (int axis = 0; axis < order.rank; ++axis) {
      axes += (axis == 0 ? "" : ", ") + std::to_string(order[axis]);
    }
    reject(Transpose::name,
           fmt::format("order is {}; accepted for an x of {}: each of 0 to {} once", axes,
                       axis_count(rank), rank - 1));
  }
  return order;
}

/// Joins neighboring elements along an axis that is dense in both tensors (tensor 0 is y, 1 is x)
/// into wider elements. Returns their size in bytes.
int widen(Collapsed<2>& axes, int element_bytes, const void* x, const void* y) {
  const int last = axes.rank - 1;
  if (last < 0 || axes.strides[0][last] != 1 || axes.strides[1][last] != 1) return element_bytes;
  const auto addresses = reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(y);
  constexpr int widest = 16;
  const auto can_double = [&] {
    if (element_bytes == widest || axes.shape[last] % 2 != 0) return false;
    if (addresses % static_cast<std::uintptr_t>(2 * element_bytes) != 0) return false;
    for (int axis = 0; axis < last; ++axis) {
      if (axes.strides[0][axis] % 2 != 0 || axes.strides[1][axis] % 2 != 0) return false;
    }
    return true;
  };
  while (can_double()) {
    element_bytes *= 2;
    axes.count /= 2;
    axes.shape[last] /= 2;
    for (int axis = 0; axis < last; ++axis) {
      axes.strides[0][axis] /= 2;
      axes.strides[1][axis] /= 2;
    }
  }
  if (axes.shape[last] == 1) --axes.rank;
  return element_bytes;
}

struct Axis {
  std::int64_t extent = 1, y = 0, x = 0;
};
/// Removes an axis and returns it; for `axis` < 0 returns an axis of one element.
Axis take(Collapsed<2>& axes, int axis) {
  if (axis < 0) return {};
  const Axis taken{axes.shape[axis], axes.strides[0][axis], axes.strides[1][axis]};
  --axes.rank;
  axes.count /= taken.extent;
  for (int i = axis; i < axes.rank; ++i) {
    axes.shape[i] = axes.shape[i + 1];
    for (auto& strides : axes.strides) strides[i] = strides[i + 1];
  }
  return taken;
}

/// Returns the canonical form. x's strides are in the order of y's axes.
Transpose::Moves moves_of(const TensorRef& y, const ConstTensorRef& x, const Extents& x_strides) {
  Transpose::Moves moves;
  moves.element_bytes = static_cast<int>(size_of(y.dtype));
  Collapsed<2>& axes = moves.batch;
  axes = collapse<2>(y.shape, {y.strides, x_strides}, all_axes, AxisOrder::by_stride);
  if (axes.count == 0) return moves;
  moves.element_bytes = widen(axes, moves.element_bytes, x.data, y.data);
  const int last = axes.rank - 1;
  if (last >= 0 && axes.strides[0][last] == 1 && axes.strides[1][last] == 1) {
    moves.run = take(axes, last).extent;
  }
  const Axis rows = take(axes, axes.rank - 1);  // y's strides are in descending order
  // Columns are the remaining axis along which x is densest; a repeated axis (stride 0) is served
  // by the cache.
  int densest = -1;
  for (int axis = 0; axis < axes.rank; ++axis) {
    const std::int64_t stride = std::abs(axes.strides[1][axis]);
    if (stride != 0 && (densest < 0 || stride <= std::abs(axes.strides[1][densest]))) {
      densest = axis;
    }
  }
  const Axis columns = take(axes, densest);
  moves.rows = rows.extent;
  moves.x_row = rows.x;
  moves.y_column = rows.y;
  moves.columns = columns.extent;
  moves.x_column = columns.x;
  moves.y_row = columns.y;
  return moves;
}

}  // namespace

RungList<Transpose>& Transpose::rungs() { return rung_list; }

void Transpose::bind(Args& args) {
  require_list(name, args.order, "order");
  const ConstTensorRef& x = args.x;
  args.order = resolve_order(args.order, x.rank());
  Extents shape;
  Extents strides;
  shape.rank = strides.rank = x.rank();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto from = static_cast<int>(args.order[axis]);
    shape[axis] = x.shape[from];
    strides[axis] = x.strides[from];
  }
  require_shape(name, args.y, "y", shape);
  require_dtype(name, args.y, "y", {x.dtype});
  args.moves = moves_of(args.y, x, strides);
}

void transpose(Context& context, const ConstTensorRef& x, const TensorRef& y,
               const TransposeOptions& options, Pick pick) {
  call<Transpose>(context, pick,
                  [&]<class Call>() { return Call{.x = x, .y = y, .order = options.order}; });
}

}  // namespace rung
