// SPDX-License-Identifier: Apache-2.0
// Code of optimizer's CUDA rungs: kernel arguments, the norm of the gradients, and the clipping
// factor.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/dependent.hpp"
#include "rung/device/rows.hpp"
#include "rung/ops/optimizer/op/optimizer.hpp"
#include "rung/ops/optimizer/op/update.hpp"

namespace rung::optimizer_cuda::inline RUNG_TARGET {

/// Tensors of a step, a kernel argument.
template <class T>
struct Tensors {
  using Sum = Accumulator<T>;
  T* parameters;
  const T* gradients;
  Sum* first;  // null if not given, like the next two
  Sum* second;
  Sum* master;
  const double* clip;  // factor for the gradients in device memory; null: 1
  OptimizerUpdate<Sum> update;
};

struct Root {
  __device__ __forceinline__ float operator()(float value) const { return sqrtf(value); }
  __device__ __forceinline__ double operator()(double value) const { return sqrt(value); }
};

/// Launches the computation of the clipping factor if a norm is needed, and returns its address in
/// device memory; else returns null. Defined in clip.cu.
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

/// Returns the number of launches of a step: a norm takes two more.
inline int launches_of(const Optimizer::Args& args) { return args.needs_norm() ? 3 : 1; }

}  // namespace rung::optimizer_cuda::inline RUNG_TARGET
