// SPDX-License-Identifier: Apache-2.0
// stencil: what it must cost, what it must give, and how far a rung may be off. Written from the
// definition, with nothing of what the rungs share: of a mask that was given as vectors the product
// is taken, and a convolution's indices run backwards as in its formula.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rung/core/inputs.hpp"
#include "rung/core/rounding.hpp"
#include "rung/ops/stencil/stencil.hpp"

namespace rung {
namespace {

/// Double is not enough to judge double.
using Real = long double;

/// A value, and how far a rung's may be from it.
struct Value {
  Real value = 0;
  Real error = 0;
};

/// Rows of each iteration's result, made when they are asked for: a few rows of the last need few
/// of those before.
class Reference {
 public:
  explicit Reference(const Stencil::Args& args) : args_(args) {
    wide_ = args.x.dtype == DType::f64;
    scale_ = wide_ ? args.scale : nearest_f32(args.scale);
    // Three axes of the array in any case.
    for (int axis = args.x.rank() - 1; axis >= 0; --axis) {
      const int at = 3 - (args.x.rank() - axis);
      if (at >= 3 - args.axes) extents_[at] = args.x.shape[axis];
    }
  }

  /// Row `row`, over all axes but the last, of the result of iteration `step`; 0: x.
  const std::vector<Value>& row(int step, std::int64_t row) {
    const std::int64_t key = row * (args_.iterations + 1) + step;
    const auto found = rows_.find(key);
    if (found != rows_.end()) return found->second;
    std::vector<Value> made = step == 0 ? load(row) : apply(step, row);
    return rows_.insert_or_assign(key, std::move(made)).first->second;
  }

 private:
  [[nodiscard]] std::vector<Value> load(std::int64_t row) const {
    const ConstTensorRef& x = args_.x;
    const int last = x.rank() - 1;
    std::int64_t offset = 0;
    for (int axis = last - 1; axis >= 0; --axis) {
      offset += row % x.shape[axis] * x.strides[axis];
      row /= x.shape[axis];
    }
    std::vector<Value> values(static_cast<std::size_t>(x.shape[last]));
    for (Value& value : values) {
      value.value = element(x, offset);
      offset += x.strides[last];
    }
    return values;
  }

  static Real element(const ConstTensorRef& tensor, std::int64_t offset) {
    const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
    return load_as_double(tensor.dtype,
                          static_cast<const std::byte*>(tensor.data) + offset * bytes);
  }

  [[nodiscard]] Real weight(const int (&tap)[3]) const {
    switch (args_.weights) {
      case Stencil::Weights::mask: {
        const Extents& s = args_.mask.strides;
        return element(args_.mask, tap[0] * s[0] + tap[1] * s[1] + tap[2] * s[2]);
      }
      case Stencil::Weights::separable: {
        Real product = element(args_.across, tap[2] * args_.across.strides[0]);
        if (args_.axes > 1) product *= element(args_.down, tap[1] * args_.down.strides[0]);
        if (args_.axes > 2) product *= element(args_.through, tap[0] * args_.through.strides[0]);
        return product;
      }
      case Stencil::Weights::ones:
        break;
    }
    return 1;
  }

  /// The element that stands for index i of an axis, by going to and fro; -1: none.
  [[nodiscard]] std::int64_t inside(std::int64_t i, std::int64_t extent) const {
    while (i < 0 || i >= extent) {
      switch (args_.edge) {
        case StencilEdge::zero:
          return -1;
        case StencilEdge::clamp:
          i = i < 0 ? 0 : extent - 1;
          break;
        case StencilEdge::mirror:
          if (extent == 1) return 0;
          i = i < 0 ? -i : 2 * (extent - 1) - i;
          break;
        case StencilEdge::wrap:
          i += i < 0 ? extent : -extent;
          break;
      }
    }
    return i;
  }

  std::vector<Value> apply(int step, std::int64_t row) {
    const std::int64_t columns = args_.x.shape[args_.x.rank() - 1];
    // Which row of which plane of which array.
    const std::int64_t y = row % extents_[1];
    const std::int64_t z = row / extents_[1] % extents_[0];
    const std::int64_t array = row / extents_[1] / extents_[0];
    std::vector<Value> sums(static_cast<std::size_t>(columns));
    std::vector<Real> sizes(sums.size());
    int tap[3];
    for (tap[0] = 0; tap[0] < args_.axis[0].taps; ++tap[0]) {
      const std::int64_t from_z = inside(z + tap[0] - args_.axis[0].origin, extents_[0]);
      for (tap[1] = 0; tap[1] < args_.axis[1].taps; ++tap[1]) {
        const std::int64_t from_y = inside(y + tap[1] - args_.axis[1].origin, extents_[1]);
        if (from_z < 0 || from_y < 0) continue;
        const std::vector<Value>& from =
            this->row(step - 1, (array * extents_[0] + from_z) * extents_[1] + from_y);
        for (tap[2] = 0; tap[2] < args_.axis[2].taps; ++tap[2]) {
          const Real w = weight(tap);
          for (std::int64_t x = 0; x < columns; ++x) {
            const std::int64_t from_x = inside(x + tap[2] - args_.axis[2].origin, columns);
            if (from_x < 0) continue;
            const Value& value = from[static_cast<std::size_t>(from_x)];
            const auto at = static_cast<std::size_t>(x);
            sums[at].value += w * value.value;
            sums[at].error += std::abs(w) * value.error;
            sizes[at] += std::abs(w) * (std::abs(value.value) + value.error);
          }
        }
      }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) finish(sums[i], sizes[i]);
    return sums;
  }

  /// The scale, what rounding the sums may cost, and the rounding to y's type.
  void finish(Value& sum, Real size) const {
    const DType type = wide_ ? DType::f64 : DType::f32;
    const Real scale = std::abs(scale_);
    const int roundings = args_.taps() + 4;
    sum.value *= scale_;
    sum.error *= scale;
    sum.error += 1.01L * roundings * epsilon(type) / 2 * scale * size;
    sum.error += roundings * smallest(type) * std::max<Real>(1, scale);
    if (args_.y.dtype == DType::u8) {
      sum.value = std::clamp<Real>(sum.value, 0, 255);
      sum.error += 0.5L;
    } else {
      sum.error += epsilon(args_.y.dtype) / 2 * (std::abs(sum.value) + sum.error);
      sum.error += smallest(args_.y.dtype);
    }
  }

  /// Half the distance between subnormal numbers.
  static Real smallest(DType type) {
    const double normal = type == DType::f64 ? 0x1p-1022 : type == DType::f16 ? 0x1p-14 : 0x1p-126;
    return static_cast<Real>(epsilon(type)) / 2 * normal;
  }

  const Stencil::Args& args_;
  bool wide_;
  Real scale_;
  std::int64_t extents_[3] = {1, 1, 1};
  std::unordered_map<std::int64_t, std::vector<Value>> rows_;
};

}  // namespace

Cost Stencil::cost(const Args& args) {
  // Every element read and written once, however many iterations; what a mask repeats (broadcast)
  // is in memory once.
  double in = static_cast<double>(size_of(args.x.dtype));
  double elements = 1;
  for (int axis = 0; axis < args.x.rank(); ++axis) {
    const auto extent = static_cast<double>(args.x.shape[axis]);
    elements *= extent;
    if (args.x.strides[axis] != 0 || extent == 0) in *= extent;
  }
  const double written = elements * static_cast<double>(size_of(args.y.dtype));
  double operations = 2.0 * args.taps();
  double weights = args.taps();
  if (args.is_separable()) {
    // Along each axis that the mask has: its taps, or the three additions of block sums.
    operations = weights = 0;
    for (const Axis& axis : args.axis) {
      if (axis.taps == 1) continue;
      operations += args.weights == Weights::ones ? std::min(3, axis.taps) : 2 * axis.taps;
      weights += args.weights == Weights::ones ? 0 : axis.taps;
    }
  }
  const double mask = weights * (args.x.dtype == DType::f64 ? 8 : 4);
  return {.bytes = elements == 0 ? 0 : in + mask + written,
          .operations = elements * operations * args.iterations,
          .written = written};
}

void Stencil::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  Reference reference(args);
  std::size_t at = 0;
  for (const std::int64_t row : output.rows) {
    for (const Value& value : reference.row(args.iterations, row)) {
      output.value[at] = static_cast<double>(value.value);
      output.magnitude[at++] = static_cast<double>(value.error);
    }
  }
}

/// The oracle's magnitude is the bound itself. Small whole numbers are summed exactly, where make()
/// leaves the weights as they are drawn.
Tolerance Stencil::tolerance(const Args& args, const RungInfo&, Values values) {
  const bool drawn = (args.x.dtype == DType::f32 || args.x.dtype == DType::f64) &&
                     args.weights != Weights::separable && args.iterations == 1;
  const bool exact = values == Values::integers && drawn && args.scale == 1;
  return {.magnitude = exact ? 0.0 : 1.0};
}

}  // namespace rung
