// SPDX-License-Identifier: Apache-2.0
// What optimizer's CPU rungs share: the norm, runs of elements along one axis, shares of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/optimizer/op/optimizer.hpp"
#include "rung/ops/optimizer/op/update.hpp"

namespace rung::optimizer_cpu {

/// n elements along one axis of every tensor, `steps` apart.
struct Run {
  void* parameters;
  const void* gradients;
  void* first;  // or null, as the next two
  void* second;
  void* master;
  const std::int64_t* steps;
  std::int64_t n;

  /// Is equal for all runs of a call, however threads cut them: vector and scalar kernels round
  /// differently.
  [[nodiscard]] bool adjacent() const {
    return steps[0] == 1 && steps[1] == 1 && (first == nullptr || steps[2] == 1) &&
           (second == nullptr || steps[3] == 1) && (master == nullptr || steps[4] == 1);
  }
};

/// The step of a run, gradients multiplied by `clip`; and the sum of its gradients' squares.
struct Kernels {
  void (*step)(const Optimizer::Args& args, const Run& run, double clip);
  double (*squares)(const Run& run);
};
/// For the instruction set of this machine; in 020_simd.cpp.
Kernels vector_kernels(DType dtype);
/// One element after another.
Kernels scalar_kernels(DType dtype);

/// f(run) for elements [begin, end) in the order of args.elements.
template <class F>
void for_runs(const Optimizer::Args& args, std::int64_t begin, std::int64_t end, F&& f) {
  const Collapsed<5>& elements = args.elements;
  const int last = elements.rank - 1;
  const std::int64_t length = elements.rank == 0 ? 1 : elements.shape[last];
  std::int64_t steps[5] = {1, 1, 1, 1, 1};
  for (int tensor = 0; tensor < 5 && length > 1; ++tensor) {
    steps[tensor] = elements.strides[tensor][last];
  }
  const auto size = static_cast<std::int64_t>(size_of(args.parameters.dtype));
  const std::int64_t wide = args.parameters.dtype == DType::f64 ? 8 : 4;
  const auto moved = [](void* data, std::int64_t bytes) -> void* {
    return data == nullptr ? nullptr : static_cast<char*>(data) + bytes;
  };
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t n = std::min(end - i, length - i % length);
    std::int64_t at[5];
    elements.offsets(i, at);
    f(Run{moved(args.parameters.data, at[0] * size),
          static_cast<const char*>(args.gradients.data) + at[1] * size,
          moved(args.options.first_moment.data, at[2] * wide),
          moved(args.options.second_moment.data, at[3] * wide),
          moved(args.options.master.data, at[4] * wide), steps, n});
    i += n;
  }
}

/// Writes the norm if it is asked for; what gradients are multiplied with.
inline double clip_of(const Optimizer::Args& args, double squares) {
  const double norm = std::sqrt(squares);
  if (args.options.norm.data != nullptr) {
    if (args.options.norm.dtype == DType::f64) {
      *static_cast<double*>(args.options.norm.data) = norm;
    } else {
      *static_cast<float*>(args.options.norm.data) = static_cast<float>(norm);
    }
  }
  return clip_factor(args.options.max_norm, norm);
}

/// The call on up to `threads` threads, in chunks of elements whose extent is always the same: any
/// number of threads gives the same bits.
void chunked(const Optimizer::Args& args, Context& context, const Kernels& kernels, int threads);

/// Estimated seconds on one core, with vectors.
double seconds(const Optimizer::Args& args);
/// Whether that is worth waking another.
bool worth_a_team(const Optimizer::Args& args);

}  // namespace rung::optimizer_cpu
