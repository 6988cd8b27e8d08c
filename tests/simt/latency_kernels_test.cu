// SPDX-License-Identifier: Apache-2.0
// The kernels by which `rung machine` measures a GPU perform the counted operations.
#include "rung/bench/latency_kernels.hpp"
#include "tests/simt/device_fixture.hpp"

namespace rung::latency_kernels_test {
namespace {

class LatencyKernelsTest : public DeviceTest {};

TEST_P(LatencyKernelsTest, AChainVisitsEveryLineOnceAndEndsWhereItBegan) {
  constexpr unsigned lines = 256;
  Context c = context();
  Buffer<unsigned> chain(std::size_t{lines} * bench::words_per_line);
  launch(c, {.grid = 3, .block = 32}, bench::link_chain, chain.data(), lines);
  const std::vector<unsigned> words = chain.values();
  std::vector<int> visits(lines);
  unsigned at = 0;
  for (unsigned i = 0; i < lines; ++i) {
    ASSERT_EQ(at % bench::words_per_line, 0u);
    ++visits.at(at / bench::words_per_line);
    at = words[at];
  }
  EXPECT_EQ(at, 0u);
  EXPECT_EQ(visits, std::vector<int>(lines, 1));

  const auto end = [&](auto next, unsigned warm_up, unsigned steps) {
    Buffer<bench::Walk> walk(std::vector<bench::Walk>{{0, 0, 0}});
    launch(c, {.grid = 1, .block = 1}, bench::follow_in_global_memory<decltype(next)>, chain.data(),
           warm_up, steps, next, walk.data());
    return walk.values()[0].at;
  };
  EXPECT_EQ(end(bench::Load{}, lines, lines - 1), end(bench::Load{}, lines - 1, 0));
  EXPECT_EQ(end(bench::Load{}, lines, 2 * lines), 0u);
  EXPECT_EQ(end(bench::AtomicAdd{0}, 0, 1), words[0]);
  EXPECT_EQ(chain.values(), words) << "an addition of nothing changes nothing";
}

TEST_P(LatencyKernelsTest, AChainInSharedMemoryIsACycleToo) {
  Context c = context();
  Buffer<bench::Walk> walk(std::vector<bench::Walk>{{0, 0, 0}});
  launch(c, {.grid = 1, .block = 1, .shared_bytes = sizeof(bench::SharedChain)},
         bench::follow_in_shared_memory<bench::Load>, 3 * bench::shared_lines, bench::Load{},
         walk.data());
  EXPECT_EQ(walk.values()[0].at, 0u);
  launch(c, {.grid = 1, .block = 1, .shared_bytes = sizeof(bench::SharedChain)},
         bench::follow_in_shared_memory<bench::Load>, 1u, bench::Load{}, walk.data());
  EXPECT_EQ(walk.values()[0].at,
            bench::line_after(0u, bench::shared_lines) * bench::words_per_line);
}

TEST_P(LatencyKernelsTest, EveryAdditionCounts) {
  constexpr int blocks = 3, threads = blocks * bench::atomic_block, turns = 5;
  Context c = context();
  Buffer<unsigned> sums{std::vector<unsigned>(threads)};
  const LaunchShape shape{
      .grid = blocks, .block = bench::atomic_block, .shared_bytes = sizeof(bench::SharedSums)};
  launch(c, shape, bench::add_to_global_memory, sums.data(), 1u, 2u, turns);
  EXPECT_EQ(sums.values(), std::vector<unsigned>(threads, 2 * turns));
  launch(c, shape, bench::add_to_global_memory, sums.data(), 0u, 2u, turns);
  EXPECT_EQ(sums.values()[0], 2u * turns * (threads + 1));
  for (const unsigned spread : {0u, 1u}) {
    launch(c, shape, bench::add_to_shared_memory, sums.data(), spread, 2u, turns);
    EXPECT_EQ(sums.values()[blocks - 1], 2u * turns * bench::atomic_block);
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, LatencyKernelsTest, testing::ValuesIn(thread_orders()),
                         order_name);

}  // namespace
}  // namespace rung::latency_kernels_test
