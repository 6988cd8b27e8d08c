// SPDX-License-Identifier: Apache-2.0
// Copies between tensors of any strides and devices, against brute force; ownership; references.
#include "rung/core/tensor.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "expect_error.hpp"
#include "fake_device.hpp"
#include "random_tensors.hpp"

namespace rung {
namespace {

using test::expect_error;
using test::for_each_index;
using test::gpu;
using test::offset_of;
using test::random_extents;

constexpr std::int64_t too_many = std::int64_t{1} << 62;

TEST(Backend, NamesRoundTrip) {
  for (const Backend backend : all_backends) {
    EXPECT_EQ(parse_backend(to_string(backend)), backend);
  }
  expect_error(ErrorCode::invalid_argument, {"'gpu'", "cpu, cuda, simt, opencl"},
               [] { parse_backend("gpu"); });
}

struct Case {
  Extents shape;
  Extents strides;
  std::int64_t offset = 0;  // from the start of the memory that the tensor spans
  std::int64_t elements = 0;
};

/// Returns a tensor of this shape with scattered elements: permuted, with gaps, some axes reversed.
Case random_layout(std::mt19937& random, const Extents& shape) {
  Case made{shape, shape, 0, 1};
  std::vector<int> order(static_cast<std::size_t>(shape.rank));
  for (int axis = 0; axis < shape.rank; ++axis) order[static_cast<std::size_t>(axis)] = axis;
  std::shuffle(order.begin(), order.end(), random);
  for (const int axis : order) {
    const std::int64_t step = made.elements + static_cast<std::int64_t>(random() % 3);
    const bool backwards = random() % 4 == 0;
    made.strides[axis] = backwards ? -step : step;
    if (backwards) made.offset += step * (shape[axis] - 1);
    made.elements += step * (shape[axis] - 1);
  }
  return made;
}

template <class Word>
void check_copies(DType dtype, Device from_device, Device to_device, int rounds) {
  std::mt19937 random(3);
  for (int round = 0; round < rounds; ++round) {
    const Extents shape = random_extents(random, static_cast<int>(random() % 5), 1, 5);
    const Case from = random_layout(random, shape);
    const Case to = random_layout(random, shape);
    std::vector<Word> source(static_cast<std::size_t>(from.elements));
    for (Word& word : source) word = static_cast<Word>(random() * 0x100000001u);
    std::vector<Word> target(static_cast<std::size_t>(to.elements));
    for (Word& word : target) word = static_cast<Word>(random());
    std::vector<Word> expected = target;
    for_each_index(shape, [&](const Extents& index) {
      expected[static_cast<std::size_t>(to.offset + offset_of(index, to.strides))] =
          source[static_cast<std::size_t>(from.offset + offset_of(index, from.strides))];
    });
    const Tensor source_memory(dtype, {from.elements}, from_device);
    const Tensor target_memory(dtype, {to.elements}, to_device);
    const auto host = [&](std::vector<Word>& words) {
      return TensorRef(static_cast<void*>(words.data()), dtype,
                       {static_cast<std::int64_t>(words.size())});
    };
    copy(host(source), source_memory);
    copy(host(target), target_memory);
    const void* const first = source_memory.data<Word>() + from.offset;
    void* const there = target_memory.data<Word>() + to.offset;
    copy(ConstTensorRef(first, dtype, shape, from.strides, from_device),
         TensorRef(there, dtype, shape, to.strides, to_device));
    std::vector<Word> result(target.size());
    copy(target_memory, host(result));
    ASSERT_EQ(result, expected) << to_string(shape) << ": " << to_string(from.strides) << " to "
                                << to_string(to.strides);
  }
}

constexpr Device cpu{};
constexpr Device second_gpu{Backend::cuda, 1};

TEST(Copy, AnyStridesOnTheHost) {
  check_copies<std::uint8_t>(DType::e4m3, cpu, cpu, 500);
  check_copies<std::uint16_t>(DType::f16, cpu, cpu, 500);
  check_copies<std::uint32_t>(DType::f32, cpu, cpu, 500);
  check_copies<std::uint64_t>(DType::f64, cpu, cpu, 500);
}

TEST(Copy, AnyStridesAcrossDevices) {
  check_copies<std::uint32_t>(DType::f32, cpu, gpu, 100);
  check_copies<std::uint32_t>(DType::f32, gpu, cpu, 100);
  check_copies<std::uint16_t>(DType::bf16, gpu, gpu, 100);
  check_copies<std::uint64_t>(DType::i64, gpu, second_gpu, 100);
}

TEST(Copy, ContiguousTensorsTravelInOnePiece) {
  const Tensor on_gpu(DType::f32, {10, 20}, gpu);
  const Tensor on_host(DType::f32, {10, 20});
  const int before = test::fake_device().copies;
  copy(on_host, on_gpu);
  EXPECT_EQ(test::fake_device().copies, before + 1);
}

TEST(Copy, BroadcastsFromStrideZero) {
  const std::int32_t three = 3;
  std::vector<std::int32_t> target(6);
  copy(ConstTensorRef(&three, DType::i32, {2, 3}, {0, 0}),
       TensorRef(target.data(), DType::i32, {2, 3}));
  EXPECT_EQ(target, std::vector<std::int32_t>(6, 3));
}

TEST(Copy, NothingToCopy) {
  copy(ConstTensorRef(nullptr, DType::f32, {0, 3}), TensorRef(nullptr, DType::f32, {0, 3}));
}

TEST(Copy, RefusesWhatIsAmbiguous) {
  float memory[16] = {};
  const void* const integers = memory;
  const auto tensor = [&](int offset, const Extents& shape, const Extents& strides) {
    return TensorRef(memory + offset, DType::f32, shape, strides);
  };
  expect_error(ErrorCode::invalid_argument, {"shapes differ", "2x3", "3x2"}, [&] {
    copy(tensor(0, {2, 3}, {3, 1}), tensor(8, {3, 2}, {2, 1}));
  });
  expect_error(ErrorCode::invalid_argument, {"dtypes differ", "i32", "f32"},
               [&] { copy(ConstTensorRef(integers, DType::i32, {2}), tensor(8, {2}, {1})); });
  expect_error(ErrorCode::invalid_argument, {"one place"}, [&] {
    copy(tensor(0, {2, 3}, {3, 1}), tensor(8, {2, 3}, {0, 1}));
  });
  expect_error(ErrorCode::invalid_argument, {"overlap"},
               [&] { copy(tensor(0, {4}, {1}), tensor(3, {4}, {1})); });
  expect_error(ErrorCode::invalid_argument, {"from (4) has a null data"},
               [&] { copy(ConstTensorRef(nullptr, DType::f32, {4}), tensor(3, {4}, {1})); });
  copy(tensor(0, {4}, {1}), tensor(4, {4}, {1}));  // adjacent memory does not overlap
}

TEST(Tensor, OwnsAlignedMemory) {
  const Tensor tensor(DType::bf16, {3, 5});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data<void>()) % 64, 0u);
  EXPECT_EQ(tensor.shape(), (Extents{3, 5}));
  EXPECT_EQ(tensor.ref().strides, (Extents{5, 1}));
  EXPECT_EQ(tensor.dtype(), DType::bf16);
  std::memset(tensor.data<void>(), 1, 30);
  const Tensor empty(DType::f64, {0, 7});
  EXPECT_NE(empty.data<void>(), nullptr);
  EXPECT_EQ(Tensor().data<void>(), nullptr);
}

TEST(Tensor, DataOfAnotherTypeIsRefused) {
  const Tensor tensor(DType::f32, {2});
  EXPECT_NE(tensor.data<const float>(), nullptr);
  EXPECT_NE(tensor.data<std::uint8_t>(), nullptr) << "bytes";
  EXPECT_NE(tensor.data<std::byte>(), nullptr);
  EXPECT_NE(tensor.data<unsigned>(), nullptr) << "no DType";
  EXPECT_NE(Tensor(DType::f16, {2}).data<std::uint16_t>(), nullptr) << "bits";
  expect_error(ErrorCode::invalid_argument, {"data<T>: T is f64", "f32; accepted: f32"},
               [&] { static_cast<void>(tensor.data<double>()); });
  expect_error(ErrorCode::invalid_argument, {"T is u16"},
               [&] { static_cast<void>(tensor.data<std::uint16_t>()); });
}

template <class T>
void expect_filled(const Tensor& tensor, T value) {
  Tensor host(tensor.dtype(), tensor.shape());
  copy(tensor, host);
  for (std::int64_t i = 0; i < tensor.shape().product(); ++i) {
    EXPECT_EQ(std::memcmp(host.data<T>() + i, &value, sizeof value), 0) << i;
  }
}

TEST(Fill, SetsEveryElement) {
  for (const Device device : {Device{}, gpu}) {
    const Tensor tensor = zeros(DType::f32, {3, 5}, device);
    EXPECT_EQ(tensor.ref().device, device);
    expect_filled(tensor, 0.0f);
    fill(tensor, 1.5);
    expect_filled(tensor, 1.5f);
    const Tensor halves(DType::bf16, {7}, device);
    fill(halves, 1.0 / 3.0);
    expect_filled(halves, bf16(1.0f / 3.0f));
    const Tensor numbers = zeros(DType::i64, {2, 2}, device);
    fill(numbers, -3);
    expect_filled(numbers, std::int64_t{-3});
    const Tensor bytes(DType::u8, {4}, device);
    fill(bytes, 300);
    expect_filled(bytes, std::uint8_t{255});
    fill(zeros(DType::f64, {}, device), 2);
    fill(zeros(DType::f64, {0, 3}, device), 2);
  }
}

TEST(Fill, LeavesGapsAlone) {
  std::vector<float> memory(12, 1.0f);
  fill(TensorRef(memory, {3, 2}, {4, 2}), 9);
  EXPECT_EQ(memory, (std::vector<float>{9, 1, 9, 1, 9, 1, 9, 1, 9, 1, 9, 1}));
  expect_error(ErrorCode::invalid_argument, {"fill: to (2x3", "overlaps itself"}, [&] {
    fill(TensorRef(memory, {2, 3}, {0, 1}), 0);
  });
  expect_error(ErrorCode::invalid_argument, {"fill: to (4) has a null data pointer"},
               [] { fill(TensorRef(nullptr, DType::f32, {4}), 0); });
}

TEST(Tensor, ReleasesDeviceMemoryOnce) {
  const std::size_t before = test::fake_device().blocks.size();
  {
    Tensor tensor(DType::f32, {4}, gpu);
    const Tensor same = tensor;
    tensor = Tensor();
    EXPECT_EQ(test::fake_device().blocks.size(), before + 1);
    EXPECT_NE(same.data<void>(), nullptr);
  }
  EXPECT_EQ(test::fake_device().blocks.size(), before);
}

TEST(Tensor, RefusesWhatCannotBe) {
  expect_error(ErrorCode::invalid_argument, {"2^63 - 1 bytes"},
               [] { Tensor(DType::f64, {too_many}); });
  expect_error(ErrorCode::invalid_argument, {"negative"}, [] { Tensor(DType::f64, {-1}); });
#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer's allocator ends the program instead
  expect_error(ErrorCode::out_of_memory, {"bytes"}, [] { Tensor(DType::u8, {too_many}); });
#endif
  expect_error(ErrorCode::out_of_memory, {"fake"}, [] { Tensor(DType::u8, {too_many}, gpu); });
  expect_error(ErrorCode::invalid_argument, {"cuda device 2", "0 to 1"}, [] {
    Tensor(DType::u8, {1}, {Backend::cuda, 2});
  });
  expect_error(ErrorCode::invalid_argument, {"cpu device -1"}, [] {
    Tensor(DType::u8, {1}, {Backend::cpu, -1});
  });
}

TEST(TensorRef, ConvertsFromViews) {
  float memory[12] = {};
  View<float, 2> view{memory, {3, 2}, {4, 2}};
  const TensorRef tensor = view;
  EXPECT_EQ(tensor.shape, (Extents{3, 2}));
  EXPECT_EQ(tensor.strides, (Extents{4, 2}));
  EXPECT_EQ(tensor.dtype, DType::f32);
  const ConstTensorRef constant = View<const float, 2>(view);
  EXPECT_EQ(constant.data, memory);
  EXPECT_EQ((&tensor.view<float, 2>()(2, 1)), memory + 10);
  EXPECT_FALSE(tensor.empty());
  EXPECT_TRUE(TensorRef(memory, DType::f32, {3, 0}).empty());
}

TEST(TensorRef, LayoutsCompare) {
  alignas(64) float memory[64] = {};
  const void* const integers = memory;
  const ConstTensorRef a(memory, DType::f32, {2, 3});
  EXPECT_TRUE(same_layout(a, ConstTensorRef(memory + 4, DType::f32, {2, 3})));
  EXPECT_FALSE(same_layout(a, ConstTensorRef(memory + 1, DType::f32, {2, 3})));
  EXPECT_FALSE(same_layout(a, ConstTensorRef(integers, DType::i32, {2, 3})));
  EXPECT_FALSE(same_layout(a, ConstTensorRef(memory, DType::f32, {3, 2})));
  EXPECT_FALSE(same_layout(a, ConstTensorRef(memory, DType::f32, {2, 3}, {4, 1})));
  EXPECT_FALSE(same_layout(a, ConstTensorRef(nullptr, DType::f32, {2, 3})));
  EXPECT_FALSE(same_layout(a, ConstTensorRef(memory, DType::f32, {2, 3}, gpu)));
}

}  // namespace
}  // namespace rung
