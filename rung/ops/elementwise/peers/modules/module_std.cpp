// SPDX-License-Identifier: Apache-2.0
// std::transform, as the compiler vectorizes it.
#include <algorithm>

#include "rung/ops/elementwise/peers/modules/scalar.hpp"

namespace rung::peer_elementwise {
namespace {

template <class T>
void run(const ElementwisePeerArguments<T>& c) {
  with_lambda(
      c.function, c.alpha, [&](auto f) { std::transform(c.x, c.x + c.count, c.z, f); },
      [&](auto f) { std::transform(c.x, c.x + c.count, c.y, c.z, f); });
}

}  // namespace
}  // namespace rung::peer_elementwise

RUNG_MODULE_API void rung_elementwise_std_f32(
    const rung::peer_elementwise::ElementwisePeerArguments<float>* call) {
  rung::peer_elementwise::run(*call);
}
RUNG_MODULE_API void rung_elementwise_std_f64(
    const rung::peer_elementwise::ElementwisePeerArguments<double>* call) {
  rung::peer_elementwise::run(*call);
}
