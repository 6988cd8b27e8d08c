// SPDX-License-Identifier: Apache-2.0
// histogram / std: the baseline peer, a C++ loop over the values; with several threads, a
// std::thread and a table each.
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "rung/ops/histogram/peers/call.hpp"

namespace rung {
namespace {

template <class T>
void count(const T* begin, const T* end, const EvenBins<float>& bins, std::int32_t* counts) {
  for (const T* x = begin; x != end; ++x) {
    if constexpr (std::is_integral_v<T>) {
      ++counts[*x];
    } else {
      const std::int32_t bin = bins(*x);
      if (bin >= 0) ++counts[bin];
    }
  }
}

template <class T>
void count_all(const Histogram::Args& args, int threads) {
  const T* const x = static_cast<const T*>(args.x.data);
  const std::int64_t size = args.size();
  auto* const counts = static_cast<std::int32_t*>(args.counts.data);
  const auto bins = EvenBins<float>::make(args);
  std::fill_n(counts, args.bins(), 0);
  if (threads == 1) return count(x, x + size, bins, counts);
  std::vector<std::vector<std::int32_t>> tables(static_cast<std::size_t>(threads));
  std::vector<std::thread> team;
  team.reserve(tables.size());
  for (int rank = 0; rank < threads; ++rank) {
    team.emplace_back([&, rank] {
      // Allocated by the thread itself, so that threads share no cache line.
      std::vector<std::int32_t> table(static_cast<std::size_t>(args.bins()));
      count(x + size * rank / threads, x + size * (rank + 1) / threads, bins, table.data());
      tables[static_cast<std::size_t>(rank)] = std::move(table);
    });
  }
  for (std::thread& thread : team) thread.join();
  for (const auto& table : tables) {
    std::transform(table.begin(), table.end(), counts, counts, std::plus<>());
  }
}

Support supports(const Histogram::Args& args, const Context&) {
  return histogram_peer::supports_plain(args);
}

void run(const Histogram::Args& args, Context& context) {
  // Starting a thread takes about 20 us: for small x a threaded loop would be an unfair peer.
  const int threads = args.size() < 1 << 18 ? 1 : context.threads();
  visit<float, std::uint8_t>(args.x.dtype, [&]<class T>() { count_all<T>(args, threads); });
}

std::string about() { return "a loop in C++, std::thread"; }

const Rung<Histogram> self{
    {.name = "std", .peer = true, .about = about, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
