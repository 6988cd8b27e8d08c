// SPDX-License-Identifier: Apache-2.0
// Properties of attention_backward that `rung check` does not test: finite differences, grouped
// heads, layouts, masked operands, bitwise repeatability on CPUs, rung choice, errors.
#include "rung/ops/attention_backward/op/attention_backward.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rung/ops/attention/attention.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

struct GradientShape {
  std::int64_t batch = 1, heads = 4, kv_heads = 2, queries = 5, keys = 7, width = 6,
               value_width = 3;
  [[nodiscard]] Extents q() const { return {batch, heads, queries, width}; }
  [[nodiscard]] Extents k() const { return {batch, kv_heads, keys, width}; }
  [[nodiscard]] Extents v() const { return {batch, kv_heads, keys, value_width}; }
  [[nodiscard]] Extents o() const { return {batch, heads, queries, value_width}; }
  [[nodiscard]] Extents lse() const { return {batch, heads, queries}; }
};

/// Arguments that own their tensors as vectors of T, with o and lse from attention().
template <class T>
struct OwnedCall {
  GradientShape shape;
  AttentionBackwardOptions options;
  std::vector<T> q, k, v, o, dout, dq, dk, dv;
  std::vector<Accumulator<T>> lse;

  explicit OwnedCall(const GradientShape& of, bool causal = false,
                     const ConstTensorRef& lengths = {}, std::int64_t window = 0)
      : shape(of),
        options{.causal = causal, .window = window, .key_lengths = lengths},
        q(values(of.q(), 1)),
        k(values(of.k(), 2)),
        v(values(of.v(), 3)),
        o(values(of.o(), 4)),
        dout(values(of.o(), 5)),
        dq(q.size()),
        dk(k.size()),
        dv(v.size()),
        lse(static_cast<std::size_t>(of.lse().product())) {
    forward();
  }
  static std::vector<T> values(const Extents& extents, unsigned seed) {
    const std::vector<float> wide = random_values(extents.product(), seed);
    return {wide.begin(), wide.end()};
  }
  void forward() {
    Context context = Context::cpu(1);
    attention(context, tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.v()),
              tensor(o, shape.o()),
              {.scale = options.scale,
               .causal = options.causal,
               .window = options.window,
               .soft_cap = options.soft_cap,
               .key_lengths = options.key_lengths,
               .slopes = options.slopes,
               .bias = options.bias,
               .sinks = options.sinks,
               .lse = tensor(lse, shape.lse())});
  }
  AttentionBackward::Call call() {
    return {.q = tensor(q, shape.q()),
            .k = tensor(k, shape.k()),
            .v = tensor(v, shape.v()),
            .o = tensor(o, shape.o()),
            .lse = tensor(lse, shape.lse()),
            .dout = tensor(dout, shape.o()),
            .dq = tensor(dq, shape.q()),
            .dk = tensor(dk, shape.k()),
            .dv = tensor(dv, shape.v()),
            .options = options};
  }
  void run(Context& context, Pick pick = best) {
    for (auto* const gradient : {&dq, &dk, &dv}) {
      std::fill(gradient->begin(), gradient->end(), T(nan));
    }
    differentiate(context, pick);
  }
  void differentiate(Context& context, Pick pick) {
    const AttentionBackward::Call c = call();
    attention_backward(context, c.q, c.k, c.v, c.o, c.lse, c.dout, c.dq, c.dk, c.dv, options, pick);
  }
  /// Returns sum dout o, the function whose gradients are tested.
  double value() {
    forward();
    double sum = 0;
    for (std::size_t i = 0; i < o.size(); ++i) sum += static_cast<double>(dout[i]) * o[i];
    return sum;
  }
};

class AttentionBackwardOn : public OnBackend {
 protected:
  template <class T>
  std::vector<std::string_view> picks(OwnedCall<T>& call) {
    return picks_for<AttentionBackward>(call.call(), context);
  }
};

TEST_P(AttentionBackwardOn, IsTheDerivativeOfAttention) {
  std::vector<std::int32_t> lengths{7, 4};
  for (const auto& [causal, window] :
       {std::pair(false, 0), std::pair(true, 0), std::pair(true, 2)}) {
    OwnedCall<double> call({.batch = 2}, causal, tensor(lengths, {2}), window);
    call.run(context);
    const auto check = [&](std::vector<double>& of, const std::vector<double>& gradient,
                           const char* name) {
      for (std::size_t i = 0; i < of.size(); i += 3) {
        const double before = of[i];
        constexpr double step = 1e-5;
        of[i] = before + step;
        const double above = call.value();
        of[i] = before - step;
        const double below = call.value();
        of[i] = before;
        EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-8) << name << ' ' << i;
      }
      call.forward();
    };
    check(call.q, call.dq, "dq");
    check(call.k, call.dk, "dk");
    check(call.v, call.dv, "dv");
  }
}

TEST_P(AttentionBackwardOn, IsTheDerivativeWithEveryRuleOfTheScores) {
  OwnedCall<double> call({.batch = 2}, true);
  std::vector<double> slopes{0.5, 0.25, 0.125, 0.0625};
  std::vector<double> sinks{0.5, -1, 2, -infinity};
  std::vector<double> bias = OwnedCall<double>::values({2, 4, 5, 7}, 6);
  std::vector<double> dsinks(4, nan);
  bias[3] = bias[40] = -infinity;
  call.options.soft_cap = 1.5;
  call.options.slopes = tensor(slopes, {4});
  call.options.bias = tensor(bias, {2, 4, 5, 7});
  call.options.sinks = tensor(sinks, {4});
  call.options.dsinks = tensor(dsinks, {4});
  const auto check = [&](std::vector<double>& of, const std::vector<double>& gradient,
                         std::size_t step_of, const char* name) {
    for (std::size_t i = 0; i < of.size(); i += step_of) {
      const double before = of[i];
      constexpr double step = 1e-5;
      of[i] = before + step;
      const double above = call.value();
      of[i] = before - step;
      const double below = call.value();
      of[i] = before;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * step), 1e-8) << name << ' ' << i;
    }
    call.forward();
  };
  for (const auto pick : picks(call)) {
    sinks[3] = -infinity;
    call.forward();
    call.run(context, {pick});
    check(call.q, call.dq, 3, "dq");
    check(call.k, call.dk, 3, "dk");
    check(call.v, call.dv, 3, "dv");
    EXPECT_EQ(dsinks[3], 0) << pick;
    sinks[3] = -2;  // a finite one, for differences
    call.forward();
    call.run(context, {pick});
    check(sinks, dsinks, 1, "dsinks");
  }
}

/// Expects the same numbers, or NaN in both.
template <class T>
void expect_same(const std::vector<T>& of, const std::vector<T>& expected, std::string_view name) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const auto x = static_cast<float>(of[i]);
    const auto y = static_cast<float>(expected[i]);
    if (!(x == y || (std::isnan(x) && std::isnan(y)))) ++different;
  }
  EXPECT_EQ(different, 0U) << name;
}

/// Expects that the gradients of packed batch elements are those of separate calls, also if one
/// element holds NaN.
template <class T>
void expect_separate_calls(Context& context, double soft_cap) {
  constexpr std::int64_t counts[] = {70, 0, 33, 1};
  constexpr std::int64_t before = 200;  // rows that belong to no batch element, more than a tile
  constexpr std::int64_t rows = before + 104;
  OwnedCall<T> packed({.queries = rows, .keys = rows, .width = 16, .value_width = 16}, true);
  std::vector<std::int32_t> offsets{before, before + 70, before + 70, before + 103, rows};
  packed.options.soft_cap = soft_cap;
  const auto spoil = [](std::vector<T>& all, std::int64_t heads) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto third = all.begin() + (h * rows + before + 70) * 16;
      std::fill(third, third + std::int64_t{33} * 16, T(nan));
    }
  };
  spoil(packed.q, 4);
  spoil(packed.k, 2);
  spoil(packed.v, 2);
  spoil(packed.dout, 4);
  for (const auto pick : picks_for<AttentionBackward>(packed.call(), context)) {
    for (auto* const gradient : {&packed.dq, &packed.dk, &packed.dv}) {
      std::fill(gradient->begin(), gradient->end(), T(7));  // what must stay
    }
    std::int64_t first = before;
    for (const std::int64_t count : counts) {
      if (count == 0) continue;
      OwnedCall<T> alone({.queries = count, .keys = count, .width = 16, .value_width = 16}, true);
      alone.options.soft_cap = soft_cap;
      // Copies rows of head h between the packed tensor and that of the element.
      const auto copy = [&](auto& all, auto& part, std::int64_t heads, std::int64_t columns,
                            bool back) {
        for (std::int64_t h = 0; h < heads; ++h) {
          for (std::int64_t at = 0; at < count * columns; ++at) {
            auto& whole = all[static_cast<std::size_t>((h * rows + first) * columns + at)];
            auto& own = part[static_cast<std::size_t>(h * count * columns + at)];
            (back ? whole : own) = back ? own : whole;
          }
        }
      };
      copy(packed.q, alone.q, 4, 16, false);
      copy(packed.k, alone.k, 2, 16, false);
      copy(packed.v, alone.v, 2, 16, false);
      copy(packed.dout, alone.dout, 4, 16, false);
      alone.forward();
      alone.run(context, {pick});
      copy(packed.o, alone.o, 4, 16, true);
      copy(packed.lse, alone.lse, 4, 1, true);
      copy(packed.dq, alone.dq, 4, 16, true);
      copy(packed.dk, alone.dk, 2, 16, true);
      copy(packed.dv, alone.dv, 2, 16, true);
      first += count;
    }
    const auto dq = packed.dq, dk = packed.dk, dv = packed.dv;
    packed.options.query_offsets = packed.options.key_offsets = tensor(offsets, {5});
    for (auto* const gradient : {&packed.dq, &packed.dk, &packed.dv}) {
      std::fill(gradient->begin(), gradient->end(), T(7));
    }
    packed.differentiate(context, {pick});
    expect_same(packed.dq, dq, pick);
    expect_same(packed.dk, dk, pick);
    expect_same(packed.dv, dv, pick);
    packed.options.query_offsets = packed.options.key_offsets = {};
  }
}

TEST_P(AttentionBackwardOn, PackedRowsAreSeparateCalls) {
  expect_separate_calls<float>(context, 0);
  expect_separate_calls<bf16>(context, 0);
  expect_separate_calls<bf16>(context, 2);
}

TEST_P(AttentionBackwardOn, AWindowOfAllKeysIsNone) {
  OwnedCall<bf16> call({.queries = 70, .keys = 90, .width = 16, .value_width = 16}, true);
  const auto bits = [](const std::vector<bf16>& of) {
    std::vector<int> all(of.size());
    std::transform(of.begin(), of.end(), all.begin(), [](bf16 x) { return x.bits; });
    return all;
  };
  for (const auto pick : picks(call)) {
    call.options.window = 0;
    call.run(context, {pick});
    const auto dq = bits(call.dq), dk = bits(call.dk), dv = bits(call.dv);
    call.options.window = 90;
    call.run(context, {pick});
    EXPECT_EQ(bits(call.dq), dq) << pick;
    EXPECT_EQ(bits(call.dk), dk) << pick;
    EXPECT_EQ(bits(call.dv), dv) << pick;
  }
}

// dk and dv of a shared head equal the sums over heads with separate copies of the keys.
TEST_P(AttentionBackwardOn, SharedKeysSumOverTheirHeads) {
  OwnedCall<float> grouped(
      {.heads = 6, .kv_heads = 2, .queries = 20, .keys = 40, .width = 16, .value_width = 16}, true);
  GradientShape apart = grouped.shape;
  apart.kv_heads = 6;
  OwnedCall<float> separate(apart, true);
  const auto head = static_cast<std::size_t>(40 * 16);
  for (std::size_t h = 0; h < 6; ++h) {
    std::copy_n(grouped.k.begin() + static_cast<std::ptrdiff_t>(h / 3 * head), head,
                separate.k.begin() + static_cast<std::ptrdiff_t>(h * head));
    std::copy_n(grouped.v.begin() + static_cast<std::ptrdiff_t>(h / 3 * head), head,
                separate.v.begin() + static_cast<std::ptrdiff_t>(h * head));
  }
  separate.forward();
  for (const auto pick : picks(grouped)) {
    grouped.run(context, {pick});
    separate.run(context, {pick});
    EXPECT_EQ(grouped.dq, separate.dq) << pick;
    for (std::size_t at = 0; at < 2 * head; ++at) {
      const std::size_t first = at / head * 3 * head + at % head;
      EXPECT_NEAR(grouped.dk[at],
                  separate.dk[first] + separate.dk[first + head] + separate.dk[first + 2 * head],
                  1e-5)
          << pick << ' ' << at;
      EXPECT_NEAR(grouped.dv[at],
                  separate.dv[first] + separate.dv[first + head] + separate.dv[first + 2 * head],
                  1e-5)
          << pick << ' ' << at;
    }
  }
}

// Rows of dS sum to 0: adding a constant to all values leaves dq and dk unchanged.
TEST_P(AttentionBackwardOn, AConstantInVChangesNeitherDqNorDk) {
  OwnedCall<float> call({.queries = 33, .keys = 50, .width = 20, .value_width = 12}, true);
  call.run(context);
  const std::vector<float> dq = call.dq;
  const std::vector<float> dk = call.dk;
  for (float& x : call.v) x += 1;
  call.forward();
  call.run(context);
  for (std::size_t i = 0; i < dq.size(); ++i) EXPECT_NEAR(call.dq[i], dq[i], 2e-5) << i;
  for (std::size_t i = 0; i < dk.size(); ++i) EXPECT_NEAR(call.dk[i], dk[i], 2e-5) << i;
}

// Inputs and outputs are stored in the order B x S x H x D.
TEST_P(AttentionBackwardOn, MemoryOrderChangesNothing) {
  const GradientShape shape{.batch = 2,
                            .heads = 2,
                            .kv_heads = 2,
                            .queries = 18,
                            .keys = 18,
                            .width = 64,
                            .value_width = 64};
  OwnedCall<bf16> plain(shape, true);
  const auto turned_of = [&](const std::vector<bf16>& x) {
    std::vector<bf16> turned(x.size());
    for (std::size_t n = 0; n < x.size(); ++n) {
      const std::size_t d = n % 64, s = n / 64 % 18, h = n / 64 / 18 % 2, b = n / 64 / 18 / 2;
      turned[((b * 18 + s) * 2 + h) * 64 + d] = x[n];
    }
    return turned;
  };
  const auto strided = [](std::vector<bf16>& x) {
    return TensorRef(static_cast<void*>(x.data()), DType::bf16, {2, 2, 18, 64},
                     {18 * 2 * 64, 64, 2 * 64, 1});
  };
  auto q = turned_of(plain.q), k = turned_of(plain.k), v = turned_of(plain.v),
       o = turned_of(plain.o), dout = turned_of(plain.dout);
  std::vector<bf16> dq(q.size()), dk(k.size()), dv(v.size());
  for (const auto pick : picks(plain)) {
    plain.run(context, {pick});
    attention_backward(context, strided(q), strided(k), strided(v), strided(o),
                       tensor(plain.lse, shape.lse()), strided(dout), strided(dq), strided(dk),
                       strided(dv), plain.options, {pick});
    const auto same = [&](const std::vector<bf16>& got, const std::vector<bf16>& wanted) {
      const std::vector<bf16> turned = turned_of(wanted);
      return std::equal(got.begin(), got.end(), turned.begin(),
                        [](bf16 x, bf16 y) { return x.bits == y.bits; });
    };
    EXPECT_TRUE(same(dq, plain.dq) && same(dk, plain.dk) && same(dv, plain.dv)) << pick;
  }
}

// An lse of -infinity gives weights of 0: its query adds nothing to dk and dv.
TEST_P(AttentionBackwardOn, AnLseOfMinusInfinityIsNoWeight) {
  OwnedCall<float> call(
      {.heads = 1, .kv_heads = 1, .queries = 2, .keys = 3, .width = 8, .value_width = 8});
  call.lse[0] = -infinity;
  for (const auto pick : picks(call)) {
    call.run(context, {pick});
    EXPECT_TRUE(std::all_of(call.dq.begin(), call.dq.begin() + 8, [](float x) { return x == 0; }))
        << pick;
    EXPECT_TRUE(std::all_of(call.dk.begin(), call.dk.end(), [](float x) {
      return std::isfinite(x);
    })) << pick;
    EXPECT_NE(call.dv[0], 0) << pick;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionBackwardOn, backends, name_of_backend);

TEST(AttentionBackwardCpu, AnyNumberOfThreadsGivesTheSameBits) {
  const GradientShape shapes[] = {
      {.heads = 1, .kv_heads = 1, .queries = 70, .keys = 1500, .width = 24, .value_width = 17},
      {.batch = 2, .heads = 4, .kv_heads = 2, .queries = 130, .keys = 100},
      {.batch = 3, .heads = 1, .kv_heads = 1, .queries = 33, .keys = 700, .width = 40},
  };
  for (const GradientShape& shape : shapes) {
    OwnedCall<float> call(shape, true, {}, shape.batch == 1 ? 200 : 0);
    call.run(*std::make_unique<Context>(Context::cpu(1)));
    const auto dq = call.dq, dk = call.dk, dv = call.dv;
    for (const int threads : {2, 3, 7, 16}) {
      Context context = Context::cpu(threads);
      call.run(context);
      EXPECT_TRUE(call.dq == dq && call.dk == dk && call.dv == dv)
          << to_string(shape.q()) << ", " << threads << " threads";
    }
  }
}

TEST(AttentionBackward, WrongCallsAreNamed) {
  OwnedCall<float> own({.batch = 2});
  const auto says = [&](const std::string& part, auto change) {
    AttentionBackward::Call c = own.call();
    change(c);
    Context context = Context::cpu();
    expect_text(message_of([&] {
                  attention_backward(context, c.q, c.k, c.v, c.o, c.lse, c.dout, c.dq, c.dk, c.dv,
                                     c.options);
                }),
                part);
  };
  says("q has shape", [](auto& c) { c.q.shape.rank = c.q.strides.rank = 3; });
  says("k is 2x2x7x5", [](auto& c) { c.k.shape[3] = 5; });
  says("v is 2x2x6x3", [](auto& c) { c.v.shape[2] = 6; });
  says("o is 2x4x5x2", [](auto& c) { c.o.shape[3] = 2; });
  says("lse is 2x4x4", [](auto& c) { c.lse.shape[2] = 4; });
  says("dout is 2x4x5x2", [](auto& c) { c.dout.shape[3] = 2; });
  says("dq is 2x4x5x5", [](auto& c) { c.dq.shape[3] = 5; });
  says("dk is 2x1x7x6", [](auto& c) { c.dk.shape[1] = 1; });
  says("dv is 2x2x7x2", [](auto& c) { c.dv.shape[3] = 2; });
  says("lse is f16", [](auto& c) { c.lse.dtype = DType::f16; });
  says("scale is -1", [](auto& c) { c.options.scale = -1; });
  says("scale is inf", [](auto& c) { c.options.scale = infinity; });
  says("window is 2; accepted: 0, for none, or with causal", [](auto& c) { c.options.window = 2; });
  says("soft_cap is -1", [](auto& c) { c.options.soft_cap = -1; });
  std::vector<float> per_head(4);
  std::vector<double> wide(4);
  says("sinks alone is given", [&](auto& c) { c.options.sinks = tensor(per_head, {4}); });
  says("dsinks alone is given", [&](auto& c) { c.options.dsinks = tensor(per_head, {4}); });
  says("slopes is f64", [&](auto& c) { c.options.slopes = tensor(wide, {4}); });
  says("bias is 4", [&](auto& c) { c.options.bias = tensor(per_head, {4}); });
  std::vector<std::int32_t> offsets(3);
  says("q has shape 2x4x5x6; accepted with query_offsets: 1 on the first axis",
       [&](auto& c) { c.options.query_offsets = tensor(offsets, {3}); });
  says("k has shape 2x2x7x6; accepted with key_offsets: 1 on the first axis",
       [&](auto& c) { c.options.key_offsets = tensor(offsets, {3}); });
  std::vector<std::int32_t> lengths(3);
  says("key_lengths is 3", [&](auto& c) { c.options.key_lengths = tensor(lengths, {3}); });
  says("overlap", [](auto& c) { c.dk.data = c.dv.data; });
  says("overlap", [&](auto& c) { c.dq = tensor(own.q, own.shape.q()); });
}

TEST(AttentionBackward, TheChoiceIsNoTeachingRung) {
  const auto chosen = [](Backend backend, DType dtype, std::int64_t width) {
    const Context context = Context::on(backend);
    const auto at = [&](const Extents& shape, DType of) {
      return TensorRef(static_cast<void*>(nullptr), of, shape);
    };
    const Extents rows{4, 8, 512, width};
    AttentionBackward::Args args;
    static_cast<AttentionBackward::Call&>(args) = {.q = at(rows, dtype),
                                                   .k = at(rows, dtype),
                                                   .v = at(rows, dtype),
                                                   .o = at(rows, dtype),
                                                   .lse = at({4, 8, 512}, DType::f32),
                                                   .dout = at(rows, dtype),
                                                   .dq = at(rows, dtype),
                                                   .dk = at(rows, dtype),
                                                   .dv = at(rows, dtype)};
    AttentionBackward::bind(args);
    return std::string(choose<AttentionBackward>(args, context).info.name);
  };
  EXPECT_EQ(chosen(Backend::cpu, DType::f32, 64), "threads");
  EXPECT_EQ(chosen(Backend::simt, DType::f32, 64), "register_tiled");
  EXPECT_EQ(chosen(Backend::simt, DType::bf16, 64), "hopper_pipelined");
  EXPECT_EQ(chosen(Backend::simt, DType::f16, 128), "hopper_pipelined");
  EXPECT_EQ(chosen(Backend::simt, DType::bf16, 160), "register_tiled");
}

}  // namespace
}  // namespace rung
