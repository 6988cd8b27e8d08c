// SPDX-License-Identifier: Apache-2.0
// A user's C++ program: one product, one invalid call. Exits 0 if both calls behave as documented.
#include <rung/rung.hpp>

#include <cstdio>
#include <vector>

int main() {
  // 2x3 times 3x2, with B stored as 2x3 (transposed) and one bias per column.
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<float> b = {1, 0, 1, 0, 2, 0};
  const std::vector<float> bias = {100, -100};
  std::vector<float> c(4, -1);
  rung::Context context = rung::Context::cpu(1);
  rung::GemmOptions options;
  options.transpose_b = true;
  options.bias = bias;
  options.activation = rung::Activation::relu;
  const rung::ConstTensorRef left(a, {2, 3});
  const rung::ConstTensorRef right(b.data(), rung::DType::f32, {2, 3});
  const rung::TensorRef result(c, {2, 2});
  rung::gemm(context, left, right, result, options);
  const std::vector<float> expected = {104, 0, 110, 0};
  if (c != expected) {
    std::printf("got %g %g %g %g\n", c[0], c[1], c[2], c[3]);
    return 1;
  }
  try {
    rung::gemm(context, left, right, result);
  } catch (const rung::Error& error) {
    std::printf("as it should be: %s\n", error.what());
    return error.code() == rung::ErrorCode::invalid_argument ? 0 : 1;
  }
  std::printf("2x3 times 2x3 was not refused\n");
  return 1;
}
