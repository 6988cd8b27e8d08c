// SPDX-License-Identifier: Apache-2.0
// pool on a CPU: along which axis, weights and bias in the arithmetic type, shares of threads.
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "rung/core/require.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/pool/cpu/detail/call.hpp"

namespace rung::pool_cpu {
namespace {

/// Below this many taps a second thread costs more than it does (some 5 us).
constexpr double min_taps = 1 << 16;

/// With fewer channels than this most of a vector of them would be idle.
constexpr std::int64_t min_channels = 8;

constexpr std::size_t cache_line = 64;

Along along_of(const Pool::Args& args) {
  const bool contiguous = args.x.strides[1] == 1 && args.y.strides[1] == 1;
  return contiguous && args.channels() >= min_channels ? Along::channels : Along::rows;
}

/// Copies a tensor of one or two axes, as the arithmetic type, in C order.
template <class T>
void copy_as_arithmetic(const ConstTensorRef& from, void* to) {
  const auto* data = static_cast<const T*>(from.data);
  auto* at = static_cast<Accumulator<T>*>(to);
  const int last = from.rank() - 1;
  for (std::int64_t i = 0; i < (last == 0 ? 1 : from.shape[0]); ++i) {
    for (std::int64_t j = 0; j < from.shape[last]; ++j) {
      *at++ = static_cast<Accumulator<T>>(
          data[(last == 0 ? 0 : i * from.strides[0]) + j * from.strides[last]]);
    }
  }
}

/// Returns true if all weights are finite, where there are so few that they are copied.
bool has_finite_weights(const Pool::Args& args) {
  if (args.kind() != Pooling::weighted || args.taps() > max_line_elements) return true;
  return visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    const auto weights = args.options.weights.view<const T, 2>();
    for (std::int64_t i = 0; i < args.rows.kernel; ++i) {
      for (std::int64_t j = 0; j < args.columns.kernel; ++j) {
        if (!std::isfinite(static_cast<Accumulator<T>>(weights(i, j)))) return false;
      }
    }
    return true;
  });
}

}  // namespace

bool worth_sharing(const Pool::Args& args) {
  return static_cast<double>(args.taps()) * static_cast<double>(args.y.size()) >= min_taps;
}

void pool_on(const Pool::Args& args, Context& context, int threads) {
  Call call(args, along_of(args), has_finite_weights(args));
  if (!worth_sharing(args)) threads = 1;
  threads = static_cast<int>(std::min<std::int64_t>(threads, call.units()));
  const std::size_t element = args.x.dtype == DType::f64 ? 8 : 4;
  const auto bytes = [&](std::int64_t elements) {
    return round_up(static_cast<std::size_t>(elements) * element, cache_line);
  };
  const std::size_t weights =
      is_given(args.options.weights) && !call.direct ? bytes(args.taps()) : 0;
  const bool copies_bias =
      !call.direct && call.along == Along::channels && is_given(args.options.bias);
  const std::size_t bias = copies_bias ? bytes(args.channels() + slack) : 0;
  const std::size_t own = bytes(call.scratch());
  auto* memory = static_cast<std::byte*>(
      context.workspace(weights + bias + own * static_cast<std::size_t>(threads)));
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    if (weights != 0) {
      copy_as_arithmetic<T>(args.options.weights, memory);
      call.weights = memory;
    }
    if (bias != 0) {
      copy_as_arithmetic<T>(args.options.bias, memory + weights);
      call.bias = memory + weights;
    }
  });
  std::byte* const scratch = memory + weights + bias;
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range range = team.share(call.units());
    work({&call, range.begin, range.end, scratch + own * static_cast<std::size_t>(team.rank())});
  });
}

double seconds(const Pool::Args& args) {
  // On a 2-core Zen 5 vCPU, from the caches.
  constexpr double a_byte = 0.03e-9, a_row = 16e-9, a_strided_element = 1.2e-9;
  double all = Pool::cost(args).bytes * a_byte;
  if (along_of(args) == Along::rows) {
    const auto rows = static_cast<double>(args.images() * args.channels() * args.rows.in);
    all += rows * a_row;
    if (args.x.strides[3] != 1) all += static_cast<double>(args.x.size()) * a_strided_element;
  }
  return worth_sharing(args) ? all / 2 : all;
}

}  // namespace rung::pool_cpu
