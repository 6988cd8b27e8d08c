// SPDX-License-Identifier: Apache-2.0
// Shapes and strides: overflow-checked products, the byte range of a tensor, and detection of
// tensors that overlap themselves.
#include <algorithm>
#include <numeric>

#include "rung/core/tensor.hpp"

namespace rung {
namespace {

/// Integer for the product of an extent and a stride, which needs 127 bits.
__extension__ typedef __int128 Wide;

/// Throws for a rank, set by hand, that exceeds the bounds of `at`.
void check_rank(const Extents& extents) {
  if (extents.has_valid_rank()) return;
  throw Error(ErrorCode::invalid_argument, "rank is " + std::to_string(extents.rank) +
                                               "; accepted: 0 to " + std::to_string(max_rank));
}

int accepted_rank(std::size_t axes) {
  if (axes <= static_cast<std::size_t>(max_rank)) return static_cast<int>(axes);
  throw Error(ErrorCode::invalid_argument, "rank " + std::to_string(axes) +
                                               " is too high; at most " + std::to_string(max_rank) +
                                               " axes are accepted");
}

/// Axis with more than one element, as self_overlaps() uses it.
struct OverlapAxis {
  std::int64_t stride;  // magnitude
  std::int64_t reach;   // largest difference of two indices: extent - 1
};

/// Searches for two elements at one address: index differences d_i, |d_i| <= reach_i and not all
/// zero, with sum d_i stride_i = 0. found() chooses the d_i from `axis` on, whose part of the sum
/// must be `target`; `nonzero`: one of the earlier d_i is not zero. Axes are sorted by descending
/// stride, so that few values of each d_i leave a remainder that the later axes can reach.
/// `budget_` bounds the search; if it is exhausted, the result is true (an overlap), the safe
/// answer.
class OverlapSearch {
 public:
  OverlapSearch(const OverlapAxis* axes, int count) : axes_(axes), count_(count) {}

  bool found(int axis, Wide target, bool nonzero) {
    if (axis == count_) return target == 0 && nonzero;
    if (--budget_ < 0) return true;
    Wide rest = 0;
    for (int later = axis + 1; later < count_; ++later) {
      rest += static_cast<Wide>(axes_[later].stride) * axes_[later].reach;
    }
    // The remainder must satisfy |target - d stride| <= rest, which bounds d.
    const Wide stride = axes_[axis].stride;
    const Wide reach = axes_[axis].reach;
    const Wide low = std::max<Wide>(-reach, ceiling(target - rest, stride));
    const Wide high = std::min<Wide>(reach, floor(target + rest, stride));
    for (Wide d = low; d <= high; ++d) {
      if (found(axis + 1, target - d * stride, nonzero || d != 0)) return true;
    }
    return false;
  }

 private:
  static Wide floor(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }
  static Wide ceiling(Wide a, Wide b) { return a / b + (a % b > 0 ? 1 : 0); }

  const OverlapAxis* axes_;
  int count_;
  int budget_ = 20000;  // about 0.1 ms
};

}  // namespace

Extents::Extents(std::span<const std::int64_t> list) : rank(accepted_rank(list.size())) {
  std::copy(list.begin(), list.end(), at);
}

Extents::Extents(std::initializer_list<detail::ListedExtent> list)
    : rank(accepted_rank(list.size())) {
  std::transform(list.begin(), list.end(), at, [](detail::ListedExtent one) { return one.value; });
}

std::int64_t Extents::product() const {
  check_rank(*this);
  std::int64_t product = 1;
  bool zero = false;
  bool overflow = false;
  for (int axis = 0; axis < rank; ++axis) {
    if (at[axis] < 0) {
      throw Error(ErrorCode::invalid_argument,
                  "shape " + to_string(*this) + " has a negative extent");
    }
    if (at[axis] == 0) {
      zero = true;
    } else {
      overflow |= __builtin_mul_overflow(product, at[axis], &product);
    }
  }
  if (zero) return 0;
  if (overflow) {
    throw Error(ErrorCode::invalid_argument,
                "shape " + to_string(*this) + " has more than 2^63 - 1 elements");
  }
  return product;
}

Extents Extents::contiguous_strides() const {
  check_rank(*this);
  Extents strides;
  strides.rank = rank;
  std::int64_t stride = 1;
  for (int axis = rank - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    // Treats an extent of zero as one, so that no stride is needlessly zero.
    if (__builtin_mul_overflow(stride, std::max<std::int64_t>(at[axis], 1), &stride)) {
      static_cast<void>(product());  // throws, unless a zero extent makes the strides irrelevant
      stride = 1;
    }
  }
  return strides;
}

std::string to_string(const Extents& extents) {
  if (extents.rank == 0) return "scalar";
  if (!extents.has_valid_rank()) return "of rank " + std::to_string(extents.rank);
  std::string text;
  for (int axis = 0; axis < extents.rank; ++axis) {
    if (axis > 0) text += 'x';
    text += std::to_string(extents[axis]);
  }
  return text;
}

ByteRange byte_range(const ConstTensorRef& tensor) {
  if (!tensor.consistent()) detail::check_consistent(tensor);
  if (tensor.empty()) return {};
  // Invalid strides must not wrap around to a valid range.
  std::int64_t low = 0;
  std::int64_t high = 1;
  bool wraps = false;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    std::int64_t span = 0;
    wraps |= __builtin_mul_overflow(tensor.shape[axis] - 1, tensor.strides[axis], &span);
    std::int64_t& side = span < 0 ? low : high;
    wraps |= __builtin_add_overflow(side, span, &side);
  }
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const auto base = reinterpret_cast<std::uintptr_t>(tensor.data);
  wraps |= __builtin_mul_overflow(low, size, &low) || __builtin_mul_overflow(high, size, &high);
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  wraps |= __builtin_add_overflow(base, low, &begin) || __builtin_add_overflow(base, high, &end);
  if (wraps) {
    throw Error(ErrorCode::invalid_argument, "shape " + to_string(tensor.shape) + " with strides " +
                                                 to_string(tensor.strides) +
                                                 " leaves the address space");
  }
  return {begin, end};
}

bool self_overlaps(const ConstTensorRef& tensor) {
  if (!tensor.consistent()) detail::check_consistent(tensor);
  if (tensor.empty()) return false;
  OverlapAxis axes[max_rank];
  int count = 0;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    if (tensor.shape[axis] == 1) continue;
    const std::int64_t stride = tensor.strides[axis];
    if (stride == 0) return true;
    if (stride == INT64_MIN) return true;  // |INT64_MIN| overflows; no tensor is this long
    // Insertion sort by descending stride.
    const OverlapAxis found{stride < 0 ? -stride : stride, tensor.shape[axis] - 1};
    int place = count++;
    for (; place > 0 && axes[place - 1].stride < found.stride; --place) {
      axes[place] = axes[place - 1];
    }
    axes[place] = found;
  }
  // Nested axes: each stride exceeds the span of all later axes, as in every slice of a permuted
  // tensor.
  Wide inside = 0;
  bool nested = true;
  for (int axis = count - 1; axis >= 0; --axis) {
    nested = nested && axes[axis].stride > inside;
    inside += static_cast<Wide>(axes[axis].stride) * axes[axis].reach;
  }
  if (nested) return false;
  if (count == 2) {
    // The smallest nonzero solution of d0 s0 = d1 s1 is d0 = s1 / g, d1 = s0 / g.
    const std::int64_t divisor = std::gcd(axes[0].stride, axes[1].stride);
    return axes[1].stride / divisor <= axes[0].reach && axes[0].stride / divisor <= axes[1].reach;
  }
  return OverlapSearch(axes, count).found(0, 0, false);
}

std::string axis_count(int rank) { return std::to_string(rank) + (rank == 1 ? " axis" : " axes"); }

}  // namespace rung
