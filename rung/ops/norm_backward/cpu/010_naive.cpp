// SPDX-License-Identifier: Apache-2.0
// norm_backward / naive
//
// Idea     Compute the definition row by row: statistics unless given, the two means, dx; dgamma
//          and dbeta column by column over all rows.
// Changes  Baseline.
// Cost     A row is read five times, and all of dy and x once more column by column, one cache line
//          per element.
// Limits   All valid arguments; one thread, scalar code, in double (long double for f64).
// Source   The chain rule.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "rung/cpu/piece_work.hpp"
#include "rung/ops/norm/shared/cpu/moments.hpp"
#include "rung/ops/norm_backward/op/norm_backward.hpp"

namespace rung {
namespace {

using Args = NormBackward::Args;

template <class T>
class Naive {
 public:
  explicit Naive(const Args& args) : args_(args), lines_(NormBackward::lines_of(args)) {}

  void run(Context& context) {
    const std::int64_t rows = lines_.rows.size();
    // dx may alias dy or x, which the column sums read: compute the statistics and the columns
    // first.
    auto* statistics = static_cast<Statistics*>(
        context.workspace(static_cast<std::size_t>(rows) * sizeof(Statistics)));
    for (std::int64_t row = 0; row < rows; ++row) statistics[row] = statistics_of(row);
    for (std::int64_t i = 0; i < lines_.columns.size(); ++i) write_column(i, statistics, rows);
    for (std::int64_t row = 0; row < rows; ++row) write_row(row, statistics[row]);
  }

 private:
  using Wide = Accumulator<T>;
  using Sum = std::conditional_t<std::is_same_v<T, double>, long double, double>;
  /// The mean is center + rest: for f64 with a large mean, one long double has too few digits.
  struct Statistics {
    Sum center;
    Sum rest;
    Sum rstd;
  };

  [[nodiscard]] std::int64_t place(int row_tensor, std::int64_t row, int column_tensor,
                                   std::int64_t i) const {
    std::int64_t by_row[5];
    std::int64_t by_column[6];
    lines_.rows.offsets(row, by_row);
    lines_.columns.offsets(i, by_column);
    return by_row[row_tensor] + by_column[column_tensor];
  }
  static Sum wide(const void* data, std::int64_t at) {
    return static_cast<Sum>(static_cast<Wide>(static_cast<const T*>(data)[at]));
  }
  [[nodiscard]] Sum x(std::int64_t row, std::int64_t i) const {
    return wide(args_.x.data, place(NormBackward::row_x, row, NormBackward::column_x, i));
  }
  [[nodiscard]] Sum dy(std::int64_t row, std::int64_t i) const {
    return wide(args_.dy.data, place(NormBackward::row_dy, row, NormBackward::column_dy, i));
  }
  [[nodiscard]] Sum gamma(std::int64_t i) const {
    if (args_.gamma.data == nullptr) return 1;
    const std::int64_t at = lines_.columns.template offset<NormBackward::column_gamma>(i);
    if (args_.gamma.dtype == dtype_of<T>) return wide(args_.gamma.data, at);
    return static_cast<Sum>(static_cast<const Wide*>(args_.gamma.data)[at]);
  }

  static Sum z_of(Sum x, const Statistics& statistics) {
    return (x - statistics.center - statistics.rest) * statistics.rstd;
  }

  [[nodiscard]] Statistics statistics_of(std::int64_t row) const {
    Statistics result{};
    if (args_.rstd.data != nullptr) {
      std::int64_t at[5];
      lines_.rows.offsets(row, at);
      result.rstd = static_cast<const Wide*>(args_.rstd.data)[at[NormBackward::row_rstd]];
      // rstd is 0 if the squares of the row overflow; x - mean may then overflow, too.
      if (args_.mean.data != nullptr && result.rstd != 0) {
        result.center = static_cast<const Wide*>(args_.mean.data)[at[NormBackward::row_mean]];
      }
      return result;
    }
    const std::int64_t n = lines_.columns.size();
    if (args_.kind == NormKind::layer) {
      Sum sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += x(row, i);
      // Clamp: rounding must not make the mean infinite.
      constexpr Sum most = std::numeric_limits<Wide>::max();
      result.center = static_cast<Wide>(std::clamp(sum / static_cast<Sum>(n), -most, most));
      for (std::int64_t i = 0; i < n; ++i) result.rest += x(row, i) - result.center;
      result.rest /= static_cast<Sum>(n);
    }
    Sum squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const Sum distance = x(row, i) - result.center - result.rest;
      squares += distance * distance;
    }
    // A sum that overflows in the contract's arithmetic counts as an overflow here, too (norm.hpp).
    if (!std::isnan(squares) &&
        !norm_cpu::in_range(static_cast<Wide>(squares), static_cast<Wide>(result.center))) {
      return {};
    }
    result.rstd = 1 / std::sqrt(squares / static_cast<Sum>(n) + args_.epsilon);
    return result;
  }

  void write_row(std::int64_t row, const Statistics& statistics) const {
    const std::int64_t n = lines_.columns.size();
    const auto z = [&](std::int64_t i) { return z_of(x(row, i), statistics); };
    Sum mean_g = 0;
    Sum mean_gz = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const Sum g = dy(row, i) * gamma(i);
      mean_g += g / static_cast<Sum>(n);
      mean_gz += g * z(i) / static_cast<Sum>(n);
    }
    if (args_.kind == NormKind::rms) mean_g = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const Sum dx = statistics.rstd * (dy(row, i) * gamma(i) - mean_g - z(i) * mean_gz);
      const std::int64_t at = place(NormBackward::row_dx, row, NormBackward::column_dx, i);
      static_cast<T*>(args_.dx.data)[at] = static_cast<T>(static_cast<Wide>(dx));
    }
  }

  void write_column(std::int64_t i, const Statistics* statistics, std::int64_t rows) const {
    Sum dgamma = 0;
    Sum dbeta = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      dgamma += dy(row, i) * z_of(x(row, i), statistics[row]);
      dbeta += dy(row, i);
    }
    std::int64_t at[6];
    lines_.columns.offsets(i, at);
    store(args_.dgamma, at[NormBackward::column_dgamma], dgamma);
    store(args_.dbeta, at[NormBackward::column_dbeta], dbeta);
  }
  static void store(const TensorRef& tensor, std::int64_t at, Sum value) {
    if (tensor.data == nullptr) return;
    if (tensor.dtype == dtype_of<T>) {
      static_cast<T*>(tensor.data)[at] = static_cast<T>(static_cast<Wide>(value));
    } else {
      static_cast<Wide*>(tensor.data)[at] = static_cast<Wide>(value);
    }
  }

  const Args& args_;
  NormBackward::Lines lines_;
};

Work work(const Args& args, const Context&) {
  return cpu::piece_work(1, args.x.size(), 1, to_string(args.x.dtype));
}

void run(const Args& args, Context& context) {
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() { Naive<T>(args).run(context); });
}

const Rung<NormBackward> self{{.name = "naive", .step = 10, .work = work, .run = run}};

}  // namespace
}  // namespace rung
