// SPDX-License-Identifier: Apache-2.0
// Units of work of optimizer's kernels, for any strides: runs of elements along one axis, and
// chunks for the norm.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/optimizer/op/optimizer.hpp"
#include "rung/ops/optimizer/op/update.hpp"

namespace rung::optimizer_cpu {

/// A run of n elements along one axis of every tensor; `steps` are the tensors' strides.
struct Run {
  void* parameters;
  const void* gradients;
  void* first;  // null if not given, like the next two
  void* second;
  void* master;
  const std::int64_t* steps;
  std::int64_t n;

  /// Returns whether all elements are adjacent. The result must not depend on the run or on the
  /// partition among threads, because vector and scalar kernels round differently.
  [[nodiscard]] bool adjacent() const {
    return steps[0] == 1 && steps[1] == 1 && (first == nullptr || steps[2] == 1) &&
           (second == nullptr || steps[3] == 1) && (master == nullptr || steps[4] == 1);
  }
};

/// Kernels for a run: `step` updates its parameters, with gradients multiplied by `clip`; `squares`
/// returns the sum of the squares of its gradients.
struct Kernels {
  void (*step)(const Optimizer::Args& args, const Run& run, double clip);
  double (*squares)(const Run& run);
};
/// Returns the scalar kernels of 010_naive.cpp.
Kernels scalar_kernels(DType dtype);
/// Returns the vector kernels of 020_simd.cpp.
Kernels vector_kernels(DType dtype);

/// Calls f(run) for a range of elements in the order of args.elements.
template <class F>
void for_runs(const Optimizer::Args& args, cpu::Range range, F&& f) {
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
  for (std::int64_t i = range.begin; i < range.end;) {
    const std::int64_t n = std::min(range.end - i, length - i % length);
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

/// Elements per chunk of the norm: squares are summed per chunk, then in chunk order, so that
/// results are bitwise equal for any number of threads.
inline constexpr std::int64_t chunk_elements = 1 << 14;
inline std::int64_t chunks_of(const Optimizer::Args& args) {
  return ceil_div(args.elements.size(), chunk_elements);
}
inline double squares_of_chunk(const Optimizer::Args& args, const Kernels& kernels,
                               std::int64_t chunk) {
  double sum = 0;
  const std::int64_t first = chunk * chunk_elements;
  for_runs(args, {first, std::min(args.elements.size(), first + chunk_elements)},
           [&](const Run& run) { sum += kernels.squares(run); });
  return sum;
}
inline double sum_of_squares(const Optimizer::Args& args, const Kernels& kernels) {
  double sum = 0;
  for (std::int64_t i = 0; i < chunks_of(args); ++i) sum += squares_of_chunk(args, kernels, i);
  return sum;
}

/// Stores the norm if requested. Returns the factor for the gradients.
inline double clip_of(const Optimizer::Args& args, double squares) {
  const double norm = std::sqrt(squares);
  const TensorRef& to = args.options.norm;
  if (to.data != nullptr && to.dtype == DType::f64) *static_cast<double*>(to.data) = norm;
  if (to.data != nullptr && to.dtype != DType::f64) {
    *static_cast<float*>(to.data) = static_cast<float>(norm);
  }
  return clip_factor(args.options.max_norm, norm);
}

inline std::string_view step_path(const Optimizer::Args& args) {
  const bool half = size_of(args.parameters.dtype) == 2;
  if (!args.flat()) return "strided";
  return args.needs_norm() ? half ? "half norm" : "norm" : half ? "half" : "";
}

/// Returns the work of a step on `threads` threads.
inline Work step_work(const Optimizer::Args& args, int threads) {
  return {.blocks = args.elements.size(), .threads = threads, .path = step_path(args)};
}

}  // namespace rung::optimizer_cpu
