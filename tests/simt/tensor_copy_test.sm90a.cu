// SPDX-License-Identifier: Apache-2.0
// Tensor maps and copies: boxes of tensors of 1 to 5 axes, across every edge, swizzled and back.
#include "rung/device/ptx/tensor_copy.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "rung/device/ptx/cluster.hpp"
#include "tests/simt/hopper_fixture.hpp"

namespace rung::tensor_copy_test {
namespace {

class TensorCopyTest : public HopperTest {};

struct Box {
  alignas(1024) unsigned char bytes[16 << 10];
  ptx::MemoryBarrier full;
};

template <int N>
struct At {
  int at[N];
};

/// Loads one box and copies shared memory to `out` unchanged.
template <int N>
__global__ void load_box(const __grid_constant__ TensorMap map, At<N> where, int bytes,
                         unsigned char* out) {
  Box& box = shared<Box>();
  if (threadIdx.x == 0) {
    ptx::tensor_prefetch_map(map);
    ptx::mbarrier_init(box.full, 1);
    ptx::mbarrier_fence_init();
    ptx::mbarrier_arrive_expect(box.full, static_cast<unsigned>(bytes));
    ptx::tensor_load(box.bytes, map, where.at, box.full);
  }
  __syncthreads();
  ptx::mbarrier_wait(box.full, 0);
  for (int i = static_cast<int>(threadIdx.x); i < bytes; i += 32) out[i] = box.bytes[i];
}

/// Stores a box of consecutive numbers.
template <int N>
__global__ void store_box(const __grid_constant__ TensorMap map, At<N> where, int elements) {
  Box& box = shared<Box>();
  float* values = reinterpret_cast<float*>(box.bytes);
  for (int i = static_cast<int>(threadIdx.x); i < elements; i += 32) {
    values[i] = static_cast<float>(1 + i);
  }
  ptx::fence_async_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::tensor_store(map, where.at, box.bytes);
    ptx::bulk_commit();
    ptx::bulk_wait_read<0>();
  }
}

/// Returns a row-major view with its rows padded to `pitch` elements.
template <int N>
View<float, N> padded_view(float* data, const std::int64_t (&shape)[N], std::int64_t pitch) {
  View<float, N> view;
  view.data = data;
  std::int64_t stride = 1;
  for (int axis = N - 1; axis >= 0; --axis) {
    view.shape[axis] = shape[axis];
    view.strides[axis] = stride;
    stride *= axis == N - 1 ? pitch : shape[axis];
  }
  return view;
}

/// Calls f(element of the box, whether it exists, offset in the tensor). Rows have `inner`
/// elements.
template <int N, class F>
void for_each_in_box(const View<float, N>& view, std::int64_t inner, const int (&box)[N],
                     const int (&at)[N], F f) {
  const int elements = std::accumulate(box, box + N, 1, [](int a, int b) { return a * b; });
  for (int i = 0; i < elements; ++i) {
    int rest = i;
    bool exists = true;
    std::int64_t offset = 0;
    for (int axis = N - 1; axis >= 0; --axis) {
      const std::int64_t index = at[axis] + rest % box[axis];
      rest /= box[axis];
      exists &= index >= 0 && index < (axis == N - 1 ? inner : view.shape[axis]);
      offset += index * view.strides[axis];
    }
    f(i, exists, offset);
  }
}

template <int N>
void expect_boxes(Context& c, const std::int64_t (&shape)[N], const int (&box)[N],
                  const std::vector<At<N>>& places) {
  const std::int64_t pitch = (shape[N - 1] + 3) / 4 * 4 + 4;
  std::int64_t size = pitch;
  for (int axis = 0; axis < N - 1; ++axis) size *= shape[axis];
  const int elements = std::accumulate(box, box + N, 1, [](int a, int b) { return a * b; });
  std::vector<float> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), 1.0f);
  for (const At<N>& place : places) {
    Buffer<float> data(values);
    const View<float, N> view = padded_view(data.data(), shape, pitch);
    const TensorMap map = make_tensor_map(view, box);
    Buffer<unsigned char> out(static_cast<std::size_t>(4 * elements));
    launch(c, {.block = 32, .shared_bytes = sizeof(Box)}, load_box<N>, map, place, 4 * elements,
           out.data());
    const std::vector<unsigned char> bytes = out.values();
    std::vector<float> loaded(static_cast<std::size_t>(elements));
    std::memcpy(loaded.data(), bytes.data(), bytes.size());
    const std::int64_t inner = shape[N - 1];
    for_each_in_box(view, inner, box, place.at, [&](int i, bool exists, std::int64_t offset) {
      ASSERT_EQ(loaded[static_cast<std::size_t>(i)],
                exists ? values[static_cast<std::size_t>(offset)] : 0.0f)
          << N << " axes, element " << i;
    });

    // The copy engine stores no box that starts before the tensor.
    if (std::any_of(place.at, place.at + N, [](int at) { return at < 0; })) continue;
    launch(c, {.block = 32, .shared_bytes = sizeof(Box)}, store_box<N>, map, place, elements);
    std::vector<float> want = values;
    const std::int64_t stored = (inner + 3) / 4 * 4;  // multiples of 16 bytes
    for_each_in_box(view, stored, box, place.at, [&](int i, bool exists, std::int64_t offset) {
      if (exists) want[static_cast<std::size_t>(offset)] = static_cast<float>(1 + i);
    });
    ASSERT_EQ(data.values(), want) << N << " axes";
  }
}

TEST_P(TensorCopyTest, BoxesOverEveryEdge) {
  Context c = context();
  expect_boxes<1>(c, {100}, {32}, {{{0}}, {{68}}, {{88}}, {{-4}}, {{100}}, {{-32}}});
  expect_boxes<1>(c, {97}, {32}, {{{64}}, {{72}}, {{96}}});
  expect_boxes<2>(
      c, {37, 53}, {8, 16},
      {{{0, 0}}, {{16, 32}}, {{32, 48}}, {{-3, -8}}, {{36, 52}}, {{5, 100}}, {{-8, 0}}});
  expect_boxes<3>(c, {5, 7, 20}, {2, 3, 8}, {{{0, 0, 0}}, {{4, 5, 16}}, {{-1, -2, -4}}});
  expect_boxes<4>(c, {3, 4, 5, 12}, {2, 2, 2, 4},
                  {{{0, 0, 0, 0}}, {{2, 3, 4, 8}}, {{-1, 1, 2, -4}}});
  expect_boxes<5>(c, {2, 3, 4, 5, 12}, {2, 1, 2, 3, 4},
                  {{{0, 0, 0, 0, 0}}, {{1, 2, 3, 4, 8}}, {{-1, 0, -1, 3, 4}}});
  expect_boxes<2>(c, {1, 40}, {1, 16}, {{{0, 8}}, {{0, 28}}});
}

template <Swizzle S>
void expect_swizzled(Context& c) {
  constexpr int rows = 24, row_bytes = S == Swizzle::bytes_32   ? 32
                                       : S == Swizzle::bytes_64 ? 64
                                                                : 128;
  std::vector<std::uint8_t> values(rows * row_bytes);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::uint8_t>(i * 37 % 251);
  Buffer<std::uint8_t> data(values);
  View<const std::uint8_t, 2> view;
  view.data = data.data();
  view.shape[0] = rows;
  view.shape[1] = view.strides[0] = row_bytes;
  view.strides[1] = 1;
  Buffer<unsigned char> out(values.size());
  launch(c, {.block = 32, .shared_bytes = sizeof(Box)}, load_box<2>,
         make_tensor_map(view, {rows, row_bytes}, S), At<2>{{0, 0}}, rows * row_bytes, out.data());
  const std::vector<unsigned char> got = out.values();
  for (int i = 0; i < rows * row_bytes; ++i) {
    ASSERT_EQ(got[static_cast<std::size_t>(swizzled<S>(i))], values[static_cast<std::size_t>(i)])
        << row_bytes << " bytes, " << i;
  }
}

TEST_P(TensorCopyTest, SwizzledAsTheFunctionSays) {
  Context c = context();
  expect_swizzled<Swizzle::bytes_32>(c);
  expect_swizzled<Swizzle::bytes_64>(c);
  expect_swizzled<Swizzle::bytes_128>(c);
}

/// Transposes 32 x 32 tiles: loads and stores swizzled boxes, reads the columns by swizzled().
__global__ void transpose(const __grid_constant__ TensorMap from,
                          const __grid_constant__ TensorMap to) {
  struct Tiles {
    alignas(1024) float in[32 * 32];
    alignas(1024) float out[32 * 32];
    ptx::MemoryBarrier full;
  };
  Tiles& t = shared<Tiles>();
  const int row = 32 * static_cast<int>(blockIdx.y), column = 32 * static_cast<int>(blockIdx.x);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(t.full, 1);
    ptx::mbarrier_fence_init();
    ptx::mbarrier_arrive_expect(t.full, sizeof(t.in));
    ptx::tensor_load(t.in, from, {row, column}, t.full);
  }
  __syncthreads();
  ptx::mbarrier_wait(t.full, 0);
  const auto place = [](int r, int k) {
    return swizzled<Swizzle::bytes_128>(4 * (32 * r + k)) / 4;
  };
  for (int i = static_cast<int>(threadIdx.x); i < 1024; i += 128) {
    t.out[place(i % 32, i / 32)] = t.in[place(i / 32, i % 32)];
  }
  ptx::fence_async_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::tensor_store(to, {column, row}, t.out);
    ptx::bulk_commit();
    ptx::bulk_wait_read<0>();
  }
}

TEST_P(TensorCopyTest, ATransposeOfRaggedMatrices) {
  constexpr std::int64_t rows = 100, columns = 76;
  std::vector<float> values(rows * columns);
  std::iota(values.begin(), values.end(), 0.0f);
  Context c = context();
  Buffer<float> in(values), out(values.size());
  const TensorMap from = make_tensor_map(padded_view<2>(in.data(), {rows, columns}, columns),
                                         {32, 32}, Swizzle::bytes_128);
  const TensorMap to = make_tensor_map(padded_view<2>(out.data(), {columns, rows}, rows), {32, 32},
                                       Swizzle::bytes_128);
  launch(c, {.grid = {3, 4}, .block = 128, .shared_bytes = 9 << 10}, transpose, from, to);
  const std::vector<float> got = out.values();
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t k = 0; k < columns; ++k) {
      ASSERT_EQ(got[static_cast<std::size_t>(k * rows + r)], static_cast<float>(r * columns + k));
    }
  }
}

/// Fetches some rows of the tile in each block of a cluster, for all blocks; of a tensor of three
/// axes, from its second matrix.
template <int Axes>
__global__ void share_tile(const __grid_constant__ TensorMap map, float* out) {
  struct Tile {
    alignas(128) float at[8][32];
    ptx::MemoryBarrier full;
  };
  Tile& tile = shared<Tile>();
  const int rank = ptx::cluster_rank();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(tile.full, 1);
    ptx::mbarrier_fence_init();
    ptx::mbarrier_arrive_expect(tile.full, sizeof(tile.at));
  }
  ptx::cluster_sync();
  if (threadIdx.x == 0) {
    if constexpr (Axes == 2) {
      ptx::tensor_load_multicast(tile.at[4 * rank], map, {4 * rank, 0}, tile.full, 3);
    } else {
      ptx::tensor_load_multicast(tile.at[4 * rank], map, {1, 4 * rank, 0}, tile.full, 3);
    }
  }
  ptx::mbarrier_wait(tile.full, 0);
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += 32) {
    out[256 * static_cast<int>(blockIdx.x) + i] = tile.at[i / 32][i % 32];
  }
  ptx::cluster_sync();
}

TEST_P(TensorCopyTest, MulticastToACluster) {
  std::vector<float> values(256);
  std::iota(values.begin(), values.end(), 0.0f);
  Context c = context();
  Buffer<float> in(values), out(512);
  launch(c, {.grid = 2, .block = 32, .shared_bytes = 2048, .cluster = 2}, share_tile<2>,
         make_tensor_map(padded_view<2>(in.data(), {8, 32}, 32), {4, 32}), out.data());
  for (int i = 0; i < 512; ++i) {
    ASSERT_EQ(out.values()[static_cast<std::size_t>(i)], static_cast<float>(i % 256));
  }
}

TEST_P(TensorCopyTest, MulticastOfThreeAxes) {
  std::vector<float> values(512);
  std::iota(values.begin(), values.end(), 0.0f);
  Context c = context();
  Buffer<float> in(values), out(512);
  launch(c, {.grid = 2, .block = 32, .shared_bytes = 2048, .cluster = 2}, share_tile<3>,
         make_tensor_map(padded_view<3>(in.data(), {2, 8, 32}, 32), {1, 4, 32}), out.data());
  for (int i = 0; i < 512; ++i) {
    ASSERT_EQ(out.values()[static_cast<std::size_t>(i)], static_cast<float>(256 + i % 256));
  }
}

/// Checks that TF32 keeps ten of 23 mantissa bits.
TEST_P(TensorCopyTest, RoundsToTf32WhereTheMapSaysSo) {
  const std::vector<float> given{0x1.0p0f,    0x1.002p0f,  0x1.003p0f,   -0x1.003p0f,
                                 0x1.ffdfp9f, 0x1.fff0p9f, 0x1.001fp-7f, 0x1.0021p-7f};
  const std::vector<float> rounded{0x1.0p0f,   0x1.004p0f, 0x1.004p0f, -0x1.004p0f,
                                   0x1.ffcp9f, 0x1.0p10f,  0x1.0p-7f,  0x1.004p-7f};
  Context c = context();
  Buffer<float> in(given);
  for (const bool rounds : {false, true}) {
    Buffer<float> out(16);
    launch(c, {.block = 32, .shared_bytes = sizeof(Box)}, load_box<1>,
           make_tensor_map(padded_view<1>(in.data(), {8}, 8), {16}, Swizzle::none, rounds),
           At<1>{{0}}, 64, reinterpret_cast<unsigned char*>(out.data()));
    const std::vector<float> got = out.values();
    for (std::size_t i = 0; i < 16; ++i) {
      // A tie may round away from zero or to even: 1 + 2^-11 may become either.
      if (rounds && i == 1 && got[i] == 0x1.0p0f) continue;
      EXPECT_EQ(got[i], i >= 8 ? 0.0f : rounds ? rounded[i] : given[i]) << i << ", " << rounds;
    }
  }
}

TEST_P(TensorCopyTest, WhatTheCopyEngineDoesNotTake) {
  Buffer<float> data(4096);
  const auto why = [](const View<float, 2>& view, int rows, int columns,
                      Swizzle swizzle = Swizzle::none) {
    const Support support = tensor_map_support(view, {rows, columns}, swizzle);
    return support ? std::string() : std::string(support.why);
  };
  const auto expect_refused = [&](const std::string& given, const char* part) {
    EXPECT_NE(given.find(part), std::string::npos) << "\"" << given << "\" lacks " << part;
  };
  View<float, 2> view = padded_view<2>(data.data(), {32, 64}, 64);
  EXPECT_EQ(why(view, 32, 32), "");
  expect_refused(why(view, 257, 32), "1 to 256");
  expect_refused(why(view, 8, 6), "multiple of 16 bytes");
  expect_refused(why(view, 8, 64, Swizzle::bytes_128), "32, 64 or 128 bytes");
  view.data += 1;
  expect_refused(why(view, 8, 8), "aligned to 16 bytes");
  view = padded_view<2>(data.data(), {32, 64}, 66);
  expect_refused(why(view, 8, 8), "strides");
  view = padded_view<2>(data.data(), {32, 64}, 64);
  view.strides[0] = 0;
  expect_refused(why(view, 8, 8), "positive strides");
  view.strides[0] = 64;
  view.strides[1] = 2;
  expect_refused(why(view, 8, 8), "contiguous");
  view.strides[1] = 1;
  view.shape[0] = 0;
  expect_refused(why(view, 8, 8), "extents from 1");
  EXPECT_THROW(make_tensor_map(view, {8, 8}), Error);
}

INSTANTIATE_TEST_SUITE_P(Orders, TensorCopyTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::tensor_copy_test
