// SPDX-License-Identifier: Apache-2.0
// Test in C++ that calls the library.
#include <cstdio>
#include <vector>

#include "vectors.h"

int main() {
  std::vector<float> x(300, 1.0f), y(300, 0.5f);
  axpy(300, 2.0f, x.data(), y.data());
  const float total = sum(300, y.data());
  std::printf("%g\n", total);
  return total == 750.0f ? 0 : 1;
}
