// SPDX-License-Identifier: Apache-2.0
// The table of file formats, with the reader and writer of each.
#include "rung/workbench/tensor_files.hpp"

#include <fmt/format.h>

#include <array>

#include "rung/core/error.hpp"
#include "rung/harness/npy.hpp"
#include "rung/workbench/png.hpp"

namespace rung::workbench {
namespace {

/// A file format.
struct Format {
  std::string_view suffix;
  Tensor (*read)(const std::string& path);
  void (*write)(const std::string& path, const ConstTensorRef& tensor);
};
constexpr std::array formats{
    Format{".png", read_png, write_png},
    Format{"", read_npy,
           [](const std::string& path, const ConstTensorRef& tensor) { write_npy(path, tensor); }},
};

bool ends_with(std::string_view path, std::string_view suffix) {
  if (path.size() < suffix.size()) return false;
  path.remove_prefix(path.size() - suffix.size());
  for (std::size_t i = 0; i < suffix.size(); ++i) {
    const bool is_capital = path[i] >= 'A' && path[i] <= 'Z';
    if ((is_capital ? path[i] - 'A' + 'a' : path[i]) != suffix[i]) return false;
  }
  return true;
}

const Format& format_of(std::string_view path) {
  for (const Format& format : formats) {
    if (ends_with(path, format.suffix)) return format;
  }
  return formats.back();
}

}  // namespace

bool is_picture_file(std::string_view path) { return format_of(path).read == read_png; }

void expect_tensor_file(std::string_view option, const std::string& path) {
  if (is_picture_file(path) || ends_with(path, ".npy")) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{}: '{}' given; accepted: a file whose name ends in .npy, or in .png for "
                  "a picture",
                  option, path));
}

Tensor read_tensor_file(const std::string& path) { return format_of(path).read(path); }

void write_tensor_file(const std::string& path, const ConstTensorRef& tensor) {
  format_of(path).write(path, tensor);
}

}  // namespace rung::workbench
