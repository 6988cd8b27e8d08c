// SPDX-License-Identifier: Apache-2.0
// gemm / bytes
//
// Idea     8-bit operands: a table of 256 values decodes a byte, so one loop nest serves e4m3, e5m2
//          and i8. A panel of B, 128 steps of k by 256 columns, is widened once per 32 rows of C;
//          the sums of a panel are scaled by the factors of its blocks. Up to four columns, or rows
//          if k is contiguous in B, are computed as dot products without a panel.
// Changes  against cache_tiled: 8-bit types; the panel of B is widened to a copy in f32 (or 32-bit
//          integers).
// Cost     2 m n k operations of f32; B is widened m / 32 times.
// Limits   vector width as compiled. Integers are multiplied in 32 bits, one product where
//          VNNI-like instructions compute four 8-bit products.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rung/core/integer.hpp"
#include "rung/cpu/team.hpp"
#include "rung/ops/gemm/cpu/detail/textbook.hpp"

namespace rung {
namespace {
using namespace gemm_cpu;

constexpr std::int64_t tile_rows = 32;
constexpr std::int64_t tile_columns = 256;
constexpr std::int64_t depth = gemm_scale_block;
constexpr std::int64_t thin = 4;  // maximum columns, or rows, computed without a panel
static_assert(tile_columns % gemm_scale_block == 0);

/// Decoded values of the 256 bytes. Integers are kept modulo 2^32.
template <class Sum>
using Table = std::array<Sum, 256>;
template <class T>
const Table<GemmSum<T>>& table_of() {
  static const auto table = [] {
    Table<GemmSum<T>> made{};
    for (std::size_t byte = 0; byte < made.size(); ++byte) {
      const auto bits = static_cast<std::uint8_t>(byte);
      const T value = __builtin_bit_cast(T, bits);
      if constexpr (std::is_integral_v<T>) {
        made[byte] = static_cast<std::uint32_t>(std::int32_t{value});
      } else {
        made[byte] = static_cast<float>(value);
      }
    }
    return made;
  }();
  return table;
}

/// Buffers of one thread.
template <class Sum>
struct TileBuffers {
  alignas(64) Sum b[depth][tile_columns];
  alignas(64) Sum sums[tile_rows][tile_columns];
  alignas(64) Sum partial[tile_columns];
};

template <class Sum, class Out>
struct Product {
  View<const std::uint8_t, 3> a, b;
  const Table<Sum>& of_a;
  const Table<Sum>& of_b;
  View<const float, 3> scale_a, scale_b;  // without data, the factors are 1
  View<Out, 3> c;
  View<const Out, 3> bias, residual;
  Sum alpha, beta;
  Activation activation;
  std::int64_t batch, m, n, k;

  Product(const Gemm::Args& args, const Table<Sum>& a_table, const Table<Sum>& b_table)
      : a(bytes(args.a)),
        b(bytes(args.b)),
        of_a(a_table),
        of_b(b_table),
        scale_a(optional<float>(args.scale_a)),
        scale_b(optional<float>(args.scale_b)),
        c(args.c.view<Out, 3>()),
        bias(optional<Out>(args.bias)),
        residual(optional<Out>(args.residual)),
        alpha(gemm_factor<Sum>(args.alpha)),
        beta(gemm_factor<Sum>(args.beta)),
        activation(args.activation),
        batch(args.batch()),
        m(args.m()),
        n(args.n()),
        k(args.alpha == 0.0 ? 0 : args.k()) {}  // A and B are not read if alpha is 0

  static View<const std::uint8_t, 3> bytes(ConstTensorRef operand) {
    operand.dtype = DType::u8;
    return operand.view<const std::uint8_t, 3>();
  }
  template <class T>
  static View<const T, 3> optional(const ConstTensorRef& tensor) {
    return tensor.data != nullptr ? tensor.view<const T, 3>() : View<const T, 3>{};
  }

  /// Returns the scale factor of the sums of a block of 128 steps of k.
  [[nodiscard]] Sum factor(std::int64_t x, std::int64_t i, std::int64_t block,
                           std::int64_t j) const {
    Sum value = 1;
    if constexpr (std::is_same_v<Sum, float>) {
      if (scale_a.data != nullptr) value = scale_a(x, i, block);
      if (scale_b.data != nullptr) value *= scale_b(x, block, j / gemm_scale_block);
    }
    return value;
  }
  void finish(std::int64_t x, std::int64_t i, std::int64_t j, Sum sum) const {
    Sum value = alpha * sum;
    if (beta != Sum{0}) value += beta * static_cast<Sum>(c(x, i, j));
    if (bias.data != nullptr) value += static_cast<Sum>(bias(x, i, j));
    if constexpr (std::is_same_v<Sum, float>) {
      value = apply(activation, value);
    } else if (activation == Activation::relu && static_cast<std::int32_t>(value) < 0) {
      value = 0;
    }
    if (residual.data != nullptr) value += static_cast<Sum>(residual(x, i, j));
    c(x, i, j) = static_cast<Out>(value);
  }

  struct Run {
    std::int64_t begin, count;
  };
  /// Adds a block of k for a few columns or rows by dot products with four independent chains. A
  /// panel would be mostly empty, or each of its elements stored to another page and used once.
  void add_dots(TileBuffers<Sum>& tile, std::int64_t x, Run rows, Run columns, Run steps) const {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const std::uint8_t* const left = &a(x, rows.begin + i, steps.begin);
      for (std::int64_t j = 0; j < columns.count; ++j) {
        const std::uint8_t* const right = &b(x, steps.begin, columns.begin + j);
        Sum chain[4] = {};
        std::int64_t p = 0;
        for (; p + 4 <= steps.count; p += 4) {
          for (std::int64_t c = 0; c < 4; ++c) {
            chain[c] += of_a[left[(p + c) * a.strides[2]]] * of_b[right[(p + c) * b.strides[1]]];
          }
        }
        for (; p < steps.count; ++p) {
          chain[0] += of_a[left[p * a.strides[2]]] * of_b[right[p * b.strides[1]]];
        }
        tile.sums[i][j] += factor(x, rows.begin + i, steps.begin / depth, columns.begin + j) *
                           ((chain[0] + chain[1]) + (chain[2] + chain[3]));
      }
    }
  }

  /// Computes up to 32 x 256 elements of C from (i0, j0) on.
  void multiply(TileBuffers<Sum>& tile, std::int64_t x, std::int64_t i0, std::int64_t j0) const {
    const std::int64_t rows = std::min(tile_rows, m - i0);
    const std::int64_t columns = std::min(tile_columns, n - j0);
    for (std::int64_t i = 0; i < rows; ++i) std::fill_n(tile.sums[i], columns, Sum{0});
    for (std::int64_t p0 = 0; p0 < k; p0 += depth) {
      const std::int64_t steps = std::min(depth, k - p0);
      const bool down = b.strides[1] == 1;  // k is contiguous: read along it
      if (columns <= thin || (down && rows <= thin)) {
        add_dots(tile, x, {i0, rows}, {j0, columns}, {p0, steps});
        continue;
      }
      for (std::int64_t outer = 0; outer < (down ? columns : steps); ++outer) {
        for (std::int64_t inner = 0; inner < (down ? steps : columns); ++inner) {
          const std::int64_t p = down ? inner : outer;
          const std::int64_t j = down ? outer : inner;
          tile.b[p][j] = of_b[b(x, p0 + p, j0 + j)];
        }
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        std::fill_n(tile.partial, columns, Sum{0});
        for (std::int64_t p = 0; p < steps; ++p) {
          const Sum element = of_a[a(x, i0 + i, p0 + p)];
          const Sum* const row = tile.b[p];
          for (std::int64_t j = 0; j < columns; ++j) tile.partial[j] += element * row[j];
        }
        for (std::int64_t first = 0; first < columns; first += gemm_scale_block) {
          const Sum scale = factor(x, i0 + i, p0 / depth, j0 + first);
          const std::int64_t end = std::min(first + gemm_scale_block, columns);
          for (std::int64_t j = first; j < end; ++j) tile.sums[i][j] += scale * tile.partial[j];
        }
      }
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) finish(x, i0 + i, j0 + j, tile.sums[i][j]);
    }
  }

  void multiply(Context& context) const {
    const std::int64_t down = ceil_div(m, tile_rows);
    const std::int64_t along = ceil_div(n, tile_columns);
    const std::int64_t tiles = batch * down * along;
    const auto threads = static_cast<int>(
        std::clamp<std::int64_t>(tiles, 1, static_cast<std::int64_t>(context.threads())));
    auto* const memory = static_cast<TileBuffers<Sum>*>(
        context.workspace(static_cast<std::size_t>(threads) * sizeof(TileBuffers<Sum>)));
    cpu::run_shares(threads, [&](const cpu::Team& team) {
      const cpu::Range mine = team.share(tiles);
      for (std::int64_t at = mine.begin; at < mine.end; ++at) {
        multiply(memory[team.rank()], at / (down * along), at / along % down * tile_rows,
                 at % along * tile_columns);
      }
    });
  }
};

Support supports(const Gemm::Args& args, const Context&) {
  return args.has_bytes() ? supported : unsupported("takes 8-bit operands");
}

Work work(const Gemm::Args& args, const Context& context) {
  const auto batch = static_cast<double>(args.batch()), m = static_cast<double>(args.m());
  const auto n = static_cast<double>(args.n()), k = static_cast<double>(args.k());
  // Steps: an element of A is decoded, and a loop started, once per up to 256 columns. Paths: the
  // panel of B is stored along its rows, or across them, where each element is on another page.
  const bool along_k = args.b.strides[1] == 1;
  const bool is_thin = args.n() <= thin || (along_k && args.m() <= thin);
  const double down = std::ceil(m / tile_rows), along = std::ceil(n / tile_columns);
  const double of_panels = down * k * n * sizeof(float);
  return {.bytes = Gemm::cost(args).bytes + (is_thin ? 0 : batch * of_panels),
          .operations = batch * 2 * m * n * k,
          .blocks = batch * down * along,
          .steps = is_thin ? 0 : m * k / down,
          .threads = std::clamp<double>(batch * down * along, 1, context.threads()),
          .path = is_thin   ? "thin"
                  : along_k ? "B across"
                            : ""};
}

void run(const Gemm::Args& args, Context& context) {
  if (args.a.dtype == DType::i8) {
    const auto& table = table_of<std::int8_t>();
    return Product<std::uint32_t, std::int32_t>(args, table, table).multiply(context);
  }
  const auto table = [](DType dtype) -> const Table<float>& {
    return dtype == DType::e5m2 ? table_of<e5m2>() : table_of<e4m3>();
  };
  visit<float, f16, bf16>(args.c.dtype, [&]<class Out>() {
    Product<float, Out>(args, table(args.a.dtype), table(args.b.dtype)).multiply(context);
  });
}

const Rung<Gemm> self{
    {.name = "bytes", .after = "cache_tiled", .supports = supports, .work = work, .run = run}};
}  // namespace
}  // namespace rung
