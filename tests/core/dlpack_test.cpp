// SPDX-License-Identifier: Apache-2.0
// DLPack in and out: descriptions, ownership, and that every deleter runs exactly once.
#include "rung/core/dlpack.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "expect_error.hpp"
#include "fake_device.hpp"
#include "rung/core/dlpack_abi.hpp"

namespace rung {
namespace {

using test::expect_error;

/// Tensor of another library: 2 x 3 floats, and a count of calls of its deleter.
template <class Managed>
struct Foreign {
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  std::int64_t shape[2] = {2, 3};
  std::int64_t strides[2] = {1, 2};
  int deleted = 0;
  Managed managed{};

  Foreign() {
    managed.dl_tensor = {data, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 0};
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
};

template <class Managed>
class DLPack : public testing::Test {};
using Structures = testing::Types<DLManagedTensor, DLManagedTensorVersioned>;
TYPED_TEST_SUITE(DLPack, Structures);

TYPED_TEST(DLPack, TakesTensorsOver) {
  Foreign<TypeParam> foreign;
  {
    Tensor tensor = from_dlpack(&foreign.managed);
    EXPECT_EQ(tensor.data<float>(), foreign.data);
    EXPECT_EQ(tensor.dtype(), DType::f32);
    EXPECT_EQ(tensor.shape(), (Extents{2, 3}));
    EXPECT_EQ(tensor.ref().strides, (Extents{1, 2}));
    const Tensor second = tensor;
    tensor = Tensor();
    EXPECT_EQ(foreign.deleted, 0) << "a copy still lives";
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TYPED_TEST(DLPack, NullStridesAreContiguousAndOffsetsAreBytes) {
  Foreign<TypeParam> foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  foreign.managed.dl_tensor.byte_offset = 8;
  const Tensor tensor = from_dlpack(&foreign.managed);
  EXPECT_EQ(tensor.ref().strides, (Extents{3, 1}));
  EXPECT_EQ(tensor.data<float>(), foreign.data + 2);
}

TYPED_TEST(DLPack, ADeleterMayBeAbsent) {
  Foreign<TypeParam> foreign;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).shape(), (Extents{2, 3}));
}

TYPED_TEST(DLPack, ScalarsAndEmptyTensors) {
  Foreign<TypeParam> foreign;
  foreign.managed.dl_tensor.ndim = 0;
  foreign.managed.dl_tensor.shape = nullptr;
  foreign.managed.dl_tensor.strides = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).ref().size(), 1);
  Foreign<TypeParam> empty;
  empty.shape[0] = 0;
  empty.managed.dl_tensor.data = nullptr;
  empty.managed.dl_tensor.byte_offset = 64;
  const Tensor tensor = from_dlpack(&empty.managed);
  EXPECT_TRUE(tensor.ref().empty());
  EXPECT_EQ(tensor.data<void>(), nullptr);
}

TYPED_TEST(DLPack, DevicesMapOneToOne) {
  const struct {
    std::int32_t type;
    std::int32_t index;
    Device device;
  } cases[] = {{1, 0, {Backend::cpu, 0}}, {2, 1, {Backend::cuda, 1}}, {3, 1, {Backend::cpu, 0}}};
  for (const auto& [type, index, device] : cases) {
    Foreign<TypeParam> foreign;
    foreign.managed.dl_tensor.device = {static_cast<DLDeviceType>(type), index};
    EXPECT_EQ(from_dlpack(&foreign.managed).ref().device, device);
  }
}

TYPED_TEST(DLPack, RefusalsLeaveTheStructureAlone) {
  const auto refused = [](ErrorCode code, std::initializer_list<std::string> words,
                          const auto& spoil) {
    Foreign<TypeParam> foreign;
    spoil(foreign.managed.dl_tensor, foreign);
    expect_error(code, words, [&] { from_dlpack(&foreign.managed); });
    EXPECT_EQ(foreign.deleted, 0);
  };
  using T = DLTensor;
  using F = Foreign<TypeParam>;
  const ErrorCode no = ErrorCode::unsupported;
  const ErrorCode bad = ErrorCode::invalid_argument;
  refused(no, {"4 lanes"}, [](T& t, F&) { t.dtype.lanes = 4; });
  refused(no, {"0 lanes"}, [](T& t, F&) { t.dtype.lanes = 0; });
  refused(no, {"bool"}, [](T& t, F&) { t.dtype = {kDLBool, 8, 1}; });
  refused(no, {"complex of 64"}, [](T& t, F&) { t.dtype = {kDLComplex, 64, 1}; });
  refused(no, {"code 99"}, [](T& t, F&) { t.dtype.code = 99; });
  refused(no, {"of 16 bits"}, [](T& t, F&) { t.dtype = {kDLInt, 16, 1}; });
  refused(no, {"of 4 bits"}, [](T& t, F&) { t.dtype = {kDLUInt, 4, 1}; });
  refused(no, {"device type 10"},
          [](T& t, F&) { t.device.device_type = static_cast<DLDeviceType>(10); });
  refused(bad, {"rank -1"}, [](T& t, F&) { t.ndim = -1; });
  refused(bad, {"shape is null"}, [](T& t, F&) { t.shape = nullptr; });
  refused(bad, {"data is null"}, [](T& t, F&) { t.data = nullptr; });
  refused(bad, {"negative"}, [](T&, F& f) { f.shape[1] = -3; });
  refused(bad, {"2^63"}, [](T&, F& f) { f.shape[0] = f.shape[1] = INT64_MAX; });
  refused(bad, {"address space"}, [](T&, F& f) { f.strides[0] = INT64_MAX; });
  refused(bad, {"byte_offset", "address space"}, [](T& t, F&) { t.byte_offset = UINT64_MAX; });
  refused(bad, {"data is 0x", "a multiple of 4"}, [](T& t, F&) { t.byte_offset = 2; });
  refused(bad, {"cuda device -1"}, [](T& t, F&) { t.device = {kDLCUDA, -1}; });
  std::int64_t many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  refused(bad, {"rank 9"}, [&](T& t, F&) {
    t.ndim = 9;
    t.shape = t.strides = many;
  });
  expect_error(bad, {"null"}, [] { from_dlpack(static_cast<TypeParam*>(nullptr)); });
}

template <class Managed>
Managed* lend(const Tensor& tensor) {
  if constexpr (std::is_same_v<Managed, DLManagedTensor>) {
    return to_dlpack(tensor);
  } else {
    return to_dlpack_versioned(tensor);
  }
}

TYPED_TEST(DLPack, EveryTypeRoundTrips) {
  const DLDataType codes[] = {{2, 32, 1}, {2, 64, 1}, {2, 16, 1}, {4, 16, 1}, {10, 8, 1},
                              {12, 8, 1}, {0, 8, 1},  {1, 8, 1},  {0, 32, 1}, {0, 64, 1}};
  for (int index = 0; index < 10; ++index) {
    const Tensor tensor(static_cast<DType>(index), {2, 3});
    TypeParam* const lent = lend<TypeParam>(tensor);
    EXPECT_EQ(lent->dl_tensor.dtype.code, codes[index].code);
    EXPECT_EQ(lent->dl_tensor.dtype.bits, codes[index].bits);
    EXPECT_EQ(lent->dl_tensor.dtype.lanes, 1);
    const Tensor back = from_dlpack(lent);  // back to the owner, and so to the deleter
    EXPECT_EQ(back.dtype(), tensor.dtype());
    EXPECT_EQ(back.shape(), tensor.shape());
    EXPECT_EQ(back.ref().strides, tensor.ref().strides);
    EXPECT_EQ(back.data<void>(), tensor.data<void>());
  }
}

TYPED_TEST(DLPack, LentMemoryOutlivesTheTensor) {
  const std::size_t before = test::fake_device().blocks.size();
  TypeParam* lent = nullptr;
  {
    const Tensor tensor(DType::f32, {4}, {Backend::cuda, 1});
    lent = lend<TypeParam>(tensor);
  }
  EXPECT_EQ(test::fake_device().blocks.size(), before + 1);
  EXPECT_EQ(lent->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(lent->dl_tensor.device.device_id, 1);
  EXPECT_EQ(lent->dl_tensor.ndim, 1);
  EXPECT_EQ(lent->dl_tensor.shape[0], 4);
  EXPECT_EQ(lent->dl_tensor.strides[0], 1);
  EXPECT_EQ(lent->dl_tensor.byte_offset, 0u);
  lent->deleter(lent);
  EXPECT_EQ(test::fake_device().blocks.size(), before);
}

TYPED_TEST(DLPack, TheSimulatedGpuHasNoName) {
  float x = 0;
  const Tensor tensor(TensorRef(&x, DType::f32, {1}, {Backend::simt, 0}), nullptr);
  expect_error(ErrorCode::unsupported, {"simulated GPU"}, [&] { lend<TypeParam>(tensor); });
}

TEST(DLPackVersioned, OtherMajorVersionsAreRefused) {
  Foreign<DLManagedTensorVersioned> foreign;
  foreign.managed.version = {2, 0};
  expect_error(ErrorCode::unsupported, {"version 2.0", "1.x"},
               [&] { from_dlpack(&foreign.managed); });
  foreign.managed.version = {1, 99};
  EXPECT_EQ(from_dlpack(&foreign.managed).shape(), (Extents{2, 3}));
  DLManagedTensorVersioned* const lent = to_dlpack_versioned(Tensor(DType::f32, {1}));
  EXPECT_EQ(lent->version.major, 1u);
  EXPECT_EQ(lent->flags, 0u);
  lent->deleter(lent);
}

TEST(DLPackVersioned, ReadOnlyTensorsNeedConsent) {
  Foreign<DLManagedTensorVersioned> foreign;
  foreign.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  expect_error(ErrorCode::invalid_argument, {"read-only"}, [&] { from_dlpack(&foreign.managed); });
  EXPECT_EQ(foreign.deleted, 0);
  from_dlpack(&foreign.managed, true);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(DLPackAbi, LaysOutAsPublished) {
  static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24);
  static_assert(offsetof(DLManagedTensor, manager_ctx) == 48 && sizeof(DLManagedTensor) == 64);
  static_assert(offsetof(DLManagedTensorVersioned, flags) == 24);
  static_assert(offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
  EXPECT_EQ(sizeof(DLManagedTensorVersioned), 80u);
}

}  // namespace
}  // namespace rung
