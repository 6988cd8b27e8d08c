// SPDX-License-Identifier: Apache-2.0
// Error messages for arguments that violate an operator's requirements.
#include "rung/core/require.hpp"

#include <algorithm>
#include <string>

namespace rung {
namespace {

std::string place(const Device& device) {
  return std::string(to_string(device.backend)) + ":" + std::to_string(device.index);
}

std::string called(std::string_view name) { return std::string(name); }

}  // namespace

void reject(std::string_view op, const std::string& message) {
  throw Error(ErrorCode::invalid_argument, std::string(op) + ": " + message);
}

void require_tensor(std::string_view op, const ConstTensorRef& tensor, std::string_view name) {
  try {
    if (!tensor.consistent()) detail::check_consistent(tensor);
    static_cast<void>(tensor.shape.product());
    if (tensor.data != nullptr) static_cast<void>(byte_range(tensor));
  } catch (const Error& error) {
    reject(op, called(name) + ": " + error.what());
  }
  if (tensor.data == nullptr && !tensor.empty()) {
    reject(op, called(name) + " (" + to_string(tensor.shape) + ") has a null data pointer");
  }
}

void require_list(std::string_view op, const Extents& list, std::string_view name) {
  if (list.has_valid_rank()) return;
  reject(op, called(name) + " has rank " + std::to_string(list.rank) + "; accepted: 0 to " +
                 std::to_string(max_rank));
}

void require_here(std::string_view op, const ConstTensorRef& tensor, std::string_view name,
                  const Context& context) {
  if (!context.valid()) {
    reject(op, "the context has been moved from; use the one it was moved to");
  }
  const bool here = in_host_memory(context.backend()) ? in_host_memory(tensor.device.backend)
                                                      : tensor.device == context.device();
  if (!here) {
    reject(op, called(name) + " is on " + place(tensor.device) + ", the context runs on " +
                   place(context.device()) + "; copy it there first");
  }
}

void require_device_of_build(std::string_view op, const ConstTensorRef& tensor,
                             std::string_view name) {
  const bool missing =
      tensor.device.backend == Backend::simt && device_api(Backend::simt) == nullptr;
  if (!missing) return;
  reject(op, called(name) + " is on " + place(tensor.device) +
                 ", but this build of rung has no simt backend; accepted for host memory: " +
                 place(Device{}));
}

void require_dtype(std::string_view op, const ConstTensorRef& tensor, std::string_view name,
                   std::initializer_list<DType> accepted) {
  if (std::find(accepted.begin(), accepted.end(), tensor.dtype) != accepted.end()) return;
  std::string list;
  for (const DType dtype : accepted) {
    if (!list.empty()) list += ", ";
    list += to_string(dtype);
  }
  reject(op, called(name) + " is " + called(to_string(tensor.dtype)) + "; accepted: " + list);
}

void require_shape(std::string_view op, const ConstTensorRef& tensor, std::string_view name,
                   const Extents& accepted) {
  if (tensor.shape == accepted) return;
  std::string differs;
  if (tensor.rank() != accepted.rank) {
    differs = axis_count(tensor.rank()) + " instead of " + std::to_string(accepted.rank);
  } else {
    int axis = 0;
    while (tensor.shape[axis] == accepted[axis]) ++axis;
    differs = "axis " + std::to_string(axis) + " has extent " + std::to_string(tensor.shape[axis]) +
              " instead of " + std::to_string(accepted[axis]);
  }
  reject(op, called(name) + " is " + to_string(tensor.shape) +
                 "; accepted: " + to_string(accepted) + " (" + differs + ")");
}

void require_writable(std::string_view op, const ConstTensorRef& tensor, std::string_view name) {
  if (!self_overlaps(tensor)) return;
  reject(op, called(name) + " (" + to_string(tensor.shape) + ", strides " +
                 to_string(tensor.strides) + ") overlaps itself: two elements share memory");
}

void require_apart(std::string_view op, const ConstTensorRef& written,
                   std::string_view written_name, const ConstTensorRef& read,
                   std::string_view read_name) {
  if (!byte_range(written).overlaps(byte_range(read))) return;
  reject(op,
         called(written_name) + " overlaps " + called(read_name) + "; accepted: disjoint memory");
}

void require_same_or_apart(std::string_view op, const ConstTensorRef& written,
                           std::string_view written_name, const ConstTensorRef& read,
                           std::string_view read_name) {
  if (same_place(written, read)) return;
  if (!byte_range(written).overlaps(byte_range(read))) return;
  reject(op, called(written_name) + " overlaps " + called(read_name) +
                 " without being the same tensor; accepted: the same, or disjoint memory");
}

int require_axis(std::string_view op, std::int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  reject(op, "axis is " + std::to_string(axis) + "; accepted: " + std::to_string(-rank) + " to " +
                 std::to_string(rank - 1) + " for " + axis_count(rank));
}

}  // namespace rung
