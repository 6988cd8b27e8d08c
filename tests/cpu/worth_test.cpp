// SPDX-License-Identifier: Apache-2.0
// How many threads a call is worth: none of a team for what one thread does in some microseconds.
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
