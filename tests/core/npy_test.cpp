// SPDX-License-Identifier: Apache-2.0
// Valid .npy files: written bytes against the format's description, round trips, variations of
// other writers, and NumPy itself if it is installed.
#include "rung/harness/npy.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "expect_error.hpp"
#include "fake_device.hpp"
#include "npy_file.hpp"

namespace rung {
namespace {

using test::expect_error;
using test::npy_bytes;
using test::read_file;
using test::TemporaryDirectory;
using test::write_file;

constexpr DType numpy_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::i8,
                                  DType::u8,  DType::i32, DType::i64, DType::u16};

/// Returns a tensor whose elements are the bytes 0, 1, 2 ... in C order.
Tensor counted(DType dtype, const Extents& shape) {
  Tensor tensor(dtype, shape);
  auto* bytes = tensor.data<unsigned char>();
  std::iota(bytes, bytes + static_cast<std::size_t>(shape.product()) * size_of(dtype), 0);
  return tensor;
}

std::string elements_of(const ConstTensorRef& tensor) {
  const Tensor plain(tensor.dtype, tensor.shape);
  copy(tensor, plain);
  return {plain.data<char>(), static_cast<std::size_t>(tensor.size()) * size_of(tensor.dtype)};
}

TEST(Npy, WritesWhatTheFormatSays) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  Tensor tensor(DType::f32, {2, 3});
  for (int i = 0; i < 6; ++i) tensor.data<float>()[i] = static_cast<float>(i);
  write_npy(path, tensor);
  const std::string bytes = read_file(path);
  ASSERT_EQ(bytes.size(), 128u + 24u);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(bytes.substr(8, 2), std::string("\x76\x00", 2));
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(bytes.substr(10, header.size()), header);
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_EQ(bytes.substr(10 + header.size(), 127 - 10 - header.size()),
            std::string(127 - 10 - header.size(), ' '));
  EXPECT_EQ(std::memcmp(bytes.data() + 128, tensor.data<void>(), 24), 0);
}

TEST(Npy, RoundTripsEveryTypeShapeAndOrder) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  for (const DType dtype : numpy_dtypes) {
    for (const Extents& shape :
         {Extents{}, Extents{1}, Extents{7}, Extents{0}, Extents{3, 4}, Extents{4, 0, 2},
          Extents{2, 3, 4}, Extents{1, 2, 1, 2, 1, 2, 1, 2}}) {
      for (const bool fortran : {false, true}) {
        const Tensor tensor = counted(dtype, shape);
        write_npy(path, tensor, fortran);
        EXPECT_EQ(read_file(path).size() % 64, elements_of(tensor).size() % 64) << "aligned";
        const Tensor back = read_npy(path);
        ASSERT_EQ(back.dtype(), dtype);
        ASSERT_EQ(back.shape(), shape);
        EXPECT_EQ(elements_of(back), elements_of(tensor));
        if (fortran && shape == Extents{2, 3, 4}) {
          EXPECT_EQ(back.ref().strides, (Extents{1, 2, 6}));
        }
      }
    }
  }
}

TEST(Npy, WritesAnyStridesFromAnyDevice) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  const Tensor memory = counted(DType::i32, {100});
  const auto view = [&](const Extents& shape, const Extents& strides, int offset) {
    return TensorRef(memory.data<std::int32_t>() + offset, DType::i32, shape, strides);
  };
  for (const TensorRef& tensor : {view({4, 3}, {3, 1}, 0), view({4, 3}, {1, 4}, 0),
                                  view({4, 3}, {0, 2}, 1), view({4, 3}, {-3, 7}, 20)}) {
    for (const bool fortran : {false, true}) {
      write_npy(path, tensor, fortran);
      EXPECT_EQ(elements_of(read_npy(path)), elements_of(tensor));
    }
  }
  const Tensor on_gpu(DType::i32, {4, 3}, {Backend::cuda, 0});
  copy(view({4, 3}, {3, 1}, 0), on_gpu);
  write_npy(path, on_gpu);
  EXPECT_EQ(elements_of(read_npy(path)), elements_of(view({4, 3}, {3, 1}, 0)));
}

TEST(Npy, ReadsOtherVersionsAndHabits) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  const std::string elements("\x01\0\0\0\x02\0\0\0", 8);
  const std::string headers[] = {
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}",
      "{'shape': (2,), 'fortran_order': False, 'descr': '<i4'}  \n",
      "{\"descr\": \"<i4\", \"fortran_order\": False, \"shape\": (2,)}",
      "  {\t'descr'\n:'=i4' ,'fortran_order':False,'shape':( 2 , ) , }",
      "{'descr': '<i4', 'fortran_order': False, 'shape': (2L,), }",
      "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 1), }",
  };
  for (const std::string& header : headers) {
    for (const int major : {1, 2, 3}) {
      SCOPED_TRACE(header);
      write_file(path, npy_bytes(header, elements, major));
      const Tensor tensor = read_npy(path);
      ASSERT_EQ(tensor.ref().size(), 2);
      EXPECT_EQ(tensor.data<std::int32_t>()[0], 1);
      EXPECT_EQ(tensor.data<std::int32_t>()[1], 2);
    }
  }
}

TEST(Npy, SwapsBigEndianFiles) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  const auto read = [&](const std::string& type, const std::string& elements) {
    write_file(path, npy_bytes("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1,), }",
                               elements));
    const Tensor tensor = read_npy(path);
    return load_as_double(tensor.dtype(), tensor.data<void>());
  };
  EXPECT_EQ(read(">f4", std::string("\x3f\xc0\0\0", 4)), 1.5);
  EXPECT_EQ(read(">f8", std::string("\xbf\xf8\0\0\0\0\0\0", 8)), -1.5);
  EXPECT_EQ(read(">f2", std::string("\x3e\0", 2)), 1.5);
  EXPECT_EQ(read(">i4", std::string("\0\0\x01\x02", 4)), 258);
  EXPECT_EQ(read(">i8", std::string("\0\0\0\0\0\0\x01\x02", 8)), 258);
  EXPECT_EQ(read(">i1", "\xff"), -1);
  EXPECT_EQ(read("|u1", "\xff"), 255);
}

TEST(Npy, KeepsMemoryAliveInFortranOrder) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  write_npy(path, counted(DType::u8, {2, 3}), true);
  Tensor copy_of_it;
  {
    const Tensor read = read_npy(path);
    copy_of_it = read;
  }
  EXPECT_EQ(elements_of(copy_of_it), std::string("\0\1\2\3\4\5", 6));
}

TEST(Npy, WritesWhollyOrNotAtAll) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  for (const DType dtype : {DType::bf16, DType::e4m3, DType::e5m2}) {
    expect_error(ErrorCode::unsupported, {path, std::string(to_string(dtype)), "convert"},
                 [&] { write_npy(path, Tensor(dtype, {3})); });
  }
  EXPECT_EQ(directory.files(), 0);
  expect_error(ErrorCode::io, {"nowhere/a.npy", "cannot create", "No such file"},
               [&] { write_npy(directory.file("nowhere/a.npy"), Tensor(DType::f32, {3})); });
  write_npy(path, counted(DType::i8, {3}));
  const std::string before = read_file(path);
  expect_error(ErrorCode::invalid_argument, {"null data"},
               [&] { write_npy(path, ConstTensorRef(nullptr, DType::f32, {3})); });
  expect_error(ErrorCode::unsupported, {"bf16"},
               [&] { write_npy(path, Tensor(DType::bf16, {3})); });
  EXPECT_EQ(read_file(path), before) << "a failure leaves the old file";
  EXPECT_EQ(directory.files(), 1) << "and no other";
  write_npy(path, counted(DType::i8, {4}));
  EXPECT_EQ(read_npy(path).shape(), Extents{4}) << "success replaces it";
  EXPECT_EQ(directory.files(), 1);
  write_npy("/dev/null", Tensor(DType::f32, {3}));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  expect_error(ErrorCode::io, {"Is a directory"},
               [&] { write_npy(directory.file("."), Tensor(DType::f32, {3})); });
}

TEST(Npy, AFullDiskLeavesNoFile) {
  // A file-size limit simulates a full disk; in a child process, because the limit cannot be raised
  // again.
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.npy");
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string limited =
      "ulimit -f 8; trap \"\" XFSZ; exec \"$0\" --gtest_also_run_disabled_tests "
      "--gtest_filter=NpyChild.DISABLED_WritesAMegabyte";
  setenv("RUNG_TEST_OUTPUT", path.c_str(), 1);
  const int status = std::system(("sh -c '" + limited + "' '" + self + "' > /dev/null").c_str());
  unsetenv("RUNG_TEST_OUTPUT");
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(directory.files(), 0);
}

/// Runs in the test above, under a limit.
TEST(NpyChild, DISABLED_WritesAMegabyte) {
  const char* path = std::getenv("RUNG_TEST_OUTPUT");
  ASSERT_NE(path, nullptr);
  expect_error(ErrorCode::io, {path, "cannot write", "File too large"},
               [&] { write_npy(path, Tensor(DType::u8, {1 << 20})); });
}

/// Runs a Python program in a directory; returns its exit status.
int python(const TemporaryDirectory& directory, const std::string& program) {
  write_file(directory.file("program.py"), program);
  const std::string enter = "cd '" + directory.file(".") + "' && ";
  const int status = std::system((enter + "/usr/bin/python3 program.py 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Starting NumPy takes a second on a busy machine: one process writes all files, one reads all.
constexpr const char* numpy_cases = R"(
import numpy
types = ["<f4", "<f8", "<f2", "i1", "u1", "<i4", "<i8", ">f4", ">i8", ">f2", "<u2"]
def arrays():
    for number, type in enumerate(types):
        counted = numpy.arange(24).reshape(2, 3, 4).astype(type)
        for order in "CF":
            yield f"{number}{order}", numpy.array(counted, order=order)
    for name, shape in ("scalar", ()), ("empty", (0,)), ("rows", (3, 0)), ("vector", (5,)):
        yield name, numpy.ones(shape)
refused = [numpy.array([None]), numpy.zeros(3, "c16"), numpy.zeros(3, "?"),
           numpy.zeros(3, "f4,i4"), numpy.zeros(3, "S5"), numpy.zeros(3, "u4")]
)";

TEST(Npy, NumPyAgrees) {
  const TemporaryDirectory directory;
  if (python(directory, "try:\n  import numpy\nexcept ImportError:\n  raise SystemExit(9)\n") !=
      0) {
    GTEST_SKIP() << "/usr/bin/python3 has no NumPy (Debian: python3-numpy)";
  }
  const std::string cases = numpy_cases;
  ASSERT_EQ(python(directory, cases + R"(
for name, array in arrays(): numpy.save(name, array)
for number, array in enumerate(refused): numpy.save(f"refused{number}", array)
)"),
            0);
  std::vector<std::string> names = {"scalar", "empty", "rows", "vector"};
  for (int number = 0; number < 11; ++number) {
    for (const char* order : {"C", "F"}) names.push_back(std::to_string(number) + order);
  }
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Tensor tensor = read_npy(directory.file(name + ".npy"));
    write_npy(directory.file("ours_" + name + ".npy"), tensor, name.back() == 'F');
    if (name == "scalar" || name == "empty" || name == "rows" || name == "vector") continue;
    ASSERT_EQ(tensor.shape(), (Extents{2, 3, 4}));
    const Tensor plain(tensor.dtype(), tensor.shape());
    copy(tensor, plain);
    const std::size_t size = size_of(tensor.dtype());
    for (std::size_t i = 0; i < 24; ++i) {
      ASSERT_EQ(load_as_double(tensor.dtype(), plain.data<char>() + i * size),
                static_cast<double>(i));
    }
  }
  EXPECT_EQ(read_npy(directory.file("rows.npy")).shape(), (Extents{3, 0}));
  EXPECT_EQ(read_npy(directory.file("scalar.npy")).shape(), Extents{});
  for (int number = 0; number < 6; ++number) {
    const std::string path = directory.file("refused" + std::to_string(number) + ".npy");
    expect_error(ErrorCode::unsupported, {path}, [&] { read_npy(path); });
  }
  // NumPy must find our files equal, including type, shape and order.
  EXPECT_EQ(python(directory, cases + R"(
count = 0
for name, array in arrays():
    ours = numpy.load(f"ours_{name}.npy")
    assert ours.dtype == array.dtype.newbyteorder("="), (name, ours.dtype)
    assert ours.shape == array.shape and (ours == array).all(), name
    assert ours.flags.f_contiguous == array.flags.f_contiguous, name
    count += 1
assert count == 26, count
)"),
            0);
}

}  // namespace
}  // namespace rung
