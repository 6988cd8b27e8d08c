// SPDX-License-Identifier: Apache-2.0
// Cost, reference results and tolerances of stencil. Written from the definition and sharing no
// code with the rungs: vectors are multiplied out to a mask, and indices of a convolution run
// backward as in its formula.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rung/core/rounding.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/stencil/op/stencil.hpp"

namespace rung {
namespace {

/// Type of reference sums: double is not accurate enough to judge f64 results.
using Real = long double;

/// A reference value and the bound of a rung's error.
struct Value {
  Real value = 0;
  Real error = 0;
};

/// Computes selected rows of the last iteration, iteration by iteration from x. Each iteration
/// computes only the rows that a selected row depends on; two buffers suffice for any number of
/// iterations.
class Reference {
 public:
  explicit Reference(const Stencil::Args& args) : args_(args) {
    wide_ = args.x.dtype == DType::f64;
    scale_ = wide_ ? args.scale : nearest_f32(args.scale);
    // Always three axes; missing ones have extent 1.
    for (int axis = args.x.rank() - 1; axis >= 0; --axis) {
      const int at = 3 - (args.x.rank() - axis);
      if (at >= 3 - args.axes) extents_[at] = args.x.shape[axis];
    }
  }

  /// Calls visit(values of a row) for each selected row, in order. A row index counts over all axes
  /// but the last.
  template <class Visit>
  void visit_rows(const std::vector<std::int64_t>& wanted, const Visit& visit) {
    find_sources(wanted);
    std::vector<std::vector<Value>> from(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) from[i] = load(rows_[i]);
    std::vector<std::vector<Value>> to(rows_.size());
    for (int left = args_.iterations - 1; left >= 0; --left) {
      // rows_ is sorted by distance: the rows still needed are a prefix.
      const std::size_t needed = rows_within(left);
      for (std::size_t i = 0; i < needed; ++i) apply(rows_[i], from, to[i]);
      std::swap(from, to);
    }
    for (const std::int64_t row : wanted) visit(from[index_.at(row)]);
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

  /// Returns the index of the element that replaces index i, by repeated reflection; -1 if the
  /// value is 0 instead.
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

  /// Calls visit(tap along the depth, tap along the rows, source row) for the rows that `row` reads
  /// from the iteration before.
  template <class Visit>
  void visit_sources(std::int64_t row, const Visit& visit) const {
    // Decomposes the row index into row, plane and array.
    const std::int64_t y = row % extents_[1];
    const std::int64_t z = row / extents_[1] % extents_[0];
    const std::int64_t array = row / extents_[1] / extents_[0];
    for (int deep = 0; deep < args_.axis[0].taps; ++deep) {
      const std::int64_t from_z = inside(z + deep - args_.axis[0].origin, extents_[0]);
      for (int down = 0; down < args_.axis[1].taps; ++down) {
        const std::int64_t from_y = inside(y + down - args_.axis[1].origin, extents_[1]);
        if (from_z < 0 || from_y < 0) continue;
        visit(deep, down, (array * extents_[0] + from_z) * extents_[1] + from_y);
      }
    }
  }

  /// Finds the rows that the selected rows depend on, by breadth-first search. A row also reads
  /// itself one iteration earlier, so a row at distance d is needed whenever at least d iterations
  /// follow.
  void find_sources(const std::vector<std::int64_t>& wanted) {
    const auto add = [&](std::int64_t row) {
      if (index_.emplace(row, rows_.size()).second) rows_.push_back(row);
    };
    for (const std::int64_t row : wanted) add(row);
    within_.assign(1, rows_.size());
    std::size_t begin = 0;
    for (int distance = 1; distance <= args_.iterations && begin < rows_.size(); ++distance) {
      const std::size_t end = rows_.size();
      for (; begin < end; ++begin) {
        visit_sources(rows_[begin], [&](int, int, std::int64_t source) { add(source); });
      }
      within_.push_back(rows_.size());
    }
  }

  /// Returns the number of rows at most `distance` steps away from a selected row.
  [[nodiscard]] std::size_t rows_within(int distance) const {
    const auto last = static_cast<int>(within_.size()) - 1;
    return within_[static_cast<std::size_t>(std::min(distance, last))];
  }

  void apply(std::int64_t row, const std::vector<std::vector<Value>>& rows,
             std::vector<Value>& sums) {
    const std::int64_t columns = args_.x.shape[args_.x.rank() - 1];
    sums.assign(static_cast<std::size_t>(columns), Value{});
    sizes_.assign(sums.size(), 0);
    visit_sources(row, [&](int deep, int down, std::int64_t source) {
      const std::vector<Value>& from = rows[index_.at(source)];
      for (int across = 0; across < args_.axis[2].taps; ++across) {
        const Real w = weight({deep, down, across});
        for (std::int64_t x = 0; x < columns; ++x) {
          const std::int64_t from_x = inside(x + across - args_.axis[2].origin, columns);
          if (from_x < 0) continue;
          const Value& value = from[static_cast<std::size_t>(from_x)];
          const auto at = static_cast<std::size_t>(x);
          sums[at].value += w * value.value;
          sums[at].error += std::abs(w) * value.error;
          sizes_[at] += std::abs(w) * (std::abs(value.value) + value.error);
        }
      }
    });
    for (std::size_t i = 0; i < sums.size(); ++i) finish(sums[i], sizes_[i]);
  }

  /// Applies the scale, adds the error bound of the summation and of the rounding to y's type.
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

  /// Returns half the spacing of subnormal numbers.
  static Real smallest(DType type) {
    const double normal = type == DType::f64 ? 0x1p-1022 : type == DType::f16 ? 0x1p-14 : 0x1p-126;
    return static_cast<Real>(epsilon(type)) / 2 * normal;
  }

  const Stencil::Args& args_;
  bool wide_;
  Real scale_;
  std::int64_t extents_[3] = {1, 1, 1};
  std::vector<std::int64_t> rows_;  // needed rows, sorted by distance from a selected row
  std::unordered_map<std::int64_t, std::size_t> index_;  // position of a row in rows_
  std::vector<std::size_t> within_;  // by distance: number of rows at most that far
  std::vector<Real> sizes_;
};

}  // namespace

Cost Stencil::cost(const Args& args) {
  // Compulsory traffic: every element read and written once, for any number of iterations;
  // broadcast elements are in memory once.
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
    // Per axis of the mask: its taps, or the three additions of block sums.
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

double Stencil::reference_operations(const Args& args, double share) {
  const double rows = static_cast<double>(args.arrays()) *
                      static_cast<double>(args.depth().extent) *
                      static_cast<double>(args.rows().extent);
  if (args.elements() == 0) return 0;
  // Upper bound of the rows of x that a judged row depends on; later iterations need fewer.
  const auto spread = [&](const Axis& axis) {
    return std::min(static_cast<double>(axis.extent),
                    1 + static_cast<double>(args.iterations) * (axis.taps - 1));
  };
  const double needed = std::min(rows, share * rows * spread(args.depth()) * spread(args.rows()));
  return needed * args.iterations * static_cast<double>(args.columns().extent) * 2 * args.taps();
}

void Stencil::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  std::size_t at = 0;
  Reference(args).visit_rows(output.rows, [&](const std::vector<Value>& row) {
    for (const Value& value : row) {
      output.value[at] = static_cast<double>(value.value);
      output.magnitude[at++] = static_cast<double>(value.error);
    }
  });
}

/// Returns the tolerance: the oracle's magnitude is the bound itself. Sums of small integers are
/// exact if make() draws the weights unscaled.
Tolerance Stencil::tolerance(const Args& args, const RungInfo&, Values values) {
  const bool drawn = (args.x.dtype == DType::f32 || args.x.dtype == DType::f64) &&
                     args.weights != Weights::separable && args.iterations == 1;
  const bool exact = values == Values::integers && drawn && args.scale == 1;
  return {.magnitude = exact ? 0.0 : 1.0};
}

}  // namespace rung
