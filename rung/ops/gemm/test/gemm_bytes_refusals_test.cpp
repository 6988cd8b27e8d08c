// SPDX-License-Identifier: Apache-2.0
// gemm of 8-bit operands: rejected arguments, and messages that name the accepted ones.
#include <string>
#include <vector>

#include "rung/ops/gemm/test/gemm_test.hpp"

namespace rung::gemm_bytes_refusals_test {
namespace {

std::string refusal(const ConstTensorRef& a, const ConstTensorRef& b, const TensorRef& c,
                    const GemmOptions& options = {}) {
  Context context = Context::on(Backend::cpu);
  try {
    gemm(context, a, b, c, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

GemmOptions with(ConstTensorRef GemmOptions::*member, const TensorRef& tensor) {
  GemmOptions options;
  options.*member = tensor;
  return options;
}

TEST(GemmBytesRefusals, NameWhatIsAccepted) {
  std::vector<float> memory(4096);
  float* const data = memory.data();
  const auto at = [&](DType type, int offset, std::int64_t rows, std::int64_t columns) {
    return TensorRef(static_cast<void*>(data + offset), type, Extents{rows, columns});
  };
  const TensorRef fp8_a = at(DType::e4m3, 0, 4, 200);
  const TensorRef fp8_b = at(DType::e5m2, 256, 200, 4);
  const TensorRef i8_a = at(DType::i8, 0, 4, 200);
  const TensorRef i8_b = at(DType::i8, 256, 200, 4);
  const TensorRef f32_c = at(DType::f32, 512, 4, 4);
  const TensorRef i32_c = at(DType::i32, 512, 4, 4);
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(refusal(fp8_a, fp8_b, f32_c), "");
  EXPECT_EQ(refusal(i8_a, i8_b, i32_c), "");
  EXPECT_TRUE(has(refusal(fp8_a, fp8_b, at(DType::e4m3, 512, 4, 4)), "c is e4m3; accepted"));
  EXPECT_TRUE(has(refusal(fp8_a, i8_b, f32_c), "b is i8"));
  EXPECT_TRUE(has(refusal(i8_a, i8_b, f32_c), "i8 for a and b with i32 for c"));
  EXPECT_TRUE(has(refusal(i8_a, i8_b, i32_c, {.alpha = 0.5}), "alpha is 0.5"));
  EXPECT_TRUE(has(refusal(i8_a, i8_b, i32_c, {.beta = 1e10}), "beta is"));
  EXPECT_TRUE(has(refusal(i8_a, i8_b, i32_c, {.activation = Activation::gelu}), "relu"));
  EXPECT_TRUE(
      has(refusal(fp8_a, fp8_b, f32_c, with(&GemmOptions::residual, at(DType::bf16, 768, 4, 4))),
          "residual is bf16; accepted: f32"));
  EXPECT_TRUE(
      has(refusal(fp8_a, fp8_b, f32_c, with(&GemmOptions::residual, at(DType::f32, 768, 3, 4))),
          "residual is 3x4"));
  EXPECT_TRUE(has(refusal(fp8_a, fp8_b, f32_c, with(&GemmOptions::residual, f32_c)), "residual"));
  EXPECT_TRUE(
      has(refusal(fp8_a, fp8_b, f32_c, with(&GemmOptions::scale_a, at(DType::f32, 768, 4, 1))),
          "scale_a is 4x1; accepted: 4x2"));
  EXPECT_TRUE(
      has(refusal(fp8_a, fp8_b, f32_c, with(&GemmOptions::scale_b, at(DType::bf16, 768, 2, 1))),
          "scale_b is bf16; accepted: f32"));
  EXPECT_TRUE(
      has(refusal(i8_a, i8_b, i32_c, with(&GemmOptions::scale_b, at(DType::f32, 768, 2, 1))),
          "scale_b with i8 operands"));
}

}  // namespace
}  // namespace rung::gemm_bytes_refusals_test
