// SPDX-License-Identifier: Apache-2.0
// Malformed .npy files: each gives an Error that names the file and the fault, quickly, and without
// allocating the memory that a false header claims.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <random>
#include <string>

#include "expect_error.hpp"
#include "npy_file.hpp"
#include "rung/harness/npy.hpp"

namespace rung {
namespace {

using test::expect_error;
using test::npy_bytes;
using test::TemporaryDirectory;
using test::write_file;

const std::string good_header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";

std::string with_shape(const std::string& shape) {
  return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }\n";
}
std::string with_type(const std::string& type) {
  return "{'descr': " + type + ", 'fortran_order': False, 'shape': (2, 3), }\n";
}

TEST(NpyHostile, HeadersThatAreNone) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("bad.npy");
  const struct {
    std::string header;
    const char* word;
  } cases[] = {
      {"", "expected '{'"},
      {"\n", "expected '{'"},
      {std::string(50, '\0'), "expected '{'"},
      {"[1, 2, 3]", "expected '{'"},
      {"{", "expected a key"},
      {"{}", "no 'descr'"},
      {"{'descr': '<f4'}", "no 'fortran_order'"},
      {"{'descr': '<f4', 'fortran_order': False}", "no 'shape'"},
      {"{'descr': '<f4', 'descr': '<f4'}", "twice"},
      {"{'descr' '<f4'}", "expected ':'"},
      {"{'descr': '<f4' 'shape': ()}", "expected '}'"},
      {"{'descr': '<f4", "does not end"},
      {"{'descr': <f4}", "expected a dtype"},
      {"{descr: '<f4'}", "expected a key"},
      {"{'color': 3}", "unknown key 'color'"},
      {good_header + "import os", "after the dictionary"},
      {"{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 3)}", "neither True nor False"},
      {"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2, 3)}", "expected '}'"},
      {"{'descr': '<f4', 'fortran_order': 'False', 'shape': (2, 3)}", "neither True nor False"},
      {with_shape("6"), "expected '('"},
      {with_shape("(6)"), "not a tuple"},
      {with_shape("[2, 3]"), "expected '('"},
      {with_shape("(2, 3"), "not a number"},
      {with_shape("(2 3)"), "not a tuple"},
      {with_shape("(,)"), "not a number"},
      {with_shape("(2,, 3)"), "not a number"},
      {with_shape("(-2, 3)"), "negative"},
      {with_shape("(-2, -3)"), "negative"},
      {with_shape("(2.0, 3)"), "not a tuple"},
      {with_shape("(2, 3.0)"), "expected ')'"},
      {with_shape("(0x2, 3)"), "not a tuple"},
      {with_shape("(2**40, 3)"), "not a tuple"},
      {with_shape("(True, 3)"), "not a number"},
      {with_shape("(None,)"), "not a number"},
      {with_shape("(99999999999999999999, 3)"), "63 bits"},
      {with_shape("(9223372036854775807, 9223372036854775807)"), "2^63"},
      {with_shape("(4611686018427387904, 4)"), "2^63"},
      {with_shape("(4294967296, 4294967296)"), "2^63"},  // 2^64 elements: 0 if the product wraps
      {with_shape("(9223372036854775807,)"), "truncated"},
      {with_shape("(4611686018427387904,)"), "truncated"},  // 2^64 bytes
      {with_shape("(1000000000000, 3)"), "truncated"},
      {with_shape("(2, 4)"), "truncated"},
      {with_shape("(7,)"), "truncated"},
      {with_shape("(2, 2)"), "8 bytes too many"},
      {with_shape("()"), "20 bytes too many"},
      {with_shape("(0, 9223372036854775807)"), "24 bytes too many"},
      {with_type("''"), "byte order"},
      {with_type("'f4'"), "byte order"},
      {with_type("'|f4'"), "no order"},
  };
  for (const auto& [header, word] : cases) {
    SCOPED_TRACE(header);
    for (const int major : {1, 2, 3}) {
      write_file(path, npy_bytes(header, std::string(24, '\0'), major));
      expect_error(ErrorCode::io, {path, word}, [&] { read_npy(path); });
    }
  }
}

TEST(NpyHostile, ValidFilesOfOtherKinds) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("bad.npy");
  const struct {
    std::string header;
    const char* word;
  } cases[] = {
      {with_type("'|O'"), "objects"},
      {with_type("[('x', '<f4'), ('y', '<i4')]"), "structured"},
      {with_type("'<c8'"), "'<c8'"},
      {with_type("'|b1'"), "'|b1'"},
      {with_type("'<u4'"), "'<u4'"},
      {with_type("'<U7'"), "'<U7'"},
      {with_type("'<f16'"), "'<f16'"},
      {with_type("'<M8[ns]'"), "M8"},
      {with_shape("(1, 1, 1, 1, 1, 1, 1, 2, 3)"), "more than 8 axes"},
  };
  for (const auto& [header, word] : cases) {
    SCOPED_TRACE(header);
    write_file(path, npy_bytes(header, std::string(24, '\0')));
    expect_error(ErrorCode::unsupported, {path, word}, [&] { read_npy(path); });
  }
  for (const auto& [major, minor] : {std::pair{0, 0}, {4, 0}, {1, 1}, {255, 255}}) {
    write_file(path, npy_bytes(good_header, std::string(24, '\0'), major, minor));
    expect_error(ErrorCode::unsupported, {path, "version", "1.0, 2.0, 3.0"},
                 [&] { read_npy(path); });
  }
}

TEST(NpyHostile, FilesThatAreNone) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("bad.npy");
  expect_error(ErrorCode::io, {path, "cannot open", "No such file"}, [&] { read_npy(path); });
  expect_error(ErrorCode::io, {"not a regular file"}, [&] { read_npy(directory.file(".")); });
  expect_error(ErrorCode::io, {"not a regular file"}, [] { read_npy("/dev/zero"); });
  write_file(path, "");
  expect_error(ErrorCode::io, {path, "empty"}, [&] { read_npy(path); });
  write_file(path, "PK\x03\x04 this is a .npz, which is a zip");
  expect_error(ErrorCode::io, {path, "not a .npy file"}, [&] { read_npy(path); });
  write_file(path, npy_bytes(good_header, std::string(25, '\0')));
  expect_error(ErrorCode::io, {path, "1 bytes too many"}, [&] { read_npy(path); });
  // A header whose stated length exceeds the file, and one that is complete but absurdly long.
  std::string lying = npy_bytes(good_header, "", 2);
  lying[11] = '\x7f';
  write_file(path, lying);
  expect_error(ErrorCode::io, {path, "truncated", "announced"}, [&] { read_npy(path); });
  write_file(path, npy_bytes(good_header + std::string(20000, ' '), std::string(24, '\0')));
  expect_error(ErrorCode::io, {path, "at most 10000"}, [&] { read_npy(path); });
}

TEST(NpyHostile, TruncationAtEveryByte) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("bad.npy");
  for (const int major : {1, 2}) {
    const std::string whole = npy_bytes(good_header, std::string(24, '\1'), major);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      write_file(path, whole.substr(0, length));
      SCOPED_TRACE(length);
      expect_error(ErrorCode::io, {path, length == 0 ? "empty" : "truncated"},
                   [&] { read_npy(path); });
    }
    write_file(path, whole);
    EXPECT_EQ(read_npy(path).shape(), (Extents{2, 3}));
  }
}

TEST(NpyHostile, ALyingHeaderGetsNoMemory) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("bad.npy");
  write_file(path, npy_bytes(with_shape("(1000000000000,)"), std::string(24, '\0')));
  struct rusage before{};
  struct rusage after{};
  getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 100; ++i) {
    expect_error(ErrorCode::io, {"needs 1000000000000 elements", "24 bytes follow"},
                 [&] { read_npy(path); });
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 * 1024) << "kilobytes";
}

TEST(NpyHostile, AnyChangeOfAByteIsATensorOrAnError) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("bad.npy");
  const std::string good = npy_bytes(good_header, std::string(24, '\1'));
  std::mt19937 random(4);
  int read = 0;
  for (int round = 0; round < 500; ++round) {
    std::string bytes = good;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % (10 + good_header.size())] = static_cast<char>(random());
    }
    write_file(path, bytes);
    try {
      const Tensor tensor = read_npy(path);
      EXPECT_EQ(static_cast<std::size_t>(tensor.ref().size()) * size_of(tensor.dtype()), 24u);
      ++read;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::io || error.code() == ErrorCode::unsupported);
      EXPECT_EQ(std::string(error.what()).find(path), 0u);
    }
  }
  EXPECT_LT(read, 100);
}

}  // namespace
}  // namespace rung
