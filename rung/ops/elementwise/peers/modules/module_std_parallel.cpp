// SPDX-License-Identifier: Apache-2.0
// std::transform with std::execution::par_unseq, which libstdc++ runs on oneTBB.
#include <tbb/task_arena.h>

#include <algorithm>
#include <execution>

#include "rung/ops/elementwise/peers/modules/scalar.hpp"

namespace rung::peer_elementwise {
namespace {

template <class T>
void run(const ElementwisePeerArguments<T>& c) {
  // An arena of this many threads, kept because creating one takes longer than a small call.
  thread_local int threads = 0;
  thread_local tbb::task_arena arena;
  if (threads != c.threads) {
    arena.terminate();
    arena.initialize(c.threads);
    threads = c.threads;
  }
  constexpr auto policy = std::execution::par_unseq;
  arena.execute([&] {
    with_lambda(
        c.function, c.alpha, [&](auto f) { std::transform(policy, c.x, c.x + c.count, c.z, f); },
        [&](auto f) { std::transform(policy, c.x, c.x + c.count, c.y, c.z, f); });
  });
}

}  // namespace
}  // namespace rung::peer_elementwise

RUNG_MODULE_API void rung_elementwise_std_parallel_f32(
    const rung::peer_elementwise::ElementwisePeerArguments<float>* call) {
  rung::peer_elementwise::run(*call);
}
RUNG_MODULE_API void rung_elementwise_std_parallel_f64(
    const rung::peer_elementwise::ElementwisePeerArguments<double>* call) {
  rung::peer_elementwise::run(*call);
}
