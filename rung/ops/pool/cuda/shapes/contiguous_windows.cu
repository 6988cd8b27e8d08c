// SPDX-License-Identifier: Apache-2.0
// pool / contiguous windows
//
// Idea     A window that is contiguous in memory (a whole plane of N x C x H x W, or part of a row)
//          is a segment to reduce: taps are numbered without rows and columns. Up to 32 lanes
//          reduce a window, the most that leave each lane several loads.
// Changes  Against warp_per_window: no division per tap, loads of up to 16 bytes, and no idle lanes
//          for a window of 49 or 64 taps: a warp has several windows.
// Cost     One load per pack of the window, with four in flight per lane, or eight of single
//          elements; up to five shuffles.
// Limits   Contiguous windows, all taps within the image; no indices, no weights.
#include "rung/device/collectives.hpp"
#include "rung/ops/pool/cuda/detail/narrow.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
/// Loads in flight per lane.
template <int Elements>
constexpr int loads = Elements == 1 ? 8 : 4;

template <Pooling kind, int Elements, class T>
__global__ void __launch_bounds__(threads)
    pool_contiguous_windows(Images<T> p, NarrowWindows g, std::uint32_t windows, int packs,
                            int lanes) {
  using Sum = Accumulator<T>;
  using Window = Pooled<kind, Sum>;
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  const std::uint32_t number = (blockIdx.x * threads + threadIdx.x) / static_cast<unsigned>(lanes);
  const bool exists = number < windows;
  const OutputPosition at = g.place(exists ? number : 0);
  const T* const from = &p.x(at.n, at.c, at.oh * g.rows.stride, at.ow * g.columns.stride);

  constexpr int batch = loads<Elements>;
  Window window;
  for (int first = lane; first < packs; first += batch * lanes) {
    RawPack<T, Elements> raw[batch];
#pragma unroll
    for (int l = 0; l < batch; ++l) {
      const int pack = first + l * lanes;
      if (pack < packs) raw[l] = load_raw<Elements>(from + pack * Elements);
    }
#pragma unroll
    for (int l = 0; l < batch; ++l) {
      if (first + l * lanes >= packs) break;
      const Pack<Sum, Elements> v = convert<Sum>(unpack(raw[l]));
#pragma unroll
      for (int k = 0; k < Elements; ++k) window.take(v[k]);
    }
  }
  window.value = lanes_reduce(
      window.value,
      [](Sum a, Sum b) {
        Window joined{.value = a};
        joined.join({.value = b});
        return joined.value;
      },
      lanes);
  if (exists && lane == 0) finish(p, at, window.result(static_cast<Sum>(packs * Elements)));
}

/// Returns the elements per load: 16 or 8 bytes if every window is aligned to them, else one
/// element.
std::int64_t elements_of(const Pool::Args& args) {
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  for (std::int64_t bytes = 16; bytes > size && bytes >= 8; bytes /= 2) {
    const std::int64_t elements = bytes / size;
    bool aligned =
        args.taps() % elements == 0 &&
        reinterpret_cast<std::uintptr_t>(args.x.data) % static_cast<std::uintptr_t>(bytes) == 0;
    for (int axis = 0; axis < 4; ++axis) {
      const std::int64_t windows_along = args.y.shape[axis];
      const std::int64_t step = axis == 2   ? args.rows.stride * args.x.strides[2]
                                : axis == 3 ? args.columns.stride * args.x.strides[3]
                                            : args.x.strides[axis];
      aligned = aligned && (windows_along == 1 || step % elements == 0);
    }
    if (aligned) return elements;
  }
  return 1;
}

/// Returns the lanes per window: the largest power of two, up to 32, with at least two loads per
/// lane, or four of single elements.
int lanes_of(std::int64_t packs, std::int64_t elements) {
  int lanes = 1;
  while (lanes < warp_size && (elements == 1 ? 8 : 4) * lanes <= packs) lanes *= 2;
  return lanes;
}

Support supports(const Pool::Args& args, const Context&) {
  if (args.kind() == Pooling::weighted || args.has_indices()) {
    return unsupported("maximum, average and l2, no indices");
  }
  const auto inside = [](const PoolAxis& axis) {
    return axis.padding == 0 && axis.start(axis.out - 1) + axis.kernel <= axis.in &&
           (axis.dilation == 1 || axis.kernel == 1);
  };
  if (!inside(args.rows) || !inside(args.columns)) {
    return unsupported("windows within the image, undilated");
  }
  const bool row = args.columns.kernel == 1 || args.x.strides[3] == 1;
  const bool rows = args.rows.kernel == 1 || args.x.strides[2] == args.columns.kernel;
  if (!row || !rows) return unsupported("windows that are one piece of memory");
  if (args.taps() > std::int64_t{1} << 30) return unsupported("windows of up to 2^30 taps");
  return supports_narrow(args, args.y.size() * warp_size);
}

Work work(const Pool::Args& args, const Context&) {
  const std::int64_t elements = elements_of(args), packs = args.taps() / elements;
  const int lanes = lanes_of(packs, elements);
  return pool_facts(ceil_div(args.y.size() * lanes, std::int64_t{threads}),
                    ceil_div(packs, (elements == 1 ? loads<1> : loads<2>)*lanes));
}

void run(const Pool::Args& args, Context& context) {
  const std::int64_t elements = elements_of(args);
  const std::int64_t packs = args.taps() / elements;
  const int lanes = lanes_of(packs, elements);
  const auto windows = static_cast<std::uint32_t>(args.y.size());
  const auto start = [&]<Pooling kind, class T, int Elements>() {
    launch(
        context,
        {.grid = ceil_div(std::int64_t{windows} * lanes, std::int64_t{threads}), .block = threads},
        pool_contiguous_windows<kind, Elements, T>, images_of<T>(args), narrow_windows(args),
        windows, static_cast<int>(packs), lanes);
  };
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    if constexpr (kind != Pooling::weighted) {
      constexpr int most = vector_width<T>;
      if (elements == most) return start.template operator()<kind, T, most>();
      if constexpr (most > 2) {
        if (elements == most / 2) return start.template operator()<kind, T, most / 2>();
      }
      start.template operator()<kind, T, 1>();
    }
  });
}

const Rung<Pool> self{{.name = "contiguous_windows",
                       .after = "warp_per_window",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
