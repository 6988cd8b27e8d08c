// SPDX-License-Identifier: Apache-2.0
// Contiguous words that a warp accesses are checked together: a single different word among them
// must be found as if it were alone, with the right threads.
#include <algorithm>

#include "tests/simt/record_fixture.hpp"

namespace rung {
namespace {

class Row : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { simt::set_thread_order(simt::ThreadOrder::parse(GetParam())); }
  void TearDown() override { simt::set_thread_order({}); }
};
INSTANTIATE_TEST_SUITE_P(Orders, Row, testing::ValuesIn(thread_orders()), order_name);

/// Expects one race, between this thread of the first warp and this one of the second.
void expect_race(const Report& report, unsigned first, unsigned second) {
  ASSERT_EQ(report.findings.size(), 1u) << all_text(report);
  const Finding& race = report.findings[0];
  EXPECT_EQ(race.kind, Kind::race);
  const auto sides = std::minmax(race.thread.x, race.other_thread.x);
  EXPECT_EQ(sides.first, first) << all_text(report);
  EXPECT_EQ(sides.second, second) << all_text(report);
}

/// Reads or writes a row in the first warp, and accesses one element of it in one thread of the
/// second.
template <class T, bool Reads>
__global__ void one_of_a_row(T* row, T* other, unsigned at, bool barrier) {
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    if (Reads) {
      other[lane] = row[lane];
    } else {
      row[lane] = other[lane];
    }
  }
  if (barrier) __syncthreads();
  if (threadIdx.x == 32 + at) row[lane] = 0;
}

template <class T, bool Reads>
void expect_one_of_a_row() {
  Buffer<T> row(std::vector<T>(32, 2)), other(std::vector<T>(32, 1));
  for (const unsigned at : {0u, 1u, 13u, 31u}) {
    const auto run = [&](bool barrier) {
      return recorded_launch({.grid = 1, .block = 64}, one_of_a_row<T, Reads>, row.data(),
                             other.data(), at, barrier);
    };
    expect_clean(run(true));
    expect_race(run(false), at, 32 + at);
  }
}
TEST_P(Row, OneWordOfThoseRead) { expect_one_of_a_row<int, true>(); }
TEST_P(Row, OneWordOfThoseWritten) { expect_one_of_a_row<int, false>(); }
TEST_P(Row, OnePairOfThoseRead) { expect_one_of_a_row<double, true>(); }
TEST_P(Row, OnePairOfThoseWritten) { expect_one_of_a_row<double, false>(); }
TEST_P(Row, OneHalfOfThoseRead) { expect_one_of_a_row<short, true>(); }
TEST_P(Row, OneHalfOfThoseWritten) { expect_one_of_a_row<short, false>(); }
TEST_P(Row, OneByteOfThoseRead) { expect_one_of_a_row<unsigned char, true>(); }
TEST_P(Row, OneByteOfThoseWritten) { expect_one_of_a_row<unsigned char, false>(); }

/// Reads and writes each thread's element; one thread also writes its neighbor's.
template <class T>
__global__ void own_elements(T* row, T* out, unsigned at) {
  const unsigned i = threadIdx.x;
  for (int round = 0; round < 3; ++round) {
    out[i] = row[i];
    row[i] = static_cast<T>(row[i] + 1);
  }
  if (i == at) row[i ^ 1] = 0;
}

template <class T>
void expect_own_elements() {
  Buffer<T> row(std::vector<T>(64, 2)), out(64);
  const LaunchShape shape{.grid = 1, .block = 64};
  expect_clean(recorded_launch(shape, own_elements<T>, row.data(), out.data(), 64u));
  for (const unsigned at : {0u, 7u, 42u}) {
    const Report report = recorded_launch(shape, own_elements<T>, row.data(), out.data(), at);
    ASSERT_FALSE(report.findings.empty());
    for (const Finding& race : report.findings) {
      const auto sides = std::minmax(race.thread.x, race.other_thread.x);
      EXPECT_EQ(sides.first, at & ~1u) << to_text(race);
      EXPECT_EQ(sides.second, at | 1u) << to_text(race);
    }
  }
}
TEST_P(Row, WordsOfTheirOwn) { expect_own_elements<int>(); }
TEST_P(Row, PairsOfTheirOwn) { expect_own_elements<double>(); }
TEST_P(Row, HalvesOfTheirOwn) { expect_own_elements<short>(); }
TEST_P(Row, BytesOfTheirOwn) { expect_own_elements<unsigned char>(); }

/// Reads a row in several warps, of one block or of many; the last warp writes an element of it.
template <class T, bool Blocks>
__global__ void read_by_several(T* row, T* out, unsigned at) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = Blocks ? blockIdx.x : threadIdx.x / 32;
  const unsigned last = (Blocks ? gridDim.x : blockDim.x / 32) - 1;
  if (warp < last) {
    out[warp * 32 + lane] = row[lane];
  } else if (lane == at) {
    row[lane] = 0;
  }
}

template <class T, bool Blocks>
void expect_several_readers() {
  Buffer<T> row(std::vector<T>(32, 2)), out(256);
  for (const unsigned warps : {2u, 3u, 4u, 5u}) {
    for (const unsigned at : {0u, 6u, 31u}) {
      const LaunchShape shape{.grid = Blocks ? warps : 1, .block = Blocks ? 32 : 32 * warps};
      const Report report =
          recorded_launch(shape, read_by_several<T, Blocks>, row.data(), out.data(), at);
      ASSERT_EQ(report.findings.size(), 1u) << all_text(report);
      // The reported thread must have accessed the element: lane `at` of its warp.
      EXPECT_EQ(report.findings[0].thread.x % 32, at) << all_text(report);
      EXPECT_EQ(report.findings[0].other_thread.x % 32, at) << all_text(report);
    }
  }
}
TEST_P(Row, WordsThatWarpsRead) { expect_several_readers<int, false>(); }
TEST_P(Row, WordsThatBlocksRead) { expect_several_readers<int, true>(); }
TEST_P(Row, HalvesThatWarpsRead) { expect_several_readers<short, false>(); }
TEST_P(Row, HalvesThatBlocksRead) { expect_several_readers<short, true>(); }
TEST_P(Row, BytesThatWarpsRead) { expect_several_readers<unsigned char, false>(); }
TEST_P(Row, BytesThatBlocksRead) { expect_several_readers<unsigned char, true>(); }

/// Reads a row's bytes in some lanes, and writes its words in others, with or without a barrier.
__global__ void bytes_then_words(unsigned* row, unsigned* out, bool barrier) {
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) out[lane] = reinterpret_cast<const unsigned char*>(row)[lane];
  if (barrier) __syncthreads();
  if (threadIdx.x >= 32 && lane < 8) row[lane] = 0;
}
TEST_P(Row, BytesThatAreReadAndWordsThatAreWritten) {
  Buffer<unsigned> row(std::vector<unsigned>(8, 1)), out(32);
  const LaunchShape shape{.grid = 1, .block = 64};
  expect_clean(recorded_launch(shape, bytes_then_words, row.data(), out.data(), true));
  const Report report = recorded_launch(shape, bytes_then_words, row.data(), out.data(), false);
  ASSERT_EQ(report.findings.size(), 1u) << all_text(report);
  const auto sides = std::minmax(report.findings[0].thread.x, report.findings[0].other_thread.x);
  EXPECT_EQ(sides.first / 4, sides.second - 32) << all_text(report);
}

/// Reads a row in all blocks; one block writes an element that its thread has also read.
template <class T>
__global__ void readers_write(T* row, T* out, unsigned writer, unsigned at) {
  const unsigned lane = threadIdx.x;
  out[blockIdx.x * 32 + lane] = row[lane];
  if (blockIdx.x == writer && lane == at) row[lane] = 0;
}
template <class T>
void expect_another_reader() {
  Buffer<T> row(std::vector<T>(32, 2)), out(128);
  for (const unsigned writer : {0u, 1u, 3u}) {
    const Report report = recorded_launch({.grid = 4, .block = 32}, readers_write<T>, row.data(),
                                          out.data(), writer, 13u);
    ASSERT_FALSE(report.findings.empty());
    for (const Finding& race : report.findings) {
      EXPECT_NE(race.block.x, race.other_block.x) << to_text(race);
      EXPECT_EQ(race.thread.x, 13u) << to_text(race);
      EXPECT_EQ(race.other_thread.x, 13u) << to_text(race);
    }
  }
}
TEST_P(Row, AReaderWritesAWord) { expect_another_reader<int>(); }
TEST_P(Row, AReaderWritesAHalf) { expect_another_reader<short>(); }
TEST_P(Row, AReaderWritesAByte) { expect_another_reader<unsigned char>(); }

/// Reads only the first words in some blocks, all words in one, and writes one of the other words.
__global__ void longer_and_shorter(int* row, int* out, unsigned writer) {
  const unsigned lane = threadIdx.x;
  const unsigned readers = blockIdx.x == 2 ? 32 : 16;
  if (blockIdx.x == writer) {
    if (lane == 20) row[lane] = 0;
  } else if (lane < readers) {
    out[blockIdx.x * 32 + lane] = row[lane];
  }
}
TEST_P(Row, WordsOfWhichSomeHaveMoreReaders) {
  Buffer<int> row(std::vector<int>(32, 2)), out(160);
  for (const unsigned writer : {3u, 4u}) {
    const Report report = recorded_launch({.grid = writer + 1, .block = 32}, longer_and_shorter,
                                          row.data(), out.data(), writer);
    ASSERT_EQ(report.findings.size(), 1u) << all_text(report);
    EXPECT_EQ(report.findings[0].block.x + report.findings[0].other_block.x, 2 + writer);
  }
}

/// Reads the parts of a word in several lanes, one of which has written it.
template <class T>
__global__ void parts_of_a_word(unsigned* words, T* out, unsigned first, bool barrier) {
  constexpr unsigned parts = sizeof(unsigned) / sizeof(T);
  const unsigned lane = threadIdx.x;
  if (lane % parts == first) words[lane / parts] = lane;
  if (barrier) __syncwarp();
  out[lane] = reinterpret_cast<const T*>(words)[lane];
}
template <class T>
void expect_parts_of_a_word() {
  Buffer<unsigned> words(std::vector<unsigned>(16, 99));
  Buffer<T> out(32);
  for (unsigned first = 0; first < sizeof(unsigned) / sizeof(T); ++first) {
    const auto run = [&](bool barrier) {
      return recorded_launch({.grid = 1, .block = 32}, parts_of_a_word<T>, words.data(), out.data(),
                             first, barrier);
    };
    expect_clean(run(true));
    expect_finding(run(false), Kind::race, Space::global);
  }
}
TEST_P(Row, HalvesOfAWordThatOneLaneHasWritten) { expect_parts_of_a_word<short>(); }
TEST_P(Row, BytesOfAWordThatOneLaneHasWritten) { expect_parts_of_a_word<unsigned char>(); }

/// Reads words in one block and their bytes in another; a third block writes one of the bytes.
__global__ void words_and_bytes(unsigned* row, unsigned* out, bool words_first, unsigned at) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(row);
  const unsigned lane = threadIdx.x;
  if (blockIdx.x == 2) {
    if (lane == at) reinterpret_cast<unsigned char*>(row)[at] = 0;
  } else if ((blockIdx.x == 0) != words_first) {
    out[blockIdx.x * 32 + lane] = bytes[lane];
  } else if (lane < 8) {
    out[blockIdx.x * 32 + lane] = row[lane];
  }
}
TEST_P(Row, BlocksThatReadWordsAndBytes) {
  Buffer<unsigned> row(std::vector<unsigned>(8, 2)), out(64);
  for (const unsigned at : {2u, 7u, 29u}) {
    for (const bool words_first : {false, true}) {
      const Report report = recorded_launch({.grid = 3, .block = 32}, words_and_bytes, row.data(),
                                            out.data(), words_first, at);
      ASSERT_FALSE(report.findings.empty());
      for (const Finding& race : report.findings) {
        const bool writes = race.block.x == 2;
        EXPECT_EQ(writes ? race.thread.x : race.other_thread.x, at) << to_text(race);
        const unsigned block = writes ? race.other_block.x : race.block.x;
        const unsigned reader = writes ? race.other_thread.x : race.thread.x;
        EXPECT_EQ(reader, (block == 0) == words_first ? at / 4 : at) << to_text(race);
      }
    }
  }
}

/// Accesses more than a list of the recorder holds, with so many atomic operations that each thread
/// yields to others in between.
__global__ void count_bytes(const unsigned char* bytes, unsigned rounds, unsigned* bins) {
  for (unsigned i = 0; i < rounds; ++i) {
    atomicAdd(&bins[bytes[i * blockDim.x + threadIdx.x]], 1u);
  }
}
TEST_P(Row, LanesThatGiveWayStayInOneRequest) {
  constexpr unsigned rounds = 3000, threads = 64;
  std::vector<unsigned char> input(std::size_t{rounds} * threads);
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<unsigned char>(i * i >> 5);
  Buffer<unsigned char> bytes(input);
  Buffer<unsigned> bins(std::vector<unsigned>(256, 0));
  const Report report = recorded_launch({.grid = 1, .block = threads}, count_bytes, bytes.data(),
                                        rounds, bins.data());
  expect_clean(report);
  const simt::record::Counters& totals = report.kernels.at(0).totals;
  EXPECT_EQ(totals.global_load_requests, rounds * threads / 32);
  EXPECT_EQ(totals.global_load_sectors, rounds * threads / 32);
  EXPECT_EQ(totals.atomic_requests, rounds * threads / 32);
}

}  // namespace
}  // namespace rung
