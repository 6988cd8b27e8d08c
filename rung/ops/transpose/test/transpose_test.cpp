// SPDX-License-Identifier: Apache-2.0
// Properties of transpose that `rung check` does not cover: all bits of every rung on random input,
// algebra, errors, canonical forms, and sizes that exceed the caches.
#include "rung/ops/transpose/test/transpose_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

constexpr DType all_types[] = {DType::f32,  DType::f64,  DType::f16, DType::bf16,
                               DType::e4m3, DType::e5m2, DType::i8,  DType::u8,
                               DType::i32,  DType::i64,  DType::u16};

/// Host memory of random bits, which include NaN payloads and subnormals.
class Bits {
 public:
  Bits(std::int64_t bytes, unsigned seed) : words_(static_cast<std::size_t>(bytes) / 8 + 9) {
    std::mt19937_64 engine(seed);
    for (std::uint64_t& word : words_) word = engine();
    std::byte* begin = reinterpret_cast<std::byte*>(words_.data());
    data_ = begin + (64 - reinterpret_cast<std::uintptr_t>(begin) % 64) % 64;
  }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::vector<std::uint64_t> words_;
  std::byte* data_;
};

/// Compares y with the definition, for contiguous tensors.
void expect_transposed(const std::byte* x, const std::byte* y, const Extents& shape,
                       const Extents& order, std::size_t size) {
  const Extents y_shape = permuted(shape, order);
  const Extents x_strides = permuted(shape.contiguous_strides(), order);
  const std::int64_t count = shape.product();
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t rest = k;
    std::int64_t from = 0;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      from += rest % y_shape[axis] * x_strides[axis];
      rest /= y_shape[axis];
    }
    const auto at = static_cast<std::size_t>(k) * size;
    ASSERT_EQ(std::memcmp(y + at, x + static_cast<std::size_t>(from) * size, size), 0)
        << "element " << k << " of " << to_string(y_shape);
  }
}

class TransposeOn : public OnBackend {
 protected:
  /// Calls f(name) for every rung of the backend that supports the arguments.
  template <class F>
  void for_each_rung(const ConstTensorRef& x, const TensorRef& y, const TransposeOptions& options,
                     F&& f) {
    const auto args = bind<Transpose>({.x = x, .y = y, .order = options.order});
    for (const std::string_view name : rungs_that_take<Transpose>(args, context)) f(name);
  }
};

TEST_P(TransposeOn, EveryRungMovesEveryBitOfEveryType) {
  const Extents shape{67, 70};
  const Extents order{1, 0};
  for (const DType dtype : all_types) {
    const auto bytes = static_cast<std::int64_t>(size_of(dtype)) * shape.product();
    const Bits x(bytes, 1);
    for_each_rung({x.data(), dtype, shape}, {Bits(bytes, 2).data(), dtype, Extents{70, 67}}, {},
                  [&](std::string_view rung) {
                    const Bits y(bytes, 2);
                    transpose(context, {x.data(), dtype, shape}, {y.data(), dtype, Extents{70, 67}},
                              {}, {rung});
                    SCOPED_TRACE(std::string(rung) + " " + std::string(to_string(dtype)));
                    expect_transposed(x.data(), y.data(), shape, order, size_of(dtype));
                  });
  }
}

TEST_P(TransposeOn, EveryOrderOfFourAxes) {
  const Extents shape{3, 2, 5, 4};
  std::array<std::int64_t, 4> axes{0, 1, 2, 3};
  do {
    const Extents order{std::span<const std::int64_t>(axes)};
    const Bits x(2 * shape.product(), 3);
    for_each_rung(
        {x.data(), DType::u16, shape}, {Bits(512, 4).data(), DType::u16, permuted(shape, order)},
        {.order = order}, [&](std::string_view rung) {
          const Bits y(2 * shape.product(), 4);
          transpose(context, {x.data(), DType::u16, shape},
                    {y.data(), DType::u16, permuted(shape, order)}, {.order = order}, {rung});
          SCOPED_TRACE(std::string(rung) + " order " + to_string(order));
          expect_transposed(x.data(), y.data(), shape, order, 2);
        });
  } while (std::next_permutation(axes.begin(), axes.end()));
}

TEST_P(TransposeOn, TwiceIsNothing) {
  const Extents shape{2, 45, 83};
  const std::int64_t bytes = 4 * shape.product();
  const Bits x(bytes, 5);
  const Bits once(bytes, 6);
  const Bits twice(bytes, 7);
  transpose(context, {x.data(), DType::f32, shape}, {once.data(), DType::f32, Extents{2, 83, 45}});
  transpose(context, {once.data(), DType::f32, Extents{2, 83, 45}},
            {twice.data(), DType::f32, shape});
  EXPECT_EQ(std::memcmp(x.data(), twice.data(), static_cast<std::size_t>(bytes)), 0);
}

TEST(TransposeBatch, MovesEveryMatrixWhereRowsAre4KiBApart) {
  // More than 1 MiB of matrices of one block each.
  constexpr std::int64_t matrices = 33, rows = 128, columns = 64, row = 1024;
  const Bits x(4 * matrices * rows * row, 9);
  const auto* words = reinterpret_cast<const std::int32_t*>(x.data());
  std::vector<std::int32_t> y(matrices * columns * rows);
  Context context = Context::cpu();
  transpose(context,
            {words, DType::i32, Extents{matrices, rows, columns}, Extents{rows * row, row, 1}},
            {y.data(), DType::i32, Extents{matrices, columns, rows}});
  for (std::int64_t k = 0; k < matrices * columns * rows; ++k) {
    const std::int64_t i = k % rows;
    const std::int64_t j = k / rows % columns;
    const std::int64_t matrix = k / rows / columns;
    ASSERT_EQ(y[static_cast<std::size_t>(k)], words[(matrix * rows + i) * row + j]) << k;
  }
}

TEST_P(TransposeOn, NegativeStridesRunBackwards) {
  const Bits x(4 * 140 * 150, 8);
  const auto* words = reinterpret_cast<const std::int32_t*>(x.data());
  const Extents y_shape{150, 140};
  std::vector<std::int32_t> y(150 * 140);
  const ConstTensorRef upside_down(words + 139 * 150, DType::i32, Extents{140, 150},
                                   Extents{-150, 1});
  // The second time y's rows are mirrored, so that elements are in x's order.
  for (const bool mirrored : {false, true}) {
    const TensorRef to(y.data() + (mirrored ? 139 : 0), DType::i32, y_shape,
                       Extents{140, mirrored ? -1 : 1});
    for_each_rung(upside_down, to, {}, [&](std::string_view rung) {
      std::fill(y.begin(), y.end(), 0);
      transpose(context, upside_down, to, {}, {rung});
      for (std::size_t i = 0; i < 140; ++i) {
        for (std::size_t j = 0; j < 150; ++j) {
          const std::size_t row = mirrored ? i : 139 - i;
          ASSERT_EQ(y[j * 140 + i], words[row * 150 + j]) << rung << " at " << i << ", " << j;
        }
      }
    });
  }
}

TEST_P(TransposeOn, RowsAtTheDistanceThatCollides) {
  // Rows 128 KiB apart, forward and backward, with even and odd numbers of columns of tiles.
  const Extents memory{3, 32768};
  const Bits x(4 * memory.product(), 7);
  for (const std::int64_t columns : {32768, 9024, 9025, 64, 65}) {
    const Extents shape{3, columns};
    for (const bool backwards : {false, true}) {
      std::vector<std::byte> expected(static_cast<std::size_t>(4 * shape.product()));
      for (std::int64_t k = 0; k < shape.product(); ++k) {
        const std::int64_t row = backwards ? 2 - k % 3 : k % 3;
        std::memcpy(expected.data() + 4 * k, x.data() + 4 * (row * 32768 + k / 3), 4);
      }
      const ConstTensorRef from{x.data() + (backwards ? 2 * 4 * 32768 : 0), DType::f32, shape,
                                Extents{backwards ? -32768 : 32768, 1}};
      const Bits room(4 * shape.product(), 8);
      const TensorRef to{room.data(), DType::f32, Extents{columns, 3}};
      for_each_rung(from, to, {}, [&](std::string_view rung) {
        SCOPED_TRACE(std::string(rung) + " " + std::to_string(columns));
        const Bits y(4 * shape.product(), 8);
        transpose(context, from, {y.data(), DType::f32, Extents{columns, 3}}, {}, {rung});
        EXPECT_EQ(std::memcmp(y.data(), expected.data(), expected.size()), 0);
      });
    }
  }
}

TEST_P(TransposeOn, NothingOfAnEmptyTensorIsTouched) {
  const TensorRef y(nullptr, DType::f32, Extents{0, 7});
  EXPECT_NO_THROW(transpose(context, {nullptr, DType::f32, Extents{7, 0}}, y));
}

TEST_P(TransposeOn, AScalarIsCopied) {
  const double x = 2.5;
  double y = 0;
  transpose(context, {&x, DType::f64, Extents{}}, {&y, DType::f64, Extents{}});
  EXPECT_EQ(y, 2.5);
}

TEST_P(TransposeOn, ErrorsNameArgumentValueAndWhatIsAccepted) {
  std::vector<float> memory(400);
  const ConstTensorRef x(memory.data(), DType::f32, Extents{10, 20});
  std::vector<float> other(400);
  const auto message = [&](const ConstTensorRef& from, const TensorRef& to,
                           const TransposeOptions& options) {
    return message_of([&] { transpose(context, from, to, options); });
  };
  const auto has = [](const std::string& text, std::initializer_list<const char*> parts) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const char* part) { return text.find(part) != std::string::npos; });
  };
  const TensorRef y(other.data(), DType::f32, Extents{20, 10});
  std::string said = message(x, {other.data(), DType::f32, Extents{10, 20}}, {});
  EXPECT_TRUE(has(said, {"transpose", "y", "10x20", "20x10"})) << said;
  said = message(x, {static_cast<void*>(other.data()), DType::i32, Extents{20, 10}}, {});
  EXPECT_TRUE(has(said, {"y", "i32", "f32"})) << said;
  for (const Extents& order :
       {Extents{0, 0}, Extents{1}, Extents{0, 1, 2}, Extents{2, 0}, Extents{-1, 0}}) {
    said = message(x, y, {.order = order});
    EXPECT_TRUE(has(said, {"order", "each of 0 to 1 once"})) << said;
  }
  said =
      message({memory.data(), DType::f32, Extents{5}}, {other.data(), DType::f32, Extents{5}}, {});
  EXPECT_TRUE(has(said, {"x has 1 axis", "order"})) << said;
  said = message(x, {memory.data() + 100, DType::f32, Extents{20, 10}}, {});
  EXPECT_TRUE(has(said, {"y", "x", "overlap"})) << said;
  said = message(x, {other.data(), DType::f32, Extents{20, 10}, Extents{1, 1}}, {});
  EXPECT_TRUE(has(said, {"y", "overlaps itself"})) << said;
  said = message(x, {nullptr, DType::f32, Extents{20, 10}}, {});
  EXPECT_TRUE(has(said, {"y", "null"})) << said;
}

INSTANTIATE_TEST_SUITE_P(Backends, TransposeOn, backends, name_of_backend);

/// Checks 17 MiB and more, with non-temporal stores on a CPU and work divided unevenly among
/// threads: rows of y that start on cache lines or not, rows of x that map to one set of a cache or
/// not.
TEST(TransposeLarge, StreamsAndSharesExactly) {
  for (const auto& [rows, columns] : {std::pair{2112, 2112}, std::pair{2101, 2115},
                                      std::pair{2112, 2048}, std::pair{2101, 2048}}) {
    for (const DType type : {DType::f32, DType::f64}) {
      const Extents shape{rows, columns};
      const auto size = static_cast<int>(size_of(type));
      const std::int64_t bytes = size * shape.product();
      const Bits x(bytes, 10);
      for (const int threads : {1, 3}) {
        Context context = Context::cpu(threads);
        const Bits y(bytes, 11);
        transpose(context, {x.data(), type, shape}, {y.data(), type, Extents{columns, rows}}, {},
                  {"threads"});
        expect_transposed(x.data(), y.data(), shape, Extents{1, 0}, size);
      }
    }
  }
}

/// Checks pixels to planes and back, with planes that start on cache lines or not.
TEST(TransposeLarge, PixelsAndPlanesStreamExactly) {
  for (const auto& [type, channels] : {std::pair{DType::f32, 2}, std::pair{DType::f32, 3},
                                       std::pair{DType::f32, 4}, std::pair{DType::u8, 3}}) {
    const auto size = static_cast<int>(size_of(type));
    const std::int64_t even = (18 << 20) / (channels * size) / 64 * 64;
    for (const std::int64_t pixels : {even, even + 7}) {
      const Extents shape{pixels, channels};
      const std::int64_t bytes = size * shape.product();
      const Bits x(bytes, 14);
      Context context = Context::cpu(pixels == even ? 1 : 3);
      for (const bool back : {false, true}) {
        const Extents from = back ? Extents{channels, pixels} : shape;
        const Extents to = back ? shape : Extents{channels, pixels};
        const Bits y(bytes, 15);
        transpose(context, {x.data(), type, from}, {y.data(), type, to}, {}, {"threads"});
        expect_transposed(x.data(), y.data(), from, Extents{1, 0}, size);
      }
    }
  }
}

TEST(TransposeLarge, LongRunsAreCutAndStreamed) {
  const Extents shape{3, 4, 700'003};
  const Extents order{1, 0, 2};
  const std::int64_t bytes = 2 * shape.product();
  const Bits x(bytes, 12);
  const Bits y(bytes, 13);
  Context context = Context::cpu(3);
  transpose(context, {x.data(), DType::u16, shape}, {y.data(), DType::u16, permuted(shape, order)},
            {.order = order});
  expect_transposed(x.data(), y.data(), shape, order, 2);
}

/// Checks more tiles than the simulated device has resident blocks, so that the ring wraps around.
TEST(TransposeLarge, ThePersistentKernelGoesFromTileToTile) {
  Context context = Context::simt();
  const Extents shape{5, 700, 516};
  const std::int64_t bytes = 4 * shape.product();
  const Bits x(bytes, 14);
  const Bits y(bytes, 15);
  transpose(context, {x.data(), DType::f32, shape}, {y.data(), DType::f32, Extents{5, 516, 700}},
            {}, {"tma"});
  expect_transposed(x.data(), y.data(), shape, Extents{0, 2, 1}, 4);
}

}  // namespace
}  // namespace rung
