// SPDX-License-Identifier: Apache-2.0
// softmax / threads
//
// Idea     a team of threads shares the rows, or blocks of columns; rows longer than 65536 elements
//          are shared piece by piece, one row after another.
// Changes  against row_pipeline: the same kernels on every core. Pieces follow from the shape alone
//          and are combined in one order: any number of threads gives the same bits.
// Cost     as row_pipeline; the cores share the memory bandwidth.
// Limits   waking a thread costs microseconds: calls of fewer than 32768 elements stay on one.
// Source   -
#include <algorithm>
#include <cstdint>

#include "rung/ops/softmax/cpu/detail/estimate.hpp"
#include "rung/ops/softmax/cpu/detail/kernels.hpp"

// The plan of a call: how it is divided among threads, and their workspace.
namespace rung::softmax_cpu {
namespace {

/// What of a block of columns should stay in L2 between its two passes.
constexpr std::int64_t block_bytes = 512 << 10;
constexpr std::int64_t min_columns = 64;  // four cache lines of f32: a page is opened for them

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

std::int64_t scratch_elements(const Softmax::Args& args, const Plan& plan, bool stream) {
  switch (plan.kind) {
    case Plan::Kind::rows:
      return stream ? padded_length(args.length()) + args.length() : args.length();
    case Plan::Kind::columns:
      return 2 * max_columns;
    case Plan::Kind::gathered:
      return 3 * args.length();
    case Plan::Kind::long_rows:
      return 0;
  }
  return 0;
}

/// Non-temporal stores save reading what is overwritten, and help only where the result
/// would not stay in them beside what is read (f32 8x1000000 on a 2-core Zen 5 vCPU, 32 MB in and
/// out, L3 32 MB: 2.3 ms instead of 2.5); nor in place, where it has been read already. What a core
/// reaches of L3 is a slice of some 32 MiB on servers of today, whatever the system says of their
/// sum. Rows of a few lines are cut at their ends too often (on a 2-core Zen 4 vCPU, one thread and
/// two, 300000x100: 6 and 5 GB/s non-temporal, 14 and 15 ordinary; 1000000x32 11 and 7, 12
/// and 12; 40000x500 14 and 9, 10 and 10).
bool streams(const Softmax::Args& args) {
  constexpr double l3 = 32 << 20;
  constexpr std::int64_t short_row = 512;  // bytes
  if (args.length() * static_cast<std::int64_t>(size_of(args.y.dtype)) < short_row) return false;
  const std::size_t element =
      size_of(args.y.dtype) + (args.backward ? 2 : 1) * size_of(args.x.dtype);
  const double bytes = static_cast<double>(args.length()) * static_cast<double>(args.count()) *
                       static_cast<double>(element);
  return bytes > l3 && args.y.data != args.x.data && args.y.data != args.dy.data &&
         reinterpret_cast<std::uintptr_t>(args.y.data) % size_of(args.y.dtype) == 0;
}

/// Elements that are worth a thread: some 2 us of work.
constexpr std::int64_t elements_per_thread = 16384;

}  // namespace

int useful_threads(const Softmax::Args& args, int threads) {
  const std::int64_t elements = args.length() * args.count();
  return static_cast<int>(std::clamp<std::int64_t>(elements / elements_per_thread, 1, threads));
}

Plan plan_of(const Softmax::Args& args) {
  if (args.rows.are_contiguous()) {
    return {args.length() > longest_row ? Plan::Kind::long_rows : Plan::Kind::rows, args.count()};
  }
  if (args.rows.are_adjacent() && args.rows.run() > 1) {
    const std::int64_t run = args.rows.run();
    const auto bytes = static_cast<std::int64_t>(size_of(args.x.dtype)) * (args.backward ? 2 : 1);
    const std::int64_t fitting = block_bytes / (bytes * args.length()) / 16 * 16;
    const std::int64_t columns =
        fitting >= min_columns ? std::min(fitting, max_columns) : max_columns;
    return {Plan::Kind::columns, args.count() / run * ((run + columns - 1) / columns), columns};
  }
  return {Plan::Kind::gathered, args.count()};
}

void run(const Softmax::Args& args, Context& context, int threads) {
  if (args.empty()) return;
  const Plan plan = plan_of(args);
  // A thread without a row, or a block of columns, needs no copy of one.
  if (plan.kind != Plan::Kind::long_rows) {
    threads = static_cast<int>(std::min<std::int64_t>(threads, plan.units));
  }
  const Call call{&args, streams(args)};
  const auto size = static_cast<std::int64_t>(args.x.dtype == DType::f64 ? 8 : 4);
  const std::int64_t scratch = round_up(scratch_elements(args, plan, call.stream) * size, 4096);
  const std::int64_t shared = plan.kind == Plan::Kind::long_rows ? shared_elements(args) * size : 0;
  auto* memory = static_cast<std::byte*>(
      context.workspace(static_cast<std::size_t>(threads * scratch + shared)));
  Work* const work = visit<float, double, f16, bf16>(
      args.x.dtype, [&]<class T>() { return kernel_for<T>(args.y.dtype); });
  const auto ranks =
      plan.kind == Plan::Kind::long_rows ? cpu::Ranks::concurrent : cpu::Ranks::independent;
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
