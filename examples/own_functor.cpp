// SPDX-License-Identifier: Apache-2.0
// Functors of your own in rung's kernels, on the CPU and on the simulated GPU: the largest distance
// of a row's points from the origin, by transform and reduce_by.
#include <rung/ops/elementwise/transform.cuh>
#include <rung/ops/reduce/reduce.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  const std::vector<float> x = {3, 0, 1, 8, 5, -1};
  const std::vector<float> y = {4, 2, 1, 6, 12, 0};
  std::vector<float> distance(6);
  std::vector<float> largest(2);
  const rung::View<const float, 2> points_x{x.data(), {2, 3}, {3, 1}};
  const rung::View<const float, 2> points_y{y.data(), {2, 3}, {3, 1}};
  const rung::View<float, 2> distances{distance.data(), {2, 3}, {3, 1}};
  const rung::View<float, 1> rows{largest.data(), {2}, {1}};

  for (const rung::Backend backend : {rung::Backend::cpu, rung::Backend::simt}) {
    if (!rung::available(backend)) continue;
    rung::Context context = rung::Context::on(backend);
    rung::transform(
        context, [](float a, float b) { return std::sqrt(a * a + b * b); }, distances, points_x,
        points_y);
    rung::reduce_by(context, rung::View<const float, 2>(distances), rows, 0.0F,
                    [](float a, float b) { return std::max(a, b); });
    std::printf("%s: %g and %g\n", to_string(backend), largest[0], largest[1]);
  }
  return largest[0] == 5 && largest[1] == 13 ? 0 : 1;
}
