// SPDX-License-Identifier: Apache-2.0
// rung run on pictures.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "run_on_files.hpp"
#include "rung/workbench/png.hpp"

namespace rung::test {
namespace {

class RunOnPictures : public RunGemm {
 protected:
  Ended on(const std::string& words) {
    return shell("cd " + folder + " && " RUNG_BINARY " run " + words);
  }
  Tensor picture(const std::string& name) const { return workbench::read_png(folder + "/" + name); }
};

TEST_F(RunOnPictures, MakesThemGreyAndKeepsAlpha) {
  Tensor photo(DType::u8, {2, 2, 4});
  const std::vector<std::uint8_t> pixels{255, 0, 0,   7, 0,  255, 0,  255,
                                         0,   0, 255, 0, 10, 20,  35, 99};
  std::copy(pixels.begin(), pixels.end(), photo.data<std::uint8_t>());
  workbench::write_png(folder + "/photo.png", photo);

  ASSERT_EQ(on("image photo.png --weights tenths -o grey.PNG").said, "grey.PNG: u8 2x2x2\n");
  const Tensor grey = picture("grey.PNG");
  ASSERT_EQ(grey.shape(), (Extents{2, 2, 2}));
  const std::vector<std::uint8_t> wanted{76, 7, 153, 255, 25, 0, 18, 99};
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), grey.data<std::uint8_t>()));

  // Converts between formats; any operator on u8 accepts pictures.
  ASSERT_EQ(on("image photo.png --opaque -o grey.npy").said, "grey.npy: u8 2x2x1\n");
  ASSERT_EQ(on("image photo.png --filter box --radius 0 -o same.npy").code, 0);
  ASSERT_EQ(on("transpose same.npy --order 102 -o turned.png").said, "turned.png: u8 2x2x4\n");
  const Tensor turned = picture("turned.png");
  EXPECT_EQ(turned.data<std::uint8_t>()[4], 0);
  EXPECT_EQ(turned.data<std::uint8_t>()[6], 255);
}

// Red, green and blue of a pixel are no neighbors.
TEST_F(RunOnPictures, AStencilFiltersEachChannelOfAPicture) {
  Tensor photo(DType::u8, {5, 6, 3});
  for (int i = 0; i < 90; ++i) photo.data<std::uint8_t>()[i] = i % 3 == 0 ? 90 : 0;
  workbench::write_png(folder + "/photo.png", photo);
  const std::string words =
      "stencil photo.png --window 3x3 --scale 0.11111111 --edge clamp -o soft.png";
  ASSERT_EQ(on(words).said, "soft.png: u8 5x6x3\n");
  const Tensor soft = picture("soft.png");
  for (int i = 0; i < 90; ++i) {
    EXPECT_EQ(soft.data<std::uint8_t>()[i], i % 3 == 0 ? 90 : 0) << i;
  }
  ASSERT_EQ(on("stencil photo.png --window 3x3x3 --out f32 -o cube.npy").code, 0);
}

TEST_F(RunOnPictures, Of16BitsAreU16AndTheOperatorThatTakesNoneSaysSo) {
  workbench::write_png(folder + "/deep.png", Tensor(DType::u16, {4, 5, 3}));
  ASSERT_EQ(on("transpose deep.png --order 1,0,2 -o turned.png").said, "turned.png: u16 5x4x3\n");
  EXPECT_EQ(picture("turned.png").dtype(), DType::u16);
  const Ended ended = on("image deep.png -o out.png");
  EXPECT_NE(ended.code, 0);
  EXPECT_NE(ended.said.find("deep.png has 16 bits a channel"), std::string::npos) << ended.said;
  EXPECT_FALSE(exists("out.png"));
}

TEST_F(RunOnPictures, OneThatIsGreyAlreadyIsToldWhatTakesIt) {
  workbench::write_png(folder + "/grey.png", Tensor(DType::u8, {4, 5}));
  const Ended ended = on("image grey.png -o out.png");
  EXPECT_EQ(ended.code, 2) << ended.said;
  EXPECT_NE(ended.said.find("grey already"), std::string::npos) << ended.said;
  EXPECT_NE(ended.said.find("the other filters"), std::string::npos) << ended.said;
}

TEST_F(RunOnPictures, SaysWhatIsWrongAndWritesNothing) {
  workbench::write_png(folder + "/a.png", Tensor(DType::u8, {3, 5, 3}));
  std::ofstream(folder + "/text.png") << "this is no picture";
  std::ifstream from(folder + "/a.png", std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(from)), std::istreambuf_iterator<char>());
  std::ofstream(folder + "/cut.png", std::ios::binary) << all.substr(0, all.size() - 20);
  save("x.npy", DType::f32, {3, 5, 3});
  const struct {
    const char* words;
    const char* says;
    int code;
  } cases[] = {
      {"image text.png -o out.png", "text.png: not a PNG file", 2},
      {"image cut.png -o out.png", "cut.png: truncated", 2},
      {"image none.png -o out.png", "none.png: cannot open", 2},
      {"image x.npy -o out.png", "--output: out.png: a tensor of f32 3x5x1 is no picture", 2},
      {"image a.png --filter blur -o out.png", "gaussian", 2},
      {"image a.png --filter box --radius 16 -o out.png", "0 to 15", 2},
      {"image a.png -o a.png", "--force", 2},
  };
  for (const auto& one : cases) {
    const Ended ended = on(one.words);
    EXPECT_EQ(ended.code, one.code) << one.words << ": " << ended.said;
    EXPECT_NE(ended.said.find(one.says), std::string::npos) << one.words << ": " << ended.said;
    EXPECT_FALSE(exists("out.png")) << one.words;
  }
}

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer needs the address space
TEST_F(RunOnPictures, ThatWouldNotFitAreRefusedInLittleMemory) {
  // The header claims 2^20 x 2^20 pixels and has a valid checksum.
  const std::string header{"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\x10\0\0\0\x10\0\0\x08\x06\0\0\0", 29};
  std::string bytes = header;
  const auto sum = crc32(0, reinterpret_cast<const Bytef*>(header.data()) + 12, 17);
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(sum >> shift);
  bytes += std::string("\0\0\0\0IDAT", 8);
  std::ofstream(folder + "/huge.png", std::ios::binary) << bytes;
  const Ended ended = shell(
      "cd " + folder + " && ulimit -v 4000000 && " RUNG_BINARY " run image huge.png -o out.png");
  EXPECT_EQ(ended.code, 2) << ended.said;
  EXPECT_NE(ended.said.find("huge.png: "), std::string::npos) << ended.said;
  EXPECT_FALSE(exists("out.png"));
}
#endif

}  // namespace
}  // namespace rung::test
