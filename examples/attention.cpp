// SPDX-License-Identifier: Apache-2.0
// Attention from three calls: weights = softmax(q k^T / sqrt(d)), result = weights v, for every
// head at once. Compares the result with a plain loop.
#include <rung/rung.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr std::int64_t heads = 4, tokens = 48, width = 32;

std::vector<float> numbers(std::int64_t count, float phase) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = std::sin(phase + 0.37F * static_cast<float>(i));
  }
  return values;
}

/// One element of the result, by definition.
double expected(const float* q, const float* k, const float* v, std::int64_t token,
                std::int64_t column) {
  double sum = 0;
  double weighted = 0;
  for (std::int64_t other = 0; other < tokens; ++other) {
    double score = 0;
    for (std::int64_t i = 0; i < width; ++i) score += q[token * width + i] * k[other * width + i];
    const double weight = std::exp(score / std::sqrt(double{width}));
    sum += weight;
    weighted += weight * v[other * width + column];
  }
  return weighted / sum;
}

}  // namespace

int main() {
  const std::vector<float> q = numbers(heads * tokens * width, 0);
  const std::vector<float> k = numbers(heads * tokens * width, 1);
  const std::vector<float> v = numbers(heads * tokens * width, 2);
  const rung::Extents shape{heads, tokens, width};
  const rung::ConstTensorRef queries(q.data(), rung::DType::f32, shape);
  const rung::ConstTensorRef keys(k.data(), rung::DType::f32, shape);
  const rung::ConstTensorRef values(v.data(), rung::DType::f32, shape);
  const rung::Tensor weights(rung::DType::f32, {heads, tokens, tokens});
  const rung::Tensor result(rung::DType::f32, shape);

  rung::Context context = rung::Context::cpu();
  rung::gemm(context, queries, keys, weights, {.transpose_b = true});
  rung::softmax(context, weights, weights, {.scale = 1 / std::sqrt(double{width})});  // in place
  rung::gemm(context, weights, values, result);

  double largest = 0;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::int64_t at = head * tokens * width;
    for (std::int64_t i = 0; i < tokens * width; ++i) {
      const double wanted =
          expected(q.data() + at, k.data() + at, v.data() + at, i / width, i % width);
      largest = std::max(largest, std::abs(result.data<float>()[at + i] - wanted));
    }
  }
  std::printf("largest difference from the plain loop: %s 1e-6\n",
              largest < 1e-6 ? "below" : "NOT below");
  return largest < 1e-6 ? 0 : 1;
}
