// SPDX-License-Identifier: Apache-2.0
// Expectation of an Error with a code, and of words in its message.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "rung/core/error.hpp"

namespace rung::test {

template <class Body>
void expect_error(ErrorCode code, std::initializer_list<std::string> words, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "'" << word << "' is not in: " << error.what();
    }
    return;
  }
  ADD_FAILURE() << "no Error thrown";
}

}  // namespace rung::test
