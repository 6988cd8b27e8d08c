// SPDX-License-Identifier: Apache-2.0
// A picture becomes an image of the data: grey, cut to the ink, centered, averaged.
#include "picture.hpp"

#include <png.h>

#include <algorithm>
#include <cmath>

namespace digits {
namespace {

struct Grey {
  std::int64_t width = 0, height = 0;
  std::vector<float> pixels;  // 0 paper, 1 ink
  [[nodiscard]] float at(std::int64_t row, std::int64_t column) const {
    return pixels[static_cast<std::size_t>(row * width + column)];
  }
};

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw rung::Error(rung::ErrorCode::io, path + " " + what);
}

Grey read_grey(const std::string& path) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&header, path.c_str()) == 0) {
    fail(path, std::string("is no PNG file: ") + header.message);
  }
  constexpr png_uint_32 most = 8192;
  if (header.width > most || header.height > most) {
    png_image_free(&header);
    fail(path, "is larger than 8192 x 8192 pixels");
  }
  header.format = PNG_FORMAT_GRAY;
  std::vector<png_byte> bytes(PNG_IMAGE_SIZE(header));
  const png_color paper{255, 255, 255};  // behind what is transparent
  if (png_image_finish_read(&header, &paper, bytes.data(), 0, nullptr) == 0) {
    fail(path, std::string("is damaged: ") + header.message);
  }
  Grey grey{.width = header.width, .height = header.height, .pixels = {}};
  // Paper is what most of the picture is.
  double sum = 0;
  for (const png_byte byte : bytes) sum += byte;
  const bool dark_ink = sum / static_cast<double>(bytes.size()) > 127;
  for (const png_byte byte : bytes) {
    grey.pixels.push_back(static_cast<float>(dark_ink ? 255 - byte : byte) / 255);
  }
  return grey;
}

/// Returns the length of [begin, end) within [i, i + 1).
double overlap(double begin, double end, std::int64_t i) {
  const auto low = static_cast<double>(i);
  return std::max(0.0, std::min(end, low + 1) - std::max(begin, low));
}

}  // namespace

Images read_picture(const std::string& path, std::int64_t edge) {
  const Grey grey = read_grey(path);
  constexpr float ink = 0.3F;
  std::int64_t top = grey.height, bottom = -1, left = grey.width, right = -1;
  for (std::int64_t row = 0; row < grey.height; ++row) {
    for (std::int64_t column = 0; column < grey.width; ++column) {
      if (grey.at(row, column) < ink) continue;
      top = std::min(top, row);
      bottom = std::max(bottom, row);
      left = std::min(left, column);
      right = std::max(right, column);
    }
  }
  if (bottom < 0) fail(path, "is blank");
  // MNIST's digits fill 20 of 28 pixels, the longer way.
  const double box = edge >= 28 ? static_cast<double>(edge) * 20 / 28 : static_cast<double>(edge);
  const double step = static_cast<double>(std::max(bottom - top, right - left) + 1) / box;
  const double middle_row = static_cast<double>(top + bottom + 1) / 2;
  const double middle_column = static_cast<double>(left + right + 1) / 2;
  Images made{.edge = edge, .pixels = {}, .labels = {0}};
  for (std::int64_t row = 0; row < edge; ++row) {
    for (std::int64_t column = 0; column < edge; ++column) {
      // The mean over the part of the picture that this pixel covers.
      const double up =
          middle_row + (static_cast<double>(row) - static_cast<double>(edge) / 2) * step;
      const double begin =
          middle_column + (static_cast<double>(column) - static_cast<double>(edge) / 2) * step;
      double sum = 0;
      const auto first_row = static_cast<std::int64_t>(std::max(0.0, std::floor(up)));
      const auto first_column = static_cast<std::int64_t>(std::max(0.0, std::floor(begin)));
      for (std::int64_t r = first_row; r < grey.height && static_cast<double>(r) < up + step; ++r) {
        for (std::int64_t c = first_column; c < grey.width && static_cast<double>(c) < begin + step;
             ++c) {
          sum += grey.at(r, c) * overlap(up, up + step, r) * overlap(begin, begin + step, c);
        }
      }
      made.pixels.push_back(static_cast<float>(sum / (step * step)));
    }
  }
  return made;
}

}  // namespace digits
