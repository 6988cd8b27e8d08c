// SPDX-License-Identifier: Apache-2.0
// Arguments of reduce's peers: contiguous x as outer x length x inner, the middle axis reduced.
#pragma once

#include "rung/ops/reduce/op/reduce.hpp"

namespace rung::reduce_peer {

struct Shape {
  std::int64_t outer = 1, length = 1, inner = 1;
  bool fits = false;
};

inline bool is_contiguous(const ConstTensorRef& tensor) {
  std::int64_t stride = 1;
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != stride) return false;
    stride *= tensor.shape[axis];
  }
  return true;
}

inline Shape shape_of(const Reduce::Args& args) {
  Shape shape;
  if (args.has_segments() || args.x.empty()) return shape;
  if (!is_contiguous(args.x) || !is_contiguous(args.y)) return shape;
  // Kept axes, then reduced axes, then kept axes: parts 0, 1, 2 must not descend.
  int part = 0;
  for (int axis = 0; axis < args.x.rank(); ++axis) {
    const bool reduced = (args.reduced >> axis & 1) != 0;
    if (args.x.shape[axis] == 1) continue;
    if (reduced && part == 2) return shape;
    if (reduced) part = 1;
    if (!reduced && part == 1) part = 2;
    (part == 0 ? shape.outer : part == 1 ? shape.length : shape.inner) *= args.x.shape[axis];
  }
  shape.fits = true;
  return shape;
}

/// Returns unsupported except for floating x and y of one type without infinities and NaN.
inline Support supports_plain(const Reduce::Args& args, bool with_arg = false) {
  if (args.x.dtype != DType::f32 && args.x.dtype != DType::f64) return unsupported("f32 and f64");
  if (args.is_arg() && !with_arg) return unsupported("no argmin and no argmax");
  return shape_of(args).fits ? supported
                             : unsupported("contiguous tensors, one run of reduced axes");
}

}  // namespace rung::reduce_peer
