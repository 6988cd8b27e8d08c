// SPDX-License-Identifier: Apache-2.0
// softmax / column chunks
//
// Idea     A plane of columns, [length][columns], is contiguous memory: blocks own chunks of it and
//          load aligned packs of 16 bytes regardless of where its rows begin. A thread advances by
//          a multiple of both the row and the pack, so that it meets the same columns in every
//          pack. One kernel computes maximum and sum per chunk and column, a second one combines
//          the chunks of a plane and writes y.
// Changes  against wide_columns: few columns of any number fill the GPU. Against split_rows: 16
//          bytes per load, and no idle lanes beside a plane of 33 columns.
// Cost     2 loads and 1 store per element; the second kernel walks backwards, from the elements
//          that are still in L2. Every block of a plane reads the totals of all its chunks.
// Limits   2 to 1024 columns per plane, without padding; x and y of one type and alignment.
// Source   M. Milakov & N. Gimelshein 2018 for combining maxima and sums of chunks.
#include <numeric>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/device/dependent.hpp"
#include "rung/ops/softmax/cuda/detail/column_totals.hpp"

namespace rung {
namespace {

using namespace softmax_cuda;

constexpr std::int64_t most_columns = 1024;
constexpr int chunk_threads = 1024;  // at most
constexpr int most_groups = 32;      // threads that share a column in merge_columns()

/// Partition of planes into chunks of packs. Slot j of a thread's packs belongs to column
/// (thread * width + j) % columns, counted from the plane's first aligned address.
struct ColumnChunks {
  int columns;
  int active;  // threads that own packs
  std::int64_t planes;
  std::int64_t chunks;       // per plane
  std::int64_t chunk_packs;  // packs per chunk: a multiple of the period, below 2^30
};

/// This block's chunk and the packs in it that a thread owns: begin, begin + active, ...
template <class T>
struct ChunkPacks {
  static constexpr int width = vector_width<T>;
  std::int64_t first;  // pack of the plane
  int begin;           // these are counted from `first`
  int end;             // of the chunk; an idle thread has none
  int begin_whole;     // packs of which all elements exist
  int end_whole;

  __device__ __forceinline__ ChunkPacks(const ColumnChunks& plan, std::int64_t block,
                                        std::int64_t elements, int lead)
      : first(block % plan.chunks * plan.chunk_packs), begin(static_cast<int>(threadIdx.x)) {
    const std::int64_t packs = (elements + lead + width - 1) / width - first;
    const std::int64_t whole = (elements + lead) / width - first;
    const bool idle = begin >= plan.active;
    end = idle ? 0 : static_cast<int>(clamped<std::int64_t>(packs, 0, plan.chunk_packs));
    begin_whole = first == 0 && lead > 0 ? 1 : 0;
    end_whole = idle ? 0 : static_cast<int>(clamped<std::int64_t>(whole, 0, plan.chunk_packs));
  }
  [[nodiscard]] __device__ __forceinline__ bool whole(int pack) const {
    return pack >= begin_whole && pack < end_whole;
  }
  /// Calls f(pack of the plane) for the first and last pack if they are partial and this thread's.
  template <class F>
  __device__ __forceinline__ void for_partial(int active, F&& f) const {
    if (begin_whole > 0 && begin == 0) f(std::int64_t{0});
    const bool last = end_whole >= begin_whole && end_whole < end;
    if (last && end_whole >= begin && (end_whole - begin) % active == 0) f(first + end_whole);
  }
};

/// Combines `count` totals per column, entries[i * columns + column], into merged[column]. The
/// threads of a block that share a column combine every so manieth total, and one of them the rest.
/// `merged` holds at least blockDim.x totals and `columns`; all threads of the block call it.
template <class Sum>
__device__ __forceinline__ void merge_columns(const Total<Sum>* entries, int count, int columns,
                                              Total<Sum>* merged, const Power<Sum>& power) {
  constexpr int at_once = sizeof(Sum) == 8 ? 4 : 8;  // loads in flight per thread
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int groups = clamped(threads / columns, 1, most_groups);
  const auto merge = [&](const Total<Sum>* from, int first, int last, int step) {
    Total<Sum> all{no_maximum<Sum>, 0};
    for (int i = first; i < last; i += at_once * step) {
      Total<Sum> read[at_once];
      Sum maximum = all.maximum;
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        read[k] = {no_maximum<Sum>, 0};
        if (i + k * step < last) read[k] = from[std::int64_t{i + k * step} * columns];
      }
#pragma unroll
      for (int k = 0; k < at_once; ++k) maximum = Larger{}(maximum, read[k].maximum);
      all.sum *= power(all.maximum - maximum);
      all.maximum = maximum;
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        all.sum += read[k].sum * power(read[k].maximum - maximum);
      }
    }
    return all;
  };
  for (int at = thread; at < groups * columns; at += threads) {
    merged[at] = merge(entries + at % columns, at / columns, count, groups);
  }
  __syncthreads();
  for (int column = thread; column < columns; column += threads) {
    merged[column] = merge(merged + column, 0, groups, 1);
  }
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(chunk_threads)
    softmax_chunk_sums(Rows<2> rows, SoftmaxCall<T, T> p, ColumnChunks plan,
                       Total<Accumulator<T>>* found) {
  start_dependent();
  using Sum = Accumulator<T>;
  constexpr int width = vector_width<T>;
  auto* const merged = &shared<Total<Sum>>();
  Total<Sum>* const slots = merged + chunk_threads;
  const Power<Sum> power(p.scale);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t elements = rows.length * plan.columns;
  const int step = plan.active;
  for (std::int64_t block = blockIdx.x; block < plan.planes * plan.chunks; block += gridDim.x) {
    const T* const x = p.x + rows.template offset<0>(block / plan.chunks * plan.columns);
    const RowPacks<const T, width> packs(x, elements, lead_of<width>(x));
    const ChunkPacks<T> mine(plan, block, elements, static_cast<int>(packs.begin));
    ColumnTotals<T> totals;
    const T* const first = in_registers(packs.first + mine.first * width);
    for (int pack = mine.begin; pack < mine.end_whole; pack += deep_packs * step) {
      PackedWords read[deep_packs];
#pragma unroll
      for (int k = 0; k < deep_packs; ++k) {
        read[k] = empty_pack<T>();
        if (mine.whole(pack + k * step)) {
          read[k] = load_words(first + std::int64_t{pack + k * step} * width);
        }
      }
      totals.add(read, power);
    }
    mine.for_partial(plan.active, [&](std::int64_t pack) {
      const T nothing = convert<T>(-std::numeric_limits<Sum>::infinity());
      const PackedWords read[1] = {words_of<T>(packs.load(pack, nothing))};
      totals.add(read, power);
    });
    if (thread < plan.active) {
#pragma unroll
      for (int j = 0; j < width; ++j) slots[thread * width + j] = totals.of[j];
    }
    __syncthreads();
    merge_columns(slots, plan.active * width / plan.columns, plan.columns, merged, power);
    for (int c = thread; c < plan.columns; c += static_cast<int>(blockDim.x)) {
      found[block * plan.columns + c] = merged[c];
    }
  }
}

template <class T>
__global__ void __launch_bounds__(chunk_threads)
    softmax_column_chunks(Rows<2> rows, SoftmaxCall<T, T> p, ColumnChunks plan,
                          const Total<Accumulator<T>>* found) {
  start_dependent();
  using Sum = Accumulator<T>;
  constexpr int width = vector_width<T>;
  auto* const merged = &shared<Total<Sum>>();
  const Power<Sum> power(p.scale);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t elements = rows.length * plan.columns;
  const int step = plan.active;
  for (std::int64_t block = blockIdx.x; block < plan.planes * plan.chunks; block += gridDim.x) {
    const std::int64_t plane = block / plan.chunks;
    const T* const x = p.x + rows.template offset<0>(plane * plan.columns);
    const int lead = lead_of<width>(x);
    const RowPacks<const T, width> packs(x, elements, lead);
    const RowPacks<T, width> results(p.y + rows.template offset<1>(plane * plan.columns), elements,
                                     lead);
    const ChunkPacks<T> mine(plan, block, elements, lead);
    merge_columns(found + plane * plan.chunks * plan.columns, static_cast<int>(plan.chunks),
                  plan.columns, merged, power);
    ColumnResults<T> columns;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      columns.set(j, merged[(thread * width + j) % plan.columns], p.log);
    }
    const T* const first = in_registers(packs.first + mine.first * width);
    T* const first_result = in_registers(results.first + mine.first * width);
    const int batches = ceil_div(larger(mine.end_whole - mine.begin, 0), deep_packs * step);
    for (int i = batches - 1; i >= 0; --i) {
      const int pack = mine.begin + i * deep_packs * step;
      PackedWords read[deep_packs];
#pragma unroll
      for (int k = 0; k < deep_packs; ++k) {
        read[k] = PackedWords{};
        if (mine.whole(pack + k * step)) {
          read[k] = load_words_streaming(first + std::int64_t{pack + k * step} * width);
        }
      }
#pragma unroll
      for (int k = 0; k < deep_packs; ++k) {
        if (!mine.whole(pack + k * step)) continue;
        store_words_streaming(first_result + std::int64_t{pack + k * step} * width,
                              columns.of(read[k], p, power));
      }
    }
    mine.for_partial(plan.active, [&](std::int64_t pack) {
      const PackedWords read = words_of<T>(packs.load(pack, zero<T>()));
      results.store(pack, pack_of<T>(columns.of(read, p, power)));
    });
    __syncthreads();  // the totals of the next plane may overwrite
  }
}

struct ColumnChunkPlan {
  ColumnChunks chunks{};
  int threads = 0;
};
ColumnChunkPlan chunk_plan(const Softmax::Args& args, const Context& context) {
  ColumnChunkPlan plan;
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const std::int64_t columns = args.rows.run();
  const std::int64_t period = columns / std::gcd(columns, width);  // packs
  const std::int64_t active = chunk_threads / period * period;
  const std::int64_t packs = ceil_div(args.length() * columns, width) + 1;
  plan.threads = static_cast<int>(round_up(active, std::int64_t{warp_size}));
  plan.chunks.columns = static_cast<int>(columns);
  plan.chunks.active = static_cast<int>(active);
  plan.chunks.planes = args.count() / larger(columns, std::int64_t{1});
  // One block per SM, or four if planes are so many that the last wave would be nearly empty.
  const std::int64_t sms = context.info().sms;
  const std::int64_t planes = larger(plan.chunks.planes, std::int64_t{1});
  const std::int64_t wanted =
      4 * planes <= sms ? sms / planes : ceil_div(std::int64_t{4} * sms, planes);
  const std::int64_t useful = ceil_div(packs, active * deep_packs);
  constexpr std::int64_t most = std::int64_t{1} << 29;
  plan.chunks.chunk_packs =
      round_up(smaller(most, ceil_div(packs, smaller(wanted, useful))), period);
  plan.chunks.chunks = ceil_div(packs, plan.chunks.chunk_packs);
  return plan;
}

/// Returns whether planes of x and y begin at addresses that are congruent modulo 16 bytes.
bool planes_are_alike(const Softmax::Args& args) {
  const auto width = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const auto lead = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16; };
  bool alike = lead(args.x.data) == lead(args.y.data);
  const auto& planes = args.rows.others;
  for (int axis = 0; axis + 1 < planes.rank; ++axis) {
    alike = alike && (planes.strides[0][axis] - planes.strides[1][axis]) % width == 0;
  }
  return alike;
}

Support supports(const Softmax::Args& args, const Context&) {
  if (args.x.dtype != args.y.dtype) return unsupported("the result's type must be that of x");
  const std::int64_t columns = args.rows.run();
  if (!args.rows.are_adjacent() || columns < 2 || columns > most_columns) {
    return unsupported("rows must be adjacent, in runs of 2 to 1024");
  }
  for (const std::int64_t step : args.rows.steps) {
    if (step != columns && args.length() > 1) return unsupported("columns without padding");
  }
  if (!planes_are_alike(args)) return unsupported("x and y must be equally aligned");
  return require_foldable_scale(args);
}

std::size_t size_of_totals(const Softmax::Args& args, const ColumnChunks& plan) {
  const std::size_t total = 2 * larger<std::size_t>(size_of(args.x.dtype), 4);
  return static_cast<std::size_t>(plan.planes * plan.chunks * plan.columns) * total;
}

Work work(const Softmax::Args& args, const Context& context) {
  const ColumnChunkPlan plan = chunk_plan(args, context);
  const ColumnChunks& chunks = plan.chunks;
  Work work = in_launches(
      2, block_work(chunks.planes * chunks.chunks, plan.threads,
                    ceil_div(chunks.chunk_packs, std::int64_t{chunks.active} * deep_packs),
                    type_path(args.x.dtype), 64));
  work.bytes = Softmax::cost(args).bytes + size_of_totals(args, chunks) * (chunks.chunks + 1);
  return work;
}

void run(const Softmax::Args& args, Context& context) {
  constexpr std::int64_t max_blocks = 0x7fffffff;
  if (args.empty()) return;
  const ColumnChunkPlan plan = chunk_plan(args, context);
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    using Sums = Total<Accumulator<T>>;
    auto* const found = static_cast<Sums*>(context.workspace(size_of_totals(args, plan.chunks)));
    const auto slots = static_cast<std::size_t>(plan.chunks.active) * vector_width<T>;
    LaunchShape shape{.grid = smaller(max_blocks, plan.chunks.planes * plan.chunks.chunks),
                      .block = plan.threads,
                      .shared_bytes = (chunk_threads + slots) * sizeof(Sums),
                      .dependent = can_depend(context)};
    const SoftmaxCall<T, T> call = call_of<T, T>(args);
    launch(context, shape, softmax_chunk_sums<T>, args.rows, call, plan.chunks, found);
    shape.shared_bytes = chunk_threads * sizeof(Sums);
    launch(context, shape, softmax_column_chunks<T>, args.rows, call, plan.chunks, found);
  });
}

const Rung<Softmax> self{{.name = "column_chunks",
                          .after = "wide_columns",
                          .backend = device_backend,
                          .supports = supports,
                          .passes = {.loads = 2, .stores = 1},
                          .work = work,
                          .run = run}};

}  // namespace
}  // namespace rung
