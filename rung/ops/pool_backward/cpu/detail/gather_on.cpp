// SPDX-License-Identifier: Apache-2.0
// pool_backward on a CPU: along which axis, weights in the arithmetic type, shares of threads.
#include <algorithm>
#include <cstddef>

#include "rung/core/require.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/pool_backward/cpu/detail/call.hpp"

namespace rung::pool_backward_cpu {
namespace {

/// Below this many terms a second thread costs more than it does (some 5 us).
constexpr double min_terms = 1 << 15;

double terms(const PoolBackward::Args& args) { return PoolBackward::cost(args).operations / 2; }

bool channels_are_contiguous(const PoolBackward::Args& args) {
  constexpr std::int64_t min_channels = 8;
  bool contiguous = args.channels() >= min_channels;
  const PoolBackwardOptions& options = args.options;
  for (const ConstTensorRef& tensor :
       {ConstTensorRef(args.dx), args.dy, options.indices, options.x, options.y}) {
    contiguous = contiguous && (!is_given(tensor) || tensor.strides[1] == 1);
  }
  return contiguous;
}

}  // namespace

void gather_on(const PoolBackward::Args& args, Context& context, int threads) {
  Call call;
  call.args = &args;
  call.along_channels = channels_are_contiguous(args);
  if (terms(args) < min_terms) threads = 1;
  threads = static_cast<int>(std::min<std::int64_t>(threads, call.units()));
  const std::size_t element = args.dx.dtype == DType::f64 ? 8 : 4;
  constexpr std::size_t cache_line = 64;
  const auto bytes = [&](std::int64_t elements) {
    return round_up(static_cast<std::size_t>(elements) * element, cache_line);
  };
  const std::size_t own = bytes(call.scratch());
  auto* const scratch =
      static_cast<std::byte*>(context.workspace(own * static_cast<std::size_t>(threads)));
  cpu::run_shares(threads, [&](const cpu::Team& team) {
    const cpu::Range range = team.share(call.units());
    work({&call, range.begin, range.end, scratch + own * static_cast<std::size_t>(team.rank())});
  });
}

double seconds(const PoolBackward::Args& args) {
  // On a 2-core Zen 5 vCPU.
  constexpr double a_row = 12e-9, a_row_of_windows = 8e-9, a_pixel = 8e-9;
  const double term = args.kind() == Pooling::max ? 0.5e-9 : 0.15e-9;
  double all = term * terms(args);
  if (channels_are_contiguous(args)) {
    const auto pixels = static_cast<double>(args.images() * args.rows.in * args.columns.in);
    all += pixels * a_pixel;
  } else {
    const auto rows = static_cast<double>(args.images() * args.channels());
    all += rows * (static_cast<double>(args.rows.in) * a_row +
                   static_cast<double>(args.rows.out * args.rows.kernel) * a_row_of_windows);
  }
  return terms(args) < min_terms ? all : all / 2;
}

}  // namespace rung::pool_backward_cpu
