// SPDX-License-Identifier: Apache-2.0
// Properties of norm that `rung check` does not state: digits kept under a large mean, the fused
// residual, aliasing, special values, overflow, the same bits for any number of threads, errors,
// large strides.
#include "rung/ops/norm/norm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "rung/ops/norm/op/oracle.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

/// The largest error of a rung at normalising one row, against extended precision.
double error_of(Context& context, std::vector<float>& x, std::string_view rung) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<float> y(x.size());
  layer_norm(context, tensor(x, {1, n}), tensor(y, {1, n}), {.epsilon = 1e-12}, Pick{rung});
  long double mean = 0;
  for (const float value : x) mean += value;
  mean /= static_cast<long double>(n);
  long double squares = 0;
  for (const float value : x) squares += (value - mean) * (value - mean);
  const long double rstd = 1 / std::sqrt(squares / static_cast<long double>(n) + 1e-12L);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto error = static_cast<double>(std::abs(y[i] - (x[i] - mean) * rstd));
    worst = std::isnan(error) ? infinity : std::max(worst, error);
  }
  return worst;
}

class NormOn : public OnBackend {};

TEST_P(NormOn, KeepsItsDigitsUnderALargeMean) {
  // 100 +- 1e-3: values of which an f32 resolves 7.6e-6. What they are exactly is what counts.
  auto x = random_values(1000, 1, 100, 1e-3);
  auto odd = random_values(1001, 1, 100, 1e-3);
  int compared = 0;
  for (const Rung<Norm>* rung = Norm::rungs().first; rung != nullptr; rung = rung->next) {
    if (rung->info.backend != GetParam() || rung->info.peer) continue;
    const bool is_for_odd_rows = rung->info.name == "short_rows";
    const double error = error_of(context, is_for_odd_rows ? odd : x, rung->info.name);
    if (rung->info.name == "sum_of_squares") {
      EXPECT_GT(error, 0.5) << rung->info.name << " is there to fail here";
    } else if (rung->info.name == "welford") {
      // Its mean carries the rounding of numbers around 100, and rstd is 1000.
      EXPECT_LT(error, 0.3);
    } else {
      EXPECT_LT(error, 1e-4) << rung->info.name;  // the contract: 2 K u (|z| + 1), K = 157
      ++compared;
    }
  }
  EXPECT_GE(compared, 3);
}

TEST_P(NormOn, DoublingTheInputChangesNoBitWithoutEpsilon) {
  auto x = random_values(7 * 515, 2, 3, 2);
  auto doubled = x;
  for (float& value : doubled) value *= 2;
  std::vector<float> y(x.size());
  std::vector<float> z(x.size());
  for (const auto norm : {layer_norm, rms_norm}) {
    norm(context, tensor(x, {7, 515}), tensor(y, {7, 515}), {.epsilon = 0}, best);
    norm(context, tensor(doubled, {7, 515}), tensor(z, {7, 515}), {.epsilon = 0}, best);
    EXPECT_EQ(y, z);
  }
}

TEST_P(NormOn, ResidualIsAddingFirst) {
  const Extents shape{6, 300};
  const std::int64_t count = shape.product();
  auto x = random_values<bf16>(count, 3);
  auto residual = random_values<bf16>(count, 4);
  auto gamma = random_values<float>(300, 5);
  std::vector<bf16> added(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    added[i] = bf16(static_cast<float>(x[i]) + static_cast<float>(residual[i]));
  }
  const auto bits = [](const std::vector<bf16>& values) {
    std::vector<std::uint16_t> all(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = values[i].bits;
    return all;
  };
  std::vector<bf16> apart(x.size());
  std::vector<bf16> fused(x.size());
  std::vector<bf16> sum(x.size());
  NormOptions options{.gamma = tensor(gamma, {300})};
  layer_norm(context, tensor(added, shape), tensor(apart, shape), options);
  options.residual = tensor(residual, shape);
  layer_norm(context, tensor(x, shape), tensor(fused, shape), options);
  EXPECT_EQ(bits(fused), bits(apart));
  // In place, as a transformer's block does it: the residual stream takes the sum, x becomes y.
  options.sum = tensor(residual, shape);
  layer_norm(context, tensor(x, shape), tensor(x, shape), options);
  EXPECT_EQ(bits(x), bits(apart));
  EXPECT_EQ(bits(residual), bits(added));
}

TEST_P(NormOn, SpecialValuesStayInTheirRow) {
  const std::int64_t n = 200;
  auto x = random_values(5 * n, 6);
  x[1 * n + 70] = nan;
  x[2 * n + 199] = infinity;
  for (std::int64_t i = 0; i < n; ++i) x[static_cast<std::size_t>(3 * n + i)] = i % 2 ? 3e30F : 0;
  std::vector<float> y(x.size());
  std::vector<float> beta(static_cast<std::size_t>(n), 0.25F);
  const NormOptions options{.beta = tensor(beta, {n})};
  layer_norm(context, tensor(x, {5, n}), tensor(y, {5, n}), options);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = [&](std::int64_t row) { return y[static_cast<std::size_t>(row * n + i)]; };
    EXPECT_TRUE(std::isfinite(at(0)) && std::isfinite(at(4))) << i;
    EXPECT_TRUE(std::isnan(at(1)) && std::isnan(at(2))) << i;
    EXPECT_EQ(at(3), 0.25F) << i;  // the sum of squares overflows
  }
  rms_norm(context, tensor(x, {5, n}), tensor(y, {5, n}), options);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = [&](std::int64_t row) { return y[static_cast<std::size_t>(row * n + i)]; };
    EXPECT_TRUE(std::isfinite(at(0)) && std::isfinite(at(4))) << i;
    EXPECT_TRUE(std::isnan(at(1))) << i;
    EXPECT_TRUE(i == 199 ? std::isnan(at(2)) : at(2) == 0.25F) << i;
    EXPECT_EQ(at(3), 0.25F) << i;
  }
}

TEST_P(NormOn, EmptyRowsHaveNoStatistics) {
  std::vector<float> none(1);
  std::vector<float> mean(3, 1);
  std::vector<float> rstd(3, 1);
  const TensorRef empty(none.data(), DType::f32, Extents{3, 0});
  layer_norm(context, empty, empty, {.mean = tensor(mean, {3}), .rstd = tensor(rstd, {3})});
  for (const float value : mean) EXPECT_TRUE(std::isnan(value));
  for (const float value : rstd) EXPECT_TRUE(std::isnan(value));
}

TEST_P(NormOn, AnyAxisIsTheLastOneOfATranspose) {
  auto x = random_values(4 * 50 * 6, 7);
  auto gamma = random_values(50, 8);
  std::vector<float> y(x.size());
  std::vector<float> z(x.size());
  layer_norm(context, tensor(x, {4, 50, 6}), tensor(y, {4, 50, 6}),
             {.axis = 1, .gamma = tensor(gamma, {50})});
  const Extents turned{4, 6, 50};
  const Extents strides{300, 1, 6};
  layer_norm(context, TensorRef(x.data(), DType::f32, turned, strides),
             TensorRef(z.data(), DType::f32, turned, strides), {.gamma = tensor(gamma, {50})});
  EXPECT_EQ(y, z);
}

TEST_P(NormOn, RowsFurtherApartThan32BitsReach) {
  const std::int64_t stride = (std::int64_t{1} << 31) + 4;
  const Reservation reserved(2 * stride * static_cast<std::int64_t>(sizeof(float)));
  auto* far = reserved.data<float>();
  if (far == nullptr) GTEST_SKIP() << "no address space";
  auto x = random_values(2 * 40, 9);
  std::vector<float> y(x.size());
  for (std::int64_t i = 0; i < 80; ++i)
    far[i / 40 * stride + i % 40] = x[static_cast<std::size_t>(i)];
  layer_norm(context, tensor(x, {2, 40}), tensor(y, {2, 40}));
  const TensorRef there(far, DType::f32, Extents{2, 40}, Extents{stride, 1});
  layer_norm(context, there, there);
  for (std::int64_t i = 0; i < 80; ++i) {
    EXPECT_NEAR(far[i / 40 * stride + i % 40], y[static_cast<std::size_t>(i)], 1e-6F) << i;
  }
}

/// A call on rows of T with beta, mean and rstd, in a layout that rungs treat differently.
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
  /// Compares what a rung wrote, bit for bit.
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

/// f<T>(name) for the types of norm.
template <class F>
void for_each_type(F&& f) {
  f.template operator()<float>("f32");
  f.template operator()<double>("f64");
  f.template operator()<f16>("f16");
  f.template operator()<bf16>("bf16");
}

/// Runs each rung that takes the call, and the public call; compares y, mean and rstd with the
/// bounds of norm.hpp that rungs keep which correct the mean.
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
      double worst = 0;  // of the bound
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

TEST_P(NormOn, KeepsItsBoundsUnderALargeMeanPastEveryBlock) {
  // Past a vector, a warp, a block of threads; CPU: past one and two blocks of 4096; simt: past the
  // registers of a block and into spans. 8192 elements of f64 around 1e6 had 430 times their bound.
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

TEST_P(NormOn, KeepsItsBoundsWhereTheFirstBlockIsUnlikeTheRest) {
  // Moments are combined about the center of a first part: here far from the mean.
  const std::int64_t n = GetParam() == Backend::cpu ? 1 << 20 : 1 << 14;
  Rows<double> rows(Rows<double>::contiguous, 1, n);
  const auto values = random_values<double>(n, 22, 1e6, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    rows.x(0, i) = i < 64 ? 0 : i < 4096 ? 1e5 : values[static_cast<std::size_t>(i)];
  }
  expect_bounds_kept(context, rows, 1, n, "mixed");
}

/// Finite rows whose sums overflow, between rows that are plain.
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
      [=](std::int64_t) { return -large * 1e6; },  // sum(s) does not
      value,
      [=](std::int64_t i) { return large * value(i); },
      [=](std::int64_t i) { return large * (1e5 + value(i)); },
      [=](std::int64_t i) { return i == n / 2 ? most : 0; },
      [=](std::int64_t i) { return i == 0 ? -most : 1; },
      value,
  };
}

/// Expects rstd 0 and y = beta in rows that overflow; a mean within its bound in all rows.
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
        // A welford's chain is n long.
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

TEST_P(NormOn, FiniteRowsThatOverflowBecomeBeta) {
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

TEST_P(NormOn, ElementsThatAreNotFiniteMakeTheirRowNaN) {
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
      if (n > 1) rows.x(4, 0) = 3e38F;  // a sum that overflows, too
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

INSTANTIATE_TEST_SUITE_P(Backends, NormOn, backends, name_of_backend);

TEST(NormSimt, BlocksGoRoundMoreRowsThanFitTheDevice) {
  // 33 packs: blocks of 4 rows, of which 2112 are resident.
  const Extents shape{9000, 132};
  auto x = random_values(shape.product(), 10);
  std::vector<float> y(x.size());
  std::vector<float> expected(x.size());
  Context simt = Context::simt();
  Context cpu = Context::cpu();
  layer_norm(simt, tensor(x, shape), tensor(y, shape), {}, Pick{"registers_single_read"});
  layer_norm(cpu, tensor(x, shape), tensor(expected, shape));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-5F) << i;
}

TEST(NormCpu, SameBitsForAnyNumberOfThreads) {
  // Rows scheduled, rows shared block by block, rows across, rows copied.
  const struct {
    Extents shape;
    int axis;
  } cases[] = {{{301, 257}, -1}, {{2, 50001}, -1}, {{130, 700}, 0}, {{1, 9000, 5}, 1}};
  for (const auto& one : cases) {
    auto x = random_values(one.shape.product(), 11);
    std::vector<float> first(x.size());
    std::vector<float> other(x.size());
    Context alone = Context::cpu(1);
    layer_norm(alone, tensor(x, one.shape), tensor(first, one.shape), {.axis = one.axis});
    for (const int threads : {2, 3, 7}) {
      Context context = Context::cpu(threads);
      layer_norm(context, tensor(x, one.shape), tensor(other, one.shape), {.axis = one.axis});
      EXPECT_EQ(first, other) << to_string(one.shape) << " with " << threads << " threads";
    }
  }
}

TEST(NormCpu, EveryRungHasTheSameBitsForAnyNumberOfThreads) {
  // Rows divided among threads, rows shared block by block, across and copied; some overflow.
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

/// A large y is stored non-temporally, one row written while the next is read; in place it does
/// not.
TEST(NormCpu, SameBitsPastTheCaches) {
  for (const std::int64_t n : {67, 256, 1001, 1029, 2048, 4095, 9001}) {
    const Extents shape{(5 << 20) / n, n};
    auto x = random_values(shape.product(), 15, 3);
    auto gamma = random_values(n, 16);
    auto beta = random_values(n, 17);
    std::vector<float> y(x.size() + 1);
    const TensorRef out(y.data() + 1, DType::f32, shape);
    for (const int threads : {1, 3}) {
      Context context = Context::cpu(threads);
      const auto expect_same = [&](auto norm, const NormOptions& options) {
        auto in_place = x;
        norm(context, tensor(in_place, shape), tensor(in_place, shape), options);
        norm(context, tensor(x, shape), out, options);
        EXPECT_TRUE(std::equal(in_place.begin(), in_place.end(), y.begin() + 1)) << n;
      };
      const auto layer = [](auto&&... given) { layer_norm(given...); };
      const auto rms = [](auto&&... given) { rms_norm(given...); };
      expect_same(layer, {.gamma = tensor(gamma, {n}), .beta = tensor(beta, {n})});
      expect_same(rms, {.gamma = tensor(gamma, {n})});
      expect_same(rms, {});
    }
  }
}

TEST(NormCpu, SecondCallOfAShapeNeedsNoMoreWorkspace) {
  Context context = Context::cpu(2);
  for (const Extents& shape : {Extents{40, 1000}, Extents{2, 60000}}) {
    auto x = random_values<bf16>(shape.product(), 12);
    auto gamma = random_values<bf16>(shape[1], 13);
    const auto call = [&] {
      layer_norm(context, tensor(x, shape), tensor(x, shape), {.gamma = tensor(gamma, {shape[1]})});
    };
    call();
    const std::size_t capacity = context.workspace_capacity();
    call();
    EXPECT_EQ(context.workspace_capacity(), capacity);
  }
}

TEST(NormErrors, NameTheArgumentAndWhatIsAccepted) {
  Context context = Context::cpu();
  auto x = random_values(60, 14);
  std::vector<float> y(60);
  std::vector<float> small(10);
  std::vector<double> wide(10);
  const Extents shape{6, 10};
  const auto message = [&](const NormOptions& options) {
    return message_of([&] { layer_norm(context, tensor(x, shape), tensor(y, shape), options); });
  };
  EXPECT_EQ(message({}), "");
  expect_text(message({.axis = 2}), "axis is 2; accepted: -2 to 1");
  expect_text(message({.axis = 1, .axes = 2}), "axes is 2; accepted: 1 to 1");
  expect_text(message({.epsilon = -1}), "epsilon is -1");
  expect_text(message({.epsilon = nan}), "epsilon is nan");
  expect_text(message({.gamma = tensor(small, {5})}), "gamma is 5; accepted: 10");
  expect_text(message({.gamma = tensor(wide, {10})}), "gamma is f64; accepted: f32");
  expect_text(message({.residual = tensor(small, {10})}), "residual is 10; accepted: 6x10");
  expect_text(message({.sum = tensor(y, shape)}), "sum is given without a residual");
  expect_text(message({.mean = tensor(small, {10})}), "mean is 10; accepted: 6 or 6x1");
  expect_text(message({.beta = tensor(y, {10})}), "y overlaps beta");
  const TensorRef shifted(x.data() + 1, DType::f32, shape, Extents{9, 1});
  expect_text(message_of([&] { layer_norm(context, tensor(x, shape), shifted); }), "overlaps");
  expect_text(message_of([&] {
                rms_norm(context, tensor(x, shape), tensor(y, shape), {.mean = tensor(small, {6})});
              }),
              "rms_norm, which computes none");
  const TensorRef nowhere(nullptr, DType::f32, shape);
  expect_text(message_of([&] { layer_norm(context, nowhere, tensor(y, shape)); }),
              "null data pointer");
}

}  // namespace
}  // namespace rung
