// SPDX-License-Identifier: Apache-2.0
// Sums the rows of a matrix. Prints 6 15 if the library and its rungs were found.
#include <rung/rung.hpp>

#include <cstdio>
#include <vector>

int main() {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> y(2);
  rung::Context context = rung::Context::cpu(1);
  rung::reduce(context, {x, {2, 3}}, y, {.axes = {1}});
  std::printf("%g %g\n", y[0], y[1]);
  return y[0] == 6 && y[1] == 15 ? 0 : 1;
}
