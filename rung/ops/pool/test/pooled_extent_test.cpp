// SPDX-License-Identifier: Apache-2.0
// The number of windows along an axis.
#include <gtest/gtest.h>

#include "rung/ops/pool/op/pool.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

TEST(PooledExtent, IsPyTorchs) {
  EXPECT_EQ(pooled_extent(112, 3, 2, 1), 56);
  EXPECT_EQ(pooled_extent(7, 2), 3);
  EXPECT_EQ(pooled_extent(7, 2, 0, 0, 1, true), 4);
  EXPECT_EQ(pooled_extent(4, 2, 3, 1, 1, true), 2);  // a third would begin in the trailing padding
  EXPECT_EQ(pooled_extent(6, 2, 2, 1, 1, true), 4);
  EXPECT_EQ(pooled_extent(2, 3, 2, 0, 1, true), 1);  // larger than the image
  EXPECT_EQ(pooled_extent(13, 3, 1, 2, 2), 13);
}

TEST(PooledExtent, CountsWindowsOneByOne) {
  // The definition: windows begin a stride apart, each within the padded image. In ceil mode a
  // window must begin within the image or the padding before it and, by PyTorch's division, end
  // less than a stride beyond the padded image.
  for (int in = 1; in <= 9; ++in) {
    for (int kernel = 1; kernel <= 4; ++kernel) {
      for (int stride = 1; stride <= 4; ++stride) {
        for (int padding = 0; 2 * padding <= kernel; ++padding) {
          for (const bool ceil : {false, true}) {
            int count = 0;
            for (int begin = -padding;; begin += stride) {
              const int beyond = begin + kernel - (in + padding);
              if (ceil ? begin >= in || beyond >= stride : beyond > 0) break;
              ++count;
            }
            const auto extent = [&] { return pooled_extent(in, kernel, stride, padding, 1, ceil); };
            if (count == 0) {
              EXPECT_NE(message_of([&] { extent(); }).find("windows span"), std::string::npos);
            } else {
              EXPECT_EQ(extent(), count)
                  << in << ' ' << kernel << ' ' << stride << ' ' << padding << ' ' << ceil;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace rung
