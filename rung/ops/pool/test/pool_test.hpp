// SPDX-License-Identifier: Apache-2.0
// What pool's tests share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "rung/core/error.hpp"

namespace rung::pool_test {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }
  return "";
}

}  // namespace rung::pool_test
