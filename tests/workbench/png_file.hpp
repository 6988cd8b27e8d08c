// SPDX-License-Identifier: Apache-2.0
// PNG files in a temporary folder, and malformed ones that libpng would not write.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "rung/core/error.hpp"
#include "rung/workbench/png.hpp"

namespace rung::workbench {

using Bytes = std::vector<std::uint8_t>;

class Png : public testing::Test {
 protected:
  Png() {
    char name[] = "/tmp/rung-png-XXXXXX";
    folder = mkdtemp(name);
  }
  ~Png() override { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::string path(const std::string& name = "a.png") const {
    return folder + "/" + name;
  }
  std::string save(const Bytes& bytes) const {
    std::ofstream file(path(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path();
  }
  /// Reads the bytes into `tensor`; returns the message of an Error, or "".
  std::string read(const Bytes& bytes, Tensor* tensor = nullptr) const {
    try {
      Tensor found = read_png(save(bytes));
      if (tensor != nullptr) *tensor = found;
      return "";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path()), std::string::npos) << error.what();
      return error.what();
    }
  }

  std::string folder;
};

inline Bytes bytes_of(const Tensor& tensor) {
  const auto* data = tensor.data<std::uint8_t>();
  return {data, data + tensor.shape().product()};
}

/// Appends a number in big-endian order.
inline void put_number(Bytes& file, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    file.push_back(static_cast<std::uint8_t>(number >> shift));
  }
}
inline void put_chunk(Bytes& file, const std::string& type, const Bytes& content) {
  put_number(file, static_cast<std::uint32_t>(content.size()));
  Bytes named(type.begin(), type.end());
  named.insert(named.end(), content.begin(), content.end());
  file.insert(file.end(), named.begin(), named.end());
  put_number(file, static_cast<std::uint32_t>(
                       crc32(0, named.data(), static_cast<unsigned>(named.size()))));
}
inline Bytes deflated(const Bytes& content) {
  uLongf size = compressBound(content.size());
  Bytes packed(size);
  EXPECT_EQ(compress2(packed.data(), &size, content.data(), content.size(), 9), Z_OK);
  packed.resize(size);
  return packed;
}
inline Bytes png_claiming(std::uint32_t width, std::uint32_t height, std::uint8_t bits,
                          std::uint8_t color_type, const Bytes& pixels, const Bytes& text = {}) {
  Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  Bytes header;
  put_number(header, width);
  put_number(header, height);
  header.insert(header.end(), {bits, color_type, 0, 0, 0});
  put_chunk(file, "IHDR", header);
  if (!text.empty()) put_chunk(file, "zTXt", text);
  put_chunk(file, "IDAT", deflated(pixels));
  put_chunk(file, "IEND", {});
  return file;
}

}  // namespace rung::workbench
