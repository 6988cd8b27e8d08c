// SPDX-License-Identifier: Apache-2.0
// Number of threads that pay off for a call: one for work of a few microseconds.
#include "rung/cpu/worth.hpp"

#include <gtest/gtest.h>

namespace rung::test {
namespace {

TEST(ThreadsWorth, SmallCallsGetOneAndLargeOnesAll) {
  EXPECT_EQ(cpu::threads_worth(1e-6, 8), 1);
  EXPECT_EQ(cpu::threads_worth(0, 8), 1);
  EXPECT_EQ(cpu::threads_worth(12e-6, 8), 2);
  EXPECT_EQ(cpu::threads_worth(1, 8), 8);
  EXPECT_EQ(cpu::threads_worth(1, 1), 1);
}

}  // namespace
}  // namespace rung::test
