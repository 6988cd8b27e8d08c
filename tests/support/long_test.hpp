// SPDX-License-Identifier: Apache-2.0
// Tests in two tiers: `./rung.sh test` skips long tests, `./rung.sh test --all` runs them too.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

/// Skips the rest of a long test, unless the environment has RUNG_TEST_ALL=1. rung.sh counts these
/// messages.
#define RUNG_LONG_TEST()                                  \
  if (!::rung::test::long_tests_run()) {                  \
    GTEST_SKIP() << "long: ./rung.sh test --all runs it"; \
  }                                                       \
  static_assert(true, "a semicolon follows")

/// Marks a test with simulated kernels as long under the address sanitizer; in other builds the
/// simulator itself records their accesses.
#if defined(__SANITIZE_ADDRESS__)
#define RUNG_LONG_TEST_IF_SANITIZED() RUNG_LONG_TEST()
#else
#define RUNG_LONG_TEST_IF_SANITIZED() static_assert(true, "a semicolon follows")
#endif

namespace rung::test {

/// Returns true if long tests run.
inline bool long_tests_run() {
  const char* all = std::getenv("RUNG_TEST_ALL");
  return all != nullptr && *all == '1';
}

}  // namespace rung::test
