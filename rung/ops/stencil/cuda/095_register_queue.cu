// SPDX-License-Identifier: Apache-2.0
// stencil / register queue
//
// Idea     No tile: a warp walks down a strip of 128 columns, four per lane (three axes: through
//          the planes of two rows of such a strip). A lane loads its four elements of each row, and
//          their neighbors on both sides, through L1. The sums of all rows of y that use the
//          current row of x form a queue in registers; each row of x completes the oldest.
// Changes  Against tma_tile: no overlap of tiles along the walk; no barrier in the loop, shared
//          memory only for weights, every edge and four types.
// Cost     Three loads of four elements per row of x, the lane's own four prefetched one or two
//          rows ahead. Each element of x is loaded from global memory (H + m - 1) / H times for H
//          rows per warp and m rows of the mask; with three axes, where a block computes 16 rows,
//          18 / 16 times as much.
// Limits   f32, f16, bf16 and u8, x and y of the same type; contiguous rows. Masks of up to nine
//          rows that reach up to four columns to either side; with three axes up to three planes of
//          3 x 3.
// Source   P. Micikevicius, 3D finite difference computation on GPUs using CUDA, 2009 (register
//          queue).
#include <utility>

#include "rung/device/load.hpp"
#include "rung/ops/stencil/cuda/detail/arrays.hpp"

namespace rung {
namespace {

using namespace stencil_cuda;

constexpr int lanes = 32, warps = 8;
constexpr int pack = 4;              // columns per lane
constexpr int strip = lanes * pack;  // columns per warp

/// Largest mask of a kernel: rows along the walk, rows across it, columns to either side of the
/// element. `is_centered`: the mask has all of these columns, with the element in the middle.
/// Otherwise each column is tested, not multiplied by 0, because infinity times 0 is NaN.
template <int walk_taps, int cross_taps, int columns_beside, bool is_centered>
struct Reach {
  static constexpr int walk = walk_taps, cross = cross_taps, side = columns_beside;
  static constexpr int across = 2 * side + 1;
  static constexpr bool centered = is_centered;
  static constexpr int rows = cross_taps == 1 ? 1 : 2;  // rows of y per lane, across the walk
  static constexpr int seen = rows + cross - 1;         // rows of x under the masks of these rows
  static constexpr int weights = walk * cross * across;
  static constexpr bool keeps_weights = weights <= 27;  // in registers; others in shared memory
  static constexpr int ahead = cross == 1 ? 2 : 1;      // rows or planes prefetched
};

/// Returns edge_index() for an i that is outside by less than the extent, without a division.
__device__ __forceinline__ int index_near(int i, int extent, StencilEdge edge) {
  if (i >= 0 && i < extent) return i;
  if (edge == StencilEdge::zero) return -1;
  if (edge == StencilEdge::clamp) return i < 0 ? 0 : extent - 1;
  if (edge == StencilEdge::wrap) return i < 0 ? i + extent : i - extent;
  return i < 0 ? -i : 2 * (extent - 1) - i;
}

/// Computes one walk per warp. Axes of p: the axis of the walk, the axis across it, columns.
template <class P, class R>
__global__ void __launch_bounds__(lanes* warps)
    stencil_register_queue(const __grid_constant__ P p, int strips, int bands, int length) {
  using T = typename P::Element;
  const int walk_taps = p.axis[0].taps;
  // Weights in queue order, from the last layer of the mask to the first; columns are relative to
  // the element.
  float* const weights = &shared<float>();
  const int thread = static_cast<int>(threadIdx.x);
  const int shift = p.axis[2].origin - R::side;  // from a column of `weights` to the mask's column
  for (int i = thread; i < R::weights; i += lanes * warps) {
    const int k = walk_taps - 1 - i / (R::cross * R::across);
    const int j = i % R::across + shift;
    const bool exists = k >= 0 && j >= 0 && j < p.axis[2].taps;
    weights[i] = exists ? p.weights.at(k, i / R::across % R::cross, j) : 0.0F;
  }
  __syncthreads();
  float kept[R::keeps_weights ? R::weights : 1];
  if constexpr (R::keeps_weights) {
#pragma unroll
    for (int i = 0; i < R::weights; ++i) kept[i] = weights[i];
  }

  // Part of y computed by this warp. Warps of a block have adjacent rows or strips.
  std::int64_t task = std::int64_t{blockIdx.x} * warps + thread / lanes;
  int cross = 0;
  if constexpr (R::cross > 1) {
    const int pairs = ceil_div(p.extents[1], R::rows);
    cross = static_cast<int>(task % pairs) * R::rows;
    task /= pairs;
  }
  const int column = static_cast<int>(task % strips) * strip + thread % lanes * pack;
  task /= strips;
  const int begin = static_cast<int>(task % bands) * length;
  const std::int64_t array = task / bands;
  if (array >= p.batch.size()) return;
  const int end = smaller(begin + length, p.extents[0]);
  std::int64_t first[2];
  p.batch.offsets(array, first);

  // Packs of x that a lane reads: left neighbors, own elements, right neighbors. `whole`: the pack
  // is one vector load.
  bool whole[3];
  bool outside[3];
#pragma unroll
  for (int side = 0; side < 3; ++side) {
    const int from = column + (side - 1) * pack;
    whole[side] = p.wide && from >= 0 && from + pack <= p.extents[2];
    outside[side] = p.edge == StencilEdge::zero && (from + pack <= 0 || from >= p.extents[2]);
  }
  const auto load_pack = [&](int at, int r, int side) {
    const int step = index_near(at - p.axis[0].origin, p.extents[0], p.edge);
    const int row =
        R::cross == 1 ? 0 : index_near(cross + r - p.axis[1].origin, p.extents[1], p.edge);
    const T* const x = p.x + first[0] + step * p.axis[0].x + row * p.axis[1].x;
    const int from = column + (side - 1) * pack;
    if (step < 0 || row < 0 || outside[side]) return Pack<T, pack>{};
    if (whole[side]) return load_wide<pack>(x + from);
    Pack<T, pack> values;
#pragma unroll
    for (int c = 0; c < pack; ++c) {
      const int inside = index_near(from + c, p.extents[2], p.edge);
      // Columns beyond the end of y need no element of x.
      values[c] = inside < 0 || inside >= p.extents[2] ? zero<T>() : x[inside];
    }
    return values;
  };

  const int last = end + walk_taps - 1;
  Pack<T, pack> next[R::ahead][R::seen];
#pragma unroll
  for (int a = 0; a < R::ahead; ++a) {
#pragma unroll
    for (int r = 0; r < R::seen; ++r) next[a][r] = load_pack(smaller(begin + a, last - 1), r, 1);
  }
  float queue[R::walk][R::rows][pack] = {};  // queue[0] is completed next
#pragma unroll 1
  for (int at = begin; at < last; ++at) {
#pragma unroll
    for (int r = 0; r < R::seen; ++r) {
      float x[3 * pack];
#pragma unroll
      for (int side = 0; side < 3; ++side) {
        const auto values = convert<float>(side == 1 ? next[0][r] : load_pack(at, r, side));
#pragma unroll
        for (int c = 0; c < pack; ++c) x[side * pack + c] = values[c];
      }
#pragma unroll
      for (int a = 0; a + 1 < R::ahead; ++a) next[a][r] = next[a + 1][r];
      if (at + R::ahead < last) next[R::ahead - 1][r] = load_pack(at + R::ahead, r, 1);
#pragma unroll
      for (int j = 0; j < R::across; ++j) {
        if (!R::centered && (j + shift < 0 || j + shift >= p.axis[2].taps)) continue;
#pragma unroll
        for (int q = 0; q < R::rows; ++q) {
          const int i = r - q;  // the mask's row that contributes row r of x to row q of y
          if (i < 0 || i >= R::cross) continue;
#pragma unroll
          for (int k = 0; k < R::walk; ++k) {
            const int at_weight = (k * R::cross + i) * R::across + j;
            const float weight =
                R::keeps_weights ? kept[R::keeps_weights ? at_weight : 0] : weights[at_weight];
#pragma unroll
            for (int c = 0; c < pack; ++c) queue[k][q][c] += weight * x[pack - R::side + c + j];
          }
        }
      }
    }
    const int done = at - (walk_taps - 1);
    if (done >= begin) {
#pragma unroll
      for (int q = 0; q < R::rows; ++q) {
        if (cross + q >= p.extents[1] || column >= p.extents[2]) break;
        T* const y = p.y + first[1] + done * p.axis[0].y + (cross + q) * p.axis[1].y + column;
        Pack<T, pack> results;
#pragma unroll
        for (int c = 0; c < pack; ++c) results[c] = element_of<T>(p.scale * queue[0][q][c]);
        if (p.wide) {
          store_wide<pack>(y, results, p.extents[2] - column);
        } else {
          store<pack>(y, results, p.extents[2] - column);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < R::walk; ++k) {
#pragma unroll
      for (int q = 0; q < R::rows; ++q) {
#pragma unroll
        for (int c = 0; c < pack; ++c) {
          // Clears sums of layers beyond the mask.
          queue[k][q][c] = k + 1 < R::walk && k + 1 < walk_taps
                               ? queue[k + 1 < R::walk ? k + 1 : k][q][c]
                               : 0.0F;
        }
      }
    }
  }
}

/// Kernel parameters. With two axes, the walk is along rows, and the axis across it has extent 1.
template <class T>
struct Walk : Arrays<T, T> {
  using Element = T;
  int extents[3];
  bool wide;  // rows begin at multiples of `pack` elements
};

bool in_packs(const Stencil::Args& args) {
  const auto element = size_of(args.x.dtype);
  const auto begins = [&](const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % (pack * element) == 0;
  };
  bool whole = begins(args.x.data) && begins(args.y.data);
  for (int axis = 0; axis < 2; ++axis) {
    const Stencil::Axis& one = args.axis[axis];
    whole = whole && (one.extent == 1 || (one.x % pack == 0 && one.y % pack == 0));
  }
  for (int axis = 0; axis < args.batch.rank; ++axis) {
    const auto& strides = args.batch.strides;
    whole = whole && strides[0][axis] % pack == 0 && strides[1][axis] % pack == 0;
  }
  return whole;
}

template <class T>
Walk<T> walk_of(const Stencil::Args& args) {
  Walk<T> p{arrays_of<T, T>(args), {}, in_packs(args)};
  if (args.axes < 3) {
    std::swap(p.axis[0], p.axis[1]);
    std::swap(p.weights.mask_strides[0], p.weights.mask_strides[1]);
    std::swap(p.weights.along[0], p.weights.along[1]);
    std::swap(p.weights.along_strides[0], p.weights.along_strides[1]);
  }
  for (int axis = 0; axis < 3; ++axis) p.extents[axis] = static_cast<int>(p.axis[axis].extent);
  return p;
}

/// Partition of the walks over a grid's warps: each warp walks `length` positions.
struct Share {
  std::int64_t strips, bands, length, tasks;
  [[nodiscard]] std::int64_t blocks() const { return ceil_div(tasks, std::int64_t{warps}); }
};
template <class R>
Share share_of(const Stencil::Args& args) {
  // `wanted`: several warps per scheduler of a large GPU. `length` is at least 8 times the taps
  // along the walk, so that only a small share of the rows is loaded by two warps.
  constexpr std::int64_t wanted = 8448, max_length = 128;
  const Stencil::Axis& walk = args.axis[args.axes < 3 ? 1 : 0];
  const Stencil::Axis& cross = args.axis[args.axes < 3 ? 0 : 1];
  Share share{.strips = ceil_div(args.columns().extent, std::int64_t{strip})};
  const std::int64_t across =
      share.strips * ceil_div(cross.extent, std::int64_t{R::rows}) * args.arrays();
  share.length = clamped(ceil_div(walk.extent, ceil_div(wanted, across)),
                         std::int64_t{8} * walk.taps, max_length);
  share.bands = ceil_div(walk.extent, share.length);
  share.tasks = across * share.bands;
  return share;
}

template <class R>
void launch_queue(const Stencil::Args& args, Context& context) {
  visit<float, f16, bf16, std::uint8_t>(args.x.dtype, [&]<class T>() {
    const Share share = share_of<R>(args);
    launch(context,
           {.grid = share.blocks(),
            .block = lanes * warps,
            .shared_bytes = R::weights * sizeof(float)},
           stencil_register_queue<Walk<T>, R>, walk_of<T>(args), static_cast<int>(share.strips),
           static_cast<int>(share.bands), static_cast<int>(share.length));
  });
}

int columns_beside(const Stencil::Args& args) {
  const Stencil::Axis& columns = args.columns();
  return larger(columns.origin, columns.taps - 1 - columns.origin);
}

Support supports(const Stencil::Args& args, const Context&) {
  if (args.x.dtype == DType::f64 || args.x.dtype != args.y.dtype) {
    return unsupported("takes f32, f16, bf16 and u8, x and y alike");
  }
  const Stencil::Axis& columns = args.columns();
  if (columns.extent > 1 && (columns.x != 1 || columns.y != 1)) {
    return unsupported("the rows must be contiguous");
  }
  if (args.axes == 3) {
    const bool small = args.depth().taps <= 3 && args.rows().taps == 3 && columns.taps == 3;
    if (!small || columns.origin != 1)
      return unsupported("of three axes, takes masks of 3 x 3 x 3");
  } else if (args.rows().taps > 9 || columns_beside(args) > pack) {
    return unsupported("takes masks of 9 rows that reach 4 columns to a side");
  }
  for (const Stencil::Axis& axis : args.axis) {
    if (axis.extent > std::int64_t{1} << 30) return unsupported("more than 2^30 rows or columns");
    const bool folds = args.edge == StencilEdge::mirror || args.edge == StencilEdge::wrap;
    if (folds && axis.taps > 1 && axis.extent < 2 * pack + axis.taps) {
      return unsupported("arrays that are smaller than the mask and 8 elements");
    }
  }
  const bool fits = args.elements() < std::int64_t{1} << 40;
  return fits ? supported : unsupported("2^40 elements and more");
}

Cost traffic(const Stencil::Args& args) { return traffic_of(args, args.iterations); }

/// Calls f<R>() with the smallest Reach that contains the mask.
template <class F>
auto with_reach(const Stencil::Args& args, const F& f) {
  const int rows = args.rows().taps;
  const int side = columns_beside(args);
  const bool centered = args.columns().taps == 2 * side + 1;
  if (args.axes == 3) return f.template operator()<Reach<3, 3, 1, true>>();
  if (rows <= 3 && side == 1 && centered) return f.template operator()<Reach<3, 1, 1, true>>();
  if (rows <= 5 && side == 2 && centered) return f.template operator()<Reach<5, 1, 2, true>>();
  if (rows <= 7 && side == 3 && centered) return f.template operator()<Reach<7, 1, 3, true>>();
  if (rows == 1) return f.template operator()<Reach<1, 1, 4, false>>();
  return f.template operator()<Reach<9, 1, 4, false>>();
}

Work work(const Stencil::Args& args, const Context&) {
  return with_reach(args, [&]<class R>() {
    const Share share = share_of<R>(args);
    const Stencil::Axis& walk = args.axis[args.axes < 3 ? 1 : 0];
    const auto walked = static_cast<double>(smaller(share.length, walk.extent) + walk.taps - 1);
    Work work = launches_work(args, args.iterations, share.blocks(),
                              walked * warps * strip * R::rows * R::weights, walked);
    work.path = in_packs(args) ? "" : "cut";
    return work;
  });
}

void run(const Stencil::Args& args, Context& context) {
  stencil_detail::for_each_step(args, context, 0, [&](const Stencil::Args& step, void*) {
    with_reach(step, [&]<class R>() { launch_queue<R>(step, context); });
  });
}

const Rung<Stencil> self{{.name = "register_queue",
                          .step = 95,
                          .after = "tma_tile",
                          .backend = device_backend,
                          .supports = supports,
                          .traffic = traffic,
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
