// SPDX-License-Identifier: Apache-2.0
// image / shared tile
//
// Idea     A block loads a tile of 8 rows of 128 elements and its halo into shared memory, each
//          element once, and reads its windows from shared memory. Interleaved channels share a
//          row: the neighbor of an element is then 3 or 4 elements away.
// Changes  Against pixel_per_thread: T^2 loads per result of a T x T window from shared memory
//          instead of L1, and one border test per element loaded instead of one per tap.
// Cost     (8 + 2 r)(128 + 2 r C) loads of single elements per 1024 results, for radius r and C
//          channels; T^2 loads from shared memory and multiply-adds per result.
// Limits   Filters with a neighborhood; any strides.
// Source   D. Kirk, W. Hwu and I. El Hajj, Programming Massively Parallel Processors, chapter 7.
#include "rung/ops/image/cuda/detail/rows.hpp"

namespace rung {
namespace {

using namespace image_cuda;

constexpr int lanes = 32, warps = 8;
constexpr int tile_rows = 8, tile_width = 128;

template <class T>
__global__ void __launch_bounds__(lanes* warps)
    image_shared_tile(const __grid_constant__ Rows<T> p, int reach) {
  using Sum = typename Filter<T>::Sum;
  T* const tile = &shared<T>();
  const int lane = static_cast<int>(threadIdx.x);
  const int warp = static_cast<int>(threadIdx.y);
  const int halo = reach * p.group;
  const int pitch = tile_width + 2 * halo;
  const int first_row = static_cast<int>(blockIdx.y) * tile_rows;
  const int first = static_cast<int>(blockIdx.x) * tile_width;
  const Plane<T> plane(p, blockIdx.z);

  for (int r = warp; r < tile_rows + 2 * reach; r += warps) {
    const T* const from = plane.x + p.inside_row(first_row + r - reach) * p.x_row;
    const bool is_row = p.is_row(first_row + r - reach);
    for (int c = lane; c < pitch; c += lanes) {
      const int element = first + c - halo;
      const bool is_zero = p.filter.zero_edges && !(is_row && p.is_element(element));
      tile[r * pitch + c] = is_zero ? T{0} : from[p.inside(element) * p.x_step];
    }
  }
  __syncthreads();

  const int row = first_row + warp;
  if (row >= p.rows) return;
  for (int c = lane; c < tile_width && first + c < p.elements; c += lanes) {
    const T* const middle = tile + (warp + reach) * pitch + halo + c;
    const auto at = [&](int k, int l) { return static_cast<Sum>(middle[k * pitch + l * p.group]); };
    T& result = plane.y[row * p.y_row + (first + c) * p.y_step];
    if (p.is_alpha(plane.number, first + c)) {
      result = *middle;
    } else if (p.filter.kind == ImageFilter::sobel) {
      result = p.filter.sobel(at);
    } else {
      Sum sum = 0;
      for (int k = -reach; k <= reach; ++k) {
        Sum along_row = 0;
        for (int l = -reach; l <= reach; ++l) {
          along_row += p.filter.weight[l < 0 ? -l : l] * at(k, l);
        }
        sum += p.filter.weight[k < 0 ? -k : k] * along_row;
      }
      const Sum blur = p.filter.blurred(sum);
      const bool is_sharpened = p.filter.kind == ImageFilter::unsharp;
      result = is_sharpened ? p.filter.sharpened(at(0, 0), blur) : static_cast<T>(blur);
    }
  }
}

Support supports(const Image::Args& args, const Context&) {
  return supports_tiles(args, tile_rows);
}

int reach_of(const Image::Args& args) {
  return args.filter() == ImageFilter::sobel ? 1 : args.radius;
}
/// Returns the row length of a tile of x, halo included, in elements.
int pitch_of(const Image::Args& args) {
  return tile_width + 2 * reach_of(args) * (is_interleaved(args) ? args.channels : 1);
}
int elements_of(const Image::Args& args) {
  return (tile_rows + 2 * reach_of(args)) * pitch_of(args);
}

Work work(const Image::Args& args, const Context&) {
  const int taps = 2 * reach_of(args) + 1;
  const int loads =
      ceil_div(tile_rows + 2 * reach_of(args), warps) * ceil_div(pitch_of(args), lanes);
  return {.blocks = tile_blocks(args, tile_rows, tile_width),
          .resident = 8,
          .steps = loads + tile_width / lanes * taps * taps,
          .path = args.filter() == ImageFilter::sobel ? "sobel" : ""};
}

void run(const Image::Args& args, Context& context) {
  visit<std::uint8_t, float>(args.x.dtype, [&]<class T>() {
    const Rows<T> p = rows_of<T>(args);
    launch(
        context,
        {.grid = {ceil_div(p.elements, tile_width), ceil_div(p.rows, tile_rows), planes_of(args)},
         .block = {lanes, warps},
         .shared_bytes = static_cast<std::size_t>(elements_of(args)) * sizeof(T)},
        image_shared_tile<T>, p, reach_of(args));
  });
}

const Rung<Image> self{{.name = "shared_tile",
                        .step = 20,
                        .after = "pixel_per_thread",
                        .backend = device_backend,
                        .supports = supports,
                        .work = work,
                        .run = run}};

}  // namespace
}  // namespace rung
