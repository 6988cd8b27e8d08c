// SPDX-License-Identifier: Apache-2.0
// Loads of tiled kernels.
#include "rung/bench/reuse.hpp"

#include <algorithm>
#include <cmath>

namespace rung::bench {

OperandLoads tiled_loads(const ProductShape& shape, double rows, double columns) {
  return {shape.m * shape.k * std::ceil(shape.n / columns),
          shape.k * shape.n * std::ceil(shape.m / rows)};
}

CacheBlocking cache_blocking(double n, double b1, double b2) {
  return {{n * n, n * n * std::ceil(n / b1)}, b1 * n + b2 * n + b1 * b2};
}

double largest_cache_block(double n, double elements) {
  double b = std::floor(std::sqrt(n * n + elements) - n);
  // Corrects rounding errors of the difference.
  while (b * (b + 2 * n) > elements) --b;
  while ((b + 1) * (b + 1 + 2 * n) <= elements) ++b;
  return b;
}

double SharedTile::barriers(double k) const { return 2 * std::ceil(k / step); }

double SharedTile::launched_operations(const ProductShape& shape) const {
  const ProductShape padded{std::ceil(shape.m / rows) * rows, std::ceil(shape.k / step) * step,
                            std::ceil(shape.n / columns) * columns};
  return padded.operations();
}

double StencilAxis::reads_beyond() const {
  // Output i reads radius - i elements beyond the end.
  const double outputs = std::min(tile, radius());
  return outputs * radius() - outputs * (outputs - 1) / 2;
}

double StencilAxis::boundary_reuse() const {
  return (reads() - reads_beyond()) / (tile + radius());
}

double product(std::span<const StencilAxis> axes, double (*of)(const StencilAxis&)) {
  double result = 1;
  for (const StencilAxis& axis : axes) result *= of(axis);
  return result;
}

}  // namespace rung::bench
