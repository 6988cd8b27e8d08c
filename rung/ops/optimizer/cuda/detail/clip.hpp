// SPDX-License-Identifier: Apache-2.0
// What optimizer's CUDA rungs share: the norm of the gradients, and what they are multiplied with.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/rows.hpp"
#include "rung/ops/optimizer/op/optimizer.hpp"
#include "rung/ops/optimizer/op/update.hpp"

namespace rung::optimizer_cuda::inline RUNG_TARGET {

/// A call's tensors.
template <class T>
struct Tensors {
  using Sum = Accumulator<T>;
  T* parameters;
  const T* gradients;
  Sum* first;  // or null, as the next two
  Sum* second;
  Sum* master;
  const double* clip;  // what gradients are multiplied with; null: nothing
  OptimizerUpdate<Sum> update;
};

struct Root {
  __device__ __forceinline__ float operator()(float value) const { return sqrtf(value); }
  __device__ __forceinline__ double operator()(double value) const { return sqrt(value); }
};

/// The factor in device memory, where the norm is needed; else null. In clip.cu.
const double* launch_clip(const Optimizer::Args& args, Context& context);

template <class T>
Tensors<T> tensors_of(const Optimizer::Args& args, Context& context) {
  using Sum = Accumulator<T>;
  const OptimizerOptions& o = args.options;
  return {static_cast<T*>(args.parameters.data),  static_cast<const T*>(args.gradients.data),
          static_cast<Sum*>(o.first_moment.data), static_cast<Sum*>(o.second_moment.data),
          static_cast<Sum*>(o.master.data),       launch_clip(args, context),
          OptimizerUpdate<Sum>::of(args)};
}

/// Returns the number of kernels of a call: a norm takes two more.
inline int launches_of(const Optimizer::Args& args) { return args.needs_norm() ? 3 : 1; }

}  // namespace rung::optimizer_cuda::inline RUNG_TARGET
