// SPDX-License-Identifier: Apache-2.0
// pool / taps over warps
//
// Idea     For contiguous channels and large windows: the rows of threads of a block divide the
//          taps of one window, and the lanes have adjacent channels. The partial results of the
//          rows are combined in shared memory.
// Changes  Against vectorized_nhwc, in which a thread loops over all taps of its window, one load
//          after another, and few windows leave most of the GPU idle. The number of channels need
//          not be a multiple of a vector: a lane then has one channel.
// Cost     One load per tap and pack of channels, four in flight per thread; a barrier per window.
// Limits   Contiguous channels; no indices, no weights; images of up to 2^29 along an axis.
#include "rung/device/shared.hpp"
#include "rung/ops/pool/cuda/detail/narrow.hpp"
#include "rung/ops/pool/shared/facts.hpp"

namespace rung {
namespace {

using namespace pool_cuda;

constexpr int threads = 256;
constexpr int loads = 4;  // in flight per thread

template <Pooling kind, int Lanes, class T>
__global__ void __launch_bounds__(threads)
    pool_taps_over_warps(Images<T> p, NarrowWindows g, Divisor kernel_width, Divisor chunks) {
  using Sum = Accumulator<T>;
  using Window = Pooled<kind, Sum>;
  Sum* const found = &shared<Sum>();  // partial results: [thread row][channel of a pack][lane]
  const int lane = static_cast<int>(threadIdx.x);
  const int share = static_cast<int>(threadIdx.y);
  const int shares = static_cast<int>(blockDim.y);
  const int channels = static_cast<int>(g.channels.value);
  std::uint32_t window = blockIdx.x;
  OutputPosition at{};
  at.c = (chunks.take(window) * static_cast<int>(blockDim.x) + lane) * Lanes;
  at.ow = g.width.take(window);
  at.oh = g.height.take(window);
  at.n = window;
  const bool exists = at.c < channels;
  const NarrowTaps rows = g.rows.taps(static_cast<int>(at.oh));
  const NarrowTaps columns = g.columns.taps(static_cast<int>(at.ow));
  const T* const from = &p.x(at.n, exists ? at.c : 0, 0, 0) +
                        g.rows.start(static_cast<int>(at.oh)) * p.x.strides[2] +
                        g.columns.start(static_cast<int>(at.ow)) * p.x.strides[3];

  Window pooled[Lanes];
  const int taps = exists ? rows.end * g.columns.kernel : 0;  // end, in rows within the image
  for (int tap = rows.begin * g.columns.kernel + share; tap < taps; tap += loads * shares) {
    RawPack<T, Lanes> raw[loads];
    bool has[loads];
#pragma unroll
    for (int l = 0; l < loads; ++l) {
      const int number = tap + l * shares;
      std::uint32_t row = static_cast<std::uint32_t>(number);
      const int column = kernel_width.take(row);
      has[l] = number < taps && column >= columns.begin && column < columns.end;
      if (has[l]) raw[l] = load_raw<Lanes>(from + row * g.row_step + column * g.column_step);
    }
#pragma unroll
    for (int l = 0; l < loads; ++l) {
      if (!has[l]) continue;
      const Pack<Sum, Lanes> v = convert<Sum>(unpack(raw[l]));
#pragma unroll
      for (int k = 0; k < Lanes; ++k) pooled[k].take(v[k]);
    }
  }

#pragma unroll
  for (int k = 0; k < Lanes; ++k) {
    found[(share * Lanes + k) * static_cast<int>(blockDim.x) + lane] = pooled[k].value;
  }
  __syncthreads();
  if (share >= Lanes || at.c + share >= channels) return;
  // Each of the first Lanes rows of threads now finishes one channel of each pack.
  const int k = share;
  Window all;
  for (int i = 0; i < shares; ++i) {
    all.join({.value = found[(i * Lanes + k) * static_cast<int>(blockDim.x) + lane]});
  }
  at.c += k;
  finish(p, at, all.result(narrow_divisor<kind, Sum>(g.rows, g.columns, at, p.count_padding)));
}

/// Returns whether channels form aligned packs of 16 bytes.
bool in_packs(const Pool::Args& args) {
  const std::int64_t lanes = pack_elements(args.x.dtype);
  bool whole =
      args.channels() % lanes == 0 && reinterpret_cast<std::uintptr_t>(args.x.data) % 16 == 0;
  for (const int axis : {0, 2, 3}) whole = whole && args.x.strides[axis] % lanes == 0;
  return whole;
}

/// Returns the lanes per block: a power of two from 4 to 32, no larger than needed for the packs.
std::int64_t lanes_of(std::int64_t packs) {
  std::int64_t lanes = 4;
  while (lanes < 32 && lanes < packs) lanes *= 2;
  return lanes;
}

Support supports(const Pool::Args& args, const Context&) {
  if (args.kind() == Pooling::weighted || args.has_indices()) {
    return unsupported("maximum, average and l2, no indices");
  }
  if (args.x.strides[1] != 1 && args.channels() > 1) return unsupported("contiguous channels");
  const Support narrow = supports_narrow(args, args.y.size());
  if (!narrow) return narrow;
  constexpr std::int64_t max_taps = std::int64_t{1} << 30;
  return args.taps() <= max_taps ? supported : unsupported("windows of up to 2^30 taps");
}

Work work(const Pool::Args& args, const Context&) {
  const std::int64_t pack = in_packs(args) ? pack_elements(args.x.dtype) : 1;
  const std::int64_t packs = args.channels() / pack, lanes = lanes_of(packs);
  return pool_facts(args.y.size() / args.channels() * ceil_div(packs, lanes),
                    1 + ceil_div(args.taps(), loads * (threads / lanes)));
}

void run(const Pool::Args& args, Context& context) {
  const bool wide = in_packs(args);
  const auto start = [&]<Pooling kind, class T, int Lanes>() {
    const std::int64_t packs = args.channels() / Lanes;
    const std::int64_t lanes = lanes_of(packs);
    const std::int64_t chunks = ceil_div(packs, lanes);
    const std::int64_t windows = args.images() * args.rows.out * args.columns.out;
    launch(context,
           {.grid = windows * chunks,
            .block = {lanes, threads / lanes},
            .shared_bytes = threads * Lanes * sizeof(Accumulator<T>)},
           pool_taps_over_warps<kind, Lanes, T>, images_of<T>(args), narrow_windows(args),
           Divisor::of(args.columns.kernel), Divisor::of(chunks));
  };
  with_kind_and_type(args, [&]<Pooling kind, class T>() {
    if constexpr (kind != Pooling::weighted) {
      if (wide) return start.template operator()<kind, T, vector_width<T>>();
      start.template operator()<kind, T, 1>();
    }
  });
}

const Rung<Pool> self{{.name = "taps_over_warps",
                       .after = "vectorized_nhwc",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
