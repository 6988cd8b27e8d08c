// SPDX-License-Identifier: Apache-2.0
// norm_backward: cost, reference results and tolerances.
#include <cmath>
#include <optional>
#include <vector>

#include "rung/harness/inputs.hpp"
#include "rung/ops/norm/shared/axes.hpp"
#include "rung/ops/norm/shared/oracle.hpp"
#include "rung/ops/norm_backward/op/norm_backward.hpp"

namespace rung {
namespace {

using namespace norm_oracle;
using Args = NormBackward::Args;

/// Statistics and means of a row.
struct Row {
  RowStatistics statistics;
  Real mean_g = 0;       // mean(g)
  Real mean_gz = 0;      // mean(g z)
  Real mean_g_size = 0;  // mean(|g|)
  Real mean_gz_size = 0;
  Real mean_g_error = 0;  // mean(|g| error of z)
};

class Rows {
 public:
  explicit Rows(const Args& args)
      : args_(args),
        count_(norm_axes::part(args.x.shape, ~args.normalized).product()),
        columns_(norm_axes::part(args.x.shape, args.normalized).product()),
        rows_(static_cast<std::size_t>(count_)) {}

  [[nodiscard]] std::int64_t count() const { return count_; }
  /// Returns K u of the contract; r() returns R u.
  [[nodiscard]] Real k() const {
    return (static_cast<Real>(columns_) / 8 + 32) * unit(arithmetic_of(args_.x.dtype));
  }
  [[nodiscard]] Real r() const {
    return (static_cast<Real>(count_) / 8 + 96) * unit(arithmetic_of(args_.x.dtype));
  }

  const Row& of(const Index& index) {
    auto& known =
        rows_[static_cast<std::size_t>(linear_of(index, args_.x.shape, ~args_.normalized))];
    if (!known) known = compute(index);
    return *known;
  }
  [[nodiscard]] Real g(const Index& index) const {
    return element(args_.dy, index) *
           (args_.gamma.data == nullptr ? Real{1} : element(args_.gamma, index));
  }
  [[nodiscard]] Real z(const Row& row, const Index& index) const {
    return row.statistics.z(element(args_.x, index));
  }
  /// Returns the error bound of z (norm.hpp); only rounding if the statistics are given.
  [[nodiscard]] Real z_error(const Row& row, Real z) const {
    if (args_.rstd.data != nullptr) return 3 * unit(arithmetic_of(args_.x.dtype)) * std::abs(z);
    return row.statistics.z_error(z);
  }

 private:
  template <class F>
  void for_each_column(Index index, const F& f) const {
    for (std::int64_t column = 0; column < columns_; ++column) {
      place(index, column, args_.x.shape, args_.normalized);
      f(index);
    }
  }

  [[nodiscard]] Row compute(const Index& index) const {
    Row row;
    const auto n = static_cast<Real>(columns_);
    if (args_.rstd.data != nullptr) {
      row.statistics.rstd = element(args_.rstd, index);
      row.statistics.center = args_.mean.data != nullptr ? element(args_.mean, index) : 0;
    } else {
      std::vector<double> values;
      for_each_column(index, [&](const Index& at) { values.push_back(element(args_.x, at)); });
      row.statistics =
          row_statistics(values, args_.kind, args_.epsilon, arithmetic_of(args_.x.dtype));
    }
    for_each_column(index, [&](const Index& at) {
      const Real factor = g(at);
      const Real value = z(row, at);
      row.mean_g += factor / n;
      row.mean_gz += factor * value / n;
      row.mean_g_size += std::abs(factor) / n;
      row.mean_gz_size += std::abs(factor * value) / n;
      row.mean_g_error += std::abs(factor) * z_error(row, value) / n;
    });
    if (args_.kind == NormKind::rms) row.mean_g = row.mean_g_size = 0;
    return row;
  }

  const Args& args_;
  std::int64_t count_;
  std::int64_t columns_;
  std::vector<std::optional<Row>> rows_;
};

void expect_dx(const Args& args, Rows& rows, const Index& index, double& value, double& bound) {
  const Row& row = rows.of(index);
  const Real g = rows.g(index);
  const Real z = rows.z(row, index);
  const Real rstd = row.statistics.rstd;
  const Real dx = rstd * (g - row.mean_g - z * row.mean_gz);
  const Real terms = std::abs(g) + row.mean_g_size + std::abs(z) * row.mean_gz_size;
  const Real through_z =
      rows.z_error(row, z) * std::abs(row.mean_gz) + std::abs(z) * row.mean_g_error;
  // rstd has the error bound of norm if it is recomputed.
  const Real rstd_error = args.rstd.data != nullptr ? 0 : row.statistics.rstd_error();
  value = static_cast<double>(dx);
  bound = static_cast<double>(rstd * (3 * rows.k() * terms + through_z) + rstd_error * terms +
                              unit(args.dx.dtype) * 1.01L * std::abs(dx));
}

void expect_column(const Args& args, Rows& rows, Index index, bool gamma, double& value,
                   double& bound) {
  Real sum = 0;
  Real size = 0;
  Real error = 0;
  for (std::int64_t i = 0; i < rows.count(); ++i) {
    place(index, i, args.x.shape, ~args.normalized);
    const Real dy = element(args.dy, index);
    const Row& row = rows.of(index);
    const Real z = gamma ? rows.z(row, index) : 1;
    sum += dy * z;
    size += std::abs(dy * z);
    if (gamma) error += std::abs(dy) * rows.z_error(row, z);
  }
  const DType type = gamma ? args.dgamma.dtype : args.dbeta.dtype;
  value = static_cast<double>(sum);
  bound = static_cast<double>(rows.r() * size + error + unit(type) * 1.01L * std::abs(sum));
}

}  // namespace

Cost NormBackward::cost(const Args& args) {
  const auto rows = static_cast<double>(norm_axes::part(args.x.shape, ~args.normalized).product());
  const auto columns =
      static_cast<double>(norm_axes::part(args.x.shape, args.normalized).product());
  const auto bytes = [](const ConstTensorRef& tensor, double count) {
    return tensor.data != nullptr ? count * static_cast<double>(size_of(tensor.dtype)) : 0.0;
  };
  Cost cost;
  cost.bytes = 3 * bytes(args.x, rows * columns) + bytes(args.mean, rows) + bytes(args.rstd, rows) +
               bytes(args.gamma, columns) + bytes(args.dgamma, columns) +
               bytes(args.dbeta, columns);
  cost.written =
      bytes(args.x, rows * columns) + bytes(args.dgamma, columns) + bytes(args.dbeta, columns);
  // Operations: z, g, two sums, dx, and two column sums.
  cost.operations = rows * columns * (10 + (args.dgamma.data != nullptr ? 3 : 0));
  return cost;
}

void NormBackward::reference(const Args& args, Oracle& oracle) {
  Rows rows(args);
  std::size_t next = 0;
  const auto fill = [&](const auto& expect) {
    Oracle::Output& output = oracle.outputs.at(next++);
    std::size_t at = 0;
    for (const std::int64_t row : output.rows) {
      for (std::int64_t i = 0; i < output.length; ++i, ++at) {
        expect(row * output.length + i, output.value[at], output.magnitude[at]);
      }
    }
  };
  fill([&](std::int64_t linear, double& value, double& bound) {
    Index index;
    place(index, linear, args.x.shape, all_axes);
    expect_dx(args, rows, index, value, bound);
  });
  const auto fill_columns = [&](bool gamma) {
    fill([&](std::int64_t linear, double& value, double& bound) {
      Index index;
      place(index, linear, args.x.shape, args.normalized);
      expect_column(args, rows, index, gamma, value, bound);
    });
  };
  if (args.dgamma.data != nullptr) fill_columns(true);
  if (args.dbeta.data != nullptr) fill_columns(false);
}

Tolerance NormBackward::tolerance(const Args& args, const RungInfo&, Values) {
  Tolerance tolerance;
  tolerance.magnitude = 1;
  // dx is a difference of products, each of which may be rounded to the subnormal spacing.
  tolerance.absolute = 4 * smallest(args.x.dtype);
  return tolerance;
}

}  // namespace rung
