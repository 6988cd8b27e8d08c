// SPDX-License-Identifier: Apache-2.0
// Names from outside the program, escaped for messages and JSON.
#include "rung/core/text.hpp"

#include <gtest/gtest.h>

namespace rung {
namespace {

TEST(Text, ControlCharactersAreShown) {
  EXPECT_EQ(printable("gr\xc3\xb6\xc3\x9f"
                      "e.cu"),
            "gr\xc3\xb6\xc3\x9f"
            "e.cu");
  EXPECT_EQ(printable("a\nb\tc\x1b[31m\x7f"), "a\\nb\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Text, WhatIsNoUtf8IsReplacedByteByByte) {
  const std::string lost = "\xef\xbf\xbd";
  for (const char* good :
       {"", "plain", "\xc3\xb6", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(valid_utf8(good), good);
  }
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a" + lost + "b");
  EXPECT_EQ(valid_utf8("\xc3"), lost) << "cut short";
  EXPECT_EQ(valid_utf8("\xe2\x82"), lost + lost);
  EXPECT_EQ(valid_utf8("\x80"), lost) << "begins in the middle";
  EXPECT_EQ(valid_utf8("\xc0\x80"), lost + lost) << "two bytes for what takes one";
  EXPECT_EQ(valid_utf8("\xe0\x80\x80"), lost + lost + lost);
  EXPECT_EQ(valid_utf8("\xf0\x80\x80\x80"), lost + lost + lost + lost);
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), lost + lost + lost) << "half of a UTF-16 pair";
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), lost + lost + lost + lost) << "beyond Unicode";
  EXPECT_EQ(valid_utf8("\xf8\x88\x80\x80\x80"), lost + lost + lost + lost + lost);
}

TEST(Text, CharactersBecomeUtf8) {
  EXPECT_EQ(utf8('a'), "a");
  EXPECT_EQ(utf8(0x7f), "\x7f");
  EXPECT_EQ(utf8(0x80), "\xc2\x80");
  EXPECT_EQ(utf8(0xf6), "\xc3\xb6");
  EXPECT_EQ(utf8(0x7ff), "\xdf\xbf");
  EXPECT_EQ(utf8(0x800), "\xe0\xa0\x80");
  EXPECT_EQ(utf8(0x20ac), "\xe2\x82\xac");
  EXPECT_EQ(utf8(0xffff), "\xef\xbf\xbf");
  EXPECT_EQ(utf8(0x1f600), "\xf0\x9f\x98\x80");
  for (const std::uint32_t none : {0xd800u, 0xdfffu, 0x110000u, 0xffffffffu}) {
    EXPECT_EQ(utf8(none), "\xef\xbf\xbd");
  }
}

}  // namespace
}  // namespace rung
