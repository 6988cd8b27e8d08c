// SPDX-License-Identifier: Apache-2.0
// How blocks of reduce hand their states to the one that joins them, without a ticket: the state
// goes out in words of 16 bytes that carry 8 bytes of it and a mark. A word arrives in one piece,
// so that whoever sees the mark has the rest; no fence, no counter, and one way through the memory
// instead of three (state, ticket, state).
//
// Mailboxes are empty between launches: the reader clears them. The reader is the block with the
// highest index of those that share a result: blocks start in the order of their indices, so that
// all it waits for have started.
#pragma once

#include <cstdint>
#include <cstring>

#include "rung/device/ptx_memory.hpp"

namespace rung::reduce_cuda::inline RUNG_TARGET {

struct alignas(16) MarkedWord {
  std::uint64_t payload;
  std::uint64_t mark;  // 1: sent
};

struct Mailbox {
  static constexpr int words = 2;
  MarkedWord word[words];
};

template <class State>
inline constexpr int words_of = (static_cast<int>(sizeof(State)) + 7) / 8;

/// Sends a state in words with this mark.
template <class State>
__device__ __forceinline__ void send(MarkedWord* to, const State& state, std::uint64_t mark) {
  std::uint64_t payload[words_of<State>] = {};
  memcpy(payload, &state, sizeof(State));
#pragma unroll
  for (int i = 0; i < words_of<State>; ++i) {
    ptx::store_relaxed(to + i, MarkedWord{payload[i], mark});
  }
}
template <class State>
__device__ __forceinline__ void send(Mailbox& to, const State& state) {
  static_assert(words_of<State> <= Mailbox::words);
  send(to.word, state, 1);
}

/// Waits for a state in words with this mark.
template <class State>
__device__ __forceinline__ State receive(const MarkedWord* from, std::uint64_t mark) {
  std::uint64_t payload[words_of<State>];
#pragma unroll
  for (int i = 0; i < words_of<State>; ++i) {
    MarkedWord word;
    do {
      word = ptx::load_relaxed(from + i);
    } while (word.mark != mark);
    payload[i] = word.payload;
  }
  State state;
  memcpy(&state, payload, sizeof(State));
  return state;
}
/// Waits for a state, and empties its mailbox.
template <class State>
__device__ __forceinline__ State receive(Mailbox& from) {
  const auto state = receive<State>(from.word, 1);
#pragma unroll
  for (int i = 0; i < words_of<State>; ++i) {
    ptx::store_relaxed(&from.word[i], MarkedWord{0, 0});
  }
  return state;
}

}  // namespace rung::reduce_cuda::inline RUNG_TARGET
