// SPDX-License-Identifier: Apache-2.0
// scan / panels
//
// Idea     an axis that is not the last: a block walks down a panel of 256 bytes of lines. 32
//          groups of 16 lanes take 8 rows each (4 of small elements) in registers; their totals are
//          transposed in shared memory, so that a warp scans the totals of one line.
// Changes  against columns: few long lines are not read twice, and a block has a whole step in
//          flight, 64 or 32 KiB.
// Cost     each element read and written once; two barriers per step.
// Limits   f32, f64, f16, bf16, u8 and i32; lines that are adjacent in x and y. Parallel over
//          panels only; axes shorter than a step, 256 or 128 rows, leave groups idle.
#include "rung/core/bounds.hpp"
#include "rung/ops/scan/cuda/detail/columns.hpp"

namespace rung {
namespace {
using namespace scan_cuda;
using columns::Strip;

constexpr int lanes = 16;   // per row of the panel
constexpr int groups = 32;  // groups of rows, one per lane of a warp
constexpr int threads = lanes * groups;
template <class T>
constexpr std::int64_t step_rows = groups* columns::abreast<T>;
constexpr std::int64_t panel_bytes = lanes * 16;

/// Returns the state of a single element; the functions below return, for both policies, the
/// combined state of a line so far.
template <class T, class S, class C>
__device__ __forceinline__ S state_of(const Plain<T, S, C>&, S value, bool) {
  return value;
}
template <class T>
__device__ __forceinline__ Flagged<ScanState<T>> state_of(const Segmented<T>&, ScanState<T> value,
                                                          bool head) {
  return {value, head ? 1u : 0u};
}
template <class T, class S, class C>
__device__ __forceinline__ S value_of(const Plain<T, S, C>&, S state, bool) {
  return state;
}
/// Returns the value before the next element: the identity if a segment begins at it (`head`).
template <class T>
__device__ __forceinline__ ScanState<T> value_of(const Segmented<T>& policy,
                                                 const Flagged<ScanState<T>>& state, bool head) {
  return head ? policy.identity.value : state.value;
}

template <class Policy>
struct Panel {
  using State = typename Policy::State;
  static constexpr int lines = lanes * pack_size<typename Policy::Element>;
  // Padded by one, so that a line's totals are in different banks.
  State before[groups][lines + 1];  // initially the groups' own totals
};

/// Extents of the innermost axis of lines and of the other axes.
struct Extent {
  std::int64_t width;
  std::int64_t panels;  // per width
  std::int64_t outer;
};

template <class Policy>
__global__ void __launch_bounds__(threads, 2)
    scan_panels(Policy policy, Lines<typename Policy::Element> lines, Extent extent,
                bool exclusive) {
  using T = typename Policy::Element;
  using State = typename Policy::State;
  using Value = ScanState<T>;
  constexpr int N = pack_size<T>;
  const auto combine = [&](const State& a, const State& b) { return policy.combine(a, b); };
  auto& panel = shared<Panel<Policy>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int group = thread / lanes;
  const int column = thread % lanes * N;
  const int lane = lane_of_thread();
  const int warp = thread / warp_size;
  for (std::int64_t i = blockIdx.x; i < extent.panels * extent.outer; i += gridDim.x) {
    const std::int64_t first_line = i % extent.panels * Panel<Policy>::lines + column;
    // existing lines of this thread, may be 0 or less
    const std::int64_t valid = extent.width - first_line;
    const std::int64_t line = i / extent.panels * extent.width + (valid > 0 ? first_line : 0);
    Strip<T> strip(lines, line, valid);
    const std::int64_t end = valid > 0 ? lines.n : 0;
    State carry[N];  // carries of this warp's lines, equal in every lane
#pragma unroll
    for (int k = 0; k < N; ++k) carry[k] = policy.identity;
    for (std::int64_t step = 0; step < lines.n; step += step_rows<T>) {
      const std::int64_t first = step + group * columns::abreast<T>;
      strip.load(lines, first, end);
      State total[N];
#pragma unroll
      for (int k = 0; k < N; ++k) total[k] = policy.identity;
#pragma unroll
      for (int r = 0; r < columns::abreast<T>; ++r) {
        if (r >= strip.rows) break;
        const bool head = strip.begins_at(r);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          total[k] = combine(total[k], state_of(policy, convert<Value>(strip.pack[r][k]), head));
        }
      }
#pragma unroll
      for (int k = 0; k < N; ++k) panel.before[group][column + k] = total[k];
      __syncthreads();
      State up_to[N];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        up_to[k] = warp_scan_inclusive(panel.before[lane][warp * N + k], combine);
      }
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const State others = shuffle_up(up_to[k], 1);
        panel.before[lane][warp * N + k] = lane == 0 ? carry[k] : combine(carry[k], others);
        carry[k] = combine(carry[k], shuffle(up_to[k], warp_size - 1));
      }
      __syncthreads();
      // No other thread writes this column until the next step.
#pragma unroll
      for (int k = 0; k < N; ++k) total[k] = panel.before[group][column + k];
#pragma unroll
      for (int r = 0; r < columns::abreast<T>; ++r) {
        if (r >= strip.rows) break;
        const bool head = strip.begins_at(r);
        Pack<T, N> result;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const Value before = value_of(policy, total[k], head);
          total[k] = combine(total[k], state_of(policy, convert<Value>(strip.pack[r][k]), head));
          result[k] = convert<T>(exclusive ? before : value_of(policy, total[k], false));
        }
        strip.store(lines, first + r, result);
      }
    }
  }
}

Extent extent_of(const Scan::Args& args) {
  Extent extent{};
  extent.width = args.lines.shape[args.lines.rank - 1];
  const auto size = static_cast<std::int64_t>(size_of(args.x.dtype));
  extent.panels = ceil_div(extent.width * size, panel_bytes);
  extent.outer = args.lines.size() / extent.width;
  return extent;
}

void run(const Scan::Args& args, Context& context) {
  columns::visit_types(args.x.dtype, [&]<class T>() {
    Lines<T> lines = lines_of<T>(args);
    if (args.has_segments()) {
      add_heads(context, args,
                static_cast<unsigned*>(context.workspace(
                    static_cast<std::size_t>(head_words(args)) * sizeof(unsigned))),
                lines);
    }
    const Extent extent = extent_of(args);
    const auto launch_panels = [&](const auto& policy) {
      using Policy = std::remove_cvref_t<decltype(policy)>;
      launch(context,
             {.grid = smaller<std::int64_t>(extent.panels * extent.outer, 0x7fffffff),
              .block = threads,
              .shared_bytes = sizeof(Panel<Policy>)},
             scan_panels<Policy>, policy, lines, extent, args.exclusive);
    };
    if (supports_sum(args)) {
      launch_panels(Plain<T, ScanState<T>, ScanSum>{{}, 0});
    } else {
      launch_panels(segmented_policy<T>(args));
    }
  });
}

Work work(const Scan::Args& args, const Context&) {
  const Extent extent = extent_of(args);
  const std::int64_t blocks = extent.panels * extent.outer;
  const std::int64_t step = size_of(args.x.dtype) >= 4 ? step_rows<float> : step_rows<std::uint8_t>;
  Work work = line_work(args, blocks, threads, ceil_div(args.length(), step), 2);
  work.bytes = 2 * blocks * panel_bytes * round_up(args.length(), columns::abreast<float>);
  work.path = !supports_sum(args) ? "any" : size_of(args.x.dtype) < 4 ? "narrow" : "";
  return work;
}

const Rung<Scan> self{{.name = "panels",
                       .after = "columns",
                       .backend = device_backend,
                       .supports = columns::supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
