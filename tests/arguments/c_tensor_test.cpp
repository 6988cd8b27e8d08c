// SPDX-License-Identifier: Apache-2.0
// The fields of a rung_tensor, which C programs always set by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "rung/rung.h"

namespace {

class CTensor : public testing::Test {
 protected:
  CTensor() { EXPECT_EQ(rung_context_create(RUNG_CPU, 1, nullptr, &context), RUNG_OK); }
  ~CTensor() override { rung_context_destroy(context); }
  CTensor(const CTensor&) = delete;
  CTensor& operator=(const CTensor&) = delete;

  rung_tensor matrix(float* data) { return {data, RUNG_F32, 2, shape, nullptr, {RUNG_CPU, 0}}; }
  /// Returns the error message of multiplying `x` by a matrix; "" on success.
  std::string product(const rung_tensor& x) {
    const rung_tensor right = matrix(memory);
    const rung_tensor y = matrix(result);
    const rung_status status = rung_gemm(context, &x, &right, &y, nullptr);
    if (status == RUNG_OK) return "";
    EXPECT_EQ(status, RUNG_INVALID_ARGUMENT);
    return rung_last_error();
  }

  rung_context* context = nullptr;
  std::int64_t shape[2] = {2, 2};
  alignas(8) float memory[8] = {1, 2, 3, 4};
  float result[4] = {};
};

TEST_F(CTensor, IsUsedAsItIs) {
  EXPECT_EQ(product(matrix(memory)), "");
  EXPECT_EQ(result[3], 22.0F);
}

TEST_F(CTensor, DataAreAlignedToTheirElements) {
  rung_tensor x = matrix(memory);
  x.data = reinterpret_cast<char*>(memory) + 1;
  const std::string text = product(x);
  EXPECT_EQ(text.find("a: data is 0x"), 0u) << text;
  EXPECT_NE(text.find("accepted for f32: a multiple of 4"), std::string::npos) << text;
}

TEST_F(CTensor, HasAnIndexOfGpusAlone) {
  rung_tensor x = matrix(memory);
  x.device.index = 3;
  EXPECT_EQ(product(x), "a: cpu device 3 does not exist; accepted: 0");
  x.device = {RUNG_CUDA, -2};
  EXPECT_EQ(product(x), "a: cuda device -2 does not exist; accepted: 0 or more");
}

}  // namespace
