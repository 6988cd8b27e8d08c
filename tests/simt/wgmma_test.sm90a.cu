// SPDX-License-Identifier: Apache-2.0
// wgmma against plain products: every width, every type, every layout of the operands in shared
// memory, and A in registers. Values are small integers, whose sums are exact in any order: every
// bit must agree, on GPUs and in the simulator.
#include "rung/device/ptx/wgmma.hpp"

#include <type_traits>

#include "rung/device/ptx/bulk_copy.hpp"
#include "tests/simt/hopper_fixture.hpp"

namespace rung::wgmma_test {
namespace {

class WgmmaTest : public HopperTest {};

constexpr int rows_of_a = 64;
constexpr int row_bytes = 128;  // per row along K: four instructions

template <class T>
using Stored = std::conditional_t<std::is_same_v<T, ptx::tf32>, float, T>;
template <class T>
constexpr int depth = row_bytes / static_cast<int>(sizeof(Stored<T>));

/// Layout of an operand of `rows` rows in shared memory.
struct Layout {
  int rows = 0;
  Swizzle swizzle = Swizzle::none;
  ptx::Major major = ptx::Major::k;
  bool along_k = false;  // without swizzle: pieces are contiguous along K instead of along the rows
  int element = 2;
};

RUNG_HD constexpr int width(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 16 : swizzle_period(swizzle) / 8;
}
RUNG_HD constexpr int swizzled_by(Swizzle swizzle, int offset) {
  return offset ^ ((offset >> 3) & (width(swizzle) - 16));
}
/// Returns the rows, or elements along K, of one panel or piece.
RUNG_HD constexpr int panel(const Layout& at) { return width(at.swizzle) / at.element; }
RUNG_HD constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
RUNG_HD constexpr int tile_bytes(const Layout& at) {
  const int rows = at.major == ptx::Major::k ? at.rows : ceil_div(at.rows, panel(at)) * panel(at);
  return rows * row_bytes;
}

/// Strides of a descriptor, and the step between the operands of consecutive instructions.
struct Strides {
  int leading, stride, step;  // step: to the next 32 bytes of K
};
RUNG_HD constexpr int offset_of(const Layout& at, int row, int k) {
  const int w = width(at.swizzle), elements = row_bytes / at.element;
  if (at.swizzle == Swizzle::none) {
    const int piece_row = row / 8, piece_k = at.major == ptx::Major::k ? k / panel(at) : k / 8;
    const int within = at.major == ptx::Major::k ? row % 8 * 16 + k % panel(at) * at.element
                                                 : k % 8 * 16 + row % 8 * at.element;
    const int pieces_k = at.major == ptx::Major::k ? row_bytes / 16 : elements / 8;
    const int piece =
        at.along_k ? piece_row * pieces_k + piece_k : piece_k * (at.rows / 8) + piece_row;
    return piece * 128 + within;
  }
  if (at.major == ptx::Major::k) {
    const int byte = k * at.element;
    return byte / w * at.rows * w + swizzled_by(at.swizzle, row * w + byte % w);
  }
  return row / panel(at) * elements * w +
         swizzled_by(at.swizzle, k * w + row % panel(at) * at.element);
}
RUNG_HD constexpr Strides strides_of(const Layout& at) {
  const int w = width(at.swizzle), elements = row_bytes / at.element;
  if (at.swizzle == Swizzle::none) {
    const int pieces_k = at.major == ptx::Major::k ? row_bytes / 16 : elements / 8;
    const int along_k = at.along_k ? 128 : at.rows / 8 * 128;
    const int along_rows = at.along_k ? pieces_k * 128 : 128;
    return {along_k, along_rows, 2 * along_k};
  }
  if (at.major == ptx::Major::k) return {16, 8 * w, 0};  // the step depends on the panel
  return {elements * w, 8 * w, 16 * w};
}
RUNG_HD constexpr int step_to(const Layout& at, int instruction) {
  const int w = width(at.swizzle), byte = 32 * instruction;
  if (at.swizzle == Swizzle::none || at.major == ptx::Major::mn) {
    return strides_of(at).step * instruction;
  }
  return byte / w * at.rows * w + byte % w;
}

template <class T>
__device__ void put(unsigned char* tile, const Layout& at, const Stored<T>* values) {
  for (int i = static_cast<int>(threadIdx.x); i < at.rows * depth<T>; i += 128) {
    *reinterpret_cast<Stored<T>*>(tile + offset_of(at, i / depth<T>, i % depth<T>)) = values[i];
  }
}

/// Loads A's registers for the instruction at element k0 of K.
template <class T>
__device__ void take_registers(std::uint32_t (&a)[4], const Stored<T>* values, int k0) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  constexpr int each = 4 / static_cast<int>(sizeof(Stored<T>));
  for (int i = 0; i < 4; ++i) {
    const int row = 16 * warp + lane / 4 + 8 * (i % 2);
    const int k = k0 + each * (lane % 4 + 4 * (i / 2));
    a[i] = *reinterpret_cast<const std::uint32_t*>(values + row * depth<T> + k);
  }
}

struct Tiles {
  alignas(1024) unsigned char a[rows_of_a * row_bytes];
  alignas(1024) unsigned char b[256 * row_bytes + 8192];
};

// Options as a number: nvcc supports no structure in a kernel's name.
enum { plain = 0, mn_a = 1, mn_b = 2, negated_a = 4, negated_b = 8 };
constexpr ptx::WgmmaOptions options_of(int bits) {
  return {(bits & mn_a) != 0 ? ptx::Major::mn : ptx::Major::k,
          (bits & mn_b) != 0 ? ptx::Major::mn : ptx::Major::k, (bits & negated_a) != 0,
          (bits & negated_b) != 0};
}

template <class A, class B, int N, int Bits, bool FromRegisters, class Sum>
__global__ void __launch_bounds__(128)
    product(const Stored<A>* a, const Stored<B>* b, Sum* d, Layout layout_a, Layout layout_b) {
  constexpr ptx::WgmmaOptions options = options_of(Bits);
  Tiles& tiles = shared<Tiles>();
  put<A>(tiles.a, layout_a, a);
  put<B>(tiles.b, layout_b, b);
  ptx::fence_async_proxy();
  __syncthreads();
  const Strides sa = strides_of(layout_a), sb = strides_of(layout_b);
  const auto da = ptx::matrix_descriptor(tiles.a, layout_a.swizzle, sa.leading, sa.stride);
  const auto db = ptx::matrix_descriptor(tiles.b, layout_b.swizzle, sb.leading, sb.stride);
  Sum sums[N / 2];
#pragma unroll
  for (int i = 0; i < N / 2; ++i) sums[i] = Sum(i % 3);
  std::uint32_t registers[4][4];
  for (int k = 0; FromRegisters && k < 4; ++k) {
    take_registers<A>(registers[k], a, k * depth<A> / 4);
  }
  ptx::wgmma_fence(sums);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    // Two of three tests add to existing sums, one starts from zero.
    const bool accumulate = k > 0 || N % 3 != 0;
    const auto at_b = ptx::advanced(db, step_to(layout_b, k));
    if constexpr (FromRegisters) {
      ptx::wgmma<A, B, options>(sums, registers[k], at_b, accumulate);
    } else {
      ptx::wgmma<A, B, options>(sums, ptx::advanced(da, step_to(layout_a, k)), at_b, accumulate);
    }
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>(sums);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = 0; i < N / 2; ++i) {
    const int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
    d[row * N + 8 * (i / 4) + 2 * (lane % 4) + i % 2] = sums[i];
  }
}

/// Returns small integers, valid in every type, in a pattern that no permutation preserves.
template <class T>
std::vector<Stored<T>> numbers(int rows, unsigned seed) {
  std::vector<Stored<T>> values;
  unsigned state = 2 * seed + 1;
  for (int i = 0; i < rows * depth<T>; ++i) {
    state = state * 1664525u + 1013904223u;
    const int value = static_cast<int>(state >> 28) % 9 - (std::is_unsigned_v<Stored<T>> ? 0 : 4);
    if constexpr (std::is_integral_v<Stored<T>>) {
      values.push_back(static_cast<Stored<T>>(value));
    } else {
      values.push_back(static_cast<Stored<T>>(static_cast<float>(value)));
    }
  }
  return values;
}
template <class T>
int whole(T value) {
  if constexpr (std::is_integral_v<T>) return value;
  if constexpr (!std::is_integral_v<T>) return static_cast<int>(static_cast<float>(value));
}

template <class A, class B, int N, int Bits = plain, bool FromRegisters = false>
void expect_product(Context& c, Swizzle swizzle_a, Swizzle swizzle_b, bool along_k = false) {
  using Sum = std::conditional_t<std::is_integral_v<Stored<A>>, int, float>;
  constexpr ptx::WgmmaOptions options = options_of(Bits);
  const auto a = numbers<A>(rows_of_a, 1);
  const auto b = numbers<B>(N, 2);
  const Layout la{rows_of_a, swizzle_a, options.a, along_k, sizeof(Stored<A>)};
  const Layout lb{N, swizzle_b, options.b, along_k, sizeof(Stored<B>)};
  ASSERT_LE(tile_bytes(lb), static_cast<int>(sizeof(Tiles::b)));
  Buffer<Stored<A>> da(a);
  Buffer<Stored<B>> db(b);
  Buffer<Sum> dd(static_cast<std::size_t>(rows_of_a * N));
  launch(c, {.block = 128, .shared_bytes = sizeof(Tiles)},
         product<A, B, N, Bits, FromRegisters, Sum>, da.data(), db.data(), dd.data(), la, lb);
  const std::vector<Sum> got = dd.values();
  int wrong = 0;
  for (int row = 0; row < rows_of_a; ++row) {
    for (int column = 0; column < N; ++column) {
      int want = 0;
      for (int k = 0; k < depth<A>; ++k) {
        want += whole(a[static_cast<std::size_t>(row * depth<A> + k)]) *
                whole(b[static_cast<std::size_t>(column * depth<B> + k)]);
      }
      if (options.negate_a != options.negate_b) want = -want;
      const int register_index = column / 8 * 4 + row / 8 % 2 * 2 + column % 2;
      if (N % 3 != 0) want += register_index % 3;
      if (whole(got[static_cast<std::size_t>(row * N + column)]) != want) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << rows_of_a * N << "; N " << N << ", swizzle of A "
                      << static_cast<int>(swizzle_a) << ", of B " << static_cast<int>(swizzle_b)
                      << ", K first " << along_k;
}

constexpr Swizzle swizzles[] = {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64,
                                Swizzle::bytes_128};

template <class T, int N, int Step, int Last>
void expect_widths(Context& c) {
  if constexpr (N <= Last) {
    expect_product<T, T, N>(c, Swizzle::bytes_128, Swizzle::bytes_128);
    expect_widths<T, N + Step, Step, Last>(c);
  }
}

TEST_P(WgmmaTest, EveryWidth) {
  Context c = context();
  expect_widths<bf16, 8, 8, 256>(c);
  expect_widths<std::int8_t, 16, 16, 256>(c);
  expect_product<std::int8_t, std::int8_t, 8>(c, Swizzle::bytes_128, Swizzle::bytes_128);
  expect_product<std::int8_t, std::int8_t, 24>(c, Swizzle::bytes_128, Swizzle::bytes_128);
}

template <class A, class B>
void expect_type(Context& c) {
  for (const Swizzle a : swizzles) {
    for (const Swizzle b : swizzles) {
      expect_product<A, B, 48>(c, a, b, false);
      expect_product<A, B, 64>(c, a, b, true);
    }
    expect_product<A, B, 32, plain, true>(c, a, a);
  }
}

TEST_P(WgmmaTest, EveryTypeAndSwizzle) {
  Context c = context();
  expect_type<f16, f16>(c);
  expect_type<bf16, bf16>(c);
  expect_type<ptx::tf32, ptx::tf32>(c);
  expect_type<e4m3, e4m3>(c);
  expect_type<e4m3, e5m2>(c);
  expect_type<e5m2, e4m3>(c);
  expect_type<e5m2, e5m2>(c);
  expect_type<std::int8_t, std::int8_t>(c);
  expect_type<std::int8_t, std::uint8_t>(c);
  expect_type<std::uint8_t, std::int8_t>(c);
  expect_type<std::uint8_t, std::uint8_t>(c);
}

TEST_P(WgmmaTest, EveryMajorAndSwizzle) {
  Context c = context();
  for (const Swizzle a : swizzles) {
    for (const Swizzle b : swizzles) {
      for (const bool along_k : {false, true}) {
        expect_product<f16, f16, 64, mn_a>(c, a, b, along_k);
        expect_product<bf16, bf16, 128, mn_b>(c, a, b, along_k);
        expect_product<f16, f16, 256, mn_a + mn_b>(c, a, b, along_k);
      }
    }
    expect_product<bf16, bf16, 8, mn_b>(c, a, Swizzle::none);
    expect_product<f16, f16, 128, mn_b, true>(c, a, a);
    expect_product<bf16, bf16, 40, negated_a>(c, a, a);
    expect_product<f16, f16, 64, mn_b + negated_b, true>(c, a, a);
  }
}

/// Multiplies 64 x 64 elements, one group per instruction: waits for each group while the next one,
/// which adds to the same sums, is in flight. Pipelines keep the tensor cores busy this way.
__global__ void __launch_bounds__(128)
    product_in_groups(const bf16* a, const bf16* b, float* d, Layout layout, int rounds) {
  Tiles& tiles = shared<Tiles>();
  put<bf16>(tiles.a, layout, a);
  put<bf16>(tiles.b, layout, b);
  ptx::fence_async_proxy();
  __syncthreads();
  const Strides strides = strides_of(layout);
  const auto da = ptx::matrix_descriptor(tiles.a, layout.swizzle, strides.leading, strides.stride);
  const auto db = ptx::matrix_descriptor(tiles.b, layout.swizzle, strides.leading, strides.stride);
  float sums[32] = {};
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < 4; ++k) {
      ptx::wgmma_fence(sums);
      ptx::wgmma<bf16>(sums, ptx::advanced(da, step_to(layout, k)),
                       ptx::advanced(db, step_to(layout, k)), round + k > 0);
      ptx::wgmma_commit();
      ptx::wgmma_wait<1>(sums);
    }
  }
  ptx::wgmma_wait<0>(sums);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  for (int i = 0; i < 32; ++i) {
    const int row = 16 * warp + lane / 4 + 8 * (i / 2 % 2);
    d[row * 64 + 8 * (i / 4) + 2 * (lane % 4) + i % 2] = sums[i];
  }
}

TEST_P(WgmmaTest, SumsOfAGroupInFlightGoOnFromOneThatWasWaitedFor) {
  Context c = context();
  const auto a = numbers<bf16>(64, 1);
  const auto b = numbers<bf16>(64, 2);
  Buffer<bf16> da(a);
  Buffer<bf16> db(b);
  for (const int rounds : {1, 5}) {
    Buffer<float> dd(64 * 64);
    const Layout layout{64, Swizzle::bytes_128, ptx::Major::k, false, sizeof(bf16)};
    launch(c, {.block = 128, .shared_bytes = sizeof(Tiles)}, product_in_groups, da.data(),
           db.data(), dd.data(), layout, rounds);
    const std::vector<float> got = dd.values();
    int wrong = 0;
    for (int i = 0; i < 64 * 64; ++i) {
      int want = 0;
      for (int k = 0; k < 64; ++k) {
        want += whole(a[static_cast<std::size_t>(i / 64 * 64 + k)]) *
                whole(b[static_cast<std::size_t>(i % 64 * 64 + k)]);
      }
      if (whole(got[static_cast<std::size_t>(i)]) != rounds * want) ++wrong;
    }
    EXPECT_EQ(wrong, 0) << rounds << " rounds";
  }
}

/// Adds `instructions` products of ones to the same sums.
__global__ void __launch_bounds__(128) sum_of_ones(float* d, int instructions) {
  Tiles& tiles = shared<Tiles>();
  const auto one = e4m3(1.0F).bits;
  for (int i = static_cast<int>(threadIdx.x); i < 64 * row_bytes; i += 128) {
    tiles.a[i] = tiles.b[i] = one;
  }
  ptx::fence_async_proxy();
  __syncthreads();
  const auto a = ptx::matrix_descriptor(tiles.a, Swizzle::bytes_128, 16, 1024);
  const auto b = ptx::matrix_descriptor(tiles.b, Swizzle::bytes_128, 16, 1024);
  float sums[32];
  for (int i = 0; i < instructions; ++i) {
    ptx::wgmma_fence(sums);
    ptx::wgmma<e4m3>(sums, a, b, i > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>(sums);
  }
  if (threadIdx.x == 0) *d = sums[0];
}

/// Checks that sums keep 14 bits: added to 2^14, ones are lost.
TEST_P(WgmmaTest, SumsOfSmallFloatsKeep14Bits) {
  Context c = context();
  Buffer<float> sum(std::size_t{1});
  const auto ones = [&](int instructions) {
    launch(c, {.block = 128, .shared_bytes = sizeof(Tiles)}, sum_of_ones, sum.data(), instructions);
    return sum.values()[0];
  };
  EXPECT_EQ(ones(1), 32);
  EXPECT_EQ(ones(512), 16384);
#if defined(__CUDACC__)
  // The order of additions on a GPU is undocumented.
  EXPECT_GE(ones(520), 16384);
  EXPECT_LE(ones(520), 520 * 32);
#else
  EXPECT_EQ(ones(520), 16384);
#endif
}

INSTANTIATE_TEST_SUITE_P(Orders, WgmmaTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::wgmma_test
