// SPDX-License-Identifier: Apache-2.0
// Tensor cores: wmma, mma.sync and ldmatrix against products in double precision.
#include <cmath>

#include "rung/device/convert.hpp"
#include "rung/device/ptx/double_multiply.hpp"
#include "rung/device/ptx/matrix.hpp"
#include "rung/device/wmma.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::matrix_test {
namespace {

class MatrixTest : public DeviceTest {};

/// Returns irregular values in [-1, 1], a function of the index.
double sample(int i) { return std::sin(1.7 * i + 0.3 * (i % 7)); }

template <class T>
std::vector<T> samples(int count, int first) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = T(static_cast<float>(sample(first + i)));
  }
  return values;
}

/// Strides of a product c[m x n] = a b + c0: element (i, j) of a matrix is at [i * row + j *
/// column].
struct Strides {
  int row, column;
};
template <class T>
void expect_product(int m, int n, int k, const std::vector<T>& a, Strides as,
                    const std::vector<T>& b, Strides bs, const std::vector<float>& c0,
                    const std::vector<float>& got, Strides cs, double unit) {
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(i * cs.row + j * cs.column);
      double want = c0[at], terms = std::abs(want);
      for (int p = 0; p < k; ++p) {
        const double term =
            static_cast<double>(
                static_cast<float>(a[static_cast<std::size_t>(i * as.row + p * as.column)])) *
            static_cast<float>(b[static_cast<std::size_t>(p * bs.row + j * bs.column)]);
        want += term;
        terms += std::abs(term);
      }
      // Rounded operands (twice `unit` per product) and k truncated sums of 24 bits.
      const double bound = (2.001 * unit + (k + 2) * 0x1p-23) * terms;
      ASSERT_NEAR(got[at], want, bound) << i << ", " << j;
    }
  }
}

constexpr int edge = 16;

template <class T, class Element, int Depth, class LayoutA, class LayoutB>
__global__ void wmma_product(const T* a, int stride_a, const T* b, int stride_b, const float* c,
                             float* d, bool rows) {
  wmma::fragment<wmma::matrix_a, edge, edge, Depth, Element, LayoutA> fa;
  wmma::fragment<wmma::matrix_b, edge, edge, Depth, Element, LayoutB> fb;
  wmma::fragment<wmma::accumulator, edge, edge, Depth, float> sum;
  const auto order = rows ? wmma::mem_row_major : wmma::mem_col_major;
  wmma::load_matrix_sync(fa, wmma::native(a), static_cast<unsigned>(stride_a));
  wmma::load_matrix_sync(fb, wmma::native(b), static_cast<unsigned>(stride_b));
  wmma::load_matrix_sync(sum, c, edge, order);
  if constexpr (std::is_same_v<T, float>) {
    for (auto& x : fa.x) x = wmma::to_tf32(x);
    for (auto& x : fb.x) x = wmma::to_tf32(x);
  }
  wmma::mma_sync(sum, fa, fb, sum);
  for (auto& x : sum.x) x *= 2.0f;  // elementwise work needs no layout
  wmma::store_matrix_sync(d, sum, edge, order);
}

template <class T, class Element, int Depth, class LayoutA, class LayoutB>
void check_wmma(Context& c, double unit) {
  constexpr bool a_rows = std::is_same_v<LayoutA, wmma::row_major>;
  constexpr bool b_rows = std::is_same_v<LayoutB, wmma::row_major>;
  // Strides beyond the matrix: elements in the gaps must not be used.
  const int stride_a = (a_rows ? Depth : edge) + 8, stride_b = (b_rows ? edge : Depth) + 16;
  const auto a = samples<T>(stride_a * (a_rows ? edge : Depth), 0);
  const auto b = samples<T>(stride_b * (b_rows ? Depth : edge), 1000);
  const auto c0 = samples<float>(edge * edge, 5000);
  for (const bool rows : {true, false}) {
    Buffer<T> da(a), db(b);
    Buffer<float> dc(c0), dd(edge * edge);
    launch(c, {.block = 32}, wmma_product<T, Element, Depth, LayoutA, LayoutB>, da.data(), stride_a,
           db.data(), stride_b, dc.data(), dd.data(), rows);
    std::vector<float> got = dd.values();
    for (float& x : got) x *= 0.5f;
    expect_product(edge, edge, Depth, a, a_rows ? Strides{stride_a, 1} : Strides{1, stride_a}, b,
                   b_rows ? Strides{stride_b, 1} : Strides{1, stride_b}, c0, got,
                   rows ? Strides{edge, 1} : Strides{1, edge}, unit);
  }
}

template <class T, class Element, int Depth>
void check_wmma_layouts(Context& c, double unit) {
  check_wmma<T, Element, Depth, wmma::row_major, wmma::row_major>(c, unit);
  check_wmma<T, Element, Depth, wmma::row_major, wmma::col_major>(c, unit);
  check_wmma<T, Element, Depth, wmma::col_major, wmma::row_major>(c, unit);
  check_wmma<T, Element, Depth, wmma::col_major, wmma::col_major>(c, unit);
}

TEST_P(MatrixTest, WmmaOfEveryTypeAndLayout) {
  Context c = context();
  check_wmma_layouts<f16, wmma::element<f16>, 16>(c, 0);
  check_wmma_layouts<bf16, wmma::element<bf16>, 16>(c, 0);
  check_wmma_layouts<float, wmma::precision::tf32, 8>(c, 0x1p-11);
}

struct Tiles {
  alignas(16) f16 a[16][16];
  alignas(16) f16 b[16][8];  // k rows of n, transposed by ldmatrix
};

/// Computes D = A B + C by ldmatrix and mma.sync for f16; the bits of the operands may also be
/// bf16.
template <bool IsBf16>
__global__ void mma_product(const f16* a, const f16* b, const float* c, float* d) {
  Tiles& tiles = shared<Tiles>();
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) tiles.a[i / 16][i % 16] = a[i];
  for (int i = lane; i < 128; i += 32) tiles.b[i / 8][i % 8] = b[i];
  __syncwarp();
  unsigned fa[4], fb[2];
  // Matrices in the order of a[0..3]: upper left, lower left, upper right, lower right.
  ptx::load_matrix(fa, &tiles.a[lane % 16][8 * (lane / 16)]);
  ptx::load_matrix<2, true>(fb, &tiles.b[lane % 16][0]);
  const int group = lane / 4, t = lane % 4;
  float sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = c[(group + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  ptx::mma<std::conditional_t<IsBf16, bf16, f16>>(sum, fa, fb);
  for (int i = 0; i < 4; ++i) d[(group + 8 * (i / 2)) * 8 + 2 * t + i % 2] = sum[i];
}

template <class T, bool IsBf16>
void check_mma(Context& c) {
  const auto a = samples<T>(256, 0);
  const auto b = samples<T>(128, 1000);
  const auto c0 = samples<float>(128, 5000);
  Buffer<T> da(a), db(b);
  Buffer<float> dc(c0), dd(128);
  launch(c, {.block = 32, .shared_bytes = sizeof(Tiles)}, mma_product<IsBf16>,
         reinterpret_cast<const f16*>(da.data()), reinterpret_cast<const f16*>(db.data()),
         dc.data(), dd.data());
  expect_product(16, 8, 16, a, {16, 1}, b, {8, 1}, c0, dd.values(), {8, 1}, 0);
}

TEST_P(MatrixTest, MmaSyncFedByLdmatrix) {
  Context c = context();
  check_mma<f16, false>(c);
  check_mma<bf16, true>(c);
}

__global__ void mma_tf32(const float* a, const float* b, const float* c, float* d, bool rounded) {
  const int lane = static_cast<int>(threadIdx.x);
  const int group = lane / 4, t = lane % 4;
  const auto operand = [&](float x) { return rounded ? ptx::to_tf32(x) : __float_as_uint(x); };
  const unsigned fa[4] = {operand(a[group * 8 + t]), operand(a[(group + 8) * 8 + t]),
                          operand(a[group * 8 + t + 4]), operand(a[(group + 8) * 8 + t + 4])};
  const unsigned fb[2] = {operand(b[t * 8 + group]), operand(b[(t + 4) * 8 + group])};
  float sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = c[(group + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  ptx::mma<float>(sum, fa, fb);
  for (int i = 0; i < 4; ++i) d[(group + 8 * (i / 2)) * 8 + 2 * t + i % 2] = sum[i];
}

TEST_P(MatrixTest, Tf32RoundsOrTruncates) {
  const auto a = samples<float>(128, 0);
  const auto b = samples<float>(64, 1000);
  const auto c0 = samples<float>(128, 5000);
  Context c = context();
  Buffer<float> da(a), db(b), dc(c0), dd(128);
  launch(c, {.block = 32}, mma_tf32, da.data(), db.data(), dc.data(), dd.data(), true);
  expect_product(16, 8, 8, a, {8, 1}, b, {8, 1}, c0, dd.values(), {8, 1}, 0x1p-11);
  launch(c, {.block = 32}, mma_tf32, da.data(), db.data(), dc.data(), dd.data(), false);
  expect_product(16, 8, 8, a, {8, 1}, b, {8, 1}, c0, dd.values(), {8, 1}, 0x1p-10);

  // 1 plus slightly more than half a unit: rounding goes up, truncation down.
  std::vector<float> one(128, 0.0f), unit(64, 0.0f), zero(128, 0.0f);
  one[0] = 1.0f + 0x1.8p-11f;
  unit[0] = 1.0f;
  Buffer<float> d1(one), du(unit), dz(zero);
  launch(c, {.block = 32}, mma_tf32, d1.data(), du.data(), dz.data(), dd.data(), true);
  EXPECT_EQ(dd.values()[0], 1.0f + 0x1p-10f);
  launch(c, {.block = 32}, mma_tf32, d1.data(), du.data(), dz.data(), dd.data(), false);
  EXPECT_EQ(dd.values()[0], 1.0f);
}

template <int Depth>
__global__ void mma_f64(const double* a, const double* b, const double* c, double* d) {
  const int lane = static_cast<int>(threadIdx.x);
  const int group = lane / 4, t = lane % 4;
  double fa[Depth / 2];
  double fb[Depth / 4];
  for (int i = 0; i < Depth / 2; ++i) fa[i] = a[(group + i % 2 * 8) * Depth + t + i / 2 * 4];
  for (int i = 0; i < Depth / 4; ++i) fb[i] = b[(t + 4 * i) * 8 + group];
  double sum[4];
  for (int i = 0; i < 4; ++i) sum[i] = c[(group + 8 * (i / 2)) * 8 + 2 * t + i % 2];
  if constexpr (Depth == 4) {
    ptx::mma_m16n8k4_f64(sum, fa, fb[0]);
  } else if constexpr (Depth == 8) {
    ptx::mma_m16n8k8_f64(sum, fa, fb);
  } else {
    ptx::mma_m16n8k16_f64(sum, fa, fb);
  }
  for (int i = 0; i < 4; ++i) d[(group + 8 * (i / 2)) * 8 + 2 * t + i % 2] = sum[i];
}

/// Multiplies numbers of 20 bits, whose sums of products are exact in double but not in float.
template <int Depth>
void check_doubles(Context& c) {
  const auto whole = [](int count, int first) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      values[static_cast<std::size_t>(i)] = std::floor(sample(first + i) * 0x1p20);
    }
    return values;
  };
  const auto a = whole(16 * Depth, 0);
  const auto b = whole(Depth * 8, 1000);
  const auto c0 = whole(128, 5000);
  Buffer<double> da(a), db(b), dc(c0), dd(128);
  launch(c, {.block = 32}, mma_f64<Depth>, da.data(), db.data(), dc.data(), dd.data());
  const std::vector<double> got = dd.values();
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      double want = c0[i * 8 + j];
      for (std::size_t k = 0; k < Depth; ++k) want += a[i * Depth + k] * b[k * 8 + j];
      EXPECT_EQ(got[i * 8 + j], want) << i << ", " << j;
    }
  }
}

TEST_P(MatrixTest, DoublesAreMultipliedAsDoubles) {
  Context c = context();
  check_doubles<4>(c);
  check_doubles<8>(c);
  check_doubles<16>(c);
}

__global__ void round_tf32(const float* in, unsigned* out) {
  out[threadIdx.x] = ptx::to_tf32(in[threadIdx.x]);
}

TEST_P(MatrixTest, Tf32RoundingTiesAwayFromZero) {
  const std::vector<float> in{
      1.0f, 1.0f + 0x1p-11f, -1.0f - 0x1p-11f, 1.0f + 0x1.ep-12f, 0x1.ffep0f + 0x1p-11f, 0.0f};
  const std::vector<float> want{1.0f, 1.0f + 0x1p-10f, -1.0f - 0x1p-10f, 1.0f, 2.0f, 0.0f};
  Context c = context();
  Buffer<float> source(in);
  Buffer<unsigned> out(in.size());
  launch(c, {.block = static_cast<std::int64_t>(in.size())}, round_tf32, source.data(), out.data());
  for (std::size_t i = 0; i < in.size(); ++i) {
    // GPUs leave the low thirteen bits undefined.
    EXPECT_EQ(out.values()[i] & 0xffffe000u, __builtin_bit_cast(unsigned, want[i])) << in[i];
  }
}

struct Rows {
  alignas(16) std::uint16_t row[32][8];
};

/// Stores every register of x1, x2 and x4, plain and transposed: out[form][register][lane].
__global__ void load_forms(unsigned* out) {
  Rows& rows = shared<Rows>();
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = 0; i < 8; ++i) rows.row[lane][i] = static_cast<std::uint16_t>(8 * lane + i);
  __syncwarp();
  unsigned one[1], two[2], four[4], turned[4];
  ptx::load_matrix(one, &rows.row[lane % 8]);
  ptx::load_matrix(two, &rows.row[lane % 16]);
  ptx::load_matrix(four, &rows.row[lane]);
  ptx::load_matrix<4, true>(turned, &rows.row[lane]);
  out[lane] = one[0];
  for (int i = 0; i < 2; ++i) out[32 + 32 * i + lane] = two[i];
  for (int i = 0; i < 4; ++i) out[96 + 32 * i + lane] = four[i];
  for (int i = 0; i < 4; ++i) out[224 + 32 * i + lane] = turned[i];
}

TEST_P(MatrixTest, LdmatrixDealsOutRowsAndColumns) {
  Context c = context();
  Buffer<unsigned> out(352);
  launch(c, {.block = 32, .shared_bytes = sizeof(Rows)}, load_forms, out.data());
  const std::vector<unsigned> got = out.values();
  const auto pair = [](unsigned low, unsigned high) { return high << 16 | low; };
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
      const unsigned base = 64 * matrix;
      const unsigned plain = pair(base + 2 * lane, base + 2 * lane + 1);
      const unsigned row = lane / 4, t = 2 * (lane % 4);
      const unsigned turned = pair(base + 8 * t + row, base + 8 * (t + 1) + row);
      if (matrix < 1) {
        ASSERT_EQ(got[lane], plain);
      }
      if (matrix < 2) {
        ASSERT_EQ(got[32 + 32 * matrix + lane], plain);
      }
      ASSERT_EQ(got[96 + 32 * matrix + lane], plain);
      ASSERT_EQ(got[224 + 32 * matrix + lane], turned);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, MatrixTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::matrix_test
