// SPDX-License-Identifier: Apache-2.0
// PNG files as tensors: every color type and depth, also interlaced, as libpng writes them; and
// files with truncations or flipped bits.
#include "rung/workbench/png.hpp"

#include <gtest/gtest.h>
#include <png.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "png_file.hpp"
#include "rung/core/error.hpp"

namespace rung::workbench {
namespace {

namespace fs = std::filesystem;

/// A picture as stored in a file, and the tensor expected from reading it.
struct PngPicture {
  int width = 0, height = 0;
  int color_type = 0, bits = 8;
  bool interlaced = false;
  std::vector<int> samples;  // of all channels in the file; indices if there is a palette
  std::vector<png_color> palette;
  std::vector<std::uint8_t> palette_alpha;
  std::vector<int> transparent;  // the samples of the transparent color
  std::vector<int> wanted;       // H x W x C
  int channels = 0;
};

std::string png_name(const PngPicture& p) {
  return "type " + std::to_string(p.color_type) + ", " + std::to_string(p.bits) + " bits, " +
         std::to_string(p.height) + "x" + std::to_string(p.width) +
         (p.interlaced ? ", interlaced" : "") + (p.transparent.empty() ? "" : ", transparent");
}

/// Encodes a picture by libpng, in memory. Any error ends the test program.
Bytes encode(const PngPicture& p) {
  png_structp png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, nullptr, [](png_structp, png_const_charp) { std::abort(); }, nullptr);
  png_infop info = png_create_info_struct(png);
  Bytes file;
  png_set_write_fn(
      png, &file,
      [](png_structp from, png_bytep bytes, std::size_t count) {
        auto& to = *static_cast<Bytes*>(png_get_io_ptr(from));
        to.insert(to.end(), bytes, bytes + count);
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(p.width), static_cast<png_uint_32>(p.height),
               p.bits, p.color_type, p.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!p.palette.empty()) {
    png_set_PLTE(png, info, p.palette.data(), static_cast<int>(p.palette.size()));
  }
  if (!p.palette_alpha.empty()) {
    png_set_tRNS(png, info, p.palette_alpha.data(), static_cast<int>(p.palette_alpha.size()),
                 nullptr);
  }
  if (!p.transparent.empty()) {
    png_color_16 color{};
    color.gray = color.red = static_cast<png_uint_16>(p.transparent[0]);
    if (p.transparent.size() == 3) {
      color.green = static_cast<png_uint_16>(p.transparent[1]);
      color.blue = static_cast<png_uint_16>(p.transparent[2]);
    }
    png_set_tRNS(png, info, nullptr, 0, &color);
  }
  png_write_info(png, info);
  // Samples of a row, packed from the high bits down.
  const std::size_t row_samples = p.samples.size() / static_cast<std::size_t>(p.height);
  std::vector<Bytes> rows(static_cast<std::size_t>(p.height));
  std::vector<png_bytep> pointers;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row].assign(png_get_rowbytes(png, info), 0);
    for (std::size_t i = 0; i < row_samples; ++i) {
      const int sample = p.samples[row * row_samples + i];
      if (p.bits == 16) {
        rows[row][2 * i] = static_cast<std::uint8_t>(sample >> 8);
        rows[row][2 * i + 1] = static_cast<std::uint8_t>(sample);
      } else {
        const auto bit = i * static_cast<std::size_t>(p.bits);
        rows[row][bit / 8] |=
            static_cast<std::uint8_t>(sample << (8 - p.bits - static_cast<int>(bit % 8)));
      }
    }
    pointers.push_back(rows[row].data());
  }
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::vector<int> samples_of(const Tensor& tensor) {
  const std::int64_t count = tensor.shape().product();
  if (tensor.dtype() == DType::u8) {
    return {tensor.data<std::uint8_t>(), tensor.data<std::uint8_t>() + count};
  }
  return {tensor.data<std::uint16_t>(), tensor.data<std::uint16_t>() + count};
}

/// Returns random samples, and their values in 8 or 16 bits.
PngPicture random_picture(int color_type, int bits, int height, int width, bool transparent,
                          unsigned seed) {
  PngPicture p{.width = width, .height = height, .color_type = color_type, .bits = bits};
  std::mt19937 random(seed);
  const int max_sample = (1 << bits) - 1;
  const bool is_palette = color_type == PNG_COLOR_TYPE_PALETTE;
  const int in_file = is_palette || (color_type & PNG_COLOR_MASK_COLOR) == 0 ? 1 : 3;
  const int stored = in_file + ((color_type & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0);
  if (is_palette) {
    for (int i = 0; i <= max_sample; ++i) {
      p.palette.push_back({static_cast<png_byte>(random()), static_cast<png_byte>(random()),
                           static_cast<png_byte>(random())});
      // The last colors have no alpha entry, which makes them opaque.
      if (transparent && i <= max_sample / 2) {
        p.palette_alpha.push_back(static_cast<std::uint8_t>(random()));
      }
    }
  }
  const int most = bits == 16 ? 65535 : 255;
  const auto widened = [&](int sample) {
    return static_cast<int>(std::lround(static_cast<double>(most) * sample / max_sample));
  };
  for (int i = 0; i < height * width; ++i) {
    std::vector<int> pixel;
    for (int c = 0; c < stored; ++c) pixel.push_back(static_cast<int>(random()) & max_sample);
    if (transparent && !is_palette) {
      if (i == 0) p.transparent = pixel;
      if (i % 3 == 1) pixel = p.transparent;
    }
    p.samples.insert(p.samples.end(), pixel.begin(), pixel.end());
    if (is_palette) {
      const auto index = static_cast<std::size_t>(pixel[0]);
      const png_color color = p.palette[index];
      p.wanted.insert(p.wanted.end(), {color.red, color.green, color.blue});
      if (transparent) {
        const bool listed = index < p.palette_alpha.size();
        p.wanted.push_back(listed ? p.palette_alpha[index] : 255);
      }
    } else {
      for (const int sample : pixel) p.wanted.push_back(widened(sample));
      if (transparent) p.wanted.push_back(pixel == p.transparent ? 0 : most);
    }
  }
  p.channels = static_cast<int>(p.wanted.size()) / (height * width);
  return p;
}

constexpr struct {
  int color_type;
  std::initializer_list<int> bits;
} png_forms[] = {{PNG_COLOR_TYPE_GRAY, {1, 2, 4, 8, 16}},
                 {PNG_COLOR_TYPE_GRAY_ALPHA, {8, 16}},
                 {PNG_COLOR_TYPE_RGB, {8, 16}},
                 {PNG_COLOR_TYPE_RGB_ALPHA, {8, 16}},
                 {PNG_COLOR_TYPE_PALETTE, {1, 2, 4, 8}}};

TEST_F(Png, OfEveryColorTypeAndDepthIsRead) {
  unsigned seed = 0;
  int read_files = 0;
  for (const auto& form : png_forms) {
    for (const int bits : form.bits) {
      for (const bool transparent : {false, true}) {
        if (transparent && (form.color_type & PNG_COLOR_MASK_ALPHA) != 0) continue;
        for (const auto& [height, width] : {std::pair{1, 1}, {5, 7}, {19, 33}}) {
          for (const bool interlaced : {false, true}) {
            PngPicture p =
                random_picture(form.color_type, bits, height, width, transparent, ++seed);
            p.interlaced = interlaced;
            SCOPED_TRACE(png_name(p));
            Tensor tensor;
            ASSERT_EQ(read(encode(p), &tensor), "");
            ASSERT_EQ(tensor.dtype(), bits == 16 ? DType::u16 : DType::u8);
            ASSERT_EQ(tensor.shape(), (Extents{height, width, p.channels}));
            ASSERT_EQ(samples_of(tensor), p.wanted);
            ++read_files;
          }
        }
      }
    }
  }
  EXPECT_EQ(read_files, 6 * (15 + 11));
}

TEST_F(Png, IsReadAsItWasWritten) {
  std::mt19937 random(7);
  for (const Extents& shape : {Extents{1, 1, 1}, Extents{9, 13}, Extents{4, 33, 1},
                               Extents{7, 5, 2}, Extents{6, 31, 3}, Extents{30, 2, 4}}) {
    Tensor tensor(DType::u8, shape);
    for (std::int64_t i = 0; i < shape.product(); ++i) {
      tensor.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(random());
    }
    write_png(path(), tensor);
    const Tensor read = read_png(path());
    EXPECT_EQ(read.shape(), (Extents{shape[0], shape[1], shape.rank == 2 ? 1 : shape[2]}));
    EXPECT_EQ(bytes_of(read), bytes_of(tensor));
  }
}

TEST_F(Png, Of16BitsIsReadAsItWasWritten) {
  Tensor tensor(DType::u16, {2, 3, 3});
  for (std::uint16_t i = 0; i < 18; ++i) tensor.data<std::uint16_t>()[i] = 257 * i + 3;
  write_png(path(), tensor);
  const Tensor read = read_png(path());
  EXPECT_EQ(read.dtype(), DType::u16);
  EXPECT_EQ(read.shape(), tensor.shape());
  EXPECT_EQ(samples_of(read), samples_of(tensor));
}

TEST_F(Png, OfAnyStridesIsWritten) {
  // Planes viewed as pixels, like the result of `image --planar` after transpose.
  Bytes planes(3 * 4 * 5);
  for (std::size_t i = 0; i < planes.size(); ++i) planes[i] = static_cast<std::uint8_t>(3 * i);
  write_png(path(), ConstTensorRef(planes.data(), DType::u8, {4, 5, 3}, {5, 1, 20}));
  const Bytes read = bytes_of(read_png(path()));
  for (std::size_t pixel = 0; pixel < 20; ++pixel) {
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(read[3 * pixel + c], planes[20 * c + pixel]);
  }
}

TEST_F(Png, OfATensorThatIsNoPictureIsRefused) {
  const auto refused = [&](const ConstTensorRef& tensor, const std::string& part) {
    try {
      write_png(path("none.png"), tensor);
      ADD_FAILURE() << "no Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
    EXPECT_FALSE(fs::exists(path("none.png")));
  };
  refused(Tensor(DType::f32, {4, 5, 3}), "f32 4x5x3");
  refused(Tensor(DType::u8, {4, 5, 5}), "u8 4x5x5");
  refused(Tensor(DType::u8, {4, 5, 0}), "4x5x0");
  refused(Tensor(DType::u8, {0, 5, 3}), "0x5x3");
  refused(Tensor(DType::u8, {2, 4, 5, 3}), "2x4x5x3");
  refused(Tensor(DType::u8, {1, (1 << 20) + 1}), "1 to 1048576");
  EXPECT_THROW(write_png(folder + "/no/such/a.png", Tensor(DType::u8, {1, 1})), Error);
}

TEST_F(Png, CutAnywhereIsAnError) {
  for (const bool interlaced : {false, true}) {
    PngPicture p = random_picture(PNG_COLOR_TYPE_PALETTE, 4, 9, 11, true, 3);
    p.interlaced = interlaced;
    const Bytes file = encode(p);
    for (std::size_t length = 0; length < file.size(); ++length) {
      const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_NE(read(cut), "") << length << " of " << file.size();
    }
  }
}

TEST_F(Png, WithAnyBitFlippedIsReadOrRefused) {
  PngPicture p = random_picture(PNG_COLOR_TYPE_RGB, 8, 5, 6, true, 4);
  p.interlaced = true;
  const Bytes file = encode(p);
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    if (!read(flipped).empty()) ++refused;
  }
  // Checksums detect nearly all flips; an unreadable tRNS chunk is ignored, since it is not
  // critical.
  EXPECT_GT(refused, static_cast<int>(8 * file.size()) * 3 / 4);
}

TEST_F(Png, ThatIsNoFileIsAnError) {
  EXPECT_THROW(read_png(path("missing.png")), Error);
  EXPECT_THROW(read_png(folder), Error);
  EXPECT_THROW(read_png("/dev/zero"), Error);
}

}  // namespace
}  // namespace rung::workbench
