// SPDX-License-Identifier: Apache-2.0
// gemm: minimum cost, reference results, and the error tolerance of a rung.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <vector>

#include "rung/core/integer.hpp"
#include "rung/harness/inputs.hpp"
#include "rung/ops/gemm/op/gemm.hpp"

namespace rung {
namespace {

/// Converts an element to the type of sums. 8-bit floats use a table of all 256 values, because a
/// reference widens each element once per row of C.
template <class T>
Accumulator<T> widened(T value) {
  if constexpr (std::is_class_v<T> && sizeof(T) == 1) {
    static const auto all = [] {
      std::array<float, 256> values;
      for (unsigned bits = 0; bits < values.size(); ++bits) {
        values[bits] = static_cast<float>(T::from_bits(static_cast<std::uint8_t>(bits)));
      }
      return values;
    }();
    return all[value.bits];
  } else {
    return static_cast<Accumulator<T>>(value);
  }
}

/// Computes one row of C in Real: double, or long double for double operands.
template <class T, class B, class C, class Real>
void reference_row(const Gemm::Args& args, std::int64_t batch, std::int64_t row, double* value,
                   double* magnitude) {
  const auto a = args.a.view<const T, 3>();
  const auto b = args.b.view<const B, 3>();
  const auto c = args.c.view<const C, 3>();
  const auto n = static_cast<std::size_t>(args.n());
  std::vector<Real> sum(n, 0);
  std::vector<Real> size(n, 0);
  const auto factor_of = [](const ConstTensorRef& scale, std::int64_t i, std::int64_t p,
                            std::int64_t q) {
    if (scale.data == nullptr) return Real{1};
    return static_cast<Real>(scale.view<const float, 3>()(i, p, q));
  };
  if (args.alpha != 0) {
    std::vector<Real> left(static_cast<std::size_t>(args.k()));
    for (std::int64_t k = 0; k < args.k(); ++k) {
      left[static_cast<std::size_t>(k)] = static_cast<Real>(widened(a(batch, row, k))) *
                                          factor_of(args.scale_a, batch, row, k / gemm_scale_block);
    }
    const auto add = [&](std::int64_t k, std::int64_t column) {
      const auto term =
          left[static_cast<std::size_t>(k)] * static_cast<Real>(widened(b(batch, k, column))) *
          factor_of(args.scale_b, batch, k / gemm_scale_block, column / gemm_scale_block);
      sum[static_cast<std::size_t>(column)] += term;
      size[static_cast<std::size_t>(column)] += std::abs(term);
    };
    // Traverses B in memory order; the terms of a column are added in the same order either way.
    if (std::abs(b.strides[1]) < std::abs(b.strides[2])) {
      for (std::int64_t column = 0; column < args.n(); ++column) {
        for (std::int64_t k = 0; k < args.k(); ++k) add(k, column);
      }
    } else {
      for (std::int64_t k = 0; k < args.k(); ++k) {
        for (std::int64_t column = 0; column < args.n(); ++column) add(k, column);
      }
    }
  }
  // alpha and beta reach the kernels in the accumulator's type.
  using Factor = std::conditional_t<std::is_integral_v<T>, double, Accumulator<T>>;
  const auto alpha = static_cast<Real>(static_cast<Factor>(args.alpha));
  const auto beta = static_cast<Real>(static_cast<Factor>(args.beta));
  for (std::size_t j = 0; j < n; ++j) {
    const auto column = static_cast<std::int64_t>(j);
    Real x = alpha * sum[j];
    Real terms = std::abs(alpha) * size[j];
    if (beta != 0) {
      const Real old = beta * static_cast<Real>(static_cast<Accumulator<C>>(c(batch, row, column)));
      x += old;
      terms += std::abs(old);
    }
    if (args.bias.data != nullptr) {
      const auto bias = args.bias.view<const C, 3>();
      const auto term = static_cast<Real>(static_cast<Accumulator<C>>(bias(batch, row, column)));
      x += term;
      terms += std::abs(term);
    }
    x = reference_activation(args.activation, x);
    if (args.residual.data != nullptr) {
      const auto residual = args.residual.view<const C, 3>();
      const auto term =
          static_cast<Real>(static_cast<Accumulator<C>>(residual(batch, row, column)));
      x += term;
      terms += std::abs(term);
    }
    value[j] = static_cast<double>(x);
    magnitude[j] = static_cast<double>(terms);
  }
}

}  // namespace

Cost Gemm::cost(const Args& args) {
  const auto batch = static_cast<double>(args.batch());
  const auto m = static_cast<double>(args.m());
  const auto n = static_cast<double>(args.n());
  const auto k = static_cast<double>(args.k());
  // An operand shared by the batch counts once.
  const double a_count = args.a.strides[0] == 0 ? 1 : batch;
  const double b_count = args.b.strides[0] == 0 ? 1 : batch;
  const double in = static_cast<double>(size_of(args.a.dtype));
  const double out = static_cast<double>(size_of(args.c.dtype));
  const double c = batch * m * n * out;
  const double residual = args.residual.data != nullptr && args.residual.strides[1] != 0 &&
                                  args.residual.strides[2] != 0
                              ? c
                              : 0.0;
  return {
      .bytes = (a_count * m * k + b_count * k * n) * in + c * (args.beta != 0 ? 2 : 1) + residual,
      .operations = 2 * batch * m * n * k,
      .written = c};
}

namespace {
double tiles_of(std::int64_t extent, std::int64_t tile) {
  return static_cast<double>(ceil_div(extent, tile));
}
}  // namespace

Cost Gemm::traffic(const Args& args, const TileExtents& tile) {
  Cost cost = Gemm::cost(args);
  const auto batch = static_cast<double>(args.batch());
  const auto m = static_cast<double>(args.m());
  const auto n = static_cast<double>(args.n());
  const double k = args.alpha == 0 ? 0.0 : static_cast<double>(args.k());
  // A is read once per column of tiles, B once per row of tiles.
  const double a_reads = tiles_of(args.n(), tile.columns);
  const double b_reads = tiles_of(args.m(), tile.rows);
  const double c_accesses = (args.beta != 0 ? 2.0 : 1.0) + (args.bias.data != nullptr ? 1.0 : 0.0) +
                            (args.residual.data != nullptr ? 1.0 : 0.0);
  cost.bytes =
      batch * ((m * k * a_reads + k * n * b_reads) * static_cast<double>(size_of(args.a.dtype)) +
               m * n * c_accesses * static_cast<double>(size_of(args.c.dtype)));
  return cost;
}

void Gemm::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  if (args.m() == 0) return;
  const auto fill = [&]<class T, class B, class C>() {
    using Real = std::conditional_t<std::is_same_v<T, double>, long double, double>;
    for (std::size_t i = 0; i < output.rows.size(); ++i) {
      const std::size_t at = i * static_cast<std::size_t>(output.length);
      reference_row<T, B, C, Real>(args, output.rows[i] / args.m(), output.rows[i] % args.m(),
                                   output.value.data() + at, output.magnitude.data() + at);
    }
  };
  if (args.a.dtype == DType::i8) {
    return fill.template operator()<std::int8_t, std::int8_t, std::int32_t>();
  }
  if (args.has_bytes()) {
    return visit<e4m3, e5m2>(args.a.dtype, [&]<class T>() {
      visit<e4m3, e5m2>(args.b.dtype, [&]<class B>() {
        visit<float, bf16, f16>(args.c.dtype,
                                [&]<class C>() { fill.template operator()<T, B, C>(); });
      });
    });
  }
  visit<float, double, bf16, f16>(args.a.dtype, [&]<class T>() {
    visit<float, double, bf16, f16>(args.c.dtype,
                                    [&]<class C>() { fill.template operator()<T, T, C>(); });
  });
}

Tolerance Gemm::tolerance(const Args& args, const RungInfo& rung, Values values) {
  if (args.a.dtype == DType::i8) return {};  // exact
  const double unit = epsilon(args.a.dtype == DType::f64 ? DType::f64 : DType::f32) / 2;
  const auto k = static_cast<double>(args.k());
  // The bound that gemm.hpp promises. It grows with k, so a lost term could hide in a long sum.
  // Small whole numbers, whose sums are exact in any order, must therefore agree in every bit.
  // Exception: factors that are not multiples of 1/4, such as alpha = .3, round in the epilogue.
  const auto quarters = [](double factor) { return std::floor(4 * factor) == 4 * factor; };
  const bool exact = quarters(args.alpha) && quarters(args.beta);
  double roundings = values != Values::integers ? k + 4 : exact ? 0 : 4;
  double operand_error = 0;
  if (args.precision == Precision::tf32) {
    // Operands keep 11 significant bits, and tensor cores truncate instead of rounding.
    roundings *= 4;
    operand_error = values == Values::integers ? 0 : 2 * 0x1p-11;
  } else if (size_of(args.a.dtype) <= 2) {
    roundings *= 2;
  }
  // Error of tensor-core sums of 128 products of 8-bit floats; small whole numbers are exact.
  const bool tensor_cores = rung.peer || rung.name == "fp8_wgmma";
  if (args.has_bytes() && tensor_cores && values != Values::integers) operand_error = 0x1p-9;
  Tolerance tolerance;
  tolerance.magnitude = roundings * unit + operand_error;
  tolerance.relative = epsilon(args.c.dtype) / 2 * 1.01;
  if (args.activation != Activation::none) {
    tolerance.magnitude *= 1.13;      // the steepest slope, gelu's
    tolerance.magnitude += 4 * unit;  // gelu multiplies x by an erf with an error of a few units
    tolerance.relative += 8 * unit;
    tolerance.absolute += 4 * unit;
  }
  // Results below the smallest normal number are rounded to a fixed step.
  const double smallest = args.c.dtype == DType::f16   ? 0x1p-24
                          : args.c.dtype == DType::f64 ? 0x1p-1074
                                                       : 0x1p-149;
  tolerance.absolute += smallest * (args.c.dtype == DType::bf16 ? 0x1p16 : 2);
  return tolerance;
}

}  // namespace rung
