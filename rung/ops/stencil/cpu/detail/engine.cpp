// SPDX-License-Identifier: Apache-2.0
// See engine.hpp: iterations, the split of a separable mask of three axes, threads, and estimates.
#include "rung/ops/stencil/cpu/detail/engine.hpp"

#include <algorithm>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/ops/stencil/cpu/detail/step.hpp"
#include "rung/ops/stencil/op/steps.hpp"

namespace rung::stencil_cpu {
namespace {

template <class S>
void run_step(const Args& args, int threads, void* scratch) {
  const std::int64_t elements = Step<S>::scratch_elements(args);
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    Step<S> step(args);
    step.work(team.share(step.units()), static_cast<S*>(scratch) + team.rank() * elements);
  });
}

/// A separable mask of three axes is one of two axes, in each plane, and then a column of planes.
struct Split {
  Args planes, depth;
};
Split split(const Args& args, void* between, DType type) {
  Split both{args, args};
  const TensorRef sums(between, type, args.x.shape);
  const int last = args.x.rank() - 1;
  Args& planes = both.planes;
  planes.y = sums;
  planes.scale = 1;
  planes.through = {};
  for (int i = 0; i < 3; ++i) planes.axis[i].y = sums.strides[last - 2 + i];
  Args& depth = both.depth;
  depth.x = sums;
  depth.across = {};
  depth.down = args.through;
  depth.through = {};
  for (int i = 0; i < 3; ++i) depth.axis[i].x = sums.strides[last - 2 + i];
  const AxisSet arrays = (AxisSet{1} << (last - 2)) - 1;
  planes.batch = collapse<2>(args.x.shape, {args.x.strides, sums.strides}, arrays);
  depth.batch = collapse<2>(args.x.shape, {sums.strides, args.y.strides}, arrays);
  // Of the first, every plane is an array; of the second, every row of all planes is a plane.
  planes.axis[0].taps = 1;
  planes.axis[0].origin = 0;
  std::swap(depth.axis[0], depth.axis[1]);
  depth.axis[0].taps = depth.axis[2].taps = 1;
  depth.axis[0].origin = depth.axis[2].origin = 0;
  return both;
}

template <class S>
void run_typed(const Args& args, Context& context, int threads) {
  constexpr std::size_t alignment = 64;
  const bool splits = args.is_separable() && args.depth().taps > 1;
  const std::size_t between =
      splits ? (static_cast<std::size_t>(args.elements()) * sizeof(S) + alignment - 1) / alignment *
                   alignment
             : 0;
  Args larger = args;  // than what either half of a split needs
  if (splits) larger.axis[1].taps = std::max(args.depth().taps, args.rows().taps);
  if (splits) larger.axis[0].taps = 1;
  const std::size_t scratch = static_cast<std::size_t>(threads) * sizeof(S) *
                              static_cast<std::size_t>(Step<S>::scratch_elements(larger));
  stencil_detail::for_each_step(args, context, between + scratch,
                                [&](const Args& step, std::byte* memory) {
                                  if (!splits) {
                                    run_step<S>(step, threads, memory);
                                    return;
                                  }
                                  const Split both = split(step, memory, dtype_of<S>);
                                  run_step<S>(both.planes, threads, memory + between);
                                  run_step<S>(both.depth, threads, memory + between);
                                });
}

/// Of a 2-core Zen 5 vCPU: an element from and to memory, a tap of a mask, one of a vector or
/// window, and what waking a thread takes.
constexpr double seconds_per_element = 0.22e-9;
constexpr double seconds_per_tap = 0.008e-9;
constexpr double seconds_per_separable_tap = 0.015e-9;
constexpr double seconds_to_join = 5e-6;

}  // namespace

double seconds(const Args& args, int threads) {
  const bool wide = args.x.dtype == DType::f64;
  const double taps = args.is_separable()
                          ? args.depth().taps + args.rows().taps + args.columns().taps
                          : args.taps();
  const double per_tap = args.is_separable() ? seconds_per_separable_tap : seconds_per_tap;
  const double elements = static_cast<double>(args.elements()) * args.iterations * (wide ? 2 : 1);
  return elements * (seconds_per_element + taps * per_tap) / threads +
         (threads > 1 ? seconds_to_join * args.iterations : 0);
}

int useful_threads(const Args& args, const Context& context) {
  constexpr double worth_a_thread = 10e-6;
  const double threads = seconds(args, 1) / args.iterations / worth_a_thread;
  return static_cast<int>(std::clamp(threads, 1.0, static_cast<double>(context.threads())));
}

void run(const Args& args, Context& context, int threads) {
  if (args.x.dtype == DType::f64) {
    run_typed<double>(args, context, threads);
  } else {
    run_typed<float>(args, context, threads);
  }
}

}  // namespace rung::stencil_cpu
