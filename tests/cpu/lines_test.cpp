// SPDX-License-Identifier: Apache-2.0
// Lines are copied exactly, whatever their alignment and length, by either kind of store.
#include "rung/cpu/lines.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
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

}  // namespace
}  // namespace rung
