// SPDX-License-Identifier: Apache-2.0
// Owning tensors, and the names of the backends.
#include "rung/core/tensor.hpp"

#include <cstdlib>
#include <limits>
#include <string>

#include "rung/core/context.hpp"
#include "rung/core/require.hpp"

namespace rung {
namespace {

std::size_t bytes_of(DType dtype, const Extents& shape) {
  const std::int64_t count = shape.product();
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(count, static_cast<std::int64_t>(size_of(dtype)), &bytes)) {
    throw Error(ErrorCode::invalid_argument, "shape " + to_string(shape) + " of " +
                                                 std::string(to_string(dtype)) +
                                                 " has more than 2^63 - 1 bytes");
  }
  return static_cast<std::size_t>(bytes);
}

}  // namespace

const char* to_string(Backend backend) noexcept {
  switch (backend) {
    case Backend::cpu:
      return "cpu";
    case Backend::cuda:
      return "cuda";
    case Backend::simt:
      return "simt";
    case Backend::opencl:
      return "opencl";
  }
  return "unknown backend";
}

std::string backend_names() {
  std::string names;
  for (const Backend backend : all_backends) {
    names += (names.empty() ? "" : ", ") + std::string(to_string(backend));
  }
  return names;
}

Backend parse_backend(std::string_view text) {
  for (const Backend backend : all_backends) {
    if (text == to_string(backend)) return backend;
  }
  throw Error(ErrorCode::invalid_argument,
              "unknown backend '" + std::string(text) + "'; accepted: " + backend_names());
}

Tensor::Tensor(DType dtype, const Extents& shape, Device device)
    : ref_(nullptr, dtype, shape, device) {
  const DeviceApi* api = device_api(device.backend);
  if (const Availability here = available(device.backend); !here) {
    throw Error(ErrorCode::not_available, here.why);
  }
  if (const int count = api->device_count(); device.index < 0 || device.index >= count) {
    throw Error(ErrorCode::invalid_argument,
                std::string(to_string(device.backend)) + " device " + std::to_string(device.index) +
                    " does not exist; accepted: 0 to " + std::to_string(count - 1));
  }
  // Empty tensors have an address too: operators treat null data as an omitted argument.
  const std::size_t bytes = std::max<std::size_t>(bytes_of(dtype, shape), 1);
  owner_ = std::shared_ptr<void>(
      api->allocate(device.index, bytes),
      [api, index = device.index](void* memory) { api->release(index, memory); });
  ref_.data = owner_.get();
}

Tensor::Tensor(const TensorRef& ref, std::shared_ptr<void> owner)
    : ref_(ref), owner_(std::move(owner)) {
  require_tensor("tensor", ref, "ref");
}

}  // namespace rung
