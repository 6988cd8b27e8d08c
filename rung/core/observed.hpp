// SPDX-License-Identifier: Apache-2.0
// Observed: adapts an operator's calls to the interface of tuning (tuning.hpp). Included by the
// operators' sources and the workbench, not by rungs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rung/core/operator.hpp"
#include "rung/core/tuning.hpp"

namespace rung::detail {

/// Operator whose calls can be spelled as problems; other operators are neither logged nor tuned.
template <class Op>
concept Describable = requires(const typename Op::Call& call) {
  Op::describe(call);
};
/// Describable operator whose operands are all on the context's device, so that results can be
/// copied there.
template <class Op>
concept Tunable = Describable<Op> && !requires {
  Op::operands_in_host_memory;
};

/// Adapter of a call to ObservedCall; the call and its arguments must outlive it.
template <class Op>
class Observed final : public ObservedCall {
 public:
  Observed(const typename Op::Call& call, const typename Op::Args& args, const Context& context)
      : call_(call), args_(args), compared_(comparison_context(context)) {}

  [[nodiscard]] std::string_view op() const override { return Op::name; }
  /// Returns the problem without the options that vary between calls and do not affect the choice
  /// of rung (Op::counters).
  [[nodiscard]] std::string problem() const override {
    auto problem = Op::describe(call_);
    if constexpr (requires { Op::counters; }) {
      for (const std::string_view counter : Op::counters) {
        std::erase_if(problem.options, [&](const auto& one) { return one.name == counter; });
      }
    }
    return problem.to_string();
  }
  [[nodiscard]] std::vector<Tensor> tensors() const override {
    std::vector<Tensor> all;
    Op::operands(call_, [&](const auto&... operand) {
      (all.push_back({operand.name, operand.tensor, operand.written}), ...);
    });
    return all;
  }
  [[nodiscard]] std::vector<Candidate> candidates() const override {
    std::vector<Candidate> all;
    for (const Rung<Op>* rung = Op::rungs().first; rung != nullptr; rung = rung->next) {
      const RungInfo& info = rung->info;
      if (info.backend != compared_.backend() || info.peer || info.teaching) continue;
      if (rung->supports(args_, compared_)) {
        all.push_back({&info, rung->estimate(args_, compared_)});
      }
    }
    if (all.empty()) return all;
    std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return a.estimate != b.estimate ? a.estimate < b.estimate : comes_before(*a.rung, *b.rung);
    });
    // The rung that an untuned call would choose is first among equal estimates.
    const RungInfo* const chosen = &choose<Op>(args_, compared_).info;
    const auto first = std::find_if(all.begin(), all.end(),
                                    [&](const Candidate& one) { return one.rung == chosen; });
    std::rotate(all.begin(), first, first + 1);
    return all;
  }
  void run(const RungInfo& rung, std::span<void* const> data, Context& context) override {
    typename Op::Call moved = call_;
    std::size_t next = 0;
    Op::operands(moved,
                 [&](const auto&... operand) { ((operand.tensor.data = data[next++]), ...); });
    typename Op::Call last = call_;
    typename Op::Args args = args_;
    move_pointers<Op>(moved, last, args);
    rung_of<Op>(rung).run(args, context);
  }

 private:
  const typename Op::Call& call_;
  const typename Op::Args& args_;
  const Context& compared_;
};

/// Returns the rung of a call that names none: the measured choice if the context tunes, else the
/// estimated one.
template <class Op>
const Rung<Op>& choose_best(const typename Op::Call& call, const typename Op::Args& args,
                            Context& context) {
  if constexpr (Describable<Op>) {
    if (context.tuning() != Tuning::off || context.logs_calls()) {
      Observed<Op> observed(call, args, context);
      log_call(observed, context);
      if constexpr (Tunable<Op>) {
        if (const RungInfo* rung = tuned_rung(observed, context)) return rung_of<Op>(*rung);
      }
    }
  }
  return choose<Op>(args, context);
}

}  // namespace rung::detail
