// SPDX-License-Identifier: Apache-2.0
// norm stays within the error bounds of norm.hpp on rows with large means, long rows, and rows that
// overflow or hold non-finite values; every rung gives bitwise equal results for any number of
// threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "rung/ops/norm/op/norm.hpp"
#include "rung/ops/norm/shared/oracle.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class NormBoundsOn : public OnBackend {};
INSTANTIATE_TEST_SUITE_P(Backends, NormBoundsOn, backends, name_of_backend);

/// Arguments with rows of T, beta, mean and rstd, in a layout that selects another code path.
template <class T>
class Rows {
 public:
  enum Layout { contiguous, adjacent, strided };
  using W = Accumulator<T>;

  Rows(Layout layout, std::int64_t rows, std::int64_t n)
      : rows_(rows),
        n_(n),
        shape_(layout == adjacent ? Extents{n, rows} : Extents{rows, n}),
        strides_(layout == adjacent  ? Extents{rows, 1}
                 : layout == strided ? Extents{2 * n, 2}
                                     : Extents{n, 1}),
        axis_(layout == adjacent ? 0 : 1),
        x_(static_cast<std::size_t>(2 * rows * n)),
        y_(x_.size()),
        beta(static_cast<std::size_t>(n), T(0.25F)),
        mean(static_cast<std::size_t>(rows)),
        rstd(mean) {}

  T& x(std::int64_t row, std::int64_t i) { return x_[place(row, i)]; }
  [[nodiscard]] double y(std::int64_t row, std::int64_t i) const {
    return static_cast<double>(static_cast<W>(y_[place(row, i)]));
  }
  [[nodiscard]] Norm::Call call(NormKind kind) {
    Norm::Call call;
    call.kind = kind;
    call.axis = axis_;
    call.x = TensorRef(x_.data(), dtype_of<T>, shape_, strides_);
    call.y = TensorRef(y_.data(), dtype_of<T>, shape_, strides_);
    call.beta = tensor(beta, {n_});
    if (kind == NormKind::layer) call.mean = tensor(mean, {rows_});
    call.rstd = tensor(rstd, {rows_});
    return call;
  }
  void run(Context& context, const Norm::Call& call, std::string_view rung) {
    y_.assign(y_.size(), T(7.0F));
    mean.assign(mean.size(), 7);
    rstd.assign(rstd.size(), 7);
    const auto norm = call.kind == NormKind::layer ? layer_norm : rms_norm;
    norm(context, call.x, call.y,
         {.axis = call.axis, .beta = call.beta, .mean = call.mean, .rstd = call.rstd}, {rung});
  }
  [[nodiscard]] norm_oracle::RowStatistics expected(std::int64_t row, NormKind kind) {
    std::vector<double> values(static_cast<std::size_t>(n_));
    for (std::int64_t i = 0; i < n_; ++i) {
      values[static_cast<std::size_t>(i)] = static_cast<double>(static_cast<W>(x(row, i)));
    }
    return norm_oracle::row_statistics(values, kind, 1e-5, dtype_of<W>);
  }
  /// Returns whether all outputs are bitwise equal.
  [[nodiscard]] bool same(const Rows& other) const {
    const auto equal = [](const auto& a, const auto& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    return equal(y_, other.y_) && equal(mean, other.mean) && equal(rstd, other.rstd);
  }

 private:
  [[nodiscard]] std::size_t place(std::int64_t row, std::int64_t i) const {
    const std::int64_t at =
        axis_ == 0 ? i * strides_[0] + row : row * strides_[0] + i * strides_[1];
    return static_cast<std::size_t>(at);
  }

  std::int64_t rows_;
  std::int64_t n_;
  Extents shape_;
  Extents strides_;
  int axis_;
  std::vector<T> x_;
  std::vector<T> y_;

 public:
  std::vector<T> beta;
  std::vector<W> mean;
  std::vector<W> rstd;
};

/// Calls f<T>(name) for the types of norm.
template <class F>
void for_each_type(F&& f) {
  f.template operator()<float>("f32");
  f.template operator()<double>("f64");
  f.template operator()<f16>("f16");
  f.template operator()<bf16>("bf16");
}

/// Runs the public call and each rung that supports the arguments; compares y, mean and rstd with
/// norm.hpp's bounds for rungs that correct the mean.
template <class T>
void expect_bounds_kept(Context& context, Rows<T>& rows, std::int64_t count, std::int64_t n,
                        const std::string& what) {
  using W = Accumulator<T>;
  using norm_oracle::Real;
  const Norm::Call call = rows.call(NormKind::layer);
  const Real u = norm_oracle::unit(dtype_of<W>);
  for (const std::string_view rung : picks_for<Norm>(call, context)) {
    if (rung == "sum_of_squares" || rung == "welford") continue;
    rows.run(context, call, rung);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto expected = rows.expected(row, NormKind::layer);
      const auto at = static_cast<std::size_t>(row);
      double worst = 0;  // error, relative to its bound
      for (std::int64_t i = 0; i < n; ++i) {
        const Real z = expected.z(static_cast<W>(rows.x(row, i)));
        const Real y = z + 0.25L;
        const Real bound =
            expected.z_error(z) + (2 * u + norm_oracle::unit(dtype_of<T>) * 1.01L) * std::abs(y);
        worst = std::max(worst, static_cast<double>(std::abs(rows.y(row, i) - y) / bound));
      }
      EXPECT_LE(worst, 1) << "y " << rung << ' ' << what;
      EXPECT_LE(std::abs(rows.mean[at] - expected.mean), expected.mean_error(u))
          << rung << ' ' << what;
      EXPECT_LE(std::abs(rows.rstd[at] - expected.rstd), expected.rstd_error())
          << rung << ' ' << what;
    }
  }
}

TEST_P(NormBoundsOn, KeepsItsBoundsUnderALargeMeanPastEveryBlock) {
  // Lengths past a vector, a warp and a block of threads; on CPUs past one and two blocks of 4096;
  // on simt past a block's registers and into spans. Regression: the error of 8192 elements of f64
  // around 1e6 was once 430 times the bound.
  const bool cpu = GetParam() == Backend::cpu;
  for_each_type([&]<class T>(const char* name) {
    for (const std::int64_t n : {33, 1001, 4096, 4097, 8192, 12289, 40008}) {
      if (!cpu && n > 9000 && sizeof(T) == 8) continue;
      for (const double offset : {0.0, 1e2, 1e6}) {
        if (offset > 1e3 && sizeof(T) < 4) continue;
        for (const auto layout : {Rows<T>::contiguous, Rows<T>::adjacent, Rows<T>::strided}) {
          if (layout != Rows<T>::contiguous && (!cpu || n > 9000)) continue;
          constexpr std::int64_t count = 2;
          Rows<T> rows(layout, count, n);
          const auto values = random_values<double>(count * n, 21, offset, 1);
          for (std::int64_t i = 0; i < count * n; ++i) {
            rows.x(i / n, i % n) =
                static_cast<T>(static_cast<Accumulator<T>>(values[static_cast<std::size_t>(i)]));
          }
          expect_bounds_kept(context, rows, count, n,
                             std::string(name) + ' ' + std::to_string(n) + " around " +
                                 std::to_string(offset) + " layout " + std::to_string(layout));
        }
      }
    }
  });
}

TEST_P(NormBoundsOn, KeepsItsBoundsWhereTheFirstBlockIsUnlikeTheRest) {
  // Moments are combined about the center of the first part, here far from the mean.
  const std::int64_t n = GetParam() == Backend::cpu ? 1 << 20 : 1 << 14;
  Rows<double> rows(Rows<double>::contiguous, 1, n);
  const auto values = random_values<double>(n, 22, 1e6, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    rows.x(0, i) = i < 64 ? 0 : i < 4096 ? 1e5 : values[static_cast<std::size_t>(i)];
  }
  expect_bounds_kept(context, rows, 1, n, "mixed");
}

/// Returns finite rows whose sums overflow, between ordinary rows.
template <class T>
std::vector<std::function<double(std::int64_t)>> overflowing_rows(std::int64_t n) {
  const bool wide = sizeof(T) == 8;
  const auto values = random_values<double>(n, 23);
  const auto value = [values](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  const double most = wide             ? std::numeric_limits<double>::max()
                      : sizeof(T) == 2 ? 0x1.fep127  // bf16
                                       : std::numeric_limits<float>::max();
  const double large = wide ? 1e200 : 1e25;  // its square overflows
  return {
      value,
      [=](std::int64_t i) { return i % 2 == 0 ? most : -most; },
      [=](std::int64_t i) { return i == n - 1 ? most : -most / 2; },
      [=](std::int64_t) { return most; },          // sum(s) overflows; all are equal
      [=](std::int64_t) { return -large * 1e6; },  // sum(s) does not overflow
      value,
      [=](std::int64_t i) { return large * value(i); },
      [=](std::int64_t i) { return large * (1e5 + value(i)); },
      [=](std::int64_t i) { return i == n / 2 ? most : 0; },
      [=](std::int64_t i) { return i == 0 ? -most : 1; },
      value,
  };
}

/// Expects rstd 0 and y = beta in rows that overflow, and a mean within its bound in all rows.
template <class T>
void expect_overflow_told(Context& context, typename Rows<T>::Layout layout, std::int64_t n,
                          NormKind kind) {
  using norm_oracle::Overflow;
  const auto makers = overflowing_rows<T>(n);
  const auto count = static_cast<std::int64_t>(makers.size());
  Rows<T> rows(layout, count, n);
  for (std::int64_t row = 0; row < count; ++row) {
    for (std::int64_t i = 0; i < n; ++i) {
      rows.x(row, i) =
          static_cast<T>(static_cast<Accumulator<T>>(makers[static_cast<std::size_t>(row)](i)));
    }
  }
  const Norm::Call call = rows.call(kind);
  const auto u = norm_oracle::unit(dtype_of<Accumulator<T>>);
  for (const std::string_view rung : picks_for<Norm>(call, context)) {
    rows.run(context, call, rung);
    int overflows = 0;
    for (std::int64_t row = 0; row < count; ++row) {
      const auto where = [&] {
        return std::string(rung) + ' ' + std::string(to_string(dtype_of<T>)) + ' ' +
               std::to_string(n) + (kind == NormKind::rms ? " rms" : " layer") + " row " +
               std::to_string(row) + " layout " + std::to_string(layout);
      };
      const auto at = static_cast<std::size_t>(row);
      const auto expected = rows.expected(row, kind);
      EXPECT_TRUE(std::isfinite(rows.mean[at])) << where();
      if (kind == NormKind::layer && rung != "sum_of_squares") {
        // The dependency chain of welford has length n.
        const auto slack = rung == "welford" ? 8 * expected.uncorrected() : 1;
        EXPECT_LE(std::abs(rows.mean[at] - expected.mean), slack * expected.mean_error(u))
            << where();
      }
      if (expected.overflow == Overflow::no) {
        EXPECT_GT(rows.rstd[at], 0) << where();
        continue;
      }
      if (expected.overflow == Overflow::yes) {
        ++overflows;
        EXPECT_EQ(rows.rstd[at], 0) << where();
      }
      for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(rows.y(row, i), 0.25) << where() << " element " << i;
      }
    }
    EXPECT_GE(overflows, 6);
  }
}

TEST_P(NormBoundsOn, FiniteRowsThatOverflowBecomeBeta) {
  const bool cpu = GetParam() == Backend::cpu;
  for_each_type([&]<class T>(const char*) {
    if constexpr (!std::is_same_v<T, f16>) {  // f16 does not overflow f32
      for (const std::int64_t n : {2, 5, 8, 33, 64, 257, 1000, 1024, 4097, 20001, 33000}) {
        if (!cpu && n > 9000 && sizeof(T) == 8) continue;
        for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
          for (const auto layout : {Rows<T>::contiguous, Rows<T>::adjacent, Rows<T>::strided}) {
            if (layout != Rows<T>::contiguous && n > 1000) continue;
            expect_overflow_told<T>(context, layout, n, kind);
          }
        }
      }
    }
  });
}

TEST_P(NormBoundsOn, ElementsThatAreNotFiniteMakeTheirRowNaN) {
  const bool cpu = GetParam() == Backend::cpu;
  for (const std::int64_t n : {1, 2, 7, 8, 40, 129, 1000, 1024, 4099, 9001}) {
    for (const auto layout : {Rows<float>::contiguous, Rows<float>::adjacent}) {
      if (layout == Rows<float>::adjacent && n > 1000) continue;
      constexpr std::int64_t count = 7;
      Rows<float> rows(layout, count, n);
      const auto values = random_values(count * n, 24);
      for (std::int64_t i = 0; i < count * n; ++i) {
        rows.x(i / n, i % n) = values[static_cast<std::size_t>(i)];
      }
      rows.x(1, n - 1) = nan;
      rows.x(2, 0) = infinity;
      rows.x(3, n - 1) = -infinity;
      rows.x(4, n / 2) = infinity;
      rows.x(5, 0) = infinity;
      rows.x(5, n - 1) = -infinity;
      if (n > 1) rows.x(4, 0) = 3e38F;  // its sum overflows, too
      for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
        const Norm::Call call = rows.call(kind);
        for (const std::string_view rung : picks_for<Norm>(call, context)) {
          rows.run(context, call, rung);
          for (std::int64_t row = 0; row < count; ++row) {
            const auto where = [&] {
              return std::string(rung) + ' ' + std::to_string(n) + " row " + std::to_string(row) +
                     (kind == NormKind::rms ? " rms" : " layer") + (cpu ? " cpu" : " simt");
            };
            const auto at = static_cast<std::size_t>(row);
            const bool plain = row == 0 || row == 6;
            const bool zero = kind == NormKind::rms && row >= 2 && row <= 5;
            EXPECT_EQ(std::isnan(rows.rstd[at]), !plain && !zero) << where();
            if (zero) EXPECT_EQ(rows.rstd[at], 0) << where();
            if (kind == NormKind::layer) EXPECT_EQ(std::isnan(rows.mean[at]), !plain) << where();
            for (std::int64_t i = 0; i < n; ++i) {
              const double y = rows.y(row, i);
              if (zero && std::isfinite(rows.x(row, i))) {
                ASSERT_EQ(y, 0.25) << where() << " element " << i;
              } else {
                ASSERT_EQ(std::isnan(y), !plain) << where() << " element " << i;
              }
            }
          }
        }
      }
    }
  }
}

TEST(NormCpu, EveryRungHasTheSameBitsForAnyNumberOfThreads) {
  // Rows split over threads, long rows split by blocks, adjacent rows, gathered rows; some
  // overflow.
  for_each_type([&]<class T>(const char* name) {
    const struct {
      typename Rows<T>::Layout layout;
      std::int64_t count;
      std::int64_t n;
    } cases[] = {{Rows<T>::contiguous, 40, 1000},
                 {Rows<T>::contiguous, 3, 40001},
                 {Rows<T>::adjacent, 90, 700},
                 {Rows<T>::strided, 5, 9001},
                 {Rows<T>::contiguous, 7000, 7}};
    for (const auto& one : cases) {
      Rows<T> first(one.layout, one.count, one.n);
      const auto values = random_values<double>(one.count * one.n, 25, 3, 1);
      for (std::int64_t i = 0; i < one.count * one.n; ++i) {
        const double scale = i / one.n % 3 == 2 && !std::is_same_v<T, f16> ? 1e30 : 1;
        first.x(i / one.n, i % one.n) = static_cast<T>(
            static_cast<Accumulator<T>>(scale * values[static_cast<std::size_t>(i)]));
      }
      Rows<T> other = first;
      for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
        Context alone = Context::cpu(1);
        const Norm::Call call = first.call(kind);
        const Norm::Call same = other.call(kind);
        for (const std::string_view rung : picks_for<Norm>(call, alone)) {
          first.run(alone, call, rung);
          for (const int threads : {2, 3, 7, 16}) {
            Context context = Context::cpu(threads);
            other.run(context, same, rung);
            EXPECT_TRUE(first.same(other))
                << name << ' ' << rung << ' ' << one.count << 'x' << one.n << ' ' << threads;
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace rung
