// SPDX-License-Identifier: Apache-2.0
// The engine along rows: who does what of a call, and with which memory.
#include <exception>

#include "rung/ops/reduce/cpu_row_engine.hpp"

namespace rung::reduce_cpu {
namespace {

/// Keeps what a thread of a team throws: an exception must not leave a parallel region.
class FirstError {
 public:
  template <class F>
  void guard(F&& f) noexcept {
    try {
      f();
    } catch (...) {
      if (!taken_.exchange(true)) error_ = std::current_exception();
    }
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> taken_ = false;
  std::exception_ptr error_;
};

template <class W>
void run(const Reduce::Args& args, Context& context, int threads) {
  const RowEngine<W> plan(args);
  constexpr std::int64_t buffer_bytes = gathered * 8;
  // Whole results in each thread, or chunks for all of them where results are fewer than threads.
  const bool split = plan.chunks() > 1 && threads > 1 && args.results() < 2 * threads;
  const std::int64_t pairs = split ? args.results() * plan.chunks() : 0;
  const std::int64_t buffers = plan.gathers() ? threads * buffer_bytes : 0;
  std::byte* workspace = nullptr;
  if (pairs + buffers > 0) {
    const std::size_t bytes = static_cast<std::size_t>(pairs) * 2 * sizeof(W);
    workspace =
        static_cast<std::byte*>(context.workspace(bytes + static_cast<std::size_t>(buffers)));
  }
  W* value = reinterpret_cast<W*>(workspace + buffers);
  W* rest = value + pairs;
  FirstError error;
  std::atomic<std::int64_t> next = 0;
  cpu::run_team(threads, [&](const cpu::Team& team) {
    RowEngine<W> engine = plan;
    if (plan.gathers()) engine.gather_in(workspace + team.rank() * buffer_bytes);
    if (plan.chunks() > 1) {
      if (split) {
        error.guard([&] { engine.some_chunks(team, value, rest); });
        team.wait();
      }
      error.guard([&] { engine.few_results(team, split ? value : nullptr, rest); });
    } else if (args.has_segments()) {
      error.guard([&] { engine.batches_of_segments(next); });
    } else {
      engine.many_results(team);
    }
  });
  error.rethrow();
}

}  // namespace

void reduce_rows(const Reduce::Args& args, Context& context, int threads) {
  if (args.results() == 0) return;
  if (is_floating(args.x.dtype)) {
    run<double>(args, context, threads);
  } else {
    run<std::int64_t>(args, context, threads);
  }
}

}  // namespace rung::reduce_cpu
