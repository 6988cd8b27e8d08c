// SPDX-License-Identifier: Apache-2.0
// copy(): copies elements between tensors of any strides on any devices. The host walks the
// strides; device memory that the host cannot access is transferred whole, as the byte range of its
// elements.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rung/core/context.hpp"
#include "rung/core/require.hpp"
#include "rung/core/tensor.hpp"

namespace rung {
namespace {

struct Axis {
  std::int64_t extent;
  std::int64_t from;  // strides
  std::int64_t to;
};

/// Returns the axes of more than one element, sorted by descending destination stride. Adjacent
/// axes are merged if their strides allow it in both tensors.
std::vector<Axis> merged_axes(const ConstTensorRef& from, const TensorRef& to) {
  std::vector<Axis> axes;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (to.shape[axis] != 1) axes.push_back({to.shape[axis], from.strides[axis], to.strides[axis]});
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().from == axis.from * axis.extent &&
        merged.back().to == axis.to * axis.extent) {
      merged.back() = {merged.back().extent * axis.extent, axis.from, axis.to};
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  return merged;
}

template <class Word>
void copy_row(const Word* from, Word* to, const Axis& axis) {
  if (axis.from == 1 && axis.to == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(axis.extent) * sizeof(Word));
    return;
  }
  for (std::int64_t i = 0; i < axis.extent; ++i) to[i * axis.to] = from[i * axis.from];
}

template <class Word>
void copy_axes(const Word* from, Word* to, const Axis* axes, std::size_t count) {
  if (count == 1) {
    copy_row(from, to, axes[0]);
    return;
  }
  for (std::int64_t i = 0; i < axes[0].extent; ++i) {
    copy_axes(from + i * axes[0].from, to + i * axes[0].to, axes + 1, count - 1);
  }
}

/// Copies elements as integers of their size, which preserves signaling NaNs.
template <class Word>
void copy_words(const ConstTensorRef& from, const TensorRef& to) {
  const std::vector<Axis> axes = merged_axes(from, to);
  copy_axes(static_cast<const Word*>(from.data), static_cast<Word*>(to.data), axes.data(),
            axes.size());
}

void copy_on_host(const ConstTensorRef& from, const TensorRef& to) {
  switch (size_of(to.dtype)) {
    case 1:
      return copy_words<std::uint8_t>(from, to);
    case 2:
      return copy_words<std::uint16_t>(from, to);
    case 4:
      return copy_words<std::uint32_t>(from, to);
    default:
      return copy_words<std::uint64_t>(from, to);
  }
}

bool on_host(const Device& device) { return in_host_memory(device.backend); }

/// Host copy of the byte range of a device tensor.
struct Mirror {
  ByteRange range;
  std::unique_ptr<std::byte[]> bytes;

  explicit Mirror(const ConstTensorRef& tensor)
      : range(byte_range(tensor)), bytes(new std::byte[range.end - range.begin]) {}
  [[nodiscard]] std::byte* place(const void* data) const {
    return bytes.get() + (reinterpret_cast<std::uintptr_t>(data) - range.begin);
  }
  void fetch(const Device& device) const {
    device_api(device.backend)
        ->copy(device.index, bytes.get(), reinterpret_cast<const void*>(range.begin),
               range.end - range.begin);
  }
  void store(const Device& device) const {
    device_api(device.backend)
        ->copy(device.index, reinterpret_cast<void*>(range.begin), bytes.get(),
               range.end - range.begin);
  }
};

/// Returns true if the elements are contiguous in row-major order.
bool contiguous(const ConstTensorRef& tensor) {
  std::int64_t expected = 1;
  for (int axis = tensor.rank() - 1; axis >= 0; --axis) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

void check(const ConstTensorRef& from, const TensorRef& to) {
  require_tensor("copy", from, "from");
  require_tensor("copy", to, "to");
  if (from.dtype != to.dtype) {
    throw Error(ErrorCode::invalid_argument, "copy: dtypes differ: from is " +
                                                 std::string(to_string(from.dtype)) + ", to is " +
                                                 std::string(to_string(to.dtype)));
  }
  if (!(from.shape == to.shape)) {
    throw Error(
        ErrorCode::invalid_argument,
        "copy: shapes differ: from is " + to_string(from.shape) + ", to is " + to_string(to.shape));
  }
  if (to.empty()) return;
  if (self_overlaps(to)) {
    throw Error(ErrorCode::invalid_argument,
                "copy: to has several elements in one place (strides " + to_string(to.strides) +
                    " of shape " + to_string(to.shape) + ")");
  }
  if (byte_range(from).overlaps(byte_range(to))) {
    throw Error(ErrorCode::invalid_argument, "copy: from and to overlap in memory");
  }
  for (const Device& device : {from.device, to.device}) {
    if (const Availability here = available(device.backend); !here) {
      throw Error(ErrorCode::not_available, "copy: " + here.why);
    }
  }
}

}  // namespace

void copy(const ConstTensorRef& from, const TensorRef& to) {
  check(from, to);
  if (to.empty()) return;
  if (on_host(from.device) && on_host(to.device)) {
    copy_on_host(from, to);
    return;
  }
  const Device& device = on_host(to.device) ? from.device : to.device;
  const bool one_device = on_host(from.device) || on_host(to.device) || from.device == to.device;
  if (one_device && contiguous(from) && contiguous(to)) {
    device_api(device.backend)
        ->copy(device.index, to.data, from.data,
               static_cast<std::size_t>(to.size()) * size_of(to.dtype));
    return;
  }
  // Copies through the host. A source on a device is fetched whole, gaps included; so is a
  // destination with gaps, which are stored back unchanged.
  ConstTensorRef source = from;
  TensorRef target = to;
  std::unique_ptr<Mirror> fetched;
  if (!on_host(from.device)) {
    fetched = std::make_unique<Mirror>(from);
    fetched->fetch(from.device);
    source.data = fetched->place(from.data);
  }
  if (on_host(to.device)) {
    copy_on_host(source, target);
    return;
  }
  const Mirror mirror(to);
  if (!contiguous(to)) mirror.fetch(to.device);
  target.data = mirror.place(to.data);
  copy_on_host(source, target);
  mirror.store(to.device);
}

void fill(const TensorRef& to, double value) {
  require_tensor("fill", to, "to");
  if (to.empty()) return;
  require_writable("fill", to, "to");
  // A single element, broadcast by strides of 0.
  alignas(std::uint64_t) std::byte element[sizeof(std::uint64_t)];
  store_from_double(to.dtype, element, value);
  Extents strides;
  strides.rank = to.rank();
  copy(ConstTensorRef(element, to.dtype, to.shape, strides), to);
}

Tensor zeros(DType dtype, const Extents& shape, Device device) {
  Tensor tensor(dtype, shape, device);
  fill(tensor, 0);
  return tensor;
}

}  // namespace rung
