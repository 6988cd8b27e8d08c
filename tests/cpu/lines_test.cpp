// SPDX-License-Identifier: Apache-2.0
// Lines are copied exactly, for any alignment and length and both kinds of store, and converted
// like single elements.
#include "rung/cpu/lines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

namespace rung {
namespace {

TEST(Lines, AreCopiedExactly) {
  std::vector<std::uint8_t> from(600);
  std::iota(from.begin(), from.end(), std::uint8_t{3});
  for (const bool streaming : {false, true}) {
    for (const std::int64_t from_at : {0, 1, 31}) {
      for (std::int64_t to_at = 0; to_at < 70; ++to_at) {
        for (const std::int64_t bytes : {0, 1, 15, 63, 64, 65, 130, 255, 400}) {
          std::vector<std::uint8_t> to(600, 0xA5);
          std::vector<std::uint8_t> wanted = to;
          std::copy_n(from.begin() + from_at, bytes, wanted.begin() + to_at);
          if (streaming) {
            cpu::stream_line(from.data() + from_at, to.data() + to_at, bytes);
            cpu::end_streams();
          } else {
            cpu::copy_line(from.data() + from_at, to.data() + to_at, bytes, from.data());
          }
          ASSERT_EQ(to, wanted) << from_at << ' ' << to_at << ' ' << bytes << ' ' << streaming;
        }
      }
    }
  }
}

/// Expects that a line of `count` elements of T is converted to f32 and back like single elements,
/// and that no other elements change.
template <class T>
void expect_converted(const std::vector<float>& values) {
  for (std::int64_t count = 0; count <= static_cast<std::int64_t>(values.size()); ++count) {
    std::vector<T> small(values.size(), T(7));
    std::vector<T> wanted = small;
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = values[static_cast<std::size_t>(i)];
      if constexpr (std::is_same_v<T, std::uint8_t>) {
        const float number = std::isnan(value) ? 0.0F : std::clamp(value, 0.0F, 255.0F);
        wanted[static_cast<std::size_t>(i)] = static_cast<T>(std::nearbyint(number));
      } else {
        wanted[static_cast<std::size_t>(i)] = static_cast<T>(value);
      }
    }
    cpu::narrow_line(values.data(), dtype_of<T>, small.data(), count);
    ASSERT_EQ(std::memcmp(small.data(), wanted.data(), small.size() * sizeof(T)), 0) << count;
    std::vector<float> wide(values.size(), 7.0F);
    cpu::widen_line(dtype_of<T>, small.data(), wide.data(), count);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(values.size()); ++i) {
      const auto at = static_cast<std::size_t>(i);
      ASSERT_EQ(wide[at], i < count ? static_cast<float>(wanted[at]) : 7.0F)
          << i << " of " << count;
    }
  }
}

TEST(Lines, AreConvertedExactly) {
  std::vector<float> values(70);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.37F * static_cast<float>(i * i % 811) - 20.0F;
  }
  values[3] = 1e12F;
  values[5] = -1e12F;
  values[8] = 2.5F;
  values[9] = 3.5F;
  expect_converted<float>(values);
  expect_converted<bf16>(values);
  expect_converted<f16>(values);
  expect_converted<std::uint8_t>(values);
}

TEST(Lines, NaNBecomesZeroInBytes) {
  const std::vector<float> values(5, std::numeric_limits<float>::quiet_NaN());
  std::vector<std::uint8_t> bytes(5, 1);
  cpu::narrow_line(values.data(), DType::u8, bytes.data(), 5);
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(5, 0));
}

}  // namespace
}  // namespace rung
