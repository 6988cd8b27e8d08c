// SPDX-License-Identifier: Apache-2.0
// reduce / general
//
// Idea     any call in one launch: as many threads to a result as it has work for, from one lane to
//          blocks all over the device. Elements are read one by one, wherever strides put them, and
//          widened to f64 or to 64-bit integers.
// Changes  against atomic_finish: every type, operation, axis, stride and segment. Blocks that
//          share a result leave their states in memory; the last one to finish, which a ticket
//          tells, joins them in the order of the elements. No second launch, and the same bits
//          every time.
// Cost     an element a load; f64 additions (with two-sum for all floating sums, six of them).
// Limits   every valid call. 1- and 2-byte elements use an eighth of a load's width.
// Source   NVIDIA, threadFenceReduction sample, for the ticket.
#include "rung/core/tensor.hpp"
#include "rung/ops/reduce/cuda/detail/single_pass.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

namespace {

constexpr std::int64_t ticket_words = most_tickets;
constexpr std::int64_t mailbox_words = most_mailboxes * 8;
constexpr std::int64_t launch_words = block_threads;  // two would do

__global__ void reduce_zero(unsigned* words) {
  const std::int64_t i = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  words[i] = i == ticket_words + 2 * mailbox_words ? 1 : 0;  // the number of the next launch
}

}  // namespace

Zeroed zeroed_of(Context& context) {
  struct Memory {
    Tensor words;
  };
  Tensor& words = context.memo<Memory>().words;
  if (words.ref().data == nullptr) {
    constexpr std::int64_t count = ticket_words + 2 * mailbox_words + launch_words;
    words = Tensor(DType::i32, Extents{count}, context.device());
    launch(context, {.grid = count / block_threads, .block = block_threads}, reduce_zero,
           words.data<unsigned>());
  }
  unsigned* const tickets = words.data<unsigned>();
  unsigned* const mailboxes = tickets + ticket_words;
  unsigned* const marked = mailboxes + mailbox_words;
  return {tickets, mailboxes, marked, reinterpret_cast<std::uint64_t*>(marked + mailbox_words)};
}

namespace {

using reduce_fold::Fold;

struct Elements {
  const void* x;
  DType dtype;
  Collapsed<1> terms;
};

/// Element `at` of any type as W: double, or a 64-bit integer.
template <class W>
__device__ __forceinline__ W load_any(const Elements& from, Index at) {
  const auto get = [&]<class T>(const T* x) {
    return static_cast<W>(convert<Accumulator<T>>(x[at]));
  };
  if constexpr (std::is_integral_v<W>) {
    switch (from.dtype) {
      case DType::i8:
        return get(static_cast<const std::int8_t*>(from.x));
      case DType::u8:
        return get(static_cast<const std::uint8_t*>(from.x));
      case DType::u16:
        return get(static_cast<const std::uint16_t*>(from.x));
      case DType::i32:
        return get(static_cast<const std::int32_t*>(from.x));
      default:
        return get(static_cast<const std::int64_t*>(from.x));
    }
  } else {
    switch (from.dtype) {
      case DType::f32:
        return get(static_cast<const float*>(from.x));
      case DType::f16:
        return get(static_cast<const f16*>(from.x));
      case DType::bf16:
        return get(static_cast<const bf16*>(from.x));
      default:
        return get(static_cast<const double*>(from.x));
    }
  }
}

template <class F>
__global__ void __launch_bounds__(block_threads)
    reduce_general(Elements elements, Places places, Sharing sharing, Result result, F fold) {
  using State = typename F::State;
  using W = typename F::Element;
  fold_results(places, sharing, result, fold,
               [&](State& state, const Places::Place& place, const Worker& worker) {
                 const Index step = worker.count();
                 for (Index i = worker.index(); i < place.count; i += step) {
                   const Index at = place.x + elements.terms.offset(place.first + i);
                   fold.take(state, Pack<W, 1>{{load_any<W>(elements, at)}}, i);
                 }
               });
}

template <class F>
void run_fold(const Reduce::Args& args, Context& context, const F& fold) {
  const auto kernel = reduce_general<F>;
  constexpr std::size_t shared_bytes = sizeof(FinishScratch<F>);
  Sharing sharing = share_out(args.results(), average_terms(args), 4,
                              resident_blocks(context, kernel, block_threads, shared_bytes));
  if (sharing.results == 0) return;
  provide<typename F::State>(sharing, context);
  launch(context, {.grid = sharing.blocks(), .block = block_threads, .shared_bytes = shared_bytes},
         kernel, Elements{args.x.data, args.x.dtype, args.terms}, places_of(args), sharing,
         result_of(args), fold);
}

template <class W>
void run_wide(const Reduce::Args& args, Context& context) {
  const Fold fold = reduce_fold::fold_of(args.operation);
  switch (fold) {
    case Fold::sum:
      return run_fold(args, context, SumFold<W>{});
    case Fold::squares:
      if constexpr (!std::is_integral_v<W>) run_fold(args, context, SquareFold<W>{});
      return;
    case Fold::product:
      return run_fold(args, context, ProductFold<W>{});
    default: {
      const Flip flip{fold == Fold::greatest};
      if (args.is_arg()) return run_fold(args, context, PositionFold<W>{flip});
      return run_fold(args, context, ExtremeFold<W>{flip});
    }
  }
}

double estimate(const Reduce::Args& args, const Context& context) {
  constexpr double launch_seconds = 4e-6;
  return launch_seconds +
         Reduce::cost(args).operations * 4 / nominal_rates(context).bytes_per_second / 0.4;
}

void run(const Reduce::Args& args, Context& context) {
  if (is_floating(args.x.dtype)) {
    run_wide<double>(args, context);
  } else {
    run_wide<std::int64_t>(args, context);
  }
}

const Rung<Reduce> self{{.name = "general",
                         .step = 115,
                         .after = "atomic_finish",
                         .backend = device_backend,
                         .estimate = estimate,
                         .run = run}};

}  // namespace
}  // namespace rung::reduce_cuda::inline RUNG_TARGET
