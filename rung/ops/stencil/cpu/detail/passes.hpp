// SPDX-License-Identifier: Apache-2.0
// Iterations and passes of a problem, and the kernels shared by two rungs, each defined in the rung
// that introduces it. A kernel computes a range of tiles on the calling thread, with scratch memory
// passed by the caller.
#pragma once

#include <algorithm>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/stencil/cpu/detail/lines.hpp"
#include "rung/ops/stencil/op/steps.hpp"

namespace rung::stencil_cpu {

/// Computes weighted sums under a mask or its vectors; defined in rung 040.
void weigh_tiles(const Args& pass, cpu::Range tiles, float* scratch);
void weigh_tiles(const Args& pass, cpu::Range tiles, double* scratch);
/// Returns true if rung 045 applies: a window over one plane of more than 3 rows or columns.
inline bool is_large_window(const Args& args) {
  return args.weights == Stencil::Weights::ones &&
         std::max(args.rows().taps, args.columns().taps) > 3;
}
void sum_tiles(const Args& pass, cpu::Range tiles, float* scratch);
void sum_tiles(const Args& pass, cpu::Range tiles, double* scratch);

/// Returns the lines that a kernel keeps: the lines under the masks of a band or of a block of
/// rows, or three blocks of a window.
template <class S>
std::int64_t ring_lines(const Args& args) {
  const std::int64_t taps = args.rows().taps;
  if (args.depth().taps > 1) return band_of<S>(args) + taps - 1;
  return std::max(taps + block_rows - 1, args.weights == Stencil::Weights::ones ? 3 * taps : 0);
}
/// Returns the elements of scratch memory per thread: the ring buffer, the buffers of Lines, two
/// more lines, the weights.
template <class S>
std::int64_t scratch_elements(const Args& args) {
  const std::int64_t lines = args.depth().taps * ring_lines<S>(args) + Lines<S>::buffers() + 2;
  const std::int64_t weights = std::max(args.taps(), args.rows().taps + args.columns().taps);
  return lines * Lines<S>::length_of(args) + weights;
}

/// The two passes of a separable mask of three axes: a mask of two axes within each plane, then a
/// column across the planes.
struct Passes {
  Args planes, depth;

  Passes(const Args& args, void* between, DType type) : planes(args), depth(args) {
    const TensorRef sums(between, type, args.x.shape);
    const int last = args.x.rank() - 1;
    planes.y = sums;
    planes.scale = 1;
    planes.through = {};
    depth.x = sums;
    depth.across = {};
    depth.down = args.through;
    depth.through = {};
    for (int i = 0; i < 3; ++i) planes.axis[i].y = depth.axis[i].x = sums.strides[last - 2 + i];
    const AxisSet arrays = (AxisSet{1} << (last - 2)) - 1;
    planes.batch = collapse<2>(args.x.shape, {args.x.strides, sums.strides}, arrays);
    depth.batch = collapse<2>(args.x.shape, {sums.strides, args.y.strides}, arrays);
    // Pass 1: each plane is an array. Pass 2: planes take the place of rows, and each row index is
    // a plane.
    planes.axis[0].taps = 1;
    planes.axis[0].origin = 0;
    std::swap(depth.axis[0], depth.axis[1]);
    depth.axis[0].taps = depth.axis[2].taps = 1;
    depth.axis[0].origin = depth.axis[2].origin = 0;
  }
};

/// Calls f(pass, scratch) for each pass of each iteration; `scratch` has scratch_elements() per
/// thread.
template <class S, class F>
void for_each_pass_of(const Args& args, Context& context, int threads, const F& f) {
  const bool splits = args.is_separable() && args.depth().taps > 1;
  const auto elements_of = [&](const Args& pass) { return threads * scratch_elements<S>(pass); };
  std::int64_t between = 0;
  std::int64_t elements = elements_of(args);
  if (splits) {
    between = round_up(args.elements(), 64);
    const Passes passes(args, nullptr, dtype_of<S>);
    elements = std::max(elements_of(passes.planes), elements_of(passes.depth));
  }
  stencil_detail::for_each_step(args, context,
                                static_cast<std::size_t>(between + elements) * sizeof(S),
                                [&](const Args& step, std::byte* memory) {
                                  auto* const scratch = reinterpret_cast<S*>(memory) + between;
                                  if (!splits) return f(step, scratch);
                                  const Passes passes(step, memory, dtype_of<S>);
                                  f(passes.planes, scratch);
                                  f(passes.depth, scratch);
                                });
}
template <class F>
void for_each_pass(const Args& args, Context& context, int threads, const F& f) {
  if (args.x.dtype == DType::f64) return for_each_pass_of<double>(args, context, threads, f);
  for_each_pass_of<float>(args, context, threads, f);
}

}  // namespace rung::stencil_cpu
