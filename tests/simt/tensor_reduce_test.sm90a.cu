// SPDX-License-Identifier: Apache-2.0
// Reductions of boxes into tensors, and im2col copies.
#include <algorithm>
#include <type_traits>

#include "rung/device/ptx/im2col.hpp"
#include "rung/device/ptx/tensor_reduce.hpp"
#include "tests/simt/hopper_fixture.hpp"

namespace rung::tensor_reduce_test {
namespace {

class TensorReduceTest : public HopperTest {};

constexpr int box_rows = 8, box_columns = 16;

template <class T>
struct Box {
  alignas(1024) T at[box_rows][box_columns];
};

/// Returns block b's contribution to an element: distinct per block, small and integral.
RUNG_HD constexpr int share(int block, int row, int column) {
  return (5 * block + 3 * row + 7 * column) % 11;
}

/// Combines every block's own box with the tensor's at (1, 16), which exceeds both edges.
template <class T, ptx::TensorReduction Reduction>
__global__ void reduce(const __grid_constant__ TensorMap map) {
  Box<T>& box = shared<Box<T>>();
  for (int i = static_cast<int>(threadIdx.x); i < box_rows * box_columns; i += 32) {
    const int value = share(static_cast<int>(blockIdx.x), i / box_columns, i % box_columns);
    if constexpr (std::is_integral_v<T>) {
      box.at[i / box_columns][i % box_columns] = static_cast<T>(value);
    } else {
      box.at[i / box_columns][i % box_columns] = static_cast<T>(static_cast<float>(value));
    }
  }
  ptx::fence_async_proxy();
  __syncwarp();
  if (threadIdx.x == 0) {
    ptx::tensor_reduce<Reduction>(map, {1, 16}, box.at);
    ptx::bulk_commit();
    ptx::bulk_wait<0>();
  }
}

int combine(ptx::TensorReduction reduction, int a, int b) {
  using R = ptx::TensorReduction;
  switch (reduction) {
    case R::add:
      return a + b;
    case R::min:
      return std::min(a, b);
    case R::max:
      return std::max(a, b);
    case R::bit_and:
      return a & b;
    case R::bit_or:
      return a | b;
    default:
      return a ^ b;
  }
}

template <class T>
int whole(T value) {
  if constexpr (std::is_integral_v<T>) return static_cast<int>(value);
  if constexpr (!std::is_integral_v<T>) return static_cast<int>(static_cast<float>(value));
}

template <class T, ptx::TensorReduction Reduction>
void expect_reduction(Context& c) {
  constexpr int rows = 6, columns = 28, stride = 32, blocks = 5;
  std::vector<T> before;
  for (int i = 0; i < rows * stride; ++i) {
    if constexpr (std::is_integral_v<T>) before.push_back(static_cast<T>(i % 9));
    if constexpr (!std::is_integral_v<T>) before.push_back(static_cast<T>(1.0f * (i % 9)));
  }
  Buffer<T> data(before);
  const View<T, 2> view{data.data(), {rows, columns}, {stride, 1}};
  const TensorMap map = make_tensor_map(view, {box_rows, box_columns});
  launch(c, {.grid = blocks, .block = 32, .shared_bytes = sizeof(Box<T>)}, reduce<T, Reduction>,
         map);
  const std::vector<T> got = data.values();
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      int want = whole(before[static_cast<std::size_t>(row * stride + column)]);
      for (int block = 0; block < blocks && row >= 1 && column >= 16; ++block) {
        want = combine(Reduction, want, share(block, row - 1, column - 16));
      }
      ASSERT_EQ(whole(got[static_cast<std::size_t>(row * stride + column)]), want)
          << row << ", " << column << ", reduction " << static_cast<int>(Reduction);
    }
  }
}

TEST_P(TensorReduceTest, EveryTypeAndReduction) {
  using R = ptx::TensorReduction;
  Context c = context();
  expect_reduction<float, R::add>(c);
  expect_reduction<double, R::add>(c);
  expect_reduction<f16, R::add>(c);
  expect_reduction<f16, R::min>(c);
  expect_reduction<f16, R::max>(c);
  expect_reduction<bf16, R::add>(c);
  expect_reduction<bf16, R::max>(c);
  expect_reduction<std::int32_t, R::add>(c);
  expect_reduction<std::int32_t, R::min>(c);
  expect_reduction<std::int32_t, R::max>(c);
  expect_reduction<std::int32_t, R::bit_and>(c);
  expect_reduction<std::int32_t, R::bit_or>(c);
  expect_reduction<std::int32_t, R::bit_xor>(c);
}

struct Pixels {
  alignas(1024) unsigned char at[96 * 128];
  ptx::MemoryBarrier full;
};

/// Copies one im2col box and removes the swizzle.
template <int N, class T>
__global__ void take(const __grid_constant__ TensorMap map, View<const int, 1> start,
                     View<const int, 1> taps, T* out, int pixels, int channels, int chunks) {
  Pixels& s = shared<Pixels>();
  const int bytes = pixels * channels * static_cast<int>(sizeof(T));
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(s.full, 1);
    ptx::mbarrier_fence_init();
    int at[N], offsets[N - 2];
    for (int i = 0; i < N; ++i) at[i] = start(i);
    for (int i = 0; i < N - 2; ++i) offsets[i] = taps(i);
    ptx::mbarrier_arrive_expect(s.full, static_cast<unsigned>(bytes));
    ptx::im2col_load(s.at, map, at, offsets, s.full);
  }
  __syncthreads();
  ptx::mbarrier_wait(s.full, 0);
  for (int i = static_cast<int>(threadIdx.x); i < pixels * channels; i += 64) {
    const int offset = i * static_cast<int>(sizeof(T));
    out[i] = *reinterpret_cast<const T*>(s.at + (offset ^ ((offset >> 3) & chunks)));
  }
}

struct Case {
  Im2colWindow window;
  int start[5];
  int taps[3];
  Swizzle swizzle;
};

/// Expects the base pixels in order, found by counting all of them, each shifted by `taps`.
template <int N>
void expect_pixels(Context& c, const int (&shape)[N], const Case& one) {
  std::int64_t extents[5], strides[5], count = 1;
  for (int axis = N - 1; axis >= 0; --axis) {
    extents[axis] = shape[axis];
    strides[axis] = count;
    count *= shape[axis];
  }
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i) x.push_back(static_cast<float>(1 + i));
  Buffer<float> dx(x);
  View<const float, N> view{dx.data(), {}, {}};
  for (int axis = 0; axis < N; ++axis) {
    view.shape[axis] = extents[axis];
    view.strides[axis] = strides[axis];
  }
  const Im2colWindow& window = one.window;
  const TensorMap map = make_im2col_map(view, window, one.swizzle);
  std::vector<int> first(one.start, one.start + N), taps(one.taps, one.taps + (N - 2));
  Buffer<int> dfirst(first), dtaps(taps);
  Buffer<float> out(static_cast<std::size_t>(window.pixels * window.channels));
  const int chunks = one.swizzle == Swizzle::none ? 0 : swizzle_period(one.swizzle) / 8 - 16;
  launch(c, {.block = 64, .shared_bytes = sizeof(Pixels)}, take<N, float>, map,
         View<const int, 1>{dfirst.data(), {N}, {1}},
         View<const int, 1>{dtaps.data(), {N - 2}, {1}}, out.data(), window.pixels, window.channels,
         chunks);
  const std::vector<float> got = out.values();
  // Axes that the tensor lacks have an extent of 1.
  struct Axis {
    int begin, end, step, tap;
  } axes[3] = {{0, 1, 1, 0}, {0, 1, 1, 0}, {0, 1, 1, 0}};
  for (int i = 0; i < N - 2; ++i) {
    axes[(5 - N) + i] = {window.lower[i], shape[i + 1] + window.upper[i], window.steps[i],
                         one.taps[i]};
  }
  std::vector<std::vector<int>> bases;
  for (int n = 0; n < shape[0] + 2; ++n) {
    for (int d = axes[0].begin; d < axes[0].end; d += axes[0].step) {
      for (int h = axes[1].begin; h < axes[1].end; h += axes[1].step) {
        for (int w = axes[2].begin; w < axes[2].end; w += axes[2].step) {
          const int spatial[3] = {d, h, w};
          std::vector<int> base{n};
          base.insert(base.end(), spatial + (5 - N), spatial + 3);
          bases.push_back(base);
        }
      }
    }
  }
  const auto begin =
      std::find(bases.begin(), bases.end(), std::vector<int>(first.begin(), first.end() - 1));
  ASSERT_NE(begin, bases.end());
  for (int pixel = 0; pixel < window.pixels; ++pixel) {
    const std::vector<int>& base = begin[pixel];
    for (int channel = 0; channel < window.channels; ++channel) {
      bool exists = base[0] < shape[0] && one.start[N - 1] + channel < shape[N - 1];
      std::int64_t at = base[0] * strides[0] + one.start[N - 1] + channel;
      for (int i = 1; i < N - 1; ++i) {
        const int index = base[static_cast<std::size_t>(i)] + one.taps[i - 1];
        exists = exists && index >= 0 && index < shape[i];
        at += index * strides[i];
      }
      const float want = exists ? x[static_cast<std::size_t>(at)] : 0.0f;
      ASSERT_EQ(got[static_cast<std::size_t>(pixel * window.channels + channel)], want)
          << N << " axes, pixel " << pixel << ", channel " << channel;
    }
  }
}

TEST_P(TensorReduceTest, Im2colBringsAConvolutionsPixels) {
  Context c = context();
  constexpr Swizzle none = Swizzle::none, s32 = Swizzle::bytes_32, s64 = Swizzle::bytes_64,
                    s128 = Swizzle::bytes_128;
  // 3 x 3 taps, padding 1; a corner, the middle, over the end of an image and of all images.
  const Im2colWindow same{{-1, -1}, {-1, -1}, {1, 1, 1}, 8, 40};
  const int image[4] = {3, 6, 9, 20};
  for (int tap = 0; tap < 9; ++tap) {
    expect_pixels<4>(c, image, {same, {0, -1, -1, 0}, {tap / 3, tap % 3}, s32});
    expect_pixels<4>(c, image, {same, {1, 3, 2, 8}, {tap / 3, tap % 3}, none});
  }
  expect_pixels<4>(c, image, {same, {2, 2, 4, 16}, {2, 1}, s32});
  // No padding, 2 x 3 taps, dilation 2 along w, steps of 2 and 3.
  const Im2colWindow strided{{0, 0}, {-1, -4}, {2, 3, 1}, 16, 11};
  expect_pixels<4>(c, image, {strided, {0, 0, 0, 0}, {1, 4}, s64});
  expect_pixels<4>(c, image, {strided, {1, 2, 3, 4}, {0, 2}, s64});
  const Im2colWindow line{{-2}, {-2}, {1, 1, 1}, 32, 96};
  const int row[3] = {4, 30, 32};
  for (int tap = 0; tap < 5; ++tap) expect_pixels<3>(c, row, {line, {0, 5, 0}, {tap}, s128});
  const Im2colWindow volume{{-1, -1, 0}, {-1, -1, -1}, {1, 2, 1}, 4, 60};
  const int box[5] = {2, 3, 4, 5, 4};
  for (int tap = 0; tap < 8; ++tap) {
    expect_pixels<5>(c, box, {volume, {0, 1, 1, 2, 0}, {tap / 4, tap / 2 % 2, tap % 2}, none});
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, TensorReduceTest, testing::ValuesIn(thread_orders()), order_name);

}  // namespace
}  // namespace rung::tensor_reduce_test
