// SPDX-License-Identifier: Apache-2.0
// loss / short rows
//
// Idea     Adjacent short rows: a block copies a contiguous chunk of many rows and their labels
//          into shared memory, and results out of it, 16 bytes at a time, regardless of row
//          boundaries. A row uses as many lanes as it needs, from one to a warp, each of which
//          keeps its elements in registers.
// Changes  against warp_per_row: short rows do not leave most of a warp idle, rows of odd lengths
//          use vector loads, and x is read once.
// Cost     x is read once and dx written once, and twice that traffic in shared memory; two
//          reductions of log2(lanes) shuffles per row.
// Limits   Losses with labels; rows of up to 512 elements, contiguous one after another in x and
//          dx, that are short or not 16-byte aligned.
// Source   softmax's ladder (ops/softmax/cuda/shapes/short_rows.cu).
#include "rung/device/row_chunk.hpp"
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int kept = 16;  // elements per lane at most
// Values stored instead of the label for rows without a valid one:
constexpr int ignored = -1;
constexpr int wrong = -2;

template <class T>
struct ShortShared {
  double sums[32];
  int labels[1];  // of the block's rows; the elements follow

  static constexpr std::size_t bytes(std::int64_t rows, std::int64_t elements) {
    return round_up(offsetof(ShortShared, labels) + static_cast<std::size_t>(rows) * sizeof(int),
                    std::size_t{16}) +
           round_up(static_cast<std::size_t>(elements) * sizeof(T), std::size_t{16}) + 16;
  }
  __device__ __forceinline__ T* elements(int rows) {
    auto* const bytes = reinterpret_cast<unsigned char*>(this);
    return reinterpret_cast<T*>(
        bytes + round_up(static_cast<int>(offsetof(ShortShared, labels) + rows * sizeof(int)), 16));
  }
};

/// Computes short rows; lane l of a row holds elements l, l + lanes, ..., at most `kept` of them.
template <LossKind kind, class T>
__global__ void __launch_bounds__(row_chunk_threads)
    loss_short_rows(RowLoss<T> p, const std::int64_t label_step, const std::int64_t losses_step,
                    RowChunks chunks) {
  using Sum = Accumulator<T>;
  constexpr bool has_maximum = kind == LossKind::cross_entropy;
  auto& memory = shared<ShortShared<T>>();
  const LossTerms<Sum> terms = p.terms.template of_kind<kind>();
  const Sum factor = p.factor();
  const RowChunk chunk(chunks);
  const T* const x = p.x + chunk.offset;
  T* const staged = behind_as(memory.elements(chunks.group), x);
  copy_in(staged, x, chunk.count);
  for (int row = static_cast<int>(threadIdx.x); row < chunk.rows; row += row_chunk_threads) {
    const std::int64_t label = p.labels.at((chunk.first + row) * label_step);
    memory.labels[row] = !p.labels.counts(label)    ? ignored
                         : p.labels.is_wrong(label) ? wrong
                                                    : static_cast<int>(label);
  }
  ptx::async_wait_all();
  __syncthreads();
  double total = 0;
  int row = static_cast<int>(threadIdx.x) / chunks.lanes;
  for_each_row_of(chunks, chunk.rows, [&](int begin, int lane) {
    const bool exists = lane < chunks.length;
    const int label = exists ? memory.labels[row] : ignored;
    Sum values[kept];
    Sum maximum = no_maximum<Sum>;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      const int i = lane + k * chunks.lanes;
      if (i >= chunks.length) break;
      values[k] = convert<Sum>(staged[begin + i]);
      maximum = Larger{}(maximum, values[k]);
    }
    if constexpr (has_maximum) maximum = lanes_reduce(maximum, Larger{}, chunks.lanes);
    const bool has_label = label >= 0 && (label & (chunks.lanes - 1)) == lane;
    Parts<Sum> parts{0, 0};
    if constexpr (has_maximum) {
      if (has_label && terms.label_share != 0) {
        parts.terms = terms.label_share * (maximum - convert<Sum>(staged[begin + label]));
      }
      if (terms.every_share != 0) {
#pragma unroll
        for (int k = 0; k < kept; ++k) {
          if (lane + k * chunks.lanes >= chunks.length) break;
          parts.terms += terms.every_share * (maximum - values[k]);
        }
      }
    }
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      const int i = lane + k * chunks.lanes;
      if (i >= chunks.length) break;
      if constexpr (has_maximum) {
        values[k] = power(values[k] - maximum);
        parts.powers += values[k];
      } else {
        const Sum target = i == label ? 1 : 0;
        parts.terms += terms.term(values[k], target, 0);
        values[k] = terms.slope(values[k], target, 0);
      }
    }
    parts = lanes_reduce(parts, AddParts{}, chunks.lanes);
    const Sum otherwise = label == wrong ? std::numeric_limits<Sum>::quiet_NaN() : Sum(0);
    if (lane == 0) {
      const Sum loss = label >= 0 ? Row<T>::loss_of(p, parts) : otherwise;
      if (p.losses != nullptr) p.losses[(chunk.first + row) * losses_step] = loss;
      total += static_cast<double>(loss);
    }
    row += row_chunk_threads / chunks.lanes;
    if (p.dx == nullptr) return;
    const Sum scale = has_maximum ? factor / parts.powers : factor;
    const Sum every = has_maximum ? terms.every_share * factor : Sum(0);
    const Sum of_label = has_maximum ? terms.label_share * factor : Sum(0);
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      const int i = lane + k * chunks.lanes;
      if (i >= chunks.length) break;
      const Sum slope = values[k] * scale - every - (i == label ? of_label : Sum(0));
      staged[begin + i] = convert<T>(label >= 0 ? slope : otherwise);
    }
  });
  __syncthreads();
  if (p.dx != nullptr) copy_out(p.dx + chunk.offset, staged, chunk.count);
  leave_sum(total, memory.sums, p.sums);
}

constexpr int longest = 512;

/// Returns the distance between rows of a tensor in elements, if rows are contiguous; for labels
/// and losses, the distance between entries.
std::int64_t step_of(const Loss::Args& args, int tensor) {
  return args.count() > 1 ? args.rows.others.strides[tensor][0] : args.classes();
}

Support supports(const Loss::Args& args, const Context&) {
  if (!args.labeled()) return unsupported("labels only");
  if (args.classes() > longest) return unsupported("rows of up to 512 elements");
  if (!args.contiguous() || args.rows.others.rank > 1 ||
      step_of(args, Loss::row_x) != args.classes() ||
      step_of(args, Loss::row_dx) != args.classes()) {
    return unsupported("rows must follow one another");
  }
  if (args.count() >= std::int64_t{1} << 40) return unsupported("2^40 rows and more");
  return require_short_or_odd_rows(
      args.classes() * static_cast<std::int64_t>(size_of(args.x.dtype)), args.x.data);
}

RowChunks chunks_of(const Loss::Args& args, const Context& context) {
  constexpr int group_bytes = 16 << 10;
  return short_row_chunks(args.count(), static_cast<int>(args.classes()), size_of(args.x.dtype),
                          kept, row_chunk_threads, group_bytes, context);
}

Work work(const Loss::Args& args, const Context& context) {
  return with_result(args, row_chunk_work(chunks_of(args, context), type_path(args.x.dtype)));
}

template <LossKind kind>
void launch_short_rows(const Loss::Args& args, Context& context) {
  const RowChunks chunks = chunks_of(args, context);
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    run_blocks<T>(args, context, chunks.blocks(), [&](const RowLoss<T>& p) {
      const auto bytes = static_cast<int>(
          ShortShared<T>::bytes(chunks.group, std::int64_t{chunks.group} * chunks.length));
      launch_row_chunks(context, chunks, bytes, loss_short_rows<kind, T>, p,
                        step_of(args, Loss::row_target), step_of(args, Loss::row_losses), chunks);
    });
  });
}

void run(const Loss::Args& args, Context& context) {
  const bool cross_entropy = args.options.kind == LossKind::cross_entropy;
  return cross_entropy ? launch_short_rows<LossKind::cross_entropy>(args, context)
                       : launch_short_rows<LossKind::hinge>(args, context);
}

const Rung<Loss> self{{.name = "short_rows",
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
