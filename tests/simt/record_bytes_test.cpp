// SPDX-License-Identifier: Apache-2.0
// Races on parts of words: bytes and halves of one word with different owners, and words accessed
// whole and in part. The two sides of a race must be different threads.
#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

class Parts : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { simt::set_thread_order(simt::ThreadOrder::parse(GetParam())); }
  void TearDown() override { simt::set_thread_order({}); }
};
INSTANTIATE_TEST_SUITE_P(Orders, Parts, testing::ValuesIn(thread_orders()), order_name);

/// Expects at least one race, each between two different threads.
void expect_two_threads(const Report& report) {
  EXPECT_FALSE(report.findings.empty());
  const auto same = [](const auto& a, const auto& b) {
    return a.x == b.x && a.y == b.y && a.z == b.z;
  };
  for (const Finding& one : report.findings) {
    EXPECT_EQ(one.kind, Kind::race);
    EXPECT_NE(one.other_line, 0) << to_text(one);
    EXPECT_FALSE(same(one.block, one.other_block) && same(one.thread, one.other_thread))
        << to_text(one);
  }
}

/// Reads element 0 in several blocks; the last block adds to element `own` of the same word.
template <class T>
__global__ void read_and_add(T* same, int own, int* out) {
  if (blockIdx.x + 1 < gridDim.x) {
    out[blockIdx.x * blockDim.x + threadIdx.x] = same[0];
  } else if (threadIdx.x == 0) {
    same[own]++;
  }
}

template <class T>
void neighbors_in_a_word() {
  Buffer<T> same(std::vector<T>(8, 1));
  Buffer<int> out(256);
  for (const unsigned blocks : {2u, 4u}) {
    const LaunchShape shape{.grid = blocks, .block = 64};
    expect_clean(recorded_launch(shape, read_and_add<T>, same.data(), 1, out.data()));
    expect_two_threads(recorded_launch(shape, read_and_add<T>, same.data(), 0, out.data()));
  }
}
TEST_P(Parts, BytesOfAWordBelongToSeveralBlocks) { neighbors_in_a_word<unsigned char>(); }
TEST_P(Parts, HalvesOfAWordBelongToSeveralBlocks) { neighbors_in_a_word<short>(); }

/// Writes and reads the halves of each word in two warps; a third warp sums the words after a
/// barrier.
template <bool Correct>
__global__ void halves(int* out) {
  auto* half = static_cast<short*>(simt::shared_memory());
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp == 0) reinterpret_cast<int*>(half)[lane] = 0;
  __syncthreads();
  if (warp < 2) {
    half[2 * lane + warp] = static_cast<short>(lane);
    half[2 * lane + warp] = static_cast<short>(half[2 * lane + warp] + 1);
  }
  if (Correct) __syncthreads();
  if (warp == 2) out[lane] = reinterpret_cast<int*>(half)[lane];
}

TEST_P(Parts, HalvesOfWarpsThenWholeWords) {
  Buffer<int> out(32);
  const LaunchShape shape{.grid = 1, .block = 96, .shared_bytes = 128};
  expect_clean(recorded_launch(shape, halves<true>, out.data()));
  EXPECT_EQ(out.values()[3], 0x40004);
  expect_two_threads(recorded_launch(shape, halves<false>, out.data()));
}

/// Reads whole words, in blocks that each write one byte of them.
__global__ void bytes_of_words(unsigned* words, unsigned* out) {
  out[blockIdx.x] = words[0];
  if (blockIdx.x != 0) reinterpret_cast<unsigned char*>(words)[blockIdx.x] = 7;
}
/// Reads bytes in all blocks, and writes the words in one of them.
__global__ void words_of_bytes(const unsigned char* bytes, unsigned* words, unsigned* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = bytes[threadIdx.x];
  if (blockIdx.x == 1 && threadIdx.x % 4 == 0) words[threadIdx.x / 4] = threadIdx.x;
}

TEST_P(Parts, WholeWordsRaceWithTheirBytes) {
  Buffer<unsigned> words(std::vector<unsigned>(16, 0)), out(256);
  expect_two_threads(
      recorded_launch({.grid = 4, .block = 1}, bytes_of_words, words.data(), out.data()));
  const auto* bytes = reinterpret_cast<const unsigned char*>(words.data());
  expect_two_threads(
      recorded_launch({.grid = 4, .block = 64}, words_of_bytes, bytes, words.data(), out.data()));
}

/// Reads bytes in all blocks, more than once, which is no race.
__global__ void table(const unsigned char* bytes, unsigned* out) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 64; ++i) sum += bytes[(i * threadIdx.x) % 64] + bytes[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
TEST_P(Parts, AllBlocksMayReadBytes) {
  Buffer<unsigned char> bytes(std::vector<unsigned char>(64, 1));
  Buffer<unsigned> out(256);
  expect_clean(recorded_launch({.grid = 4, .block = 64}, table, bytes.data(), out.data()));
}

/// Reads the neighbors' elements and its own, then writes its own.
__global__ void in_place(int* x) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x + 1;
  x[i] = x[i - 1] + x[i] + x[i + 1];
}
/// Reads one element in all threads, and writes it in one.
template <bool Shared>
__global__ void read_by_all(int* x, unsigned writer) {
  int* one = Shared ? static_cast<int*>(simt::shared_memory()) : x;
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (Shared && threadIdx.x == 0) one[0] = 1;
  __syncthreads();
  const int seen = one[0];
  x[1 + i] = seen;
  if (i == writer) one[0] = seen + 1;
}

TEST_P(Parts, NoThreadRacesWithItself) {
  Buffer<int> x(std::vector<int>(258, 1));
  expect_two_threads(recorded_launch({.grid = 4, .block = 64}, in_place, x.data()));
  for (const unsigned writer : {0u, 1u, 31u, 32u, 63u}) {
    const LaunchShape one{.grid = 1, .block = 64, .shared_bytes = 4};
    expect_two_threads(recorded_launch(one, read_by_all<true>, x.data(), writer));
    const LaunchShape many{.grid = 4, .block = 64, .shared_bytes = 4};
    for (const unsigned block : {0u, 1u, 3u}) {
      expect_two_threads(recorded_launch(many, read_by_all<false>, x.data(), 64 * block + writer));
    }
  }
}

}  // namespace
}  // namespace rung
