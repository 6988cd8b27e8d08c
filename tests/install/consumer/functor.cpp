// SPDX-License-Identifier: Apache-2.0
// A user's program that reduces with its own functor, on the CPU and on the simulated GPU.
#include <rung/ops/reduce/reduce.cuh>

#include <algorithm>
#include <cstdio>
#include <vector>

struct Range {
  float low, high;
};

int main() {
  const std::vector<float> x = {3, -1, 4, 1, -5, 9};
  for (const rung::Backend backend : {rung::Backend::cpu, rung::Backend::simt}) {
    rung::Context context = rung::Context::on(backend);
    std::vector<Range> y(2);
    const auto widest = [](Range a, Range b) {
      return Range{std::min(a.low, b.low), std::max(a.high, b.high)};
    };
    const auto one = [](float value) { return Range{value, value}; };
    rung::reduce_by(context, rung::View<const float, 2>{x.data(), {2, 3}, {3, 1}},
                    rung::View<Range, 1>{y.data(), {2}, {1}}, Range{1e30F, -1e30F}, widest, one);
    if (y[0].low != -1 || y[0].high != 4 || y[1].low != -5 || y[1].high != 9) {
      std::printf("%s: %g..%g, %g..%g\n", to_string(backend), y[0].low, y[0].high, y[1].low,
                  y[1].high);
      return 1;
    }
  }
  return 0;
}
