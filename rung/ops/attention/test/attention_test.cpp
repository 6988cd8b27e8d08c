// SPDX-License-Identifier: Apache-2.0
// Properties of attention that `rung check` does not state: algebra, layouts, masks, special
// values, choice, errors.
#include "rung/ops/attention/op/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rung/ops/attention/shared/mask.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

struct Shape {
  std::int64_t batch = 2, heads = 4, kv_heads = 2, queries = 9, keys = 70, width = 32;
  [[nodiscard]] Extents q() const { return {batch, heads, queries, width}; }
  [[nodiscard]] Extents k() const { return {batch, kv_heads, keys, width}; }
};

class AttentionOn : public OnBackend {
 protected:
  std::vector<std::string_view> picks(const ConstTensorRef& q, const ConstTensorRef& k,
                                      const ConstTensorRef& v, const TensorRef& o,
                                      const AttentionOptions& options = {}) {
    return picks_for<Attention>({.q = q, .k = k, .v = v, .o = o, .options = options}, context);
  }
};

template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
  std::vector<T> small(values.size());
  std::transform(values.begin(), values.end(), small.begin(), [](float v) { return T(v); });
  return small;
}

TEST_P(AttentionOn, EqualKeysGiveTheMeanOfTheValues) {
  const Shape shape{.batch = 1, .heads = 2, .kv_heads = 1, .queries = 3, .keys = 5, .width = 8};
  auto q = random_values(shape.q().product(), 1);
  std::vector<float> k(static_cast<std::size_t>(shape.k().product()), 0.5F);
  auto v = random_values(shape.k().product(), 2);
  std::vector<float> o(q.size());
  for (const auto pick : picks(tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.k()),
                               tensor(o, shape.q()))) {
    attention(context, tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.k()),
              tensor(o, shape.q()), {}, {pick});
    for (std::size_t at = 0; at < o.size(); ++at) {
      double mean = 0;
      for (std::size_t j = 0; j < 5; ++j) mean += v[j * 8 + at % 8] / 5.0;
      EXPECT_NEAR(o[at], mean, 1e-5) << pick;
    }
  }
}

// A causal query equals that query run alone on the keys it sees.
TEST_P(AttentionOn, ACausalQueryIsACallOfItsOwn) {
  const Shape shape;
  const auto q32 = random_values(shape.q().product(), 3);
  const auto k32 = random_values(shape.k().product(), 4);
  const auto v32 = random_values(shape.k().product(), 5);
  auto q = rounded<bf16>(q32);
  auto k = rounded<bf16>(k32);
  auto v = rounded<bf16>(v32);
  std::vector<bf16> o(q.size());
  const auto expect_calls_of_their_own = [&](std::string_view pick, std::int64_t window) {
    attention(context, tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.k()),
              tensor(o, shape.q()), {.causal = true, .window = window}, {pick});
    for (std::int64_t i = 0; i < shape.queries; i += 4) {
      const std::int64_t end = shape.keys - shape.queries + i + 1;
      const std::int64_t first = window == 0 ? 0 : end - window;
      TensorRef one = tensor(q, shape.q());
      TensorRef keys = tensor(k, shape.k());
      TensorRef values = tensor(v, shape.k());
      one.data = q.data() + i * shape.width;
      one.shape[2] = 1;
      keys.data = k.data() + first * shape.width;
      values.data = v.data() + first * shape.width;
      keys.shape[2] = values.shape[2] = end - first;
      std::vector<bf16> alone(static_cast<std::size_t>(one.shape.product()));
      attention(context, one, keys, values, tensor(alone, one.shape));
      for (std::int64_t at = 0; at < one.shape.product(); ++at) {
        const std::int64_t head = at / shape.width;
        const std::int64_t from = (head * shape.queries + i) * shape.width + at % shape.width;
        EXPECT_NEAR(static_cast<float>(alone[static_cast<std::size_t>(at)]),
                    static_cast<float>(o[static_cast<std::size_t>(from)]), 0.03)
            << pick << ' ' << window << ' ' << i;
      }
    }
  };
  for (const auto pick : picks(tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.k()),
                               tensor(o, shape.q()), {.causal = true})) {
    for (const std::int64_t window : {0, 3, 31, 60}) expect_calls_of_their_own(pick, window);
  }
}

template <class T>
void expect_windows_of_one_key_and_of_all(Context& context) {
  const Shape shape{.queries = 40, .keys = 70, .width = 64};
  auto q = rounded<T>(random_values(shape.q().product(), 30));
  auto k = rounded<T>(random_values(shape.k().product(), 31));
  auto v = rounded<T>(random_values(shape.k().product(), 32));
  std::vector<T> o(q.size());
  Attention::Call call{.q = tensor(q, shape.q()),
                       .k = tensor(k, shape.k()),
                       .v = tensor(v, shape.k()),
                       .o = tensor(o, shape.q()),
                       .options = {.causal = true}};
  const auto result = [&](std::string_view pick, std::int64_t window) {
    call.options.window = window;
    std::fill(o.begin(), o.end(), T(nan));
    attention(context, call.q, call.k, call.v, call.o, call.options, {pick});
    std::vector<double> wide(o.size());
    std::transform(o.begin(), o.end(), wide.begin(),
                   [](T x) { return static_cast<double>(static_cast<Accumulator<T>>(x)); });
    return wide;
  };
  for (const auto pick : picks_for<Attention>(call, context)) {
    const std::vector<double> whole = result(pick, 0);
    for (const std::int64_t window : {std::int64_t{70}, std::int64_t{71}, INT64_MAX}) {
      EXPECT_EQ(result(pick, window), whole) << pick << ' ' << window;
    }
    const std::vector<double> aligned = result(pick, 1);
    for (std::size_t at = 0; at < aligned.size(); ++at) {
      const std::size_t row = at / 64 / 40 / 2 * 70 + at / 64 % 40 + 30;  // of v
      ASSERT_NEAR(aligned[at],
                  static_cast<double>(static_cast<Accumulator<T>>(v[row * 64 + at % 64])), 1e-6)
          << pick << ' ' << at;
    }
  }
}

TEST_P(AttentionOn, AWindowOfOneKeyIsItsValueAndOneOfAllKeysIsNone) {
  expect_windows_of_one_key_and_of_all<float>(context);
  expect_windows_of_one_key_and_of_all<double>(context);
  expect_windows_of_one_key_and_of_all<f16>(context);
  expect_windows_of_one_key_and_of_all<bf16>(context);
}

TEST_P(AttentionOn, MemoryOrderChangesNothing) {
  const Shape shape{.batch = 2, .heads = 2, .kv_heads = 2, .queries = 40, .keys = 40, .width = 64};
  auto x = rounded<f16>(random_values(shape.q().product(), 6));
  // The same elements, stored as B x S x H x D.
  std::vector<f16> turned(x.size());
  TensorRef strided = tensor(turned, {2, 40, 2, 64});
  std::swap(strided.shape[1], strided.shape[2]);
  std::swap(strided.strides[1], strided.strides[2]);
  const auto at = [&](std::vector<f16>& of, std::int64_t b, std::int64_t h, std::int64_t i,
                      std::int64_t d) -> f16& {
    return of[static_cast<std::size_t>(((b * 40 + i) * 2 + h) * 64 + d)];
  };
  const auto for_all = [&](auto&& f) {
    for (std::int64_t n = 0; n < shape.q().product(); ++n) {
      f(n / 64 / 40 / 2, n / 64 / 40 % 2, n / 64 % 40, n % 64, static_cast<std::size_t>(n));
    }
  };
  for_all([&](auto b, auto h, auto i, auto d, std::size_t n) { at(turned, b, h, i, d) = x[n]; });
  std::vector<f16> o(x.size());
  std::vector<f16> turned_o(x.size());
  TensorRef strided_o = strided;
  strided_o.data = turned_o.data();
  const TensorRef plain = tensor(x, shape.q());
  for (const auto pick : picks(plain, plain, plain, tensor(o, shape.q()), {.causal = true})) {
    attention(context, plain, plain, plain, tensor(o, shape.q()), {.causal = true}, {pick});
    attention(context, strided, strided, strided, strided_o, {.causal = true}, {pick});
    for_all([&](auto b, auto h, auto i, auto d, std::size_t n) {
      ASSERT_EQ(at(turned_o, b, h, i, d).bits, o[n].bits) << pick << ' ' << n;
    });
  }
}

TEST_P(AttentionOn, WhatIsNotSeenNeverReachesAResult) {
  const Shape shape{.batch = 1, .heads = 2, .kv_heads = 1, .queries = 5, .keys = 37, .width = 64};
  for (const float bad : {nan, infinity, -infinity}) {
    auto q = rounded<bf16>(random_values(shape.q().product(), 7));
    auto k = rounded<bf16>(random_values(shape.k().product(), 8));
    auto v = rounded<bf16>(random_values(shape.k().product(), 9));
    for (std::size_t d = 0; d < 64; ++d) v[36 * 64 + d] = bf16(bad);  // seen by the last query only
    std::vector<bf16> o(q.size());
    const AttentionOptions options{.causal = true};
    for (const auto pick : picks(tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.k()),
                                 tensor(o, shape.q()), options)) {
      attention(context, tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.k()),
                tensor(o, shape.q()), options, {pick});
      for (std::size_t at = 0; at < o.size(); ++at) {
        const bool last = at / 64 % 5 == 4;
        EXPECT_EQ(std::isfinite(static_cast<float>(o[at])), !last)
            << pick << ' ' << bad << ' ' << at;
      }
    }
  }
}

// Query i of 5 sees keys 25 + i to 32 + i of 37.
TEST_P(AttentionOn, WhatPrecedesTheWindowNeverReachesAResult) {
  const Shape shape{.batch = 1, .heads = 2, .kv_heads = 1, .queries = 5, .keys = 37, .width = 64};
  for (const float bad : {nan, infinity, -infinity}) {
    auto q = rounded<bf16>(random_values(shape.q().product(), 7));
    auto k = rounded<bf16>(random_values(shape.k().product(), 8));
    auto v = rounded<bf16>(random_values(shape.k().product(), 9));
    for (std::size_t d = 0; d < 26 * 64; ++d) v[d] = bf16(bad);  // the last are seen by query 0
    for (std::size_t d = 0; d < 25 * 64; ++d) k[d] = bf16(bad);
    std::vector<bf16> o(q.size());
    const AttentionOptions options{.causal = true, .window = 8};
    for (const auto pick : picks(tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.k()),
                                 tensor(o, shape.q()), options)) {
      attention(context, tensor(q, shape.q()), tensor(k, shape.k()), tensor(v, shape.k()),
                tensor(o, shape.q()), options, {pick});
      for (std::size_t at = 0; at < o.size(); ++at) {
        const bool first = at / 64 % 5 == 0;
        EXPECT_EQ(std::isfinite(static_cast<float>(o[at])), !first)
            << pick << ' ' << bad << ' ' << at;
      }
    }
  }
}

// All weights are 0: finite values of v give 0; NaN and infinities give NaN. Query i sees i + 1
// keys; only the last query sees the fourth key and later ones.
template <class T>
void expect_zero_weights(Context& context, std::int64_t group, bool last_key_counts) {
  constexpr std::int64_t width = 64;
  constexpr std::int64_t queries = 4;
  const Extents rows{1, group, queries, width};
  const Extents cache{1, 1, queries, width};
  std::vector<float> q32(static_cast<std::size_t>(rows.product()), 1.0F);
  std::vector<float> k32(static_cast<std::size_t>(cache.product()), 0.25F);
  std::vector<float> v32 = random_values(cache.product(), 13);
  for (std::size_t j = 0; j < queries; ++j) k32[j * width] = -infinity;
  if (last_key_counts) k32[3 * width] = 0;
  v32[1 * width + 5] = nan;
  v32[1 * width + 6] = infinity;
  v32[2 * width + 7] = -infinity;
  auto q = rounded<T>(q32);
  auto k = rounded<T>(k32);
  auto v = rounded<T>(v32);
  std::vector<T> o(q.size());
  std::vector<Accumulator<T>> lse(static_cast<std::size_t>(group * queries));
  const AttentionOptions options{.causal = true, .lse = tensor(lse, {1, group, queries})};
  const Attention::Call call{.q = tensor(q, rows),
                             .k = tensor(k, cache),
                             .v = tensor(v, cache),
                             .o = tensor(o, rows),
                             .options = options};
  for (const auto pick : picks_for<Attention>(call, context)) {
    std::fill(o.begin(), o.end(), T(-77.0F));
    attention(context, call.q, call.k, call.v, call.o, options, {pick});
    for (std::size_t at = 0; at < o.size(); ++at) {
      const std::size_t i = at / width % queries;
      const std::size_t column = at % width;
      const bool is_nan = i >= (column == 7 ? 2 : 1) && column >= 5 && column <= 7;
      const bool counts = last_key_counts && i == 3;
      const float wanted = is_nan ? nan : counts ? static_cast<float>(v[3 * width + column]) : 0.0F;
      const auto got = static_cast<float>(o[at]);
      EXPECT_TRUE(is_nan ? std::isnan(got) : got == wanted)
          << pick << ' ' << at << ": " << got << ", not " << wanted;
      EXPECT_EQ(std::isfinite(lse[at / width]), counts) << pick << ' ' << at / width;
      EXPECT_FALSE(std::isnan(lse[at / width])) << pick << ' ' << at / width;
    }
  }
}

TEST_P(AttentionOn, ScoresOfMinusInfinityAloneGiveZeroTimesV) {
  for (const bool last_key_counts : {false, true}) {
    expect_zero_weights<float>(context, 2, last_key_counts);
    expect_zero_weights<double>(context, 1, last_key_counts);
    expect_zero_weights<f16>(context, 1, last_key_counts);
    expect_zero_weights<bf16>(context, 5, last_key_counts);
  }
}

TEST_P(AttentionOn, NoKeysAreZerosAndNoLogarithm) {
  std::vector<float> q(2 * 3 * 4, 1.0F);
  std::vector<float> nothing;
  std::vector<float> o(2 * 3 * 4, nan);
  std::vector<float> lse(2 * 3, nan);
  const Extents rows{1, 2, 3, 4};
  const AttentionOptions options{.lse = tensor(lse, {1, 2, 3})};
  const TensorRef none = tensor(nothing, {1, 1, 0, 4});
  for (const auto pick : picks(tensor(q, rows), none, none, tensor(o, rows), options)) {
    std::fill(o.begin(), o.end(), nan);
    attention(context, tensor(q, rows), none, none, tensor(o, rows), options, {pick});
    EXPECT_EQ(o, std::vector<float>(o.size(), 0.0F)) << pick;
    EXPECT_EQ(lse, std::vector<float>(lse.size(), -infinity)) << pick;
  }
}

// Adding a constant to all scores of a query leaves its softmax unchanged.
TEST_P(AttentionOn, LargeScoresDoNotOverflow) {
  std::vector<float> q = {300};
  std::vector<float> k = {200, 201, -500};
  std::vector<float> v = {1, 2, 3};
  std::vector<float> o = {0};
  const Extents one{1, 1, 1, 1};
  const Extents three{1, 1, 3, 1};
  for (const auto pick :
       picks(tensor(q, one), tensor(k, three), tensor(v, three), tensor(o, one))) {
    attention(context, tensor(q, one), tensor(k, three), tensor(v, three), tensor(o, one), {},
              {pick});
    EXPECT_EQ(o[0], 2.0F) << pick;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionOn, backends, name_of_backend);

TEST(AttentionCpu, AnyNumberOfThreadsGivesTheSameBitsInEveryRung) {
  struct Case {
    Extents q, k;
    std::int64_t value_width;
    bool causal;
    std::int64_t window = 0;
  };
  const Case cases[] = {
      {{1, 2, 3, 64}, {1, 1, 5000, 64}, 64, false},  // split keys
      {{2, 1, 1, 128}, {2, 1, 1500, 128}, 128, false},
      {{1, 3, 1, 16}, {1, 3, 75, 16}, 51, false},
      {{2, 4, 130, 24}, {2, 2, 200, 24}, 17, true},  // several blocks of rows
      {{1, 2, 3, 64}, {1, 1, 5000, 64}, 64, true, 3000},
      {{2, 4, 130, 24}, {2, 2, 200, 24}, 17, true, 50},
  };
  for (const Case& c : cases) {
    Extents values = c.k;
    values[3] = c.value_width;
    Extents rows = c.q;
    rows[3] = c.value_width;
    auto q = random_values(c.q.product(), 10);
    auto k = random_values(c.k.product(), 11);
    auto v = random_values(values.product(), 12);
    std::vector<float> o(static_cast<std::size_t>(rows.product()));
    std::vector<float> lse(static_cast<std::size_t>(rows.product() / rows[3]));
    const Extents heads{rows[0], rows[1], rows[2]};
    const AttentionOptions options{
        .causal = c.causal, .window = c.window, .lse = tensor(lse, heads)};
    const Attention::Call call{.q = tensor(q, c.q),
                               .k = tensor(k, c.k),
                               .v = tensor(v, values),
                               .o = tensor(o, rows),
                               .options = options};
    Context alone = Context::cpu(1);
    for (const auto pick : rungs_that_take<Attention>(bind<Attention>(call), alone)) {
      std::vector<float> one;
      std::vector<float> one_lse;
      for (const int threads : {1, 2, 3, 7, 16}) {
        Context context = Context::cpu(threads);
        std::fill(o.begin(), o.end(), nan);
        attention(context, call.q, call.k, call.v, call.o, options, {pick});
        if (threads == 1) {
          one = o;
          one_lse = lse;
        }
        EXPECT_EQ(o, one) << pick << ' ' << threads;
        EXPECT_EQ(lse, one_lse) << pick << ' ' << threads;
      }
    }
  }
}

TEST(Attention, WrongCallsAreNamed) {
  Context context = Context::cpu();
  std::vector<float> x(2 * 4 * 3 * 8);
  std::vector<float> y(x.size());
  const Extents shape{2, 4, 3, 8};
  const auto says = [&](const std::string& part, const Extents& k, const Extents& v,
                        const Extents& o, const AttentionOptions& options = {}) {
    expect_text(message_of([&] {
                  attention(context, tensor(x, shape), ConstTensorRef(x.data(), k),
                            ConstTensorRef(x.data(), v), TensorRef(y.data(), o), options);
                }),
                part);
  };
  says("k has shape", {4, 3, 8}, shape, shape);
  says("k is 2x4x3x7", {2, 4, 3, 7}, shape, shape);
  says("v is 2x4x2x8", {2, 4, 3, 8}, {2, 4, 2, 8}, shape);
  says("o is 2x4x3x7", shape, shape, {2, 4, 3, 7});
  says("a divisor of 4", {2, 3, 2, 8}, {2, 3, 2, 8}, shape);
  says("vectors of 0 elements", shape, {2, 4, 3, 0}, {2, 4, 3, 0});
  says("scale is -1", shape, shape, shape, {.scale = -1});
  says("scale is inf", shape, shape, shape, {.scale = infinity});
  says("window is -1; accepted: 0, for none, or more", shape, shape, shape,
       {.causal = true, .window = -1});
  says("window is 9; accepted: 0, for none, or with causal", shape, shape, shape, {.window = 9});
  std::vector<float> lse(2 * 4 * 2);
  says("lse is 2x4x2", shape, shape, shape, {.lse = tensor(lse, {2, 4, 2})});
  std::vector<std::int32_t> lengths(3);
  says("key_lengths is 3", shape, shape, shape,
       {.key_lengths = ConstTensorRef(lengths.data(), {3})});
  expect_text(message_of([&] {
                attention(context, tensor(x, shape), tensor(x, shape), tensor(x, shape),
                          tensor(x, shape));
              }),
              "overlap");
}

TEST(Attention, TheMaskByQueriesIsTheMaskByKeys) {
  for (int at = 0; at < 7 * 7 * 8; ++at) {
    const std::int64_t queries = at % 7;
    const std::int64_t keys = at / 7 % 7;
    const std::int64_t window = window_among(at / 49, keys);
    const KeyMask<std::int64_t> mask{queries, keys, true, window};
    double pairs = 0;
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        const std::int64_t behind = i + keys - queries - j;
        const bool sees = behind >= 0 && (window == 0 || behind < window);
        EXPECT_EQ(mask.sees(i, j), sees) << at;
        EXPECT_EQ(i >= mask.first_query(j) && i < mask.end_query(j), sees) << at;
        pairs += sees ? 1 : 0;
      }
    }
    EXPECT_EQ(count_visible_pairs(queries, keys, true, window), pairs) << at;
    for (std::int64_t adjacent = 1; adjacent <= queries; ++adjacent) {
      for (std::int64_t i = 0; i + adjacent <= queries; ++i) {
        EXPECT_LE(mask.end_key(i + adjacent - 1) - mask.first_key(i),
                  most_visible_keys(adjacent, keys, window));
      }
    }
  }
}

// Teaching rungs are never picked.
TEST(Attention, TheChoiceIsNoTeachingRung) {
  for (const Backend backend : {Backend::cpu, Backend::simt}) {
    const Context context = Context::on(backend);
    const Extents few{4, 8, 1, 128};
    const Extents cache{4, 2, 4096, 128};
    const auto at = [&](const Extents& shape) {
      return ConstTensorRef(static_cast<const void*>(nullptr), DType::bf16, shape);
    };
    Attention::Args args;
    static_cast<Attention::Call&>(args) = {
        .q = at(few),
        .k = at(cache),
        .v = at(cache),
        .o = TensorRef(static_cast<void*>(nullptr), DType::bf16, few)};
    Attention::bind(args);
    const RungInfo& chosen = choose<Attention>(args, context).info;
    EXPECT_FALSE(chosen.teaching) << chosen.name;
    if (backend == Backend::simt) {
      EXPECT_EQ(chosen.name, "split_kv_decode");
    }
  }
}

}  // namespace
}  // namespace rung
