// SPDX-License-Identifier: Apache-2.0
// Inputs detects every changed byte that a rung must not write, and ignores those that it may.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "fake_device.hpp"
#include "input_numbers.hpp"
#include "rung/harness/inputs.hpp"

namespace rung {
namespace {

using test::gpu;
using test::layouts;
using test::numbers;

/// Returns the bytes around and between the elements of an entry, by offset from the first element.
std::vector<std::ptrdiff_t> outside(const TensorRef& tensor) {
  const auto size = static_cast<std::ptrdiff_t>(size_of(tensor.dtype));
  std::set<std::ptrdiff_t> inside;
  std::ptrdiff_t end = 0;
  for (std::int64_t i = 0; i < tensor.shape[0]; ++i) {
    for (std::int64_t j = 0; j < tensor.shape[1]; ++j) {
      const std::ptrdiff_t at = (i * tensor.strides[0] + j * tensor.strides[1]) * size;
      for (std::ptrdiff_t byte = 0; byte < size; ++byte) inside.insert(at + byte);
      end = std::max(end, at + size);
    }
  }
  std::vector<std::ptrdiff_t> all;
  for (std::ptrdiff_t byte = -256; byte < end + 256; ++byte) {
    if (!inside.contains(byte)) all.push_back(byte);
  }
  return all;
}

TEST(Inputs, EveryByteOutsideTheElementsIsWatched) {
  for (const Layout layout : layouts) {
    for (const DType dtype : {DType::f32, DType::f16, DType::u8}) {
      Inputs inputs({layout});
      inputs.input("first", dtype, {3, 4});
      inputs.output("second", dtype, {3, 4});
      inputs.in_out("third", dtype, {3, 4});
      for (const Inputs::Entry& entry : inputs.entries()) {
        for (const std::ptrdiff_t byte : outside(entry.tensor)) {
          auto* at = static_cast<unsigned char*>(entry.tensor.data) + byte;
          *at ^= 1;
          const std::string damage = inputs.damage();
          ASSERT_NE(damage.find("'" + entry.name + "'"), std::string::npos) << byte;
          ASSERT_NE(damage.find("1 bytes changed"), std::string::npos) << damage;
          ASSERT_NE(damage.find("outside its elements"), std::string::npos) << damage;
          const std::string where = std::to_string(std::abs(byte)) + " bytes " +
                                    (byte < 0 ? "before" : "after") + " the start";
          ASSERT_NE(damage.find(where), std::string::npos) << damage;
          *at ^= 1;
        }
      }
      ASSERT_EQ(inputs.damage(), "");
    }
  }
}

TEST(Inputs, EveryElementOfAnInputIsWatched) {
  for (const Layout layout : layouts) {
    Inputs inputs({layout});
    const ConstTensorRef x = inputs.input("x", DType::f32, {2, 3, 4});
    for (std::int64_t i = 0; i < (layout == Layout::broadcast ? 1 : 2); ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        for (std::int64_t k = 0; k < 4; ++k) {
          auto* element = const_cast<float*>(static_cast<const float*>(x.data)) + i * x.strides[0] +
                          j * x.strides[1] + k * x.strides[2];
          const float before = *element;
          *element = -before;
          const std::string index =
              "[" + std::to_string(i) + "," + std::to_string(j) + "," + std::to_string(k) + "]";
          ASSERT_NE(inputs.damage().find("in element " + index), std::string::npos)
              << inputs.damage() << " should be " << index;
          ASSERT_NE(inputs.damage().find("input 'x' (f32 2x3x4)"), std::string::npos);
          *element = before;
        }
      }
    }
    EXPECT_EQ(inputs.damage(), "");
  }
}

TEST(Inputs, WritingOutputsIsNoDamage) {
  for (const Layout layout : layouts) {
    for (const Device device : {Device{}, gpu}) {
      Inputs inputs({layout}, 1, device);
      const TensorRef out = inputs.output("out", DType::f64, {3, 5});
      const TensorRef both = inputs.in_out("both", DType::f64, {3, 5});
      const std::vector<double> before = numbers(inputs, 1);
      const std::vector<double> sevens(15, 7.0);
      copy(ConstTensorRef(sevens.data(), DType::f64, {3, 5}), out);
      copy(ConstTensorRef(sevens.data(), DType::f64, {3, 5}), both);
      EXPECT_EQ(inputs.damage(), "");
      EXPECT_EQ(numbers(inputs, 0), sevens);
      inputs.reset();
      EXPECT_TRUE(std::isnan(numbers(inputs, 0)[14]));
      EXPECT_EQ(numbers(inputs, 1), before);
      EXPECT_EQ(inputs.damage(), "");
    }
  }
}

TEST(Inputs, ResetRepairsWhatDamageFound) {
  Inputs inputs;
  const ConstTensorRef x = inputs.input("x", DType::i32, {8});
  const std::vector<double> before = numbers(inputs, 0);
  auto* data = const_cast<std::int32_t*>(static_cast<const std::int32_t*>(x.data));
  data[3] ^= 1;
  data[-1] ^= 1;
  EXPECT_NE(inputs.damage().find("2 bytes changed"), std::string::npos);
  inputs.reset();
  EXPECT_EQ(inputs.damage(), "") << "the next rung must not be blamed";
  EXPECT_EQ(numbers(inputs, 0), before);
}

TEST(Inputs, DamageOnADeviceIsFound) {
  Inputs inputs({Layout::padded}, 1, gpu);
  const ConstTensorRef x = inputs.input("x", DType::f32, {2, 2});
  EXPECT_EQ(inputs.damage(), "");
  const float zero = 0;
  auto* behind_row = const_cast<float*>(static_cast<const float*>(x.data)) + 2;
  copy(ConstTensorRef(&zero, DType::f32, {1}), TensorRef(behind_row, DType::f32, {1}, gpu));
  EXPECT_NE(inputs.damage().find("8 bytes after"), std::string::npos) << inputs.damage();
  EXPECT_NE(inputs.damage().find("outside"), std::string::npos);
}

TEST(Inputs, OfALargeTensorItsSurroundingsAndSamplesAreWatched) {
  constexpr std::int64_t size = std::int64_t{65} << 20;
  Inputs inputs;
  const ConstTensorRef x = inputs.input("x", DType::u8, {size});
  const TensorRef y = inputs.output("y", DType::u8, {size});
  auto* const in = const_cast<unsigned char*>(static_cast<const unsigned char*>(x.data));
  auto* const out = static_cast<unsigned char*>(y.data);
  EXPECT_EQ(inputs.damage(), "");
  for (const std::int64_t at : {std::int64_t{-512}, std::int64_t{-1}, size, size + 511}) {
    for (unsigned char* const data : {in, out}) {
      data[at] ^= 1;
      EXPECT_NE(inputs.damage().find("outside its elements"), std::string::npos) << at;
      data[at] ^= 1;
    }
  }
  for (const std::int64_t at : {std::int64_t{0}, std::int64_t{4095}, size - 1}) {
    in[at] ^= 1;
    EXPECT_NE(inputs.damage().find("[" + std::to_string(at) + "]"), std::string::npos) << at;
    in[at] ^= 1;
    out[at] ^= 1;  // a run may write here
    EXPECT_EQ(inputs.damage(), "");
  }
}

TEST(Inputs, ALargeTensorOnADeviceIsWatchedToo) {
  constexpr std::int64_t size = std::int64_t{65} << 20;
  Inputs inputs({}, 1, gpu);
  const ConstTensorRef x = inputs.input("x", DType::u8, {size});
  EXPECT_EQ(inputs.damage(), "");
  const unsigned char value = 0xff;
  auto* behind = const_cast<unsigned char*>(static_cast<const unsigned char*>(x.data)) + size;
  copy(ConstTensorRef(&value, DType::u8, {1}), TensorRef(behind, DType::u8, {1}, gpu));
  EXPECT_NE(inputs.damage().find("outside its elements"), std::string::npos);
}

}  // namespace
}  // namespace rung
