// SPDX-License-Identifier: Apache-2.0
// Repeated launches: selects the launches to be recorded.
//
// A launch is described by words: its shape and its arguments. A pointer into registered memory is
// replaced by a description of the memory, so that two buffers of the same size are equal, and a
// pointer to freed memory differs. A word that takes many values, such as a step number or a seed,
// is ignored from then on. A launch is a repetition if all its other words equal those of a
// recorded launch.
#include "rung/emulate/runtime/repetition.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "rung/emulate/runtime/unhooked.hpp"
#include "rung/simt/record.hpp"

namespace rung::cuda {
namespace {

namespace record = simt::record;

// A kernel is no longer recorded once it has reached both numbers of an entry: recorded launches
// since its last finding, and requests of these launches. Recording them takes about 0.1 s.
struct Enough {
  std::uint64_t launches, requests;
};
constexpr Enough enough[] = {
    {8, std::uint64_t{1} << 18}, {3, std::uint64_t{1} << 20}, {2, std::uint64_t{1} << 22}};
constexpr std::size_t max_values = 8;  // maximum number of values of a word before it is ignored
constexpr std::size_t max_kinds = 64;  // maximum number of distinct launches

/// The option --checks. A host program that loads kernels may change it between launches.
struct Policy {
  std::atomic<bool> follows = false;     // the session counts or checks, but not all launches
  std::atomic<std::uint64_t> first = 0;  // number of launches to record; 0: use the table `enough`
  std::atomic<bool> whole = false;       // record all blocks of recorded launches

  void set(const std::string& launches) {
    const auto wanted = [](const char* name) {
      const char* value = std::getenv(name);
      return value != nullptr && value[0] == '1';
    };
    follows =
        (wanted("RUNG_EMULATE_CHECKS") || wanted("RUNG_EMULATE_COUNTERS")) && launches != "always";
    first = std::strtoull(launches.c_str(), nullptr, 10);
  }
  Policy() {
    const char* const given = std::getenv("RUNG_EMULATE_RECORDED_LAUNCHES");
    set(given != nullptr ? given : "");
  }
};
Policy& policy() {
  static Policy one;
  return one;
}

struct Word {
  bool written = false;  // the kernel writes to the memory to which the pointer points
  std::unordered_set<std::uint64_t> values;
  [[nodiscard]] bool tells() const { return values.size() <= max_values; }
};

}  // namespace

struct LaunchHistory {
  record::PartlyRecorded report;
  std::uint64_t clean = 0;     // recorded launches since the last finding
  std::uint64_t requests = 0;  // requests of these launches
  bool elsewhere = false;      // the kernel has written to memory to which no argument points
  bool gap = false;            // a launch was not recorded
  bool listed = false;         // already listed in the report
  std::vector<Word> words;
  std::unordered_set<std::uint64_t> kinds;  // hashes of the words of recorded launches

  /// Adds the launch's words. Returns true if an equal launch has been recorded before.
  bool knows(const std::vector<std::uint64_t>& launch);
  [[nodiscard]] bool is_enough() const {
    if (policy().first != 0) return clean >= policy().first;
    return std::any_of(std::begin(enough), std::end(enough), [&](const Enough& one) {
      return clean >= one.launches && requests >= one.requests;
    });
  }
  void forget() {
    clean = requests = 0;
    kinds.clear();
  }
};

bool LaunchHistory::knows(const std::vector<std::uint64_t>& launch) {
  if (words.size() != launch.size()) words.assign(launch.size(), Word());
  bool new_value = false;
  std::uint64_t kind = 0;
  for (std::size_t i = 0; i < launch.size(); ++i) {
    Word& word = words[i];
    if (!word.tells()) continue;
    new_value |= word.values.insert(launch[i]).second;
    if (word.tells()) {
      kind = std::rotl(kind, 23) * 0x9e3779b97f4a7c15u + launch[i] + i;
    } else {
      kinds.clear();  // the hashes include this word
    }
  }
  const bool new_kind = kinds.size() < max_kinds && kinds.insert(kind).second;
  return !new_value && !new_kind;
}

namespace {

struct Histories {
  std::mutex mutex;
  std::unordered_map<const void*, LaunchHistory> of;  // by kernel
  std::vector<const LaunchHistory*> partly;
};
Histories& histories() {
  static Histories& one = *new Histories;
  return one;
}

/// Lists the kernel in the report, once.
void list(LaunchHistory& history, const std::string& kernel) {
  if (std::exchange(history.listed, true)) return;
  history.report.kernel = kernel;
  histories().partly.push_back(&history);
}

/// Returns true if launch number `launch`, counted from 0, is always recorded, as a sample: the
/// 16th, 64th, 256th, ... launch.
bool is_sample(std::uint64_t launch) {
  const std::uint64_t number = launch + 1;
  const bool power_of_four = std::has_single_bit(number) && std::countr_zero(number) % 2 == 0;
  return number >= 16 && power_of_four;
}

}  // namespace

std::vector<std::uint64_t> Repetition::describe(const Closure& closure) {
  std::vector<std::uint64_t> words;
  for (const simt::dialect::dim3& extent : {launch_.grid, launch_.block, launch_.cluster}) {
    words.insert(words.end(), {extent.x, extent.y, extent.z});
  }
  words.push_back(launch_.shared_gap_begin);  // dynamic shared memory
  words.push_back(static_cast<std::uint64_t>(launch_.device));
  const auto* bytes = static_cast<const std::byte*>(closure.arguments);
  for (std::size_t at = 0; at < closure.argument_bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof(word), closure.argument_bytes - at));
    const auto* const pointer = reinterpret_cast<const std::byte*>(word);
    if (const record::Memory found = record::find_memory(pointer); found.bytes != 0) {
      pointers_.push_back({words.size(), found.begin});
      const auto* const end = static_cast<const std::byte*>(found.begin) + found.bytes;
      words.push_back(static_cast<std::uint64_t>(end - pointer));
      words.push_back(static_cast<std::uint64_t>(found.space) + (std::uint64_t{1} << 32));
    } else {
      words.push_back(word & 0xffffffffu);
      words.push_back(word >> 32);
    }
  }
  return words;
}

Repetition::Repetition(simt::Launch& launch, const Closure& closure)
    : launch_(launch), follows_(policy().follows) {
  if (!follows_) return;
  launch.summary = &summary_;
  const std::vector<std::uint64_t> words = describe(closure);
  const std::lock_guard lock(histories().mutex);
  LaunchHistory& history = histories().of[launch.kernel];
  const bool repeats = history.knows(words);
  launch.unrecorded = repeats && history.is_enough() && !is_sample(history.report.launches);
  if (launch.unrecorded) launch.entry = without_hooks(closure.run);
  if (policy().first == 0 && !policy().whole) launch.unrecorded_entry = without_hooks(closure.run);
}

Repetition::~Repetition() {
  if (!follows_ || ended_) return;
  const std::lock_guard lock(histories().mutex);
  histories().of[launch_.kernel].forget();
}

void Repetition::ended_well(const std::string& kernel) {
  ended_ = true;
  if (!follows_) return;
  const std::lock_guard lock(histories().mutex);
  LaunchHistory& history = histories().of[launch_.kernel];
  ++history.report.launches;
  if (launch_.unrecorded) {
    history.gap = true;
    list(history, kernel);
    // The writes of an unrecorded launch are unknown: all memory that its arguments reach counts as
    // written if recorded launches have written it.
    for (const Pointer& one : pointers_) {
      if (history.words[one.word].written) record::mark_whole_initialized(one.memory);
    }
    if (history.elsewhere) record::mark_whole_initialized(nullptr);
    return;
  }
  ++history.report.recorded;
  if (summary_.blocks_left_out != 0) {
    const simt::dialect::dim3& grid = launch_.grid;
    const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
    history.report.blocks += blocks;
    history.report.recorded_blocks += blocks - summary_.blocks_left_out;
    list(history, kernel);
  }
  if (!history.gap) ++history.report.first;
  learn(history);
  if (summary_.findings != 0) {
    history.forget();
  } else {
    ++history.clean;
    history.requests += summary_.requests;
  }
}

void Repetition::learn(LaunchHistory& history) const {
  for (const void* written : summary_.written) {
    bool pointed_at = false;
    for (const Pointer& one : pointers_) {
      if (one.memory != written) continue;
      history.words[one.word].written = pointed_at = true;
    }
    history.elsewhere |= !pointed_at && !record::find_memory(written).initialized;
  }
}

void set_recorded_launches(const std::string& launches) {
  policy().set(launches);
  policy().whole = true;  // host programs that load kernels select whole launches
}

std::vector<record::PartlyRecorded> partly_recorded() {
  const std::lock_guard lock(histories().mutex);
  std::vector<record::PartlyRecorded> all;
  for (const LaunchHistory* one : histories().partly) all.push_back(one->report);
  return all;
}

}  // namespace rung::cuda
