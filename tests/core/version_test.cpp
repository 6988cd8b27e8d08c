// SPDX-License-Identifier: Apache-2.0
// The headers' version, for comparison by preprocessors, and the library's.
#include "rung/core/version.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rung {
namespace {

TEST(Version, OfHeadersAndLibraryAgree) {
  EXPECT_EQ(std::string(version()), std::to_string(RUNG_VERSION_MAJOR) + "." +
                                        std::to_string(RUNG_VERSION_MINOR) + "." +
                                        std::to_string(RUNG_VERSION_PATCH));
}

}  // namespace
}  // namespace rung
