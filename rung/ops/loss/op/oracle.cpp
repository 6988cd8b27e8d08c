// SPDX-License-Identifier: Apache-2.0
// loss: cost, reference results and tolerances.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rung/core/rounding.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/loss/op/loss.hpp"

namespace rung {
namespace {

/// Precision of the reference; double is not enough to verify f64.
using Real = long double;
using Args = Loss::Args;

constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();

DType arithmetic(const Args& args) { return args.x.dtype == DType::f64 ? DType::f64 : DType::f32; }
Real smallest_normal(DType type) { return type == DType::f64 ? 0x1p-1022L : 0x1p-126L; }

struct Bounded {
  Real value = 0;
  Real error = 0;
};

Real element(const ConstTensorRef& tensor, std::int64_t offset) {
  const auto bytes = static_cast<std::int64_t>(size_of(tensor.dtype));
  return load_as_double(tensor.dtype, static_cast<const std::byte*>(tensor.data) + offset * bytes);
}

class Reference {
 public:
  explicit Reference(const Args& args)
      : args_(args),
        k_(static_cast<Real>(args.classes()) / 8 + 48),
        unit_(epsilon(arithmetic(args)) / 2) {
    const bool wide = arithmetic(args) == DType::f64;
    smoothing_ = wide ? args.options.smoothing : nearest_f32(args.options.smoothing);
    margin_ = wide ? args.options.margin : nearest_f32(args.options.margin);
    const Extents& shape = args.x.shape;
    for (std::int64_t row = 0; row < args.count(); ++row) {
      std::int64_t rest = row;  // in C order of the other axes, as in losses
      Extents at = shape;
      for (int axis = shape.rank - 1; axis >= 0; --axis) {
        if (axis == args.options.axis) {
          at[axis] = 0;
          continue;
        }
        at[axis] = rest % shape[axis];
        rest /= shape[axis];
      }
      rows_.push_back(row_at(at));
      counted_ += rows_.back().counts ? 1 : 0;
    }
  }

  [[nodiscard]] Bounded result() const {
    Bounded sum;
    const Real of_sum = static_cast<Real>(rows_.size()) * 0x1p-53L;
    for (const Row& row : rows_) {
      sum.value += row.loss.value;
      sum.error += row.loss.error;
      if (std::isfinite(row.loss.value)) sum.error += of_sum * std::abs(row.loss.value);
    }
    if (args_.options.reduction == LossReduction::mean && counted_ > 0) {
      sum.value /= counted_;
      sum.error /= counted_;
    }
    sum.error += std::abs(sum.value) * unit_ * 3;
    return sum;
  }
  [[nodiscard]] Bounded row_loss(std::int64_t row) const {
    return rows_[static_cast<std::size_t>(row)].loss;
  }
  [[nodiscard]] Bounded gradient(const Extents& at) const {
    std::int64_t number = 0;
    for (int axis = 0; axis < at.rank; ++axis) {
      if (axis != args_.options.axis) number = number * args_.x.shape[axis] + at[axis];
    }
    const Row& row = rows_[static_cast<std::size_t>(number)];
    Bounded made = row.counts ? slope(row, at) : Bounded{};
    if (args_.options.reduction == LossReduction::mean && counted_ > 0) {
      made.value /= counted_;
      made.error /= counted_;
    }
    made.error += 3 * unit_ * std::abs(made.value);
    return made;
  }

 private:
  struct Row {
    bool counts = true;
    bool is_wrong = false;  // label outside [0, C)
    std::int64_t label = 0;
    Real maximum = -std::numeric_limits<Real>::infinity();
    Real sum = 0;
    Bounded loss;
  };

  [[nodiscard]] Real at(const ConstTensorRef& tensor, const Extents& index) const {
    std::int64_t offset = 0;
    for (int axis = 0; axis < index.rank; ++axis) offset += index[axis] * tensor.strides[axis];
    return element(tensor, offset);
  }
  [[nodiscard]] Real share(const Row& row, std::int64_t c) const {
    return (c == row.label ? 1 - smoothing_ : 0) + smoothing_ / static_cast<Real>(args_.classes());
  }

  [[nodiscard]] Row row_at(Extents index) const {
    Row row;
    const std::int64_t classes = args_.classes();
    std::int64_t& c = index[args_.options.axis];
    if (args_.labeled()) {
      std::int64_t offset = 0;
      for (int axis = 0, from = 0; axis < index.rank; ++axis) {
        if (axis != args_.options.axis) offset += index[axis] * args_.target.strides[from++];
      }
      row.label = static_cast<std::int64_t>(element(args_.target, offset));
      row.counts = !args_.ignores() || row.label != args_.options.ignored_label;
      if (!row.counts) return row;
      row.is_wrong = row.label < 0 || row.label >= classes;
      if (row.is_wrong) {
        row.loss.value = nan;
        return row;
      }
    }
    switch (args_.options.kind) {
      case LossKind::cross_entropy:
        cross_entropy(row, index);
        break;
      case LossKind::hinge:
        for (c = 0; c < classes; ++c) {
          const Real x = at(args_.x, index);
          const Real slack = margin_ - (c == row.label ? x : -x);
          row.loss.value += slack < 0 ? 0 : slack;
          row.loss.error += k_ * unit_ * (margin_ + std::abs(x));
        }
        break;
      case LossKind::squared:
        for (c = 0; c < classes; ++c) {
          const Real difference = at(args_.x, index) - at(args_.target, index);
          row.loss.value += difference * difference / static_cast<Real>(classes);
        }
        // A square below the smallest normal number may be flushed to 0.
        row.loss.error = k_ * unit_ * row.loss.value + smallest_normal(arithmetic(args_));
        // A square beyond the range of f32 is infinite.
        if (arithmetic(args_) == DType::f32 &&
            row.loss.value * static_cast<Real>(classes) > 0x1p127L) {
          row.loss.error = std::numeric_limits<Real>::infinity();
        }
        break;
    }
    return row;
  }

  void cross_entropy(Row& row, Extents& index) const {
    std::int64_t& c = index[args_.options.axis];
    const std::int64_t classes = args_.classes();
    bool is_nan = false;
    for (c = 0; c < classes; ++c) {
      const Real x = at(args_.x, index);
      is_nan = is_nan || std::isnan(x) || x == std::numeric_limits<Real>::infinity();
      row.maximum = std::fmax(row.maximum, x);
    }
    if (is_nan || std::isinf(row.maximum)) {
      row.loss.value = nan;
      row.sum = nan;
      return;
    }
    Real linear = 0;
    for (c = 0; c < classes; ++c) {
      const Real below = row.maximum - at(args_.x, index);
      row.sum += std::exp(-below);
      if (const Real q = share(row, c); q != 0) linear += q * below;
    }
    row.loss.value = linear + std::log(row.sum);
    row.loss.error = std::isinf(linear) ? 0 : k_ * unit_ * (1 + linear + std::log(row.sum));
  }

  [[nodiscard]] Bounded slope(const Row& row, const Extents& index) const {
    if (row.is_wrong) return {nan, 0};
    const Real x = at(args_.x, index);
    const std::int64_t c = index[args_.options.axis];
    switch (args_.options.kind) {
      case LossKind::cross_entropy: {
        const Real p = std::exp(x - row.maximum) / row.sum;
        const Real q = share(row, c);
        const Real weight = p == 0 ? 0 : p * (1 + std::abs(x - row.maximum));
        return {p - q, k_ * unit_ * (weight + q) + smallest_normal(arithmetic(args_))};
      }
      case LossKind::hinge: {
        const Real t = c == row.label ? 1 : -1;
        return {margin_ - t * x >= 0 ? -t : 0, 0};
      }
      case LossKind::squared: {
        const Real value = 2 * (x - at(args_.target, index)) / static_cast<Real>(args_.classes());
        return {value, 4 * unit_ * std::abs(value) + smallest_normal(arithmetic(args_))};
      }
    }
    return {};
  }

  const Args& args_;
  Real k_;
  Real unit_;
  Real smoothing_ = 0;
  Real margin_ = 0;
  std::int64_t counted_ = 0;
  std::vector<Row> rows_;
};

/// Returns the error of one rounding to `type`, subnormal results included.
Real rounding(DType type, Real value) {
  const Real smallest = type == DType::f16 ? 0x1p-25L : type == DType::f64 ? 0x1p-1022L : 0x1p-126L;
  return std::abs(value) * epsilon(type) / 2 * 1.01L + smallest;
}

void put(Oracle::Output& output, std::size_t i, const Bounded& made, DType type) {
  output.value[i] = static_cast<double>(made.value);
  output.magnitude[i] = static_cast<double>(made.error + rounding(type, made.value));
}

}  // namespace

Cost Loss::cost(const Args& args) {
  const double rows = static_cast<double>(args.count());
  const double elements = rows * static_cast<double>(args.classes());
  const auto size = static_cast<double>(size_of(args.x.dtype));
  const double wide = args.x.dtype == DType::f64 ? 8 : 4;
  const double written = wide + (args.options.dx.data != nullptr ? elements * size : 0) +
                         (args.options.losses.data != nullptr ? rows * wide : 0);
  const double labels = static_cast<double>(size_of(args.target.dtype));
  const double operations = args.options.kind == LossKind::cross_entropy ? 6 : 4;
  return {.bytes = elements * size + (args.labeled() ? rows : elements) * labels + written,
          .operations = elements * operations,
          .written = written};
}

void Loss::reference(const Args& args, Oracle& oracle) {
  const Reference reference(args);
  std::size_t next = 0;  // in the order of make()'s outputs: result, losses, dx
  put(oracle.outputs.at(next++), 0, reference.result(), args.result.dtype);
  if (args.options.losses.data != nullptr) {
    Oracle::Output& losses = oracle.outputs.at(next++);
    std::size_t i = 0;
    for (const std::int64_t row : losses.rows) {
      for (std::int64_t c = 0; c < losses.length; ++c, ++i) {
        put(losses, i, reference.row_loss(row * losses.length + c), args.options.losses.dtype);
      }
    }
  }
  if (args.options.dx.data == nullptr) return;
  Oracle::Output& dx = oracle.outputs.at(next);
  const Extents& shape = args.x.shape;
  std::size_t i = 0;
  for (const std::int64_t row : dx.rows) {
    Extents at = shape;
    std::int64_t rest = row;
    for (int axis = shape.rank - 2; axis >= 0; --axis) {
      at[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    std::int64_t& column = at[shape.rank - 1];
    for (column = 0; column < dx.length; ++column, ++i) {
      put(dx, i, reference.gradient(at), args.options.dx.dtype);
    }
  }
}

Tolerance Loss::tolerance(const Args& args, const RungInfo& rung, Values) {
  // A rung with one accumulator per row may have an error of K = C + 48.
  const auto classes = static_cast<double>(args.classes());
  const bool one_sum = rung.peer || rung.teaching;
  return {.magnitude = one_sum ? (classes + 48) / (classes / 8 + 48) : 1.0};
}

}  // namespace rung
