// SPDX-License-Identifier: Apache-2.0
// Properties of attention with e4m3 keys and values, and of their scales.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rung/ops/attention/op/attention.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class AttentionE4m3On : public OnBackend {};

/// A call with e4m3 keys, and copies of the keys that are converted and multiplied by scales.
template <class T>
struct E4m3Call {
  Extents q_shape, k_shape;
  std::vector<T> q, o;
  std::vector<e4m3> k, v;
  std::vector<T> wide_k, wide_v;
  std::vector<float> lse;

  E4m3Call(const Extents& q_shape, const Extents& k_shape)
      : q_shape(q_shape),
        k_shape(k_shape),
        q(random_values<T>(q_shape.product(), 1)),
        o(q.size()),
        k(random_values<e4m3>(k_shape.product(), 2)),
        v(random_values<e4m3>(k_shape.product(), 3)),
        lse(q.size() / static_cast<std::size_t>(q_shape[3])) {}

  /// Converts k and v; the scales are per batch element and head.
  void convert(const std::vector<float>& k_scales, const std::vector<float>& v_scales) {
    const auto head = static_cast<std::size_t>(k_shape[2] * k_shape[3]);
    const auto widened = [&](const std::vector<e4m3>& from, const std::vector<float>& scales) {
      std::vector<T> wide;
      wide.reserve(from.size());
      for (std::size_t at = 0; at < from.size(); ++at) {
        wide.push_back(static_cast<T>(static_cast<float>(from[at]) * scales[at / head]));
      }
      return wide;
    };
    wide_k = widened(k, k_scales);
    wide_v = widened(v, v_scales);
  }

  Attention::Call call(bool converted, const AttentionOptions& options) {
    Attention::Call call{.q = tensor(q, q_shape),
                         .k = tensor(k, k_shape),
                         .v = tensor(v, k_shape),
                         .o = tensor(o, q_shape),
                         .options = options};
    if (converted) {
      call.k = tensor(wide_k, k_shape);
      call.v = tensor(wide_v, k_shape);
    }
    call.options.lse = tensor(lse, {q_shape[0], q_shape[1], q_shape[2]});
    return call;
  }
  /// Returns o, then lse.
  std::vector<float> run(Context& context, std::string_view pick, bool converted,
                         const AttentionOptions& options) {
    std::fill(o.begin(), o.end(), static_cast<T>(nan));
    std::fill(lse.begin(), lse.end(), nan);
    const Attention::Call made = call(converted, options);
    attention(context, made.q, made.k, made.v, made.o, made.options, {pick});
    std::vector<float> results;
    results.reserve(o.size() + lse.size());
    for (const T value : o) results.push_back(static_cast<float>(value));
    results.insert(results.end(), lse.begin(), lse.end());
    return results;
  }
  std::vector<std::string_view> picks(Context& context, const AttentionOptions& options) {
    return picks_for<Attention>(call(false, options), context);
  }
};

/// Calls a generic function for each type of q.
template <class F>
void for_query_types(F&& f) {
  f.template operator()<float>();
  f.template operator()<f16>();
  f.template operator()<bf16>();
}

/// Expects the same bits from CPU rungs; from others, which may add in another order, results
/// within a few roundoffs of the type.
template <class T>
void expect_same(const Context& context, std::string_view pick, const std::vector<float>& got,
                 const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  // The public call may choose another rung for other types.
  const bool is_exact = context.backend() == Backend::cpu && !pick.empty();
  const auto allowed = static_cast<float>(32 * epsilon(dtype_of<T>));
  for (std::size_t at = 0; at < got.size(); ++at) {
    if (std::isnan(expected[at])) {
      ASSERT_TRUE(std::isnan(got[at])) << pick << ' ' << at;
    } else if (is_exact) {
      ASSERT_EQ(got[at], expected[at]) << pick << ' ' << at;
    } else {
      ASSERT_NEAR(got[at], expected[at], allowed * (1 + std::abs(expected[at])))
          << pick << ' ' << at;
    }
  }
}

template <class T>
void expect_scales_as_products(Context& context, std::vector<float> k_scales,
                               std::vector<float> v_scales, AttentionOptions options) {
  E4m3Call<T> call({2, 4, 19, 64}, {2, 2, 75, 64});
  call.convert(k_scales, v_scales);
  AttentionOptions scaled = options;
  scaled.k_scales = tensor(k_scales, {2, 2});
  scaled.v_scales = tensor(v_scales, {2, 2});
  const auto of_converted = picks_for<Attention>(call.call(true, options), context);
  for (const auto pick : call.picks(context, scaled)) {
    // A rung for e4m3 keys alone is compared with the public call.
    const bool takes_both = std::ranges::find(of_converted, pick) != of_converted.end();
    const std::vector<float> expected =
        call.run(context, takes_both ? pick : std::string_view{}, true, options);
    expect_same<T>(context, pick, call.run(context, pick, false, scaled), expected);
    if (k_scales != std::vector<float>(4, 1) || v_scales != k_scales) continue;
    expect_same<T>(context, pick, call.run(context, pick, false, options), expected);
  }
}

TEST_P(AttentionE4m3On, ScalesOfOneAreConvertedKeys) {
  for_query_types([&]<class T>() {
    expect_scales_as_products<T>(context, {1, 1, 1, 1}, {1, 1, 1, 1}, {.causal = true});
  });
}

// Each head of each batch element has scales of its own.
TEST_P(AttentionE4m3On, PowersOfTwoScaleKeysAndValuesExactly) {
  std::vector<float> sinks = {-1, 0, 1, 2};
  std::vector<float> slopes = {0.5F, 0.25F, 0.125F, 0};
  for_query_types([&]<class T>() {
    const std::vector<float> of_k = {1, 0.5F, 2, 0.25F};
    const std::vector<float> of_v = {4, -0.5F, 1, 8};
    expect_scales_as_products<T>(context, of_k, of_v, {});
    expect_scales_as_products<T>(context, of_k, of_v,
                                 {.causal = true, .window = 40, .sinks = tensor(sinks, {4})});
    // The scale counts before the cap.
    expect_scales_as_products<T>(context, of_k, of_v,
                                 {.soft_cap = 2, .slopes = tensor(slopes, {4})});
  });
}

TEST_P(AttentionE4m3On, AKeyScaleOfZeroMakesScoresEqual) {
  std::vector<float> zero = {0};
  std::vector<float> sinks = {0, 0};
  for_query_types([&]<class T>() {
    E4m3Call<T> call({1, 2, 3, 64}, {1, 1, 70, 64});
    const AttentionOptions options{.sinks = tensor(sinks, {2}), .k_scales = tensor(zero, {1, 1})};
    for (const auto pick : call.picks(context, options)) {
      call.run(context, pick, false, options);
      for (const float lse : call.lse) EXPECT_NEAR(lse, std::log(71.0F), 1e-5F) << pick;
    }
  });
}

// Without a key, only the sink counts, however small the unit of scores is.
TEST_P(AttentionE4m3On, AKeyScaleOfZeroLeavesASinkWithoutKeys) {
  std::vector<float> zero = {0};
  std::vector<float> sinks = {-200, -200};
  std::vector<std::int32_t> lengths = {0};
  for_query_types([&]<class T>() {
    E4m3Call<T> call({1, 2, 3, 64}, {1, 1, 70, 64});
    const AttentionOptions options{.key_lengths = tensor(lengths, {1}),
                                   .sinks = tensor(sinks, {2}),
                                   .k_scales = tensor(zero, {1, 1})};
    for (const auto pick : call.picks(context, options)) {
      call.run(context, pick, false, options);
      for (const float lse : call.lse) EXPECT_NEAR(lse, -200, 1e-3) << pick;
    }
  });
}

TEST_P(AttentionE4m3On, OneScaleServesAllHeads) {
  std::vector<float> one = {0.375F};
  std::vector<float> each(4, 0.375F);
  E4m3Call<bf16> call({2, 4, 5, 64}, {2, 2, 40, 64});
  AttentionOptions broadcast;
  broadcast.k_scales = broadcast.v_scales =
      ConstTensorRef(static_cast<const float*>(one.data()), {2, 2}, {0, 0});
  AttentionOptions separate;
  separate.k_scales = separate.v_scales = tensor(each, {2, 2});
  for (const auto pick : call.picks(context, separate)) {
    const std::vector<float> expected = call.run(context, pick, false, separate);
    EXPECT_EQ(call.run(context, pick, false, broadcast), expected) << pick;
  }
}

// One key: o is its value, and lse its score.
TEST_P(AttentionE4m3On, EveryCodeIsConvertedExactly) {
  for_query_types([&]<class T>() {
    E4m3Call<T> call({256, 1, 1, 16}, {256, 1, 1, 16});
    for (std::size_t code = 0; code < 256; ++code) {
      for (std::size_t c = 0; c < 16; ++c) {
        call.q[code * 16 + c] = static_cast<T>(c == 5 ? 1.0F : 0.0F);
        // NaN counts even in products with 0.
        const bool is_nan = (code & 0x7f) == 0x7f;
        call.k[code * 16 + c] =
            e4m3::from_bits(static_cast<std::uint8_t>(c == 5 || is_nan ? code : (code + c) % 0x78));
        call.v[code * 16 + c] = e4m3::from_bits(static_cast<std::uint8_t>(code + 16 * c));
      }
    }
    for (const auto pick : call.picks(context, {})) {
      call.run(context, pick, false, {.scale = 1});
      for (std::size_t at = 0; at < call.o.size(); ++at) {
        const auto score = static_cast<float>(call.k[at / 16 * 16 + 5]);
        const auto value = static_cast<float>(call.v[at]);
        const auto got = static_cast<float>(call.o[at]);
        if (std::isnan(score) || std::isnan(value)) {
          ASSERT_TRUE(std::isnan(got)) << pick << ' ' << at;
        } else {
          ASSERT_EQ(got, value) << pick << ' ' << at;
        }
        if (at % 16 != 0 || std::isnan(score)) continue;
        ASSERT_NEAR(call.lse[at / 16], score, 1e-6F * std::abs(score)) << pick << ' ' << at;
      }
    }
  });
}

// The last key has NaN in k, the one before in a column of v; the keys after are not seen.
TEST_P(AttentionE4m3On, NaNReachesOnlyQueriesThatSeeIt) {
  std::vector<float> scales = {2};
  std::vector<std::int32_t> lengths = {66};
  const e4m3 not_a_number = e4m3::from_bits(0xff);
  for_query_types([&]<class T>() {
    E4m3Call<T> call({1, 1, 20, 64}, {1, 1, 70, 64});
    for (std::size_t at = std::size_t{66} * 64; at < call.k.size(); ++at) {
      call.k[at] = call.v[at] = not_a_number;
    }
    call.k[65 * 64 + 3] = not_a_number;
    call.v[64 * 64 + 7] = not_a_number;
    const AttentionOptions options{.causal = true,
                                   .key_lengths = tensor(lengths, {1}),
                                   .k_scales = tensor(scales, {1, 1}),
                                   .v_scales = tensor(scales, {1, 1})};
    for (const auto pick : call.picks(context, options)) {
      const std::vector<float> results = call.run(context, pick, false, options);
      for (std::size_t at = 0; at < call.o.size(); ++at) {
        const std::size_t query = at / 64;
        const bool expected = query == 19 || (query == 18 && at % 64 == 7);
        ASSERT_EQ(std::isnan(results[at]), expected) << pick << ' ' << at;
      }
      EXPECT_TRUE(std::isnan(call.lse[19])) << pick;
      EXPECT_FALSE(std::isnan(call.lse[18])) << pick;
    }
  });
}

// Both batch elements have the same pages and scales of their own.
TEST_P(AttentionE4m3On, PagesAreScaledByBatchElement) {
  std::vector<std::int32_t> pages = {2, 0, 1, 2, 0, 1};
  std::vector<float> k_scales = {0.75F, 1.5F, 0.3F, 1};
  std::vector<float> v_scales = {1, -2, 0.7F, 3};
  for_query_types([&]<class T>() {
    E4m3Call<T> paged({2, 4, 3, 64}, {3, 2, 16, 64});
    E4m3Call<T> plain({2, 4, 3, 64}, {2, 2, 48, 64});
    for (std::size_t at = 0; at < plain.k.size(); ++at) {
      const std::size_t j = at / 64 % 48;
      const auto page = static_cast<std::size_t>(pages[j / 16]);
      const std::size_t from = ((page * 2 + at / 64 / 48 % 2) * 16 + j % 16) * 64 + at % 64;
      plain.k[at] = paged.k[from];
      plain.v[at] = paged.v[from];
    }
    AttentionOptions options{
        .causal = true, .k_scales = tensor(k_scales, {2, 2}), .v_scales = tensor(v_scales, {2, 2})};
    AttentionOptions with_pages = options;
    with_pages.page_table = tensor(pages, {2, 3});
    for (const auto pick : paged.picks(context, with_pages)) {
      const std::vector<float> expected = plain.run(context, pick, false, options);
      expect_same<T>(context, pick, paged.run(context, pick, false, with_pages), expected);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionE4m3On, backends, name_of_backend);

TEST(AttentionE4m3, WrongTypesAndScalesAreNamed) {
  Context context = Context::cpu();
  std::vector<float> f(2 * 4 * 3 * 8);
  std::vector<double> d(f.size());
  std::vector<bf16> h(f.size());
  std::vector<bf16> o(f.size());
  std::vector<double> wide_o(f.size());
  std::vector<e4m3> k(f.size());
  const Extents shape{2, 4, 3, 8};
  const auto says = [&](std::string_view part, const ConstTensorRef& q, const ConstTensorRef& keys,
                        const ConstTensorRef& values, const AttentionOptions& options) {
    const TensorRef result = q.dtype == DType::f64 ? tensor(wide_o, shape) : tensor(o, shape);
    expect_text(message_of([&] { attention(context, q, keys, values, result, options); }), part);
  };
  const ConstTensorRef of_q = tensor(h, shape);
  const ConstTensorRef of_k = tensor(k, shape);
  says("k_scales is given for k and v of bf16; accepted with e4m3 only", of_q, of_q, of_q,
       {.k_scales = tensor(f, {2, 4})});
  says("v_scales is given for k and v of bf16; accepted with e4m3 only", of_q, of_q, of_q,
       {.v_scales = tensor(f, {2, 4})});
  says("k_scales is 2x3; accepted: 2x4", of_q, of_k, of_k, {.k_scales = tensor(f, {2, 3})});
  says("v_scales is bf16; accepted: f32", of_q, of_k, of_k, {.v_scales = tensor(h, {2, 4})});
  says("v is bf16; accepted: e4m3", of_q, of_k, of_q, {});
  says("v is e4m3; accepted: bf16", of_q, of_q, of_k, {});
  says("q is f64; accepted for q: f32, f16, bf16", tensor(d, shape), of_k, of_k, {});
}

}  // namespace
}  // namespace rung
