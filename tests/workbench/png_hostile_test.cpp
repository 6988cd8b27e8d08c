// SPDX-License-Identifier: Apache-2.0
// PNG files that claim more data than they contain, or contain more than they claim.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "png_file.hpp"

namespace rung::workbench {
namespace {

TEST_F(Png, ThatClaimsMoreThanItHoldsIsRefusedAtOnce) {
  const Bytes few(1000);
  const auto has = [](const std::string& message, std::string_view part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  has(read(png_claiming(1 << 20, 1 << 20, 16, 6, few)), "1048576 x 1048576 pixels are announced");
  has(read(png_claiming(100000, 100000, 1, 0, few)), "no file of");
  has(read(png_claiming(0x7fffffff, 0x7fffffff, 8, 6, few)), "malformed");
  has(read(png_claiming((1 << 20) + 1, 1, 8, 0, few)), "malformed");
  has(read(png_claiming(0, 5, 8, 0, few)), "malformed");
  has(read(png_claiming(5, 5, 3, 0, few)), "malformed");    // invalid depth
  has(read(png_claiming(5, 5, 8, 3, few)), "malformed");    // no palette
  has(read(png_claiming(40, 40, 8, 2, few)), "malformed");  // too few pixels
  has(read({'h', 'e', 'l', 'l', 'o', ',', ' ', 'w', 'o', 'r', 'l', 'd'}), "PNG");
  has(read({}), "truncated");
}

TEST_F(Png, WithACommentThatInflatesBeyondTheLimitIsReadWithoutIt) {
  // 64 MiB of zeros in 64 KiB: eight times the limit of a chunk.
  Bytes text{'k', 'e', 'y', 0, 0};
  const Bytes packed = deflated(Bytes(std::size_t{64} << 20));
  text.insert(text.end(), packed.begin(), packed.end());
  Bytes pixels;
  for (int row = 0; row < 2; ++row) pixels.insert(pixels.end(), {0, 1, 2, 3});
  Tensor tensor;
  ASSERT_EQ(read(png_claiming(3, 2, 8, 0, pixels, text), &tensor), "");
  EXPECT_EQ(bytes_of(tensor), (Bytes{1, 2, 3, 1, 2, 3}));
}

/// Returns a picture whose content is followed by `inflated` zeros, compressed to a thousandth.
Bytes png_bomb(std::size_t inflated, const Bytes& pixels, std::uint8_t interlaced) {
  Bytes content = pixels;
  content.resize(pixels.size() + inflated);
  Bytes file = png_claiming(1, 1, 8, 0, content);
  // The interlace flag, and IHDR's checksum: from byte 12, over 17 bytes with the chunk's name.
  file[28] = interlaced;
  const auto checksum = static_cast<std::uint32_t>(crc32(0, file.data() + 12, 17));
  for (int i = 0; i < 4; ++i) file[29 + i] = static_cast<std::uint8_t>(checksum >> (24 - 8 * i));
  return file;
}

TEST_F(Png, WhoseImageDataGoOnBehindThePixelsAreNotInflated) {
  constexpr std::size_t inflated = std::size_t{128} << 20;
  constexpr std::size_t looked_at = std::size_t{28} << 10;
  for (const std::uint8_t interlaced : {std::uint8_t{0}, std::uint8_t{1}}) {
    Bytes file = png_bomb(inflated, {0, 77}, interlaced);
    ASSERT_GT(file.size(), 4 * looked_at);
    EXPECT_NE(read(file).find("go on behind the last pixel"), std::string::npos) << read(file);
    // A reader that read further would report the missing end instead.
    file.resize(looked_at);
    EXPECT_NE(read(file).find("go on behind the last pixel"), std::string::npos) << read(file);
  }
}

TEST_F(Png, WithALittleImageDataTooMuchIsRead) {
  for (const std::uint8_t interlaced : {std::uint8_t{0}, std::uint8_t{1}}) {
    Tensor tensor;
    ASSERT_EQ(read(png_bomb(5000, {0, 77}, interlaced), &tensor), "");
    EXPECT_EQ(bytes_of(tensor), (Bytes{77}));
  }
}

std::size_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) << 10;
}

TEST_F(Png, WithManyCommentsThatInflateIsReadWithoutThem) {
  // Each inflates to less than libpng's limit per chunk; a hundred would take 786 MB.
  Bytes text{'k', 'e', 'y', 0, 0};
  const Bytes packed = deflated(Bytes(std::size_t{15} << 19, 'a'));
  text.insert(text.end(), packed.begin(), packed.end());
  Bytes file = png_claiming(1, 1, 8, 0, {0, 77});
  Bytes chunk;
  put_chunk(chunk, "zTXt", text);
  constexpr std::ptrdiff_t behind_header = 8 + 25;
  for (int i = 0; i < 100; ++i) {
    file.insert(file.begin() + behind_header, chunk.begin(), chunk.end());
  }
  Tensor tensor;
  const std::size_t before = peak_bytes();
  ASSERT_EQ(read(file, &tensor), "");
  EXPECT_EQ(bytes_of(tensor), (Bytes{77}));
  EXPECT_LT(peak_bytes() - before, std::size_t{64} << 20) << "comments are inflated";
}

}  // namespace
}  // namespace rung::workbench
