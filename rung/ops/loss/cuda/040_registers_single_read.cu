// SPDX-License-Identifier: Apache-2.0
// loss / the row in registers
//
// Idea     each thread reads its part of the row once, in 16-byte loads that are all in flight
//          before the first is used, and keeps it as it was read until the gradient is made of it.
//          As many threads as the row is long: a few lanes of a warp, a warp for 1024 f32, a block
//          for 32768 bf16; two such blocks per SM, so that one loads while the other computes.
// Changes  against warp_per_row: compulsory traffic only, a quarter of the load instructions; the
//          kind is known to the compiler, and only the thread that holds a label looks for it.
// Cost     x once, dx once (squared: the targets once); two exponentials per element, because
//          keeping those of the sum would take twice the registers for elements of 16 bits.
// Limits   contiguous rows of up to 32768 elements (f32 16384, f64 8192; hinge and squared: half as
//          many).
// Tried    H100, of a copy's bandwidth: kept as exponentials of f32, one block of 1024 threads per
//          SM, the label compared with every element: f32 16384x1024 0.53, bf16 2048x32000 0.42.
// Source   softmax's ladder (ops/softmax/cuda/050_registers_single_read.cu).
#include "rung/device/widen.hpp"
#include "rung/ops/loss/cuda/detail/loss.hpp"

namespace rung {
namespace {

using namespace loss_cuda;

constexpr int max_threads = 512;
/// 16-byte loads of a thread, of each tensor.
constexpr int packs_of(LossKind kind) { return kind == LossKind::cross_entropy ? 8 : 4; }

template <class T>
constexpr int width = 16 / static_cast<int>(sizeof(T));

/// The pack as it was read; what does not exist is `outside`.
template <class T>
__device__ __forceinline__ RawPack<T, width<T>> load(const RowPacks<const T, width<T>, int>& row,
                                                     int pack, T outside) {
  if (row.aligned && row.whole(pack)) {
    return load_raw_streaming<width<T>>(row.first + pack * width<T>);
  }
  return raw(row.load(pack, outside));
}

template <class T, LossKind kind>
__global__ void __launch_bounds__(max_threads, sizeof(T) == 8 ? 1 : 2)
    loss_registers_single_read(Rows<4> rows, RowLoss<T> p) {
  using Sum = Accumulator<T>;
  constexpr bool has_maximum = kind == LossKind::cross_entropy;
  constexpr bool has_targets = kind == LossKind::squared;
  constexpr int packs = packs_of(kind);
  constexpr int w = width<T>;
  const LossTerms<Sum> terms = p.terms.template of_kind<kind>();
  auto& scratch = shared<Shared<Sum>>();
  const Sum factor = p.factor();
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  // Adds nothing: an exponential of 0, no slack, no difference.
  const T outside = convert<T>(has_targets ? Sum(0) : -std::numeric_limits<Sum>::infinity());
  double total = 0;
  for_each_row(rows.count(), [&](std::int64_t number, bool exists) {
    const Row<T> row(rows, p, number, exists);
    const std::int64_t length = row.works ? rows.length : 0;
    const T* x = p.x + (exists ? rows.template offset<Loss::row_x>(number) : 0);
    const int lead = lead_of<w>(x);
    const RowPacks<const T, w, int> from(x, length, lead);
    RawPack<T, w> values[packs];
    RawPack<T, w> targets[has_targets ? packs : 1];
#pragma unroll
    for (int k = 0; k < packs; ++k) values[k] = load(from, thread + k * threads, outside);
    if constexpr (has_targets) {
      const RowPacks<const T, w, int> wanted(p.targets + row.at[Loss::row_target], length, lead);
#pragma unroll
      for (int k = 0; k < packs; ++k) targets[k] = load(wanted, thread + k * threads, outside);
    }
    // The label: which of this thread's packs it is in, if any, and where there.
    const int label = static_cast<int>(row.label) + lead;
    const int label_at = label % w;
    const int label_pack = label / w % threads == thread ? label / w / threads : -1;
    const auto target = [&](int k, int i) {
      if constexpr (has_targets) return convert<Sum>(unpack(targets[k])[i]);
      return Sum(k == label_pack && i == label_at ? 1 : 0);
    };

    Sum maximum = no_maximum<Sum>;
    if constexpr (has_maximum) {
      maximum = row_reduce(Larger{}(maximum, largest(values)), Larger{}, scratch.maxima);
    }
    Parts<Sum> parts{0, 0};
    Sum powers[2] = {0, 0};
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const Pack<Sum, w> value = widen(values[k]);
      if constexpr (has_maximum) {
#pragma unroll
        for (int i = 0; i < w; ++i) powers[i % 2] += power(value[i] - maximum);
        if (terms.every_share != 0) {
#pragma unroll
          for (int i = 0; i < w; ++i) {
            if (!from.exists(thread + k * threads, i)) continue;
            parts.terms += terms.every_share * (maximum - value[i]);
          }
        }
        if (k == label_pack && terms.label_share != 0) {
#pragma unroll
          for (int i = 0; i < w; ++i) {
            if (i == label_at) parts.terms += terms.label_share * (maximum - value[i]);
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < w; ++i) parts.terms += terms.term(value[i], target(k, i), 0);
      }
    }
    parts.powers = powers[0] + powers[1];
    parts = row_reduce(parts, AddParts{}, scratch.parts);
    if (!exists) return;
    if (thread == 0) {
      const Sum loss = row.works ? Row<T>::loss_of(p, parts) : row.otherwise;
      if (p.losses != nullptr) p.losses[rows.template offset<Loss::row_losses>(number)] = loss;
      total += static_cast<double>(loss);
    }
    if (p.dx == nullptr) return;

    const RowPacks<T, w, int> to(p.dx + rows.template offset<Loss::row_dx>(number), rows.length,
                                 lead);
    const Sum inverse = factor / parts.powers;
    const Sum every = terms.every_share * factor;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const int pack = thread + k * threads;
      if (pack >= to.packs()) continue;
      const Pack<Sum, w> value = widen_again(values[k], p.zero);
      Pack<Sum, w> slopes;
#pragma unroll
      for (int i = 0; i < w; ++i) {
        slopes[i] = has_maximum ? power(value[i] - maximum) * inverse - every
                                : terms.slope(value[i], target(k, i), 0) * factor;
      }
      if (has_maximum && k == label_pack) {
#pragma unroll
        for (int i = 0; i < w; ++i) {
          if (i == label_at) slopes[i] -= terms.label_share * factor;
        }
      }
      if (!row.works) {
#pragma unroll
        for (int i = 0; i < w; ++i) slopes[i] = row.otherwise;
      }
      const RawPack<T, w> rounded = narrow<T>(slopes);
      if (to.aligned && to.whole(pack)) {
        store_raw_streaming(to.first + pack * w, rounded);
      } else {
        to.store(pack, unpack(rounded));
      }
    }
  });
  leave_sum(total, scratch.sums, p.sums);
}

/// Packs of a row, one more where rows may begin between multiples of 16 bytes.
std::int64_t packs_of_row(const Loss::Args& args) {
  const auto w = static_cast<std::int64_t>(16 / size_of(args.x.dtype));
  bool aligned = reinterpret_cast<std::uintptr_t>(args.x.data) % 16 == 0;
  for (int axis = 0; axis < args.rows.others.rank; ++axis) {
    aligned = aligned && args.rows.others.strides[Loss::row_x][axis] % w == 0;
  }
  return ceil_div(args.classes(), w) + (aligned ? 0 : 1);
}

Support supports(const Loss::Args& args, const Context&) {
  if (!args.contiguous()) return unsupported("the rows must be contiguous");
  return packs_of_row(args) <= std::int64_t{packs_of(args.options.kind)} * max_threads
             ? supported
             : unsupported("the row is longer than registers hold");
}

RowBlock block_of(const Loss::Args& args) {
  const std::int64_t packs = packs_of_row(args);
  const int kept = packs_of(args.options.kind);
  // Short rows: two packs per thread, several rows per warp.
  if (packs <= std::int64_t{warp_size} * kept) return row_block(packs, 2, 1, warp_size);
  return row_block(packs, kept, warp_size, max_threads);
}

void run(const Loss::Args& args, Context& context) {
  RowBlock block = block_of(args);
  visit<float, double, f16, bf16>(args.x.dtype, [&]<class T>() {
    block.shared_bytes = sizeof(Shared<Accumulator<T>>);
    with_kind(args, [&]<LossKind kind>() {
      run_rows(args, context, block, loss_registers_single_read<T, kind>);
    });
  });
}

double estimate(const Loss::Args& args, const Context& context) {
  const double share = args.labelled() ? 0.85 : 0.7;
  return launch_seconds + estimate_seconds(Loss::cost(args), {.bandwidth = share}, context);
}

const Rung<Loss> self{{.name = "registers_single_read",
                       .step = 40,
                       .after = "warp_per_row",
                       .backend = device_backend,
                       .supports = supports,
                       .passes = {.loads = 1, .stores = 1},
                       .estimate = estimate,
                       .run = run}};

}  // namespace
}  // namespace rung
