// SPDX-License-Identifier: Apache-2.0
// softmax_backward / threads
//
// Idea     a team of threads shares the rows, or blocks of columns; rows longer than 65536 elements
//          are shared piece by piece, one row after another.
// Changes  against row_pipeline: the same kernels on every core. Pieces follow from the shape alone
//          and are combined in one order: any number of threads gives the same bits.
// Cost     as row_pipeline; the cores share the memory bandwidth.
// Limits   waking a thread costs microseconds: calls of fewer than 32768 elements stay on one.
#include <algorithm>
#include <cstdint>

#include "rung/core/integer.hpp"
#include "rung/ops/softmax_backward/cpu/detail/kernels.hpp"

namespace rung::softmax_backward_cpu {
namespace {

using Kind = cpu::RowWork::Kind;

/// Elements of a thread's own: gathered rows of y and dy, or the sums of a block of columns.
std::int64_t scratch_elements(const SoftmaxBackward::Args& args, const cpu::RowWork& work) {
  if (work.kind == Kind::gathered) return 2 * args.length();
  return work.kind == Kind::columns ? cpu::max_columns : 0;
}

bool streams(const SoftmaxBackward::Args& args) {
  const auto written = static_cast<std::int64_t>(size_of(args.dx.dtype));
  return args.dx.data != args.y.data && args.dx.data != args.dy.data &&
         reinterpret_cast<std::uintptr_t>(args.dx.data) % size_of(args.dx.dtype) == 0 &&
         cpu::rows_bypass_caches(args.length(), args.count(), written,
                                 2 * static_cast<std::int64_t>(size_of(args.y.dtype)));
}

}  // namespace

int useful_threads(const SoftmaxBackward::Args& args, int threads) {
  constexpr std::int64_t elements_per_thread = 16384;  // some 2 us of work
  const std::int64_t elements = args.length() * args.count();
  return static_cast<int>(std::clamp<std::int64_t>(elements / elements_per_thread, 1, threads));
}

void run(const SoftmaxBackward::Args& args, Context& context, int threads) {
  if (args.empty()) return;
  const auto element = static_cast<std::int64_t>(size_of(args.y.dtype));
  const cpu::RowWork work = cpu::row_work(args.rows, 2 * element);
  const bool long_rows = work.kind == Kind::long_rows;
  // A thread without a row, or a block of columns, needs no copy of one.
  if (!long_rows) threads = static_cast<int>(std::min<std::int64_t>(threads, work.units));
  const GradientCall call{&args, streams(args)};
  const std::int64_t size = args.y.dtype == DType::f64 ? 8 : 4;
  const std::int64_t scratch = round_up(scratch_elements(args, work) * size, std::int64_t{4096});
  const std::int64_t shared = long_rows ? cpu::row_pieces(args.length()) * size : 0;
  auto* memory = static_cast<std::byte*>(
      context.workspace(static_cast<std::size_t>(threads * scratch + shared)));
  Kernel* const kernel = visit<float, double, f16, bf16>(
      args.y.dtype, [&]<class T>() { return kernel_for<T>(args.dx.dtype); });
  const auto ranks = long_rows ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    kernel(call, work, team, memory + team.rank() * scratch, memory + threads * scratch);
  });
}

}  // namespace rung::softmax_backward_cpu

namespace rung {
namespace {

double estimate(const SoftmaxBackward::Args& args, const Context& context) {
  return softmax_backward_cpu::seconds(
      args, softmax_backward_cpu::useful_threads(args, context.threads()));
}

void run(const SoftmaxBackward::Args& args, Context& context) {
  softmax_backward_cpu::run(args, context,
                            softmax_backward_cpu::useful_threads(args, context.threads()));
}

const Rung<SoftmaxBackward> self{
    {.name = "threads", .step = 40, .after = "row_pipeline", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
