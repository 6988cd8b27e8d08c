// SPDX-License-Identifier: Apache-2.0
// softmax / short rows
//
// Idea     Adjacent short rows: a block copies a contiguous chunk of many rows into and out of
//          shared memory, 16 bytes at a time, regardless of row boundaries. A row uses the fewest
//          lanes, from one to a warp, that leave at most 16 or 32 elements per lane in registers
//          and still fill the GPU.
// Changes  against warp_per_row: short rows do not leave most of a warp idle, rows of odd lengths
//          use vector loads, and x is read once. A lane costs about as much as an element: a row of
//          13 elements is cheapest with one lane. 16-bit rows of even length are processed in words
//          of two elements, which halves the accesses to shared memory.
// Cost     1 load and 1 store per element, and twice that traffic in shared memory; two reductions
//          of log2(lanes) shuffles per row.
// Limits   Rows of 2 to 1024 elements, contiguous one after another in all tensors, that are short
//          or not 16-byte aligned; results of the type of x.
#include "rung/device/row_chunk.hpp"
#include "rung/ops/softmax/cuda/detail/softmax.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

/// Unit that a lane loads and stores at once: one element, or a word of two 16-bit elements.
template <class T, int width>
using RowUnit = std::conditional_t<width == 1, T, unsigned>;

/// Computes short rows; lane l of a row holds units l, l + lanes, ..., at most `kept` of them.
/// `chunks` counts units of `width` elements.
template <int kept, int width, class T>
__global__ void __launch_bounds__(row_chunk_threads)
    softmax_short_rows(const T* all_x, T* all_y, RowChunks chunks, Accumulator<T> scale, bool log) {
  using Sum = Accumulator<T>;
  using Unit = RowUnit<T, width>;
  const RowChunk chunk(chunks);
  const int rounds = chunks.rounds();
  const Unit* const x = reinterpret_cast<const Unit*>(all_x) + chunk.offset;
  Unit* const y = reinterpret_cast<Unit*>(all_y) + chunk.offset;
  Unit* const staged = behind_as(&shared<Unit>(), x);
  copy_in(staged, x, chunk.count);
  ptx::async_wait_all();
  __syncthreads();
  for_each_row_of(chunks, chunk.rows, [&](int begin, int lane) {
    Pack<Sum, width> values[kept];
    Sum maximum = no_maximum<Sum>;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (k >= rounds) break;
      const int i = lane + k * chunks.lanes;
      // Elements past the row are -infinity, whose exponential is 0.
#pragma unroll
      for (int e = 0; e < width; ++e) values[k][e] = -std::numeric_limits<Sum>::infinity();
      if (i < chunks.length) {
        values[k] = convert<Sum>(__builtin_bit_cast(Pack<T, width>, staged[begin + i]));
      }
#pragma unroll
      for (int e = 0; e < width; ++e) maximum = Larger{}(maximum, values[k][e]);
    }
    maximum = lanes_reduce(maximum, Larger{}, chunks.lanes);
    Sum sum = 0;
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      if (k >= rounds) break;
#pragma unroll
      for (int e = 0; e < width; ++e) {
        Sum& value = values[k][e];
        value = (value - maximum) * scale;
        const Sum raised = fast_exp(value);
        sum += raised;
        if (!log) value = raised;
      }
    }
    sum = lanes_reduce(sum, Plus{}, chunks.lanes);
    const Sum last = log ? logarithm(sum) : reciprocal(sum);
#pragma unroll
    for (int k = 0; k < kept; ++k) {
      const int i = lane + k * chunks.lanes;
      if (i >= chunks.length) break;
#pragma unroll
      for (int e = 0; e < width; ++e) {
        values[k][e] = log ? values[k][e] - last : values[k][e] * last;
      }
      staged[begin + i] = __builtin_bit_cast(Unit, convert<T>(values[k]));
    }
  });
  __syncthreads();
  copy_out(y, staged, chunk.count);
}

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  return require_row_chunks(args.rows, args.x.data, size_of(args.x.dtype));
}

/// Returns the number of elements of a unit: 2 if words of 16-bit elements divide every row.
int width_of(const Softmax::Args& args) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(args.x.data) | reinterpret_cast<std::uintptr_t>(args.y.data);
  return size_of(args.x.dtype) == 2 && args.length() % 2 == 0 && address % 4 == 0 ? 2 : 1;
}

RowChunks chunks_of(const Softmax::Args& args, const Context& context) {
  const int width = width_of(args);
  return short_row_groups(args.count(), args.length() / width, width * size_of(args.x.dtype), 1,
                          context, width);
}

Work work(const Softmax::Args& args, const Context& context) {
  const RowChunks chunks = chunks_of(args, context);
  const int width = width_of(args);
  const double bytes = chunks.bytes(width * size_of(args.x.dtype));
  return in_shared(context.info().shared_per_sm / bytes,
                   row_chunk_work(chunks, width == 2 ? "pairs" : type_path(args.x.dtype)));
}

template <int kept, int width, class T>
void launch_short(Context& context, const RowChunks& chunks, const Softmax::Args& args) {
  const auto p = call_of<T, T>(args);
  launch_row_chunks(context, chunks, chunks.bytes<RowUnit<T, width>>(),
                    softmax_short_rows<kept, width, T>, p.x, p.y, chunks, p.scale, p.log);
}

void run(const Softmax::Args& args, Context& context) {
  if (args.empty()) return;
  const RowChunks chunks = chunks_of(args, context);
  with_kept_elements(chunks, [&]<int kept>() {
    visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
      if constexpr (sizeof(T) == 2 && kept <= 16) {
        if (width_of(args) == 2) return launch_short<kept, 2, T>(context, chunks, args);
      }
      launch_short<kept, 1, T>(context, chunks, args);
    });
  });
}

const Rung<Softmax> self{{.name = "short_rows",
                          .after = "warp_per_row",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 1, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
