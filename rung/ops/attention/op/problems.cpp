// SPDX-License-Identifier: Apache-2.0
// attention: problems for checks and benchmarks, their inputs, and the command line.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/core/require.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/harness/problem_writer.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/mask.hpp"
#include "rung/ops/attention/shared/problem_options.hpp"

namespace rung {
namespace {

/// Scattered pages of `page` problems: more than are used, the k-th page of a batch element
/// anywhere among them.
struct Pages {
  std::int64_t batch, per_element, size;

  Pages(std::int64_t batch, std::int64_t keys, std::int64_t size)
      : batch(batch), per_element(size == 0 ? 0 : ceil_div(keys, size)), size(size) {}
  [[nodiscard]] std::int64_t used() const { return batch * per_element; }
  /// Returns the number of pages: no multiple of 7, so that scatter() hits each once.
  [[nodiscard]] std::int64_t count() const { return used() + 2 + (used() % 7 == 5 ? 1 : 0); }
  [[nodiscard]] std::int64_t scatter(std::int64_t number) const {
    return (number * 7 + 3) % count();
  }
  /// Returns the number whose page is `page`; used() or more for a page that is not used.
  [[nodiscard]] std::int64_t number_of(std::int64_t page) const {
    std::int64_t number = 0;
    while (scatter(number) != page) ++number;
    return number;
  }
};

/// Coordinates of an element of k or v.
struct ElementIndex {
  std::int64_t batch_element, head, key, column;
};
struct Order {
  std::int64_t heads, keys, width;
  bool bshd;
  Pages pages;  // of size 0: none
  /// An element of a page that is not used has a key beyond the last.
  [[nodiscard]] ElementIndex operator()(std::int64_t index) const {
    const std::int64_t rows = pages.size == 0 ? keys : pages.size;
    const std::int64_t row = index / width;
    const std::int64_t key = bshd ? row / heads % rows : row % rows;
    const std::int64_t head = bshd ? row % heads : row / rows % heads;
    const std::int64_t first = row / (heads * rows);
    if (pages.size == 0) return {first, head, key, index % width};
    const std::int64_t number = pages.number_of(first);
    if (number >= pages.used()) return {0, head, pages.per_element * pages.size, index % width};
    return {number / pages.per_element, head, number % pages.per_element * pages.size + key,
            index % width};
  }
};

/// Masks of a problem's batch elements.
struct Masks {
  std::int64_t queries, keys;
  bool causal;
  std::int64_t window;
  bool lengths;
  [[nodiscard]] KeyMask<std::int64_t> operator()(std::int64_t batch_element) const {
    const auto stated = static_cast<std::int32_t>(stated_length(batch_element, keys));
    return {queries, lengths ? key_length(stated, keys) : keys, causal, window};
  }
};

/// Returns a maker that stores NaN in keys no query sees. The last key, which only the last query
/// sees under a causal mask, has a score of + or -infinity and NaN in every third column of v. The
/// first key within any window, which the last queries no longer see, has NaN in v in the same
/// columns.
ValueMaker special_values(const Order& order, bool of_v, const Masks& masks) {
  return [=](std::int64_t index, double uniform) {
    const ElementIndex at = order(index);
    const KeyMask<std::int64_t> mask = masks(at.batch_element);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    if (!mask.is_seen(at.key)) return nan;
    if (at.key == order.keys - 1) {
      if (of_v && at.column % 3 == 0) return nan;
      if (!of_v && at.column == 0) return std::numeric_limits<double>::infinity();
    }
    if (masks.window > 0 && at.key == mask.first_key(0) && at.column % 3 == (of_v ? 1 : 0)) {
      return nan;
    }
    return 4 * uniform - 2;
  };
}

/// Keys of a head whose scores are -infinity: the first half, all, or the last half.
struct MaskedKeys {
  std::int64_t first, last;
  MaskedKeys(const Order& order, const ElementIndex& at) {
    const std::int64_t kind = (at.batch_element * order.heads + at.head) % 3;
    first = kind == 2 ? order.keys / 2 : 0;
    last = kind == 0 ? (order.keys + 1) / 2 : order.keys;
  }
};

/// Returns elements of q for masked problems: column 0 is positive, and column 0 of a masked key is
/// -infinity, so all its scores are. In v, the middle masked key holds NaN and infinities in two of
/// three columns; keys that no query sees hold NaN.
double masked_q(std::int64_t column, double uniform) {
  return column == 0 ? 0.5 + uniform : 4 * uniform - 2;
}
ValueMaker masked_values(const Order& order, bool of_v, const Masks& masks) {
  return [=](std::int64_t index, double uniform) {
    const ElementIndex at = order(index);
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (!masks(at.batch_element).is_seen(at.key)) return nan;
    const MaskedKeys masked(order, at);
    if (!of_v && at.column == 0 && at.key >= masked.first && at.key < masked.last) return -infinity;
    if (of_v && at.key == (masked.first + masked.last) / 2) {
      if (at.column % 3 == 0) return nan;
      if (at.column % 3 == 1) return at.column % 2 == 0 ? infinity : -infinity;
    }
    return 4 * uniform - 2;
  };
}

/// Returns whether a tensor of shape B x H x S x D is stored in the order B x S x H x D.
bool has_heads_inside(const ConstTensorRef& tensor) {
  const Extents& strides = tensor.strides;
  return tensor.shape[1] > 1 && tensor.shape[2] > 1 && strides[1] > 0 && strides[1] < strides[2];
}

// Shapes: prompts, grouped heads, few queries against a long cache; various lengths and widths.
constexpr std::string_view survey_patterns[] = {
    "(bf16*3|f16*2|f32*2|f64) 1..8x1..32x1..8192x(64|96|128*3|192|256)(*2|,causal)",
    ("(bf16*3|f16*2|f32) 1..8x(8|16|32)x1..4096x(64|128*2|256),kv=(1|2|4|8)"
     "(*4|,causal|,causal,window=1..4096)"),
    ("(bf16*3|f16*2|f32) 1..256x(8|16|32|64)x1..16x(64|128*2|256),kv=(1|2|8),keys=1..65536"
     "(*4|,causal|,causal,window=1..8192)"),
    "(bf16*2|f16|f32*2|f64) 1..16x1..16x1..2048x1..256,keys=1..4096(*2|,causal)(*2|,lse)",
    "(bf16|f16|f32) 1..4x1..16x1..1024x1..512,dv=1..512",
    ("(bf16*2|f16) 1..128x(8|16|32|64)x1..16x(64|128*2|256),kv=(1|2|8),keys=1..65536"
     "(|,causal),e4m3,scaled"),
    "(bf16|f16|f32) 1..8x(8|16|32)x1..4096x(64|128|256),kv=(2|8)(|,causal),e4m3(|,scaled)",
};
const Survey<Attention> survey{survey_patterns};

}  // namespace

std::vector<Problem> Attention::check_problems(Backend backend) {
  std::vector<Problem> problems = Problem::parse_all({
      "f32 0x2x3x8",                               // nothing to write
      "f32 2x3x0x8,lse",                           //
      "f32 1x2x5x8,keys=0,lse",                    // no keys: zeros
      "f32 1x1x1x1,lse",                           // one key: o is v
      "f32 1x2x33x64",                             //
      "f32 2x3x17x40,causal,lse",                  // as many queries as keys
      "f32 1x4x9x32,kv=2,keys=70",                 // pairs of heads share keys
      "f32 1x2x70x16,keys=9,causal,lse",           // the first queries see none
      "f32 1x3x9x16,keys=75,causal,kv=1",          // every query sees some keys
      "f32 1x2x3x24,dv=40,keys=100",               // values wider than keys
      "f32 1x2x40x7,dv=5,lse",                     // no multiple of a vector
      "f32 6x2x5x32,keys=50,lengths,lse",          //
      "f32 5x2x20x32,keys=50,lengths,causal,lse",  //
      "f32 1x2x20x300,dv=260",                     // wider than any tile
      "f32 1x1x65x128,scale=0.3",                  //
      "f32 2x2x30x64,causal,special,lse",          //
      "f32 5x2x7x16,keys=33,lengths,special,lse",  //
      "f32 2x3x21x32,bshd,causal",                 //
      "f64 1x2x19x40,keys=50,causal,lse",          //
      "f64 5x2x3x24,kv=1,keys=77,lengths",         //
      "f16 1x2x40x64,lse",                         //
      "f16 2x4x70x32,kv=2,causal",                 //
      "f16 1x2x150x128,keys=130",                  //
      "f16 1x1x33x80,dv=48,keys=65",               //
      "bf16 1x2x64x128,causal,lse",                //
      "bf16 1x1x129x64,keys=300,causal",           //
      "bf16 2x2x35x256,keys=90",                   //
      "bf16 5x2x40x64,keys=100,lengths,causal,lse,special",
      "bf16 1x2x50x96,bshd",                               //
      "bf16 1x2x37x36",                                    // rows not aligned to 16 bytes
      "bf16 2x8x1x128,kv=2,keys=300,lse",                  // a query against a cache
      "f16 6x8x1x64,kv=1,keys=517,lengths",                //
      "f16 1x2x1x64,kv=1,keys=12000,lse",                  // many blocks share a head
      "bf16 5x16x4x128,kv=2,keys=200,lengths,causal,lse",  // a few
      "f32 2x6x3x64,kv=2,keys=400,causal",                 //
      "f16 1x4x16x256,kv=4,keys=130,causal,special",       //
  });
  const std::vector<Problem> masked = Problem::parse_all({
      "f32 3x2x5x16,keys=40,masked,lse",
      "f32 3x2x9x24,kv=1,keys=70,causal,masked,lse",
      "f32 5x2x7x16,keys=33,lengths,masked,lse",
      "f64 3x1x4x8,keys=20,causal,masked,lse",
      "f16 3x2x20x64,keys=70,causal,masked,lse",
      "bf16 3x4x20x40,kv=2,dv=64,keys=130,lengths,causal,masked,lse",
      "f32 3x4x2x64,kv=1,keys=400,causal,masked,lse",  // split keys: parts see -infinity alone
      "bf16 3x8x1x128,kv=1,keys=300,masked,lse",
  });
  problems.insert(problems.end(), masked.begin(), masked.end());
  const std::vector<Problem> windows = Problem::parse_all({
      "f32 1x2x33x16,causal,window=1,lse",           // o is v
      "f32 2x3x17x40,causal,window=5,lse",           //
      "f32 1x4x9x32,kv=2,keys=70,causal,window=20",  //
      "f32 1x2x70x16,keys=9,causal,window=4,lse",    // the first queries see none
      "f32 1x2x20x24,causal,window=100",             // a window of more keys than exist
      "f32 5x2x20x32,keys=50,lengths,causal,window=13,lse",
      "f32 5x2x9x16,keys=33,lengths,causal,window=6,special,lse",
      "f32 1x1x150x16,keys=200,causal,window=70",  // wider than a tile of keys
      "f32 2x6x3x64,kv=2,keys=400,causal,window=90,special",
      "f32 3x2x9x24,kv=1,keys=70,causal,window=25,masked,lse",
      "f64 1x2x19x40,keys=50,causal,window=11,lse",
      "f16 2x4x70x32,kv=2,causal,window=17",
      "f16 1x2x16x128,keys=200,causal,window=199",  // hides one key, from the last query of a warp
      "bf16 2x1x64x64,keys=597,lengths,causal,window=199,special",  // and of a warpgroup
      "f16 1x1x100x256,keys=170,causal,window=33",
      "bf16 1x1x200x64,keys=210,causal,window=130,special",
      "bf16 1x2x150x128,keys=260,causal,window=80,lse,special",
      "bf16 5x2x40x64,keys=100,lengths,causal,window=21,lse,special",
      "bf16 3x4x20x40,kv=2,dv=64,keys=130,lengths,causal,window=31,masked,lse",
      "bf16 2x8x1x128,kv=2,keys=300,causal,window=100,lse,masked",  // a query against a cache
      "bf16 5x16x4x128,kv=2,keys=200,lengths,causal,window=70,special,lse",
  });
  problems.insert(problems.end(), windows.begin(), windows.end());
  const std::vector<Problem> rules = Problem::parse_all({
      "f32 1x2x9x16,keys=40,cap=2",
      "f32 2x4x20x24,kv=2,causal,cap=0.5,lse",
      "f32 2x3x17x16,keys=30,slopes,lse",  // keys after the diagonal, too
      "f32 2x4x20x24,kv=2,causal,slopes",
      "f32 2x2x20x24,keys=33,bias,lse",
      "f32 2x3x15x16,causal,sinks,lse",
      "f32 1x2x20x16,keys=9,causal,sinks,lse",  // the first queries see only the sink
      "f32 5x4x11x16,kv=2,keys=50,lengths,causal,window=13,cap=3,slopes,bias,sinks,lse",
      "f32 2x2x5x16,keys=0,sinks,lse",
      "f32 3x2x5x16,keys=40,masked,sinks,lse",
      "f32 5x2x7x16,keys=33,lengths,special,cap=2,slopes,sinks,lse",
      "f64 2x4x9x24,kv=2,keys=50,causal,cap=2,slopes,bias,sinks,lse",
      "f16 2x4x40x64,kv=2,causal,cap=2,lse",
      "f16 1x2x70x64,keys=90,slopes,sinks,lse",
      "bf16 2x2x40x128,causal,bias,sinks,lse",
      "bf16 1x2x150x64,causal,window=80,cap=3,slopes,sinks",
      "bf16 1x2x40x256,keys=90,cap=1,bias",
      "bf16 2x8x1x128,kv=2,keys=300,cap=2,slopes,sinks,lse",  // a query against a cache
      "f16 5x16x4x64,kv=2,keys=200,lengths,causal,bias,sinks,lse",
      "f32 2x6x3x64,kv=2,keys=400,causal,cap=2,slopes,bias,sinks,lse",
      "bf16 5x2x40x64,keys=100,lengths,causal,lse,special,cap=4,sinks",
  });
  problems.insert(problems.end(), rules.begin(), rules.end());
  const std::vector<Problem> packed = Problem::parse_all({
      "f32 5x2x9x16,packed,lse",
      "f32 4x4x20x24,kv=2,packed,causal,lse",
      "f32 5x2x12x16,keys=30,packed,causal,window=7,cap=2,slopes,sinks,lse",
      "f32 3x2x70x16,keys=9,packed,causal,lse",  // more queries than keys
      "f32 0x2x3x8,packed",
      "f64 5x2x11x24,packed,causal,bshd",
      "f16 5x4x70x64,kv=2,packed,causal,lse",
      "bf16 5x2x150x64,keys=90,packed,lse",
      "bf16 4x2x100x128,packed,causal,window=33,bshd",
      "bf16 4x2x40x256,packed",
      "bf16 9x8x2x128,kv=2,keys=300,packed,causal,lse",             // few queries against caches
      "bf16 5x2x37x36,packed,causal",                               // rows not aligned to 16 bytes
      "f32 2x2x3x24,kv=1,keys=700,packed,causal,slopes,sinks,lse",  // enough keys to be split
      "bf16 4x4x2x64,kv=2,keys=700,packed,causal,lse",
      "f32 5x2x9x16,keys=20,packed=keys,lse",
      "f32 4x4x5x24,kv=2,keys=40,packed=keys,causal,window=7,cap=2,slopes,sinks,lse",
      "f32 0x2x3x8,packed=keys",
      "f64 5x2x11x24,packed=keys,causal,bshd",
      "f16 5x4x70x64,kv=2,keys=90,packed=keys,causal,lse",
      "bf16 4x2x40x128,keys=150,packed=keys,causal,window=33,bshd",
      "bf16 5x2x37x36,packed=keys",                               // rows not aligned to 16 bytes
      "bf16 9x8x2x128,kv=2,keys=300,packed=keys,causal,lse",      // few queries against caches
      "f32 3x2x3x24,kv=1,keys=700,packed=keys,slopes,sinks,lse",  // enough keys to be split
      "f32 5x4x9x24,kv=2,keys=30,packed=queries,lengths,causal,lse",
      "f16 5x2x70x64,keys=96,page=16,packed=queries,lengths,causal,lse",
      "bf16 5x2x40x128,keys=100,packed=queries,causal,window=33,cap=2",
      "bf16 9x8x2x128,kv=2,keys=300,packed=queries,causal,lse",
  });
  problems.insert(problems.end(), packed.begin(), packed.end());
  const std::vector<Problem> paged = Problem::parse_all({
      "f32 2x2x9x16,keys=32,page=8",
      "f32 5x4x3x24,kv=2,keys=60,page=4,lengths,causal,lse",
      "f32 5x2x7x16,keys=33,page=3,lengths,special,lse",
      "f32 5x4x11x16,kv=2,keys=50,page=1,lengths,causal,window=13,cap=3,slopes,bias,sinks,lse",
      "f32 3x2x5x16,keys=40,page=8,masked,lse",
      "f64 2x4x3x24,kv=2,keys=70,page=10,causal,bshd",
      "f16 2x2x40x64,keys=128,page=16,causal,lse",
      "bf16 5x2x40x64,keys=96,page=16,lengths,causal,lse,special",
      "bf16 2x8x1x128,kv=2,keys=320,page=16,lse",
      "bf16 5x16x4x128,kv=2,keys=192,page=64,lengths,causal,lse",
      "f16 6x8x1x64,kv=1,keys=511,page=7,lengths",
      "bf16 3x8x2x256,kv=2,keys=256,page=256,causal,window=100,sinks",
      "bf16 2x4x70x128,kv=2,keys=160,page=32,causal,window=90,bshd",
      "f32 2x6x3x64,kv=2,keys=400,page=16,causal",
  });
  problems.insert(problems.end(), paged.begin(), paged.end());
  const std::vector<Problem> e4m3_keys = Problem::parse_all({
      "f32 0x2x3x8,e4m3,scaled",  // nothing to write
      "f32 1x2x5x8,keys=0,e4m3,scaled,lse",
      "f32 2x4x9x40,kv=2,keys=70,e4m3,scaled,causal,lse",
      "f32 5x4x11x16,kv=2,keys=50,lengths,causal,window=13,cap=3,slopes,bias,sinks,lse,e4m3,scaled",
      "f32 2x6x3x64,kv=2,keys=400,causal,cap=2,slopes,bias,sinks,lse,e4m3,scaled",
      "f16 1x2x40x64,e4m3,lse",
      "f16 2x4x70x32,kv=2,causal,e4m3,scaled,sinks",
      "f16 6x8x1x64,kv=1,keys=517,lengths,e4m3,scaled",
      "f16 6x8x1x64,kv=1,keys=511,page=7,lengths,e4m3,scaled",
      "f16 1x2x150x80,dv=48,keys=130,cap=2,e4m3,scaled",
      "bf16 1x2x37x36,e4m3,scaled",  // rows not aligned to 16 bytes
      "bf16 2x8x1x128,kv=2,keys=300,e4m3,scaled,lse",
      "bf16 2x8x1x128,kv=2,keys=320,page=16,e4m3,scaled,lse",
      "bf16 5x16x4x128,kv=2,keys=192,page=64,lengths,causal,e4m3,scaled,lse",
      "bf16 5x2x40x64,keys=100,lengths,causal,lse,special,e4m3,scaled",
      "bf16 5x2x150x64,keys=90,packed,causal,window=33,e4m3,scaled,lse",
      "bf16 9x8x2x128,kv=2,keys=300,packed,causal,sinks,e4m3,scaled",
      "bf16 5x8x2x128,kv=2,keys=300,packed=keys,causal,e4m3,scaled,lse",
      "bf16 2x4x70x128,kv=2,keys=160,page=32,causal,window=90,bshd,e4m3,scaled",
      "bf16 1x2x40x256,dv=72,keys=90,e4m3,scaled",
  });
  problems.insert(problems.end(), e4m3_keys.begin(), e4m3_keys.end());
  if (backend == Backend::simt) return problems;
  const std::vector<Problem> larger = Problem::parse_all({
      "f32 1x2x257x64,causal",
      "f32 1x4x130x128,kv=2",
      "bf16 1x2x300x128,kv=1,causal,lse",
      "f16 1x2x333x64",
      "bf16 1x1x260x256,causal",
      "bf16 17x8x1x128,kv=2,keys=700,lengths",
      "f16 1x32x1x128,kv=4,keys=3000",
      "f64 1x2x130x64,causal",
      "f16 1x2x700x64,keys=900,causal,window=256,special",
      "bf16 1x2x600x128,kv=1,causal,window=150,lse",
      "bf16 1x1x260x256,causal,window=100",
      "bf16 17x8x1x128,kv=2,keys=3000,lengths,causal,window=1500",
      "f32 1x2x3x16,keys=3000,causal,window=1200,masked,lse",
      "f32 3x2x2x16,keys=1100,masked,lse",  // enough keys to be split on a CPU
      "bf16 3x8x1x64,kv=1,keys=2100,lengths,masked,lse",
      "bf16 1x4x300x128,kv=2,causal,e4m3,scaled,lse",
      "bf16 17x8x1x128,kv=2,keys=3000,lengths,e4m3,scaled",
  });
  problems.insert(problems.end(), larger.begin(), larger.end());
  return problems;
}

std::vector<Problem> Attention::bench_problems(Backend backend) {
  switch (backend) {
    case Backend::cpu:
    case Backend::opencl:
      return Problem::parse_all({"f32 1x8x1024x64", "f32 1x8x1024x128,causal",
                                 "bf16 1x8x1024x128,causal", "f32 8x32x1x128,kv=8,keys=4096",
                                 "bf16 8x32x1x128,kv=8,keys=4096",
                                 "bf16 8x32x1x128,kv=8,keys=4096,e4m3,scaled"});
    case Backend::cuda:
      return Problem::parse_all(
          {"bf16 2x32x8192x64", "bf16 2x32x8192x128", "bf16 2x32x8192x128,causal",
           "bf16 2x16x8192x256,causal", "f16 2x32x2048x128,causal", "f32 1x16x4096x64",
           "bf16 32x64x1x128,kv=8,keys=8192", "bf16 128x64x1x128,kv=8,keys=32768",
           "bf16 32x64x8x128,kv=8,keys=8192,causal",
           "bf16 32x64x1x128,kv=8,keys=8192,e4m3,scaled"});
    case Backend::simt:
      return Problem::parse_all({"f32 1x2x64x64", "bf16 1x2x64x64,causal"});
  }
  return {};
}

Attention::Call Attention::make(const Problem& problem, Inputs& inputs) {
  problem.expect(
      name, 4,
      {"kv", "keys", "dv", "scale", "causal", "window", "cap", "slopes", "bias", "sinks", "lse",
       "lengths", "packed", "page", "bshd", "e4m3", "scaled", "special", "masked"});
  const std::int64_t batch = problem.extents[0];
  const std::int64_t heads = problem.extents[1];
  const std::int64_t queries = problem.extents[2];
  const std::int64_t width = problem.extents[3];
  const std::int64_t kv_heads = problem.integer("kv", heads, Problem::count);
  const std::int64_t keys = problem.integer("keys", queries, Problem::count);
  const std::int64_t value_width = problem.integer("dv", width, Problem::count);
  const bool bshd = problem.has("bshd");
  const bool lengths = problem.has("lengths");
  const ProblemPacking packing(name, problem);
  const Pages pages(batch, keys, problem.integer("page", 0, Problem::count));
  const bool extreme = problem.has("special") || problem.has("masked");
  if (packing.keys && (extreme || lengths || pages.size > 0 || problem.has("bias"))) {
    reject(name, "packed is given; accepted without special, masked, lengths, page and bias");
  }
  if (packing.queries && (extreme || problem.has("bias"))) {
    reject(name, "packed=queries is given; accepted without special, masked and bias");
  }
  if (pages.size > 0 && keys % pages.size != 0) {
    reject(name, fmt::format("keys is {}; accepted: a multiple of {}, the keys of a page", keys,
                             pages.size));
  }
  const DType key_type = problem.has("e4m3") ? DType::e4m3 : problem.dtype;
  if (key_type == DType::e4m3 && problem.has("masked")) {
    reject(name, "e4m3 is given; accepted without masked: e4m3 has no infinity");
  }
  if (key_type != DType::e4m3 && problem.has("scaled")) {
    reject(name, "scaled is given; accepted with e4m3 only");
  }
  const bool causal = problem.has("causal");
  const std::int64_t window = problem.integer("window", 0, Problem::count);
  const Masks masks{queries, keys, causal, causal ? window_among(window, keys) : 0, lengths};

  // Adversarial scores must leave several weights above zero, or v would hardly affect o.
  double narrowed = 1.0;
  if (inputs.variant().values == Values::adversarial) {
    narrowed = problem.dtype == DType::f64 ? 0x1p-98 : problem.dtype == DType::f16 ? 1 : 0x1p-28;
  }
  const double narrowed_keys = key_type == DType::e4m3 ? 1.0 : narrowed;
  const auto input = [&](std::string_view tensor, DType dtype, std::int64_t elements,
                         std::int64_t of_heads, std::int64_t rows, std::int64_t columns,
                         double scale, const ValueMaker& maker) {
    const Extents shape = bshd ? Extents{elements, rows, of_heads, columns}
                               : Extents{elements, of_heads, rows, columns};
    ConstTensorRef made = maker ? inputs.input(tensor, dtype, shape, maker)
                                : inputs.input(tensor, dtype, shape, scale);
    if (bshd) {
      std::swap(made.shape[1], made.shape[2]);
      std::swap(made.strides[1], made.strides[2]);
    }
    return made;
  };
  ValueMaker q_maker;
  ValueMaker k_maker;
  ValueMaker v_maker;
  if (problem.has("special")) {
    k_maker = special_values({kv_heads, keys, width, bshd, pages}, false, masks);
    v_maker = special_values({kv_heads, keys, value_width, bshd, pages}, true, masks);
  }
  if (problem.has("masked")) {
    q_maker = [width](std::int64_t index, double uniform) {
      return masked_q(index % width, uniform);
    };
    k_maker = masked_values({kv_heads, keys, width, bshd, pages}, false, masks);
    v_maker = masked_values({kv_heads, keys, value_width, bshd, pages}, true, masks);
  }
  Call call;
  AttentionOptions& options = call.options;
  const std::int64_t query_elements = packing.queries ? 1 : batch;
  const std::int64_t query_rows = packing.queries ? problem_offset(batch, queries, 0) : queries;
  const std::int64_t key_elements = packing.keys ? 1 : pages.size > 0 ? pages.count() : batch;
  const std::int64_t key_rows = packing.keys
                                    ? problem_offset(batch, keys, key_shift(packing, queries, keys))
                                : pages.size > 0 ? pages.size
                                                 : keys;
  call.q = input("q", problem.dtype, query_elements, heads, query_rows, width, narrowed, q_maker);
  call.k = input("k", key_type, key_elements, kv_heads, key_rows, width, narrowed_keys, k_maker);
  call.v = input("v", key_type, key_elements, kv_heads, key_rows, value_width, 1.0, v_maker);
  const DType arithmetic = problem.dtype == DType::f64 ? DType::f64 : DType::f32;
  make_options(problem, packing, {batch, heads, queries, keys, arithmetic}, inputs, options);
  if (pages.size > 0) {
    options.page_table = inputs.input(
        "page_table", DType::i32, {batch, pages.per_element},
        [pages](std::int64_t index, double) { return static_cast<double>(pages.scatter(index)); });
  }
  if (problem.has("scaled")) {
    // A head whose keys are all zeros may have the factor 0.
    options.k_scales = inputs.input(
        "k_scales", DType::f32, {batch, kv_heads},
        [](std::int64_t index, double uniform) { return index % 7 == 5 ? 0 : 0.25 + uniform; });
    options.v_scales = inputs.input("v_scales", DType::f32, {batch, kv_heads},
                                    [](std::int64_t, double uniform) { return 4 * uniform - 2; });
  }
  call.o = inputs.output("o", problem.dtype, {query_elements, heads, query_rows, value_width});
  if (problem.has("lse")) {
    options.lse = inputs.output("lse", arithmetic, {query_elements, heads, query_rows});
  }
  return call;
}

Problem Attention::describe(const Call& call) {
  Args args;
  static_cast<Call&>(args) = call;
  return write_options(args)
      .flag("lse", args.has_lse())
      .integer("page", args.has_pages() ? call.k.shape[2] : 0, 0)
      .flag("bshd", has_heads_inside(call.q) || has_heads_inside(call.k))
      .flag("e4m3", args.has_e4m3_keys())
      .flag("scaled", is_given(call.options.k_scales) || is_given(call.options.v_scales))
      .problem();
}

std::span<const ArgumentSpec> Attention::arguments() {
  using Kind = ArgumentSpec::Kind;
  static constexpr std::array<ArgumentSpec, 16> specs{{
      {"q", Kind::tensor, true, "queries, B x H x Sq x D"},
      {"k", Kind::tensor, true, "keys, B x Hk x Sk x D"},
      {"v", Kind::tensor, true, "values, B x Hk x Sk x Dv"},
      {"lengths", Kind::tensor, false, "i32: how many keys each batch element has"},
      {"query_offsets", Kind::tensor, false, "i32, B + 1: q is packed, 1 x H x T x D"},
      {"key_offsets", Kind::tensor, false, "i32, B + 1: k and v are packed, 1 x Hk x Tk x D"},
      {"page_table", Kind::tensor, false, "i32, B x P: k and v are N x Hk x page x D"},
      {"slopes", Kind::tensor, false, "H: of ALiBi"},
      {"bias", Kind::tensor, false, "B x H x Sq x Sk: added to the scores"},
      {"sinks", Kind::tensor, false, "H: a score without a value"},
      {"k_scales", Kind::tensor, false, "f32, B x Hk: factors of k if it is e4m3"},
      {"v_scales", Kind::tensor, false, "f32, B x Hk: factors of v if it is e4m3"},
      {"cap", Kind::number, false, "soft cap of the scores; default none"},
      {"scale", Kind::number, false, "factor of the scores; default 1/sqrt(D)"},
      {"causal", Kind::flag, false, "a query sees no key behind it; the last query all"},
      {"window", Kind::number, false, "with causal: keys per query, the last ones; default all"},
  }};
  return specs;
}

void Attention::invoke(Context& context, Invocation& call, Pick pick) {
  const ConstTensorRef q = call.tensors.at("q");
  const ConstTensorRef v = call.tensors.at("v");
  AttentionOptions options;
  options.scale = call.number("scale", 0);
  options.causal = call.has("causal");
  options.window = call.integer(name, "window", 0, Problem::count);
  options.soft_cap = call.number("cap", 0);
  const auto given = [&](std::string_view tensor) {
    return call.has(tensor) ? ConstTensorRef(call.tensors.at(std::string(tensor)))
                            : ConstTensorRef{};
  };
  options.key_lengths = given("lengths");
  options.query_offsets = given("query_offsets");
  options.key_offsets = given("key_offsets");
  options.page_table = given("page_table");
  options.slopes = given("slopes");
  options.bias = given("bias");
  options.sinks = given("sinks");
  options.k_scales = given("k_scales");
  options.v_scales = given("v_scales");
  Extents shape = q.shape;
  // attention() rejects wrong ranks with a message.
  if (shape.rank == 4 && v.rank() == 4) shape[3] = v.shape[3];
  call.result = Tensor(q.dtype, shape, context.device());
  attention(context, q, call.tensors.at("k"), v, call.result, options, pick);
}

}  // namespace rung
