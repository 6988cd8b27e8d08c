// SPDX-License-Identifier: Apache-2.0
// loss / the row in shared memory
//
// Idea     Each thread copies its part of the row into shared memory with 16-byte asynchronous
//          copies, all issued before the first use, and reads only its own part for maximum, sum
//          and gradient, so no barrier is needed. The thread count follows the row length: a few
//          lanes, a warp for 1024 f32, a block for 32768 bf16. Three blocks fit per SM, so that
//          some load while others compute.
// Changes  against warp_per_row: compulsory traffic only, a quarter of the load instructions; the
//          kind of loss is a compile-time constant, and only the thread that holds the label tests
//          for it.
// Cost     x is read once and dx written once (squared: targets read once), and x is read three
//          times from shared memory; two exponentials per element.
// Limits   Contiguous rows of up to 14000 packs of 16 bytes (squared: half as many, because the
//          targets are staged, too).
// Source   softmax's ladder (ops/softmax/cuda/055_shared_single_read.cu).
#include "rung/device/ptx/async_copy.hpp"
#include "rung/device/resident.hpp"
#include "rung/device/row/register_row.hpp"
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int max_threads = 512;
constexpr std::size_t most_bytes = std::size_t{224} << 10;  // of staged rows per block

template <class T>
struct alignas(16) RowShared {
  Shared<Accumulator<T>> scratch;
  alignas(16) PackedWords packs[1];  // the block's rows, then their targets
};

/// Starts the copies of this thread's packs of a row; elements past the row become `outside`.
/// `whole`: all packs are full and aligned.
template <bool whole, class T, int w = vector_width<T>>
__device__ __forceinline__ void stage(PackedWords* to, const RowPacks<const T, w, int>& row,
                                      int packs, T outside) {
  const int threads = static_cast<int>(blockDim.x);
#pragma unroll 4
  for (int pack = static_cast<int>(threadIdx.x); pack < packs; pack += threads) {
    if (whole || (row.aligned && row.whole(pack))) {
      ptx::async_copy<16>(to + pack, row.first + pack * w);
    } else {
      to[pack] = words_of<T>(row.load(pack, outside));
    }
  }
}

/// Computes loss and gradient; `whole`: rows of all tensors begin and end at pack boundaries.
template <class T, LossKind kind, bool whole>
__global__ void __launch_bounds__(max_threads, sizeof(T) == 8 ? 1 : 3)
    loss_shared_single_read(Rows<4> rows, RowLoss<T> p, int kept) {
  using Sum = Accumulator<T>;
  constexpr bool has_maximum = kind == LossKind::cross_entropy;
  constexpr bool has_targets = kind == LossKind::squared;
  constexpr int w = vector_width<T>;
  const LossTerms<Sum> terms = p.terms.template of_kind<kind>();
  auto& memory = shared<RowShared<T>>();
  auto& scratch = memory.scratch;
  const Sum factor = p.factor();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  PackedWords* const staged = memory.packs + static_cast<int>(threadIdx.y) * kept;
  PackedWords* const wanted = staged + static_cast<int>(blockDim.y) * kept;
  // Neutral element: an exponential of 0, no slack, no difference.
  const T outside = convert<T>(has_targets ? Sum(0) : -std::numeric_limits<Sum>::infinity());
  double total = 0;
  for_each_row(rows.count(), [&](std::int64_t number, bool exists) {
    const std::int64_t length = exists ? rows.length : 0;
    const T* const x = p.x + (exists ? rows.template offset<Loss::row_x>(number) : 0);
    const int lead = whole ? 0 : lead_of<w>(x);
    const RowPacks<const T, w, int> from(x, length, lead);
    const int packs = whole ? static_cast<int>(length) / w : static_cast<int>(from.packs());
    // Issue all loads before the label is needed.
    stage<whole>(staged, from, packs, outside);
    const Row<T> row(rows, p, number, exists);
    if constexpr (has_targets) {
      const RowPacks<const T, w, int> targets(p.targets + row.at[Loss::row_target], length, lead);
      stage<whole>(wanted, targets, packs, outside);
    }
    const int label = row.works ? static_cast<int>(row.label) + lead : -1;
    const auto for_each_pack = [&](auto&& f) {
#pragma unroll 4
      for (int pack = thread; pack < packs; pack += threads) f(pack);
    };
    const auto target = [&](int pack, int i) {
      if constexpr (has_targets) return convert<Sum>(pack_of<T>(wanted[pack])[i]);
      return Sum(pack * w + i == label ? 1 : 0);
    };
    ptx::async_wait_all();

    Sum maximum = no_maximum<Sum>;
    if constexpr (has_maximum) {
      for_each_pack([&](int pack) {
        maximum = Larger{}(maximum, largest<Sum, T>(load_words(staged + pack)));
      });
      maximum = row_reduce(maximum, Larger{}, scratch.maxima);
    }
    Parts<Sum> parts{0, 0};
    for_each_pack([&](int pack) {
      const Pack<Sum, w> value = widen<Sum, T>(load_words(staged + pack));
      if constexpr (has_maximum) {
        Sum powers = 0;
#pragma unroll
        for (int i = 0; i < w; ++i) powers += power(value[i] - maximum);
        parts.powers += powers;
        if (terms.every_share != 0) {
          Sum below = 0;
#pragma unroll
          for (int i = 0; i < w; ++i) {
            if (whole || from.exists(pack, i)) below += maximum - value[i];
          }
          parts.terms += terms.every_share * below;
        }
      } else {
#pragma unroll
        for (int i = 0; i < w; ++i) parts.terms += terms.term(value[i], target(pack, i), 0);
      }
    });
    if (has_maximum && label >= 0 && label / w % threads == thread && terms.label_share != 0) {
      const T at_label = reinterpret_cast<const T*>(staged)[label];
      parts.terms += terms.label_share * (maximum - convert<Sum>(at_label));
    }
    parts = row_reduce(parts, AddParts{}, scratch.parts);
    if (!exists) return;
    if (thread == 0) {
      const Sum loss = row.works ? Row<T>::loss_of(p, parts) : row.otherwise;
      if (p.losses != nullptr) p.losses[row.at[Loss::row_losses]] = loss;
      total += static_cast<double>(loss);
    }
    if (p.dx == nullptr) return;

    const RowPacks<T, w, int> to(p.dx + row.at[Loss::row_dx], rows.length, lead);
    const Sum scale = has_maximum ? factor / parts.powers : factor;
    const Sum every = terms.every_share * factor;
    const Sum of_label = terms.label_share * factor;
    for_each_pack([&](int pack) {
      const Pack<Sum, w> value = widen<Sum, T>(load_words(staged + pack));
      Pack<Sum, w> slopes;
#pragma unroll
      for (int i = 0; i < w; ++i) {
        slopes[i] = has_maximum ? power(value[i] - maximum) * scale - every
                                : terms.slope(value[i], target(pack, i), 0) * scale;
      }
      if (has_maximum && pack == label / w) {
#pragma unroll
        for (int i = 0; i < w; ++i) {
          slopes[i] -= pack * w + i == label ? of_label : Sum(0);
        }
      }
      if (!row.works) {
#pragma unroll
        for (int i = 0; i < w; ++i) slopes[i] = row.otherwise;
      }
      const PackedWords rounded = narrow<T>(slopes);
      if (whole || (to.aligned && to.whole(pack))) {
        store_words_streaming(to.first + pack * w, rounded);
      } else {
        to.store(pack, pack_of<T>(rounded));
      }
    });
  });
  leave_sum(total, scratch.sums, p.sums);
}

/// Returns whether rows of all tensors begin and end at pack boundaries.
bool rows_are_whole(const Loss::Args& args) {
  const auto w = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  const auto regular = [&](int tensor, const ConstTensorRef& of) {
    return rows_are_regular(args.rows.others, args.classes(), tensor, of.data, w);
  };
  return regular(Loss::row_x, args.x) && regular(Loss::row_dx, args.options.dx) &&
         (args.labeled() || regular(Loss::row_target, args.target));
}

/// Returns the largest number of packs that a row spans.
std::int64_t packs_of(const Loss::Args& args) {
  const auto w = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  return ceil_div(args.classes(), w) + 1;
}
std::size_t row_bytes(const Loss::Args& args) {
  return static_cast<std::size_t>(packs_of(args)) * (args.labeled() ? 16 : 32);
}

Support supports(const Loss::Args& args, const Context&) {
  if (!args.contiguous()) return unsupported("the rows must be contiguous");
  return packs_of(args) < 1 << 20 && row_bytes(args) <= most_bytes
             ? supported
             : unsupported("the row is longer than shared memory holds");
}

RowBlock block_of(const Loss::Args& args) {
  constexpr int packs_a_thread = 8;
  const std::int64_t packs = packs_of(args) - 1;
  // Short rows: two packs per thread, several rows per warp.
  if (packs <= packs_a_thread * warp_size) return row_block(packs, 2, 1, warp_size);
  return row_block(packs, packs_a_thread, warp_size, max_threads);
}

void run(const Loss::Args& args, Context& context) {
  RowBlock block = block_of(args);
  const auto kept = static_cast<int>(packs_of(args));
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    with_kind(args, [&]<LossKind kind>() {
      const auto kernel = rows_are_whole(args) ? loss_shared_single_read<T, kind, true>
                                               : loss_shared_single_read<T, kind, false>;
      block.shared_bytes =
          sizeof(RowShared<T>) + static_cast<std::size_t>(block.rows) * row_bytes(args);
      const std::int64_t blocks =
          smaller(resident_blocks(context, kernel, block.threads * block.rows, block.shared_bytes),
                  ceil_div(args.count(), std::int64_t{block.rows}));
      run_rows(args, context, block, blocks, kernel, kept);
    });
  });
}

Work work(const Loss::Args& args, const Context& context) {
  const RowBlock block = block_of(args);
  const std::size_t bytes = row_bytes(args) * static_cast<std::size_t>(block.rows) + 1024;
  const Work rows = row_work(args.count(), block, 1 + ceil_div(packs_of(args), block.threads),
                             args.x.dtype == DType::f64 ? "f64"
                             : rows_are_whole(args)     ? ""
                                                        : "cut",
                             48);
  return with_result(args,
                     in_turns(context, in_shared(context.info().shared_per_sm / bytes, rows)));
}

const Rung<Loss> self{{.name = "shared_single_read",
                       .step = 40,
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
