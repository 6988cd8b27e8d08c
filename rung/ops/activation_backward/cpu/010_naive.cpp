// SPDX-License-Identifier: Apache-2.0
// activation_backward / naive
//
// Idea     The definition: dx[i] = dy[i] f'(saved[i]) in one loop.
// Changes  Baseline.
// Cost     12 bytes per f32, all compulsory; per element of gelu and silu an exponential of the C
//          library and two divisions.
// Limits   Every valid call; one thread. If axes do not merge, a division per axis and element.
// Source   The chain rule.
#include <cmath>

#include "rung/ops/activation_backward/op/slopes.hpp"

namespace rung {
namespace {

template <class T>
void one_by_one(const ActivationBackward::Args& args) {
  using Sum = Accumulator<T>;
  const auto* saved = static_cast<const T*>(args.saved.data);
  const auto* dy = static_cast<const T*>(args.dy.data);
  auto* dx = static_cast<T*>(args.dx.data);
  const auto exponential = [](Sum x) { return std::exp(x); };
  for (std::int64_t i = 0; i < args.elements.size(); ++i) {
    std::int64_t at[3];
    args.elements.offsets(i, at);
    dx[at[ActivationBackward::element_dx]] = static_cast<T>(activation_slopes::gradient(
        args.function, static_cast<Sum>(saved[at[ActivationBackward::element_saved]]),
        static_cast<Sum>(dy[at[ActivationBackward::element_dy]]), exponential));
  }
}

void run(const ActivationBackward::Args& args, Context&) {
  visit<float, double, f16, bf16>(args.dx.dtype, [&]<class T>() { one_by_one<T>(args); });
}

const Rung<ActivationBackward> self{{.name = "naive", .step = 10, .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
