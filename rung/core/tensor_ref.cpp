// SPDX-License-Identifier: Apache-2.0
// Validates tensor references: contradictory fields, and extents beyond the container.
#include "rung/core/tensor_ref.hpp"

#include <cstdio>
#include <string>

#include "rung/core/error.hpp"

namespace rung::detail {
namespace {

std::string hexadecimal(const void* address) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)));
  return text;
}

/// Formats the shape, "shape 8x4", and the strides unless they are contiguous.
std::string described(const ConstTensorRef& tensor) {
  std::string shape = "shape " + to_string(tensor.shape);
  if (tensor.strides == tensor.shape.contiguous_strides()) return shape;
  return shape + " with strides " + to_string(tensor.strides);
}

/// Returns the contradiction between the fields of a tensor; "" if there is none.
std::string contradiction(const ConstTensorRef& tensor) {
  if (!is_dtype(tensor.dtype)) {
    return "dtype is " + std::to_string(static_cast<int>(tensor.dtype)) +
           "; accepted: " + dtype_names();
  }
  const Device& device = tensor.device;
  if (!is_backend(device.backend)) {
    return "the backend of its device is " + std::to_string(static_cast<int>(device.backend)) +
           "; accepted: " + backend_names();
  }
  const bool on_host = in_host_memory(device.backend);
  if (device.index < 0 || (on_host && device.index != 0)) {
    return std::string(to_string(device.backend)) + " device " + std::to_string(device.index) +
           " does not exist; accepted: 0" + (on_host ? "" : " or more");
  }
  for (const Extents* extents : {&tensor.shape, &tensor.strides}) {
    if (extents->has_valid_rank()) continue;
    return std::string(extents == &tensor.shape ? "shape" : "strides") + " has rank " +
           std::to_string(extents->rank) + "; accepted: 0 to " + std::to_string(max_rank);
  }
  if (tensor.shape.rank != tensor.strides.rank) {
    return "shape " + to_string(tensor.shape) + " comes with " +
           std::to_string(tensor.strides.rank) + " strides" +
           (tensor.strides.rank > 0 ? ", " + to_string(tensor.strides) : "") +
           "; accepted: " + std::to_string(tensor.shape.rank) + ", one for each extent";
  }
  if (!tensor.consistent() && !tensor.empty()) {
    return "data is " + hexadecimal(tensor.data) + "; accepted for " +
           std::string(to_string(tensor.dtype)) + ": a multiple of " +
           std::to_string(size_of(tensor.dtype)) + ", the size of an element";
  }
  return "";
}

}  // namespace

void check_consistent(const ConstTensorRef& tensor) {
  const std::string wrong = contradiction(tensor);
  if (!wrong.empty()) throw Error(ErrorCode::invalid_argument, wrong);
}

void check_inside(const ConstTensorRef& tensor, std::size_t count) {
  if (tensor.shape.product() == 0) return;  // throws for negative and overflowing extents
  std::int64_t first = 0;
  std::int64_t last = 0;
  bool wraps = false;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    std::int64_t span = 0;
    wraps |= __builtin_mul_overflow(tensor.shape[axis] - 1, tensor.strides[axis], &span);
    std::int64_t& end = span < 0 ? first : last;
    wraps |= __builtin_add_overflow(end, span, &end);
  }
  if (!wraps && first == 0 && static_cast<std::size_t>(last) < count) return;
  const std::string holds = "; the container holds " + std::to_string(count);
  if (wraps) {
    throw Error(ErrorCode::invalid_argument,
                described(tensor) + " leaves the address space" + holds);
  }
  if (first < 0) {
    throw Error(ErrorCode::invalid_argument,
                described(tensor) + " begins " +
                    std::to_string(0 - static_cast<std::uint64_t>(first)) +
                    " elements before the container; pass a pointer to the first element");
  }
  const std::uint64_t needed = static_cast<std::uint64_t>(last) + 1;
  throw Error(ErrorCode::invalid_argument, described(tensor) + " needs " + std::to_string(needed) +
                                               (needed == 1 ? " element" : " elements") + holds);
}

void throw_no_view(const ConstTensorRef& tensor, DType requested, int rank) {
  const std::string type(to_string(tensor.dtype));
  throw Error(ErrorCode::invalid_argument,
              "view<T, N>: T is " + std::string(to_string(requested)) + " and N is " +
                  std::to_string(rank) + ", but the tensor is " + type + " of " +
                  axis_count(tensor.rank()) + " (" + to_string(tensor.shape) +
                  "); accepted: " + type + " and " + std::to_string(tensor.rank()));
}

void throw_no_data(const ConstTensorRef& tensor, DType requested) {
  const std::string type(to_string(tensor.dtype));
  throw Error(ErrorCode::invalid_argument, "data<T>: T is " + std::string(to_string(requested)) +
                                               ", but the tensor is " + type +
                                               "; accepted: " + type);
}

}  // namespace rung::detail
