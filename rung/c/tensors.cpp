// SPDX-License-Identifier: Apache-2.0
// Element types, owned tensors and copies of the C interface.
#include <string>

#include "rung/c/options.hpp"
#include "rung/core/tensor.hpp"

namespace {

using namespace rung::c_api;
using rung::DType;
using rung::Extents;

static_assert(same(RUNG_F32, DType::f32) && same(RUNG_F64, DType::f64));
static_assert(same(RUNG_F16, DType::f16) && same(RUNG_BF16, DType::bf16));
static_assert(same(RUNG_E4M3, DType::e4m3) && same(RUNG_E5M2, DType::e5m2));
static_assert(same(RUNG_I8, DType::i8) && same(RUNG_U8, DType::u8));
static_assert(same(RUNG_I32, DType::i32) && same(RUNG_I64, DType::i64));
static_assert(same(RUNG_U16, DType::u16));

bool known(rung_dtype dtype) {
  const int number = number_in(dtype);
  return number >= 0 && number <= static_cast<int>(DType::u16);
}

/// Result of rung_tensor_create(): C's description with the tensor that it describes.
struct OwnedTensor : rung_tensor {
  rung::Tensor memory;
  Extents extents;
  Extents steps;

  explicit OwnedTensor(rung::Tensor made, rung_device place)
      : rung_tensor{}, memory(std::move(made)), extents(memory.shape()) {
    steps = memory.ref().strides;
    data = memory.ref().data;
    dtype = static_cast<rung_dtype>(memory.dtype());
    rank = extents.rank;
    shape = extents.at;
    strides = steps.at;
    device = place;
  }
};

}  // namespace

const char* rung_dtype_name(rung_dtype dtype) {
  if (!known(dtype)) return "unknown dtype";
  return to_string(static_cast<DType>(dtype)).data();  // a literal, null-terminated
}

size_t rung_dtype_size(rung_dtype dtype) {
  return known(dtype) ? rung::size_of(static_cast<DType>(dtype)) : 0;
}

rung_status rung_tensor_create(rung_dtype dtype, int rank, const int64_t* shape, rung_device device,
                               rung_tensor** tensor) {
  if (tensor != nullptr) *tensor = nullptr;
  return guarded([&] {
    require(tensor, {"tensor"});
    const DType checked = checked_enum(dtype, DType::u16, {"dtype"});
    const auto backend = checked_enum(device.backend, rung::Backend::opencl, {"backend", "device"});
    const Extents wanted = extents(shape, "shape", rank, "rank");
    *tensor = new OwnedTensor(rung::Tensor(checked, wanted, {backend, device.index}), device);
  });
}

void rung_tensor_destroy(rung_tensor* tensor) { delete static_cast<OwnedTensor*>(tensor); }

rung_status rung_copy(const rung_tensor* from, const rung_tensor* to) {
  return guarded([&] {
    const rung::TensorRef source = reference(Argument{from, "from"});
    rung::copy(source, reference(Argument{to, "to"}));
  });
}
