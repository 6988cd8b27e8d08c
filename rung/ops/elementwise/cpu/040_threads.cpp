// SPDX-License-Identifier: Apache-2.0
// elementwise / threads
//
// Idea     A team partitions the elements. Results too large for the caches are stored by
//          non-temporal stores, which avoid the write-allocate read: a quarter of add's traffic.
// Changes  Against strided: threads, and non-temporal stores.
// Cost     Every operand loaded once, the result stored once.
// Limits   Every valid call. Problems of a few microseconds run on one thread, since waking another
//          takes as long.
// Source   Intel, Optimization Reference Manual, "Non-temporal stores".
#include "rung/cpu/team.hpp"
#include "rung/ops/elementwise/cpu/detail/facts.hpp"
#include "rung/ops/elementwise/cpu/detail/kernels.hpp"

namespace rung {
namespace {

struct Tuning {
  double bytes_worth_a_team = 900e3;       // from this traffic on, all threads are used
  double operations_worth_a_team = 300e3;  // from this many operations on, too
  double streamed_bytes = 6 << 20;         // a result of this size exceeds the caches
};
constexpr Tuning tuning;

int threads_worth(const Elementwise::Args& args, const Context& context) {
  const double bytes = Elementwise::cost(args).bytes / tuning.bytes_worth_a_team;
  const double operations = elementwise_cpu::operations_of(args) / tuning.operations_worth_a_team;
  const double strided = args.flat() ? 1 : 1.5;
  return strided * std::max(bytes, operations) < 1 ? 1 : context.threads();
}

bool worth_streaming(const Elementwise::Args& args) {
  return static_cast<double>(args.size()) * static_cast<double>(size_of(args.z.dtype)) >=
         tuning.streamed_bytes;
}

Work work(const Elementwise::Args& args, const Context& context) {
  return {.operations = elementwise_cpu::operations_of(args),
          .threads = threads_worth(args, context)};
}

void run(const Elementwise::Args& args, Context& context) {
  const bool streaming = worth_streaming(args);
  // Ranges are multiples of a page of the smallest type, so that no cache line has two writers.
  constexpr std::int64_t block = 4096;
  cpu::run_shares(threads_worth(args, context), [&](const cpu::Team& team) {
    const cpu::Range blocks = team.share((args.size() + block - 1) / block);
    elementwise_cpu::strided(
        args, {blocks.begin * block, std::min(blocks.end * block, args.size())}, streaming);
  });
}

const Rung<Elementwise> self{
    {.name = "threads", .step = 40, .after = "strided", .work = work, .run = run}};

}  // namespace
}  // namespace rung
