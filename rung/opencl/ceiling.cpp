// SPDX-License-Identifier: Apache-2.0
// Measures an OpenCL device by the kernels of ceiling.cl.
#include "rung/opencl/ceiling.hpp"

#include <algorithm>
#include <chrono>

#include "rung/core/tensor.hpp"
#include "rung/opencl/ceiling.cl.hpp"

namespace rung::opencl {
namespace {

constexpr std::int64_t chains = 8 * 16;  // multiply-adds per work-item and turn
constexpr std::uint32_t turns = 4096;

/// Returns the minimum seconds of 5 launches, each synchronized, after a launch that compiles the
/// kernel and warms up.
template <class Launch>
double min_seconds(Context& context, const Launch& launch) {
  using Clock = std::chrono::steady_clock;
  constexpr int launches = 5;
  double least = 0;
  for (int i = 0; i <= launches; ++i) {
    const auto begin = Clock::now();
    launch();
    context.synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i > 0) least = i == 1 ? seconds : std::min(least, seconds);
  }
  return least;
}

double copy_rate(Context& context, std::int64_t items) {
  // Four times the cache, within the device's limits.
  constexpr std::size_t at_least = std::size_t{64} << 20, at_most = std::size_t{1} << 30;
  const std::size_t wanted = std::clamp(4 * context.info().l2_bytes, at_least, at_most);
  const std::size_t bytes =
      std::min({wanted, limits(context).largest_buffer, context.info().memory_bytes / 8});
  const std::int64_t group_bytes = 16 * items;
  const std::int64_t groups = static_cast<std::int64_t>(bytes) / group_bytes;
  const Extents shape{groups * group_bytes / 4};
  const Tensor from = zeros(DType::f32, shape, context.device());
  const Tensor to = zeros(DType::f32, shape, context.device());
  const double seconds = min_seconds(context, [&] {
    launch(context, {.source = source, .name = "copy_rate"}, {.groups = {groups}, .items = {items}},
           Pointer{from.data<void>(), 16}, Pointer{to.data<void>(), 16});
  });
  return 2.0 * static_cast<double>(groups * group_bytes) / seconds;
}

double multiply_add_rate(Context& context, std::int64_t items) {
  const std::int64_t groups = std::int64_t{limits(context).compute_units} * 16;
  const Tensor out(DType::f32, {groups * items}, context.device());
  const double seconds = min_seconds(context, [&] {
    launch(context, {.source = source, .name = "multiply_add_rate"},
           {.groups = {groups}, .items = {items}}, Pointer{out.data<void>(), sizeof(float)}, 0.5F,
           turns);
  });
  return 2.0 * chains * turns * static_cast<double>(groups * items) / seconds;
}

}  // namespace

MeasuredRates measure_rates(Context& context) {
  const std::int64_t items = largest_group(context, 64);
  return {copy_rate(context, items), multiply_add_rate(context, items)};
}

}  // namespace rung::opencl
