// SPDX-License-Identifier: Apache-2.0
// softmax / threads
//
// Idea     a team of threads shares the rows, or blocks of columns; rows longer than 65536 elements
//          are shared piece by piece, one row after another.
// Changes  against row_pipeline: the same kernels on every core. Pieces follow from the shape alone
//          and are combined in one order: any number of threads gives the same bits.
// Cost     as row_pipeline; the cores share the memory bandwidth.
// Limits   waking a thread costs microseconds: calls of fewer than 32768 elements stay on one.
#include <algorithm>
#include <cstdint>

#include "rung/ops/softmax/cpu/detail/estimate.hpp"
#include "rung/ops/softmax/cpu/detail/kernels.hpp"

// The plan of a call: how it is divided among threads, and their workspace.
namespace rung::softmax_cpu {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

std::int64_t scratch_elements(const Softmax::Args& args, const cpu::RowWork& plan, bool stream) {
  switch (plan.kind) {
    case cpu::RowWork::Kind::rows:
      return stream ? padded_length(args.length()) + args.length() : args.length();
    case cpu::RowWork::Kind::columns:
      return 2 * cpu::max_columns;
    case cpu::RowWork::Kind::gathered:
      return 2 * args.length();
    case cpu::RowWork::Kind::long_rows:
      return 0;
  }
  return 0;
}

bool streams(const Softmax::Args& args) {
  return args.y.data != args.x.data &&
         reinterpret_cast<std::uintptr_t>(args.y.data) % size_of(args.y.dtype) == 0 &&
         cpu::rows_bypass_caches(args.length(), args.count(),
                                 static_cast<std::int64_t>(size_of(args.y.dtype)),
                                 static_cast<std::int64_t>(size_of(args.x.dtype)));
}

/// Elements that are worth a thread: some 2 us of work.
constexpr std::int64_t elements_per_thread = 16384;

}  // namespace

int useful_threads(const Softmax::Args& args, int threads) {
  const std::int64_t elements = args.length() * args.count();
  return static_cast<int>(std::clamp<std::int64_t>(elements / elements_per_thread, 1, threads));
}

void run(const Softmax::Args& args, Context& context, int threads) {
  if (args.empty()) return;
  const cpu::RowWork plan =
      cpu::row_work(args.rows, static_cast<std::int64_t>(size_of(args.x.dtype)));
  // A thread without a row, or a block of columns, needs no copy of one.
  if (plan.kind != cpu::RowWork::Kind::long_rows) {
    threads = static_cast<int>(std::min<std::int64_t>(threads, plan.units));
  }
  const Call call{&args, streams(args)};
  const auto size = static_cast<std::int64_t>(args.x.dtype == DType::f64 ? 8 : 4);
  const std::int64_t scratch = round_up(scratch_elements(args, plan, call.stream) * size, 4096);
  const std::int64_t shared =
      plan.kind == cpu::RowWork::Kind::long_rows ? shared_elements(args) * size : 0;
  auto* memory = static_cast<std::byte*>(
      context.workspace(static_cast<std::size_t>(threads * scratch + shared)));
  Work* const work = visit<float, double, f16, bf16>(
      args.x.dtype, [&]<class T>() { return kernel_for<T>(args.y.dtype); });
  const auto ranks =
      plan.kind == cpu::RowWork::Kind::long_rows ? cpu::Ranks::concurrent : cpu::Ranks::independent;
  cpu::run_ranks(ranks, threads, [&](const cpu::Team& team) {
    work(call, plan, team, memory + team.rank() * scratch, memory + threads * scratch);
  });
}

}  // namespace rung::softmax_cpu

namespace rung {
namespace {

double estimate(const Softmax::Args& args, const Context& context) {
  return softmax_cpu::seconds(args, softmax_cpu::useful_threads(args, context.threads()));
}

void run(const Softmax::Args& args, Context& context) {
  softmax_cpu::run(args, context, softmax_cpu::useful_threads(args, context.threads()));
}

const Rung<Softmax> self{
    {.name = "threads", .step = 90, .after = "row_pipeline", .estimate = estimate, .run = run}};

}  // namespace
}  // namespace rung
