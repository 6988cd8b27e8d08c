// SPDX-License-Identifier: Apache-2.0
// Shared by the general GPU rungs: typed kernel arguments, weights in any of their forms, and the
// work of launches.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/convert.hpp"
#include "rung/device/device.hpp"
#include "rung/ops/stencil/op/edge.hpp"
#include "rung/ops/stencil/op/steps.hpp"

namespace rung::stencil_cuda::inline RUNG_TARGET {

using stencil_detail::edge_index;

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// The mask in the form in which the caller gave it. W is the type of the sums.
template <class W>
struct WeightsOf {
  Stencil::Weights kind;
  const W* mask;
  std::int64_t mask_strides[3];
  const W* along[3];  // vectors through, down, across; null: every weight is 1
  std::int64_t along_strides[3];

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE W at(int k, int i, int j) const {
    if (kind == Stencil::Weights::mask) {
      return mask[k * mask_strides[0] + i * mask_strides[1] + j * mask_strides[2]];
    }
    W product = 1;
    const int taps[3] = {k, i, j};
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      if (along[axis] != nullptr) product *= along[axis][taps[axis] * along_strides[axis]];
    }
    return product;
  }
};

/// Kernel arguments of one iteration. Axes: depth, rows, columns.
template <class T, class Y>
struct Arrays {
  using In = T;
  using Out = Y;
  using Sum = SumOf<T>;
  const T* x;
  Y* y;
  Stencil::Axis axis[3];
  Collapsed<2> batch;
  StencilEdge edge;
  Sum scale;
  WeightsOf<Sum> weights;

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t inside(int which, std::int64_t i) const {
    return edge_index(i, axis[which].extent, edge);
  }
};

/// Converts a sum to an element; u8: rounds to nearest even and clamps, NaN becomes 0.
template <class Y, class Sum>
__device__ __forceinline__ Y element_of(Sum sum) {
  if constexpr (std::is_same_v<Y, std::uint8_t>) {
    if (!(sum > 0)) return 0;  // NaN too
    return sum >= 255 ? std::uint8_t{255} : static_cast<std::uint8_t>(rintf(sum));
  } else {
    return convert<Y>(sum);
  }
}

// --- on the host ---------------------------------------------------------------------------------

template <class W>
WeightsOf<W> weights_of(const Stencil::Args& args) {
  WeightsOf<W> weights{};
  weights.kind = args.weights;
  weights.mask = static_cast<const W*>(args.mask.data);
  const ConstTensorRef* const vectors[] = {&args.through, &args.down, &args.across};
  for (int axis = 0; axis < 3; ++axis) {
    weights.mask_strides[axis] = args.mask.strides[axis];
    weights.along[axis] = static_cast<const W*>(vectors[axis]->data);
    weights.along_strides[axis] = vectors[axis]->strides[0];
  }
  return weights;
}

template <class T, class Y>
Arrays<T, Y> arrays_of(const Stencil::Args& args) {
  Arrays<T, Y> arrays{.x = static_cast<const T*>(args.x.data),
                      .y = static_cast<Y*>(args.y.data),
                      .axis = {args.axis[0], args.axis[1], args.axis[2]},
                      .batch = args.batch,
                      .edge = args.edge,
                      .scale = static_cast<SumOf<T>>(args.scale),
                      .weights = weights_of<SumOf<T>>(args)};
  return arrays;
}

/// Calls f<T, Y>() with the types of x and y.
template <class F>
void with_types(const Stencil::Args& args, F&& f) {
  visit<float, double, f16, bf16, std::uint8_t>(args.x.dtype, [&]<class T>() {
    if constexpr (!std::is_same_v<T, double> && !std::is_same_v<T, float>) {
      if (args.y.dtype == DType::f32) return f.template operator()<T, float>();
    }
    f.template operator()<T, T>();
  });
}

/// Returns the cost of a problem that takes `launches` launches.
inline Cost traffic_of(const Stencil::Args& args, int launches) {
  Cost cost = Stencil::cost(args);
  cost.bytes *= launches;
  cost.written *= launches;
  return cost;
}

/// Returns the work of `launches` equal launches. Each block computes `products` products and waits
/// for `loads` dependent loads. Mirror and wrap edges cost a division per index.
inline Work launches_work(const Stencil::Args& args, int launches, const LaunchExtent& grid,
                          double products, double loads) {
  const bool folds = args.edge == StencilEdge::mirror || args.edge == StencilEdge::wrap;
  const auto blocks = static_cast<double>(grid.x * grid.y * grid.z);
  return {.bytes = Stencil::cost(args).bytes * launches,
          .operations = 2 * blocks * products * launches,
          .launches = launches,
          .blocks = blocks,
          .resident = 8,
          .rounds = loads * launches,
          .path = folds ? "folds" : ""};
}

}  // namespace rung::stencil_cuda::inline RUNG_TARGET
