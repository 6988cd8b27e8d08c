// SPDX-License-Identifier: Apache-2.0
// Types from which references can and cannot be constructed, and values that they reject.
#include "rung/core/tensor_ref.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "expect_error.hpp"
#include "rung/core/require.hpp"
#include "rung/core/tensor.hpp"
#include "wrong_fields.hpp"

namespace rung {
namespace {

using test::expect_error;

/// The members of std::mdspan that a reference needs, with any layout and accessor.
template <class T, class Reference = T&, bool Strided = true>
struct Mdspan {
  using element_type = T;
  using reference = Reference;
  T* first;
  std::array<std::size_t, 2> extents;
  std::array<std::size_t, 2> steps;

  [[nodiscard]] T* data_handle() const { return first; }
  static constexpr std::size_t rank() { return 2; }
  static constexpr bool is_always_strided() { return Strided; }
  [[nodiscard]] std::size_t extent(std::size_t axis) const { return extents[axis]; }
  [[nodiscard]] std::size_t stride(std::size_t axis) const { return steps[axis]; }
};

template <class Ref, class... Arguments>
constexpr bool makes = std::is_constructible_v<Ref, Arguments...>;
template <class Ref, class From>
constexpr bool converts = std::is_convertible_v<From, Ref>;
using Floats = std::vector<float>;

// Containers: const ones are read-only, and temporary ones would be destroyed too early.
static_assert(makes<TensorRef, Floats&, Extents> && makes<TensorRef, Floats&, Extents, Extents>);
static_assert(converts<TensorRef, Floats&> && converts<ConstTensorRef, const Floats&>);
static_assert(!makes<TensorRef, const Floats&> && !makes<TensorRef, const Floats&, Extents>);
static_assert(!makes<ConstTensorRef, Floats> && !makes<ConstTensorRef, Floats, Extents>);
static_assert(!makes<ConstTensorRef, const Floats> && !makes<TensorRef, std::array<int, 3>>);
static_assert(converts<TensorRef, float (&)[2][3]> && makes<TensorRef, float (&)[2][3], Extents>);
static_assert(converts<ConstTensorRef, const int (&)[2][3][4]>);
static_assert(!makes<TensorRef, const float (&)[2][3]> && !makes<TensorRef, unsigned (&)[2][3]>);
static_assert(makes<TensorRef, std::array<int, 3>&> && makes<TensorRef, std::int8_t (&)[3]>);
static_assert(converts<TensorRef, std::span<double>> && converts<TensorRef, std::span<double, 4>>);
static_assert(converts<ConstTensorRef, std::span<const double>>);
static_assert(!makes<TensorRef, std::span<const double>>);
static_assert(!makes<ConstTensorRef, std::vector<bool>&> && !makes<ConstTensorRef, std::string&>);
static_assert(!makes<ConstTensorRef, std::vector<unsigned>&, Extents>);
// Pointers: they determine the type, unless they are to void or bytes.
static_assert(makes<ConstTensorRef, const float*, Extents> && makes<TensorRef, float*, Extents>);
static_assert(!makes<TensorRef, const float*, Extents>);
static_assert(!makes<TensorRef, const float*, DType, Extents>);
static_assert(!makes<ConstTensorRef, const char*, DType, Extents>);
static_assert(!makes<ConstTensorRef, const unsigned*, DType, Extents>);
static_assert(!makes<ConstTensorRef, const volatile float*, Extents>);
static_assert(!makes<ConstTensorRef, const void*, Extents>);
static_assert(makes<ConstTensorRef, const void*, DType, Extents>);
static_assert(makes<TensorRef, void*, DType, Extents, Extents, Device>);
static_assert(!makes<TensorRef, const void*, DType, Extents>);
static_assert(makes<TensorRef, std::byte*, DType, Extents>);
static_assert(!makes<TensorRef, const std::byte*, DType, Extents>);
static_assert(makes<TensorRef, std::nullptr_t, DType, Extents>);
static_assert(makes<TensorRef, std::byte (&)[8], DType, Extents>);
static_assert(!makes<TensorRef, const std::byte (&)[8], DType, Extents>);
static_assert(!makes<ConstTensorRef, Floats&, DType, Extents>);
// mdspans of plain, strided elements.
static_assert(converts<TensorRef, Mdspan<float>> && converts<ConstTensorRef, Mdspan<const float>>);
static_assert(!makes<TensorRef, Mdspan<const float>>);
static_assert(!makes<ConstTensorRef, Mdspan<unsigned>>);
static_assert(!makes<ConstTensorRef, Mdspan<float, float>>, "scaled: no element has that value");
static_assert(!makes<ConstTensorRef, Mdspan<float, float&, false>>);
// From other references.
static_assert(converts<ConstTensorRef, TensorRef> && !makes<TensorRef, ConstTensorRef>);
static_assert(converts<ConstTensorRef, View<const float, 2>>);
static_assert(!makes<TensorRef, View<const float, 2>>);
static_assert(!makes<ConstTensorRef, Extents> && !makes<ConstTensorRef, int>);

template <class T>
DType dtype_from_pointer() {
  return ConstTensorRef(static_cast<const T*>(nullptr), {0}).dtype;
}

TEST(TensorRef, TheTypeIsThatOfThePointer) {
  EXPECT_EQ(dtype_from_pointer<float>(), DType::f32);
  EXPECT_EQ(dtype_from_pointer<double>(), DType::f64);
  EXPECT_EQ(dtype_from_pointer<f16>(), DType::f16);
  EXPECT_EQ(dtype_from_pointer<bf16>(), DType::bf16);
  EXPECT_EQ(dtype_from_pointer<e4m3>(), DType::e4m3);
  EXPECT_EQ(dtype_from_pointer<e5m2>(), DType::e5m2);
  EXPECT_EQ(dtype_from_pointer<__half>(), DType::f16);
  EXPECT_EQ(dtype_from_pointer<__nv_bfloat16>(), DType::bf16);
  EXPECT_EQ(dtype_from_pointer<std::int8_t>(), DType::i8);
  EXPECT_EQ(dtype_from_pointer<std::uint8_t>(), DType::u8);
  EXPECT_EQ(dtype_from_pointer<std::uint16_t>(), DType::u16);
  EXPECT_EQ(dtype_from_pointer<std::int32_t>(), DType::i32);
  EXPECT_EQ(dtype_from_pointer<long>(), DType::i64);
  EXPECT_EQ(dtype_from_pointer<long long>(), DType::i64);
}

TEST(TensorRef, IsMadeFromWhatHoldsElements) {
  Floats vector(12);
  const TensorRef matrix(vector, {3, 4});
  EXPECT_EQ(matrix.data, vector.data());
  EXPECT_EQ(matrix.dtype, DType::f32);
  EXPECT_EQ(matrix.shape, (Extents{3, 4}));
  EXPECT_EQ(matrix.strides, (Extents{4, 1}));
  const TensorRef turned(vector, {4, 3}, {1, 4}, {Backend::simt, 0});
  EXPECT_EQ(turned.strides, (Extents{1, 4}));
  EXPECT_EQ(turned.device.backend, Backend::simt);

  const ConstTensorRef line = std::as_const(vector);
  EXPECT_EQ(line.shape, Extents{12});
  std::array<std::int64_t, 5> array{};
  EXPECT_EQ(TensorRef(array).dtype, DType::i64);
  EXPECT_EQ(TensorRef(array).shape, Extents{5});
  float plain[6] = {};
  EXPECT_EQ(TensorRef(plain, {2, 3}).data, plain);
  EXPECT_EQ(ConstTensorRef(std::span(plain).subspan(2)).shape, Extents{4});
  EXPECT_EQ(ConstTensorRef(std::span(plain).first(0)).shape, Extents{0});
  EXPECT_EQ(ConstTensorRef(&plain[1], {}).rank(), 0);

  const TensorRef columns = Mdspan<float>{vector.data() + 1, {4, 2}, {1, 4}};
  EXPECT_EQ(columns.data, vector.data() + 1);
  EXPECT_EQ(columns.dtype, DType::f32);
  EXPECT_EQ(columns.shape, (Extents{4, 2}));
  EXPECT_EQ(columns.strides, (Extents{1, 4}));

  std::vector<std::byte> bytes(64);
  EXPECT_EQ(TensorRef(bytes.data(), DType::f64, {8}).dtype, DType::f64);
}

TEST(TensorRef, NestedArraysHaveTheirExtents) {
  double cube[2][3][4] = {};
  const TensorRef whole = cube;
  EXPECT_EQ(whole.data, cube);
  EXPECT_EQ(whole.dtype, DType::f64);
  EXPECT_EQ(whole.shape, (Extents{2, 3, 4}));
  EXPECT_EQ(whole.strides, (Extents{12, 4, 1}));
  EXPECT_EQ(TensorRef(cube, {6, 4}).shape, (Extents{6, 4}));
  EXPECT_EQ(TensorRef(cube, {4, 6}, {1, 4}).strides, (Extents{1, 4}));
  expect_error(ErrorCode::invalid_argument, {"shape 5x5 needs 25 elements", "holds 24"},
               [&] { TensorRef(cube, {5, 5}); });
}

TEST(TensorRef, ViewsOfAnotherTypeOrRankAreRefused) {
  Floats vector(12);
  const TensorRef matrix(vector, {3, 4});
  EXPECT_EQ((matrix.view<const float, 2>().shape[1]), 4);
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"T is f32 and N is 3", "the tensor is f32 of 2 axes (3x4)", "f32 and 2"},
               [&] { static_cast<void>(matrix.view<float, 3>()); });
  expect_error(invalid, {"T is f64 and N is 2", "f32 and 2"},
               [&] { static_cast<void>(matrix.view<const double, 2>()); });
  expect_error(invalid, {"T is i32"}, [&] { static_cast<void>(matrix.view<int, 2>()); });
  expect_error(invalid, {"f32 of 1 axis (12)"},
               [&] { static_cast<void>(TensorRef(vector).view<float, 2>()); });
  // Unsigned integers of the same width as bits, and types without a DType.
  std::vector<bf16> halves(3);
  EXPECT_EQ((TensorRef(halves).view<std::uint16_t, 1>().shape[0]), 3);
  EXPECT_EQ((matrix.view<unsigned, 2>().shape[0]), 3);
  expect_error(invalid, {"T is u8"},
               [&] { static_cast<void>(TensorRef(halves).view<std::uint8_t, 1>()); });
  EXPECT_EQ((TensorRef().view<double, 3>().data), nullptr) << "a tensor that was left out";
}

TEST(TensorRef, AContainerHoldsItsShape) {
  const Floats ten(10);
  for (const Extents& shape : {Extents{10}, Extents{2, 5}, Extents{3, 3}, Extents{0, 99}}) {
    EXPECT_EQ(ConstTensorRef(ten, shape).shape, shape) << "less than the container is fine";
  }
  EXPECT_EQ(ConstTensorRef(ten, {2, 2}, {5, 4}).strides, (Extents{5, 4})) << "ends at element 9";
  const auto invalid = ErrorCode::invalid_argument;
  expect_error(invalid, {"shape 3x4 needs 12 elements", "the container holds 10"},
               [&] { ConstTensorRef(ten, {3, 4}); });
  expect_error(invalid, {"shape scalar needs 1 element; the container holds 0"},
               [&] { ConstTensorRef(std::span(ten).first(0), Extents{}); });
  expect_error(invalid, {"shape 2x2 with strides 5x5 needs 11 elements", "holds 10"},
               [&] { ConstTensorRef(ten, {2, 2}, {5, 5}); });
  expect_error(invalid, {"shape 4 with strides -1 begins 3 elements before the container"},
               [&] { ConstTensorRef(ten, {4}, {-1}); });
  expect_error(invalid, {"negative"}, [&] { ConstTensorRef(ten, {-1, -1}); });
  expect_error(invalid, {"2^63"}, [&] { ConstTensorRef(ten, {INT64_MAX, 2}); });
  expect_error(invalid, {"leaves the address space"},
               [&] { ConstTensorRef(ten, {3, 3}, {INT64_MAX, 1}); });
  expect_error(invalid, {"begins 9223372036854775808 elements before"},
               [&] { ConstTensorRef(ten, {2}, {INT64_MIN}); });
}

TEST(TensorRef, FieldsThatContradictEachOtherAreRejected) {
  alignas(8) float memory[40] = {};
  const auto invalid = ErrorCode::invalid_argument;
  for (const test::WrongField& wrong : test::wrong_fields(TensorRef(memory, {8, 4}))) {
    const TensorRef& t = wrong.tensor;
    EXPECT_FALSE(t.consistent()) << wrong.words;
    // Rejected by the constructor and, if a field was changed later, by every user of the
    // reference.
    expect_error(invalid, {wrong.words},
                 [&] { TensorRef(t.data, t.dtype, t.shape, t.strides, t.device); });
    expect_error(invalid, {wrong.words}, [&] { byte_range(t); });
    expect_error(invalid, {wrong.words}, [&] { self_overlaps(t); });
    expect_error(invalid, {"tensor: ref: " + wrong.words}, [&] { Tensor(t, nullptr); });
  }
  const TensorRef matrix(memory, {8, 4});
  const Tensor other(DType::f32, {8, 4});
  test::expect_fields_checked("copy", "from", matrix, [&](auto x) { copy(x, other); });
  test::expect_fields_checked("copy", "to", matrix, [&](auto x) { copy(other, x); });
  expect_error(invalid, {"shape 8x4 comes with 1 strides, 1; accepted: 2, one for each extent"},
               [&] { ConstTensorRef(memory, DType::f32, {8, 4}, {1}); });
  expect_error(invalid, {"dtype is 99"}, [] { Tensor(static_cast<DType>(99), {4}); });
}

TEST(TensorRef, DataAreAlignedToTheirElements) {
  alignas(8) std::byte memory[64] = {};
  for (const DType dtype : {DType::u8, DType::f16, DType::i32, DType::f64}) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
      const auto make = [&] { return ConstTensorRef(memory + offset, dtype, {2}); };
      if (offset % size_of(dtype) == 0) {
        EXPECT_EQ(make().data, memory + offset);
      } else {
        expect_error(ErrorCode::invalid_argument,
                     {"data is 0x", std::string(to_string(dtype)),
                      "a multiple of " + std::to_string(size_of(dtype))},
                     make);
      }
    }
  }
  EXPECT_TRUE(ConstTensorRef(memory + 1, DType::f64, {0, 3}).empty()) << "nothing is there";
}

TEST(Extents, ARankSetByHandIsChecked) {
  Extents extents{2, 3};
  extents.rank = 99;
  EXPECT_EQ(to_string(extents), "of rank 99");
  expect_error(ErrorCode::invalid_argument, {"rank is 99"}, [&] { (void)extents.product(); });
  expect_error(ErrorCode::invalid_argument, {"rank is 99"},
               [&] { (void)extents.contiguous_strides(); });
  expect_error(ErrorCode::invalid_argument, {"op: axes has rank 99"},
               [&] { require_list("op", extents, "axes"); });
}

}  // namespace
}  // namespace rung
