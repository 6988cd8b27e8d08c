// SPDX-License-Identifier: Apache-2.0
// scan / columns
//
// Idea     an axis that is not the last: lines are adjacent, so a thread takes 16 bytes of them and
//          walks down. Neighboring threads load neighboring packs and exchange nothing. If lines
//          are too few to fill the GPU, they are cut into pieces along the scan axis: totals of the
//          pieces, a scan of the totals, then scans of the pieces.
// Changes  against decoupled_look_back: 16-byte loads instead of single elements.
// Cost     each element read and written once; x twice if lines are cut.
// Limits   f32, f64, f16, bf16, u8 and i32; lines that are adjacent in x and y.
#include "rung/core/bounds.hpp"
#include "rung/device/unwritten.hpp"
#include "rung/ops/scan/cuda/detail/columns.hpp"

namespace rung {
namespace {
using namespace scan_cuda;
using namespace scan_cuda::columns;

/// Totals that a thread loads before it uses the first.
constexpr int carried_at_a_time = 8;

struct Cut {
  std::int64_t width;   // extent of the innermost axis of lines
  std::int64_t strips;  // packs per width
  std::int64_t outer;   // extent of the other axes
  std::int64_t pieces;  // along the scan axis
  std::int64_t rows;    // per piece
  [[nodiscard]] RUNG_HD std::int64_t count() const { return outer * strips * pieces; }
};

template <class T>
struct Walk {
  using State = Flagged<ScanState<T>>;
  static constexpr int N = pack_size<T>;
  std::int64_t strip, outer, piece;
  std::int64_t valid;  // existing lines of the strip
  std::int64_t begin, end;

  __device__ __forceinline__ Walk(const Cut& cut, std::int64_t n, std::int64_t i)
      : strip(i % cut.strips),
        outer(i / cut.strips / cut.pieces),
        piece(i / cut.strips % cut.pieces),
        valid(cut.width - strip * N),
        begin(piece * cut.rows),
        end(begin + cut.rows < n ? begin + cut.rows : n) {}
  [[nodiscard]] __device__ __forceinline__ std::int64_t line(const Cut& cut) const {
    return outer * cut.width + strip * N;
  }
  /// Returns the index of the piece's totals; adjacent strips have adjacent totals.
  [[nodiscard]] __device__ __forceinline__ std::int64_t slot(const Cut& cut) const {
    return ((outer * cut.pieces + piece) * cut.strips + strip) * N;
  }
};

template <class T>
__global__ void __launch_bounds__(threads)
    scan_column_totals(Lines<T> lines, Segmented<T> policy, Cut cut,
                       Flagged<ScanState<T>>* totals) {
  constexpr int N = pack_size<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < cut.count();
       i += step) {
    const Walk<T> walk(cut, lines.n, i);
    Strip<T> strip(lines, walk.line(cut), walk.valid);
    ScanState<T> running[N];
    unsigned any = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) running[k] = policy.identity.value;
    for (std::int64_t first = walk.begin; first < walk.end; first += abreast<T>) {
      strip.load(lines, first, walk.end);
      any |= strip.heads;
#pragma unroll
      for (int row = 0; row < abreast<T>; ++row) {
        if (row >= strip.rows) break;
        const bool head = strip.begins_at(row);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const auto element = convert<ScanState<T>>(strip.pack[row][k]);
          running[k] = head ? element : policy.functor(running[k], element);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < N; ++k) totals[walk.slot(cut) + k] = {running[k], any};
  }
}

/// Scans the totals of each line's pieces exclusively, in place: a piece's total becomes its
/// prefix.
template <class T>
__global__ void __launch_bounds__(threads)
    scan_column_carries(Segmented<T> policy, Cut cut, Flagged<ScanState<T>>* totals) {
  const std::int64_t lines = cut.strips * pack_size<T>;  // a row of pieces
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < cut.outer * lines;
       i += step) {
    const auto total = [&](std::int64_t piece) -> auto& {
      return totals[(i / lines * cut.pieces + piece) * lines + i % lines];
    };
    auto carry = policy.identity;
    for (std::int64_t first = 0; first < cut.pieces; first += carried_at_a_time) {
      Flagged<ScanState<T>> part[carried_at_a_time];
#pragma unroll
      for (int k = 0; k < carried_at_a_time; ++k) {
        if (first + k < cut.pieces) part[k] = total(first + k);
      }
#pragma unroll
      for (int k = 0; k < carried_at_a_time; ++k) {
        if (first + k >= cut.pieces) break;
        total(first + k) = carry;
        carry = policy.combine(carry, part[k]);
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    scan_columns(Lines<T> lines, Segmented<T> policy, Cut cut, const Flagged<ScanState<T>>* carries,
                 bool exclusive) {
  constexpr int N = pack_size<T>;
  const std::int64_t step = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < cut.count();
       i += step) {
    const Walk<T> walk(cut, lines.n, i);
    Strip<T> strip(lines, walk.line(cut), walk.valid);
    ScanState<T> running[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      running[k] = carries != nullptr ? carries[walk.slot(cut) + k].value : policy.identity.value;
    }
    for (std::int64_t first = walk.begin; first < walk.end; first += abreast<T>) {
      strip.load(lines, first, walk.end);
#pragma unroll
      for (int row = 0; row < abreast<T>; ++row) {
        if (row >= strip.rows) break;
        const bool head = strip.begins_at(row);
        Pack<T, N> result;
#pragma unroll
        for (int k = 0; k < N; ++k) {
          if (head) running[k] = policy.identity.value;
          const auto after = policy.functor(running[k], convert<ScanState<T>>(strip.pack[row][k]));
          result[k] = convert<T>(exclusive ? running[k] : after);
          running[k] = after;
        }
        strip.store(lines, first + row, result);
      }
    }
  }
}

Cut cut_of(const Scan::Args& args, const Context& context) {
  const std::int64_t pack = larger<std::int64_t>(16 / size_of(args.x.dtype), 1);
  Cut cut{};
  cut.width = args.lines.shape[args.lines.rank - 1];
  cut.strips = ceil_div(cut.width, pack);
  cut.outer = args.lines.size() / cut.width;
  // 512 threads per SM, each with a load in flight; at least 64 rows per piece.
  const std::int64_t wanted = std::int64_t{512} * context.info().sms;
  const std::int64_t most = larger<std::int64_t>(args.length() / 64, 1);
  cut.pieces = clamped<std::int64_t>(wanted / (cut.outer * cut.strips), 1, most);
  cut.rows = ceil_div(args.length(), cut.pieces);
  cut.pieces = ceil_div(args.length(), cut.rows);
  return cut;
}

void run(const Scan::Args& args, Context& context) {
  visit_types(args.x.dtype, [&]<class T>() {
    using State = Flagged<ScanState<T>>;
    Lines<T> lines = lines_of<T>(args);
    const Segmented<T> policy = segmented_policy<T>(args);
    const Cut cut = cut_of(args, context);
    const std::int64_t slots = cut.pieces > 1 ? cut.count() * pack_size<T> : 0;
    const auto slot_bytes = static_cast<std::size_t>(round_up(slots, 16)) * sizeof(State);
    auto* memory = static_cast<std::byte*>(context.workspace(
        slot_bytes + static_cast<std::size_t>(head_words(args)) * sizeof(unsigned)));
    auto* totals = slots > 0 ? reinterpret_cast<State*>(memory) : nullptr;
    if constexpr (sizeof(State) > sizeof(ScanState<T>) + sizeof(unsigned)) {
      allow_unwritten(memory, slot_bytes);  // copies of a State include its padding
    }
    add_heads(context, args, reinterpret_cast<unsigned*>(memory + slot_bytes), lines);
    const auto blocks = [](std::int64_t work) {
      return smaller<std::int64_t>(ceil_div(work, threads), 0x7fffffff);
    };
    if (slots > 0) {
      launch(context, {.grid = blocks(cut.count()), .block = threads}, scan_column_totals<T>, lines,
             policy, cut, totals);
      launch(context, {.grid = blocks(cut.outer * cut.strips * pack_size<T>), .block = threads},
             scan_column_carries<T>, policy, cut, totals);
    }
    launch(context, {.grid = blocks(cut.count()), .block = threads}, scan_columns<T>, lines, policy,
           cut, totals, args.exclusive);
  });
}

Work work(const Scan::Args& args, const Context& context) {
  const Cut cut = cut_of(args, context);
  const int passes = cut.pieces > 1 ? 2 : 1;  // cut lines: totals of pieces, then the scans
  const std::int64_t width = cut.width * static_cast<std::int64_t>(size_of(args.x.dtype));
  Work work = line_work(args, ceil_div(cut.count(), threads), threads, passes * cut.rows, 8);
  work.bytes = (passes + 1) * cut.outer * args.length() * round_up(width, 32);
  return in_launches(work.launches + 2 * (passes - 1), work);
}

const Rung<Scan> self{{.name = "columns",
                       .after = "decoupled_look_back",
                       .backend = device_backend,
                       .supports = supports,
                       .work = work,
                       .run = run}};
}  // namespace
}  // namespace rung
