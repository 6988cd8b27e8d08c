// SPDX-License-Identifier: Apache-2.0
// The .npy container: magic string, version, header length, header, elements. The sizes in the
// header are compared with the file size before any allocation.
#include "rung/harness/npy.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "rung/core/require.hpp"
#include "rung/harness/file_reader.hpp"
#include "rung/harness/file_writer.hpp"
#include "rung/harness/npy_header.hpp"

namespace rung {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
// NumPy's alignment of the elements, for memory mapping.
constexpr std::size_t header_alignment = 64;
// A header for eight axes has some 250 characters; NumPy rejects more than 10,000.
constexpr std::size_t longest_header = 10000;

void swap_bytes(std::byte* data, std::size_t bytes, std::size_t size) {
  for (std::byte* element = data; element < data + bytes; element += size) {
    std::reverse(element, element + size);
  }
}

Extents fortran_strides(const Extents& shape) {
  Extents reversed = shape;
  std::reverse(reversed.at, reversed.at + reversed.rank);
  Extents strides = reversed.contiguous_strides();
  std::reverse(strides.at, strides.at + strides.rank);
  return strides;
}

/// Reads a file up to the first element and reduces `left`, the number of unread bytes.
detail::NpyHeader read_header(FileReader& file, const std::string& path, std::size_t& left) {
  constexpr std::size_t preamble = magic.size() + 2;
  const auto take = [&](void* to, std::size_t bytes, const char* what) {
    if (left < bytes) fail_file(path, std::string("truncated within ") + what);
    file.read(to, bytes);
    left -= bytes;
  };
  if (left == 0) fail_file(path, "the file is empty");
  unsigned char start[preamble];
  if (left < preamble)
    fail_file(path, "not a .npy file, or truncated: only " + std::to_string(left) + " bytes");
  take(start, preamble, "the magic string");
  if (std::memcmp(start, magic.data(), magic.size()) != 0) {
    fail_file(path, "not a .npy file: it does not start with \\x93NUMPY");
  }
  const int major = start[magic.size()];
  const int minor = start[magic.size() + 1];
  if (major < 1 || major > 3 || minor != 0) {
    throw Error(ErrorCode::unsupported, path + ": .npy version " + std::to_string(major) + "." +
                                            std::to_string(minor) + "; accepted: 1.0, 2.0, 3.0");
  }
  unsigned char length_bytes[4] = {};
  take(length_bytes, major == 1 ? 2 : 4, "the length of the header");
  std::size_t length = 0;
  for (int byte = 3; byte >= 0; --byte) length = length << 8 | length_bytes[byte];
  if (length > left) {
    fail_file(path, "truncated: a header of " + std::to_string(length) + " bytes is announced, " +
                        std::to_string(left) + " follow");
  }
  if (length > longest_header) {
    fail_file(path, "malformed .npy header: " + std::to_string(length) + " bytes; at most " +
                        std::to_string(longest_header) + " are accepted");
  }
  std::string text(length, '\0');
  take(text.data(), length, "the header");
  return detail::parse_npy_header(text, path);
}

}  // namespace

Tensor read_npy(const std::string& path) {
  FileReader file(path);
  std::size_t left = file.size();
  const detail::NpyHeader header = read_header(file, path, left);
  const std::size_t size = size_of(header.dtype);
  std::int64_t count = 0;
  try {
    count = header.shape.product();
  } catch (const Error& error) {
    fail_file(path, error.what());
  }
  const std::string announced =
      "shape " + to_string(header.shape) + " of " + std::string(to_string(header.dtype));
  if (static_cast<std::uint64_t>(count) > left / size) {
    fail_file(path, "truncated: " + announced + " needs " + std::to_string(count) +
                        " elements of " + std::to_string(size) + " bytes, but " +
                        std::to_string(left) + " bytes follow the header");
  }
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  if (left != bytes) {
    fail_file(path, std::to_string(left - bytes) + " bytes too many after " + announced);
  }
  Tensor memory(header.dtype, header.shape);
  file.read(memory.data<void>(), bytes);
  if (header.big_endian) swap_bytes(memory.data<std::byte>(), bytes, size);
  if (!header.fortran_order) return memory;
  // A transposed view of the same memory, which the tensor keeps alive.
  const auto owner = std::make_shared<Tensor>(memory);
  TensorRef by_columns = memory.ref();
  by_columns.strides = fortran_strides(header.shape);
  return {by_columns, owner};
}

void write_npy(const std::string& path, const ConstTensorRef& tensor, bool fortran_order) {
  require_tensor(path, tensor, "tensor");
  const detail::NpyHeader header{tensor.dtype, false, fortran_order, tensor.shape};
  std::string text = detail::format_npy_header(header, path);
  const std::size_t bytes = static_cast<std::size_t>(tensor.size()) * size_of(tensor.dtype);
  // Elements in C order, or in C order of the reversed axes, are written without reordering.
  const Extents strides =
      fortran_order ? fortran_strides(tensor.shape) : tensor.shape.contiguous_strides();
  Tensor gathered;
  const void* elements = tensor.data;
  if (!in_host_memory(tensor.device.backend) || !(tensor.strides == strides)) {
    gathered = Tensor(tensor.dtype, tensor.shape);
    copy(tensor, TensorRef(gathered.data<void>(), tensor.dtype, tensor.shape, strides));
    elements = gathered.data<void>();
  }

  // Version 1.0 always suffices: a two-byte length, and padding with spaces to align the elements.
  constexpr std::size_t preamble = magic.size() + 4;
  const std::size_t total =
      (preamble + text.size() + 1 + header_alignment - 1) / header_alignment * header_alignment;
  const std::size_t length = total - preamble;
  text.resize(length - 1, ' ');
  text += '\n';
  std::string start(magic);
  start += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};

  FileWriter file(path);
  file.write(start);
  file.write(text);
  file.write(elements, bytes);
  file.commit();
}

}  // namespace rung
